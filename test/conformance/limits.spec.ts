import { describe, expect, it } from 'vitest';
import type { LimitRule } from '#lib/contract/limit-verbs.js';
import { encodeBody } from '#lib/job/job-record.js';
import { completed, dead, LEASE_MS, QUEUE, released, retried } from '../scripts/support.js';
import { ENGINES, useEngine } from './support.js';

const recovering = { beatMs: 2_000, leaseMs: LEASE_MS, maxStalls: 5 };

describe.each(ENGINES)('limits and groups on %s', (kind) => {
  const t = useEngine(kind);
  const set = (field: string, rule: LimitRule | null, part: 'code' | 'live' = 'live') =>
    t.engine.limits.set(QUEUE, field, part, rule);
  const slow = (max: number) => ({ rate: { max, per: 1_000, window: 'sliding', burst: max } }) as const;

  /** A job with an id like `tenant.3`, of that group. */
  const grouped = (id: string, more: { priority?: number; cost?: number } = {}) => {
    const group = id.split('.')[0]!;
    return {
      id,
      name: 'job',
      hasOwnId: true,
      group,
      ...more,
      body: encodeBody('job', t.now, { group, ...more }, ''),
    };
  };
  const named = (id: string) => {
    const name = id.split('.')[0]!;
    return { id, name, hasOwnId: true, body: encodeBody(name, t.now, {}, '') };
  };
  const some = (group: string, count: number) =>
    Array.from({ length: count }, (_, i) => grouped(`${group}.${i}`));

  /** The claimed jobs, and when the next claim can succeed. */
  async function take(want: number, worker?: string) {
    const { claimed, supply } = await t.exchanged({ want, ...(worker && { worker }) });
    return { ids: claimed.map(({ id }) => id), supply };
  }

  describe('rate', () => {
    it('allows at most max starts in any period of its length', async () => {
      await set('q', slow(3));
      await t.add('a', 'b', 'c', 'd', 'e', 'f', 'g');
      expect(await take(2)).toEqual({ ids: ['a', 'b'], supply: 'more' });
      await t.advance(400);
      expect(await take(9)).toEqual({ ids: ['c'], supply: { limitedForMs: 610 } });
      await t.advance(609);
      expect(await take(9)).toEqual({ ids: [], supply: { limitedForMs: 1 } });
      await t.advance(1);
      expect(await take(9)).toEqual({ ids: ['d', 'e'], supply: { limitedForMs: 400 } });
    });

    it('of a sliding window with a burst spreads its starts, and makes up for late ones', async () => {
      await set('q', { rate: { max: 10, per: 1_000, window: 'sliding', burst: 2 } });
      await t.add(...'a b c d e f g h i j k l m n'.split(' '));
      expect(await take(9)).toEqual({ ids: ['a', 'b'], supply: { limitedForMs: 100 } });
      await t.advance(99);
      expect(await take(9)).toEqual({ ids: [], supply: { limitedForMs: 1 } });
      await t.advance(201);
      expect(await take(9)).toEqual({ ids: ['c', 'd'], supply: { limitedForMs: 100 } });
      await t.advance(100);
      expect(await take(1)).toEqual({ ids: ['e'], supply: 'more' });
      await t.advance(50);
      for (const ids of [
        ['f', 'g'],
        ['h', 'i'],
      ]) {
        expect(await take(9)).toEqual({ ids, supply: { limitedForMs: 100 } });
        await t.advance(100);
      }
      expect(await take(9)).toEqual({ ids: ['j'], supply: { limitedForMs: 351 } });
      await t.advance(351);
      expect(await take(9)).toEqual({ ids: ['k', 'l'], supply: { limitedForMs: 300 } });
    });

    it('of a fixed window begins anew when the window is over', async () => {
      await set('q', { rate: { max: 2, per: 1_000, window: 'fixed', burst: 2 } });
      await t.add('a', 'b', 'c', 'd');
      expect(await take(9)).toEqual({ ids: ['a', 'b'], supply: { limitedForMs: 1_000 } });
      await t.advance(1_000);
      expect((await take(9)).ids).toEqual(['c', 'd']);
    });

    it('of a bucket lets its burst start at once, and then one after another', async () => {
      await set('q', { rate: { max: 10, per: 1_000, window: 'bucket', burst: 2 } });
      await t.add('a', 'b', 'c', 'd');
      expect(await take(9)).toEqual({ ids: ['a', 'b'], supply: { limitedForMs: 100 } });
      await t.advance(100);
      expect(await take(9)).toEqual({ ids: ['c'], supply: { limitedForMs: 100 } });
    });

    it('starts again if its window is changed', async () => {
      const rate = { max: 1, per: 1_000, burst: 1 };
      await set('q', { rate: { ...rate, window: 'sliding' } });
      await t.add('a', 'b', 'c', 'd');
      expect((await take(9)).ids).toEqual(['a']);
      await set('q', { rate: { ...rate, window: 'bucket' } });
      expect(await take(9)).toEqual({ ids: ['b'], supply: { limitedForMs: 1_000 } });
      await set('q', { rate: { ...rate, window: 'fixed' } });
      expect(await take(9)).toEqual({ ids: ['c'], supply: { limitedForMs: 1_000 } });
    });

    it('holds all jobs for as long as a handler asks, or longer if a longer hold exists', async () => {
      await t.add('a');
      await t.engine.limits.charge(QUEUE, [
        { field: 'q', holdMs: 500, count: 0 },
        { field: 'q', holdMs: 200, count: 0 },
      ]);
      expect(await take(1)).toEqual({ ids: [], supply: { limitedForMs: 500 } });
      await t.advance(500);
      expect((await take(1)).ids).toEqual(['a']);
    });

    it.each(['n:mail', 'g:a', 'q'])('leaves no data of a hold of %s once that is over', async (field) => {
      const hold = () => t.engine.limits.charge(QUEUE, [{ field, holdMs: 500, count: 0 }]);
      await hold();
      const own = field.startsWith('g:') ? grouped('a.0') : named('mail.1');
      await t.add(own, named('page.1'));
      await t.advance(500);
      expect((await take(9)).ids.toSorted()).toEqual([own.id, 'page.1'].toSorted());
      await t.settle(completed(own.id), completed('page.1'));
      await hold();
      await t.advance(500);
      await take(1);
      await take(1);
      expect(await t.engine.limits.list(QUEUE)).toMatchObject([{ field: 'q', rule: {} }]);
      expect(await t.exchanged({ want: 1 })).not.toHaveProperty('isLimited');
    });

    it('ends a hold early, and changes nothing without a hold', async () => {
      await t.add(named('mail.1'), named('page.1'));
      for (const field of ['n:mail', 'q', 'g:a'])
        await t.engine.limits.charge(QUEUE, [{ field, holdMs: -1, count: 0 }]);
      expect(await t.engine.limits.list(QUEUE)).toMatchObject([{ field: 'q', rule: {} }]);
      for (const field of ['n:mail', 'q'])
        await t.engine.limits.charge(QUEUE, [{ field, holdMs: 60_000, count: 0 }]);
      expect((await take(9)).ids).toEqual([]);
      await t.engine.limits.charge(QUEUE, [{ field: 'q', holdMs: -1, count: 0 }]);
      expect((await take(9)).ids).toEqual(['page.1']);
      await t.engine.limits.charge(QUEUE, [{ field: 'n:mail', holdMs: -1, count: 0 }]);
      expect((await take(9)).ids).toEqual(['mail.1']);
    });

    it('of a name whose rule was removed keeps its line until that is empty', async () => {
      await set('n:mail', slow(1));
      await t.add(named('mail.1'), named('mail.2'));
      expect((await take(9)).ids).toEqual(['mail.1']);
      await set('n:mail', null);
      await t.add(named('mail.3'));
      expect((await take(9)).ids).toEqual(['mail.2', 'mail.3']);
      await take(9);
      expect(await t.engine.limits.list(QUEUE)).toHaveLength(1);
    });

    it('of one name does not hold up the others', async () => {
      await set('n:mail', slow(1));
      await t.add(named('mail.1'), named('mail.2'), named('page.1'), named('mail.3'), named('page.2'));
      expect(await take(9)).toEqual({ ids: ['mail.1', 'page.1', 'page.2'], supply: { limitedForMs: 1_010 } });
      await t.advance(1_010);
      expect((await take(9)).ids).toEqual(['mail.2']);
    });
  });

  describe('concurrency', () => {
    it('of a queue counts all workers, and is exact when one of them is gone', async () => {
      await set('q', { concurrency: 2 });
      await t.add('a', 'b', 'c', 'd');
      expect((await take(1, 'w1')).ids).toEqual(['a']);
      expect(await take(9, 'w2')).toEqual({ ids: ['b'], supply: 'empty' });
      expect((await take(9, 'w2')).ids).toEqual([]);
      await t.exchanged({ worker: 'w2', settled: [completed('b')] });
      expect((await take(9, 'w2')).ids).toEqual(['c']);
      await t.advance(LEASE_MS);
      await t.engine.recover(QUEUE, { worker: 'w1', ...recovering });
      await t.advance(2_000);
      await t.engine.recover(QUEUE, { worker: 'w1', ...recovering });
      expect((await take(9, 'w3')).ids).toEqual(['a']);
      expect((await take(9, 'w3')).ids).toEqual([]);
    });

    it('counts the jobs that run when it is set, and lets more start when it is raised', async () => {
      await t.add('a', 'b', 'c', 'd');
      expect((await take(2)).ids).toEqual(['a', 'b']);
      await set('q', { concurrency: 2 });
      expect((await take(9)).ids).toEqual([]);
      await set('q', { concurrency: 3 });
      expect((await take(9)).ids).toEqual(['c']);
      await set('q', null);
      expect((await take(9)).ids).toEqual(['d']);
    });

    it('of each group, and of one group that has its own', async () => {
      await set('g', { concurrency: 1 }, 'code');
      await set('g:b', { concurrency: 2 });
      await t.add(...some('a', 3), ...some('b', 3));
      expect((await take(9)).ids).toEqual(['a.0', 'b.0', 'b.1']);
      await t.settle(completed('a.0'), completed('b.1'));
      expect((await take(9)).ids.toSorted()).toEqual(['a.1', 'b.2']);
    });

    it('of a name', async () => {
      await set('n:mail', { concurrency: 1 });
      await t.add(named('mail.1'), named('page.1'), named('mail.2'));
      expect((await take(9)).ids.toSorted()).toEqual(['mail.1', 'page.1']);
      await t.settle(retried('mail.1', { delayMs: 100 }));
      expect((await take(9)).ids).toEqual(['mail.2']);
    });
  });

  it('returns how many groups are ready or resting', async () => {
    await set('g', slow(1), 'code');
    await set('n:mail', slow(1));
    await t.add(
      ...some('a', 2),
      ...some('b', 2),
      named('mail.1'),
      named('mail.2'),
      named('page.1'),
      named('page.2'),
    );
    const groups = async () => (await t.engine.limits.overview(QUEUE)).groups;
    expect(await groups()).toEqual({ ready: 2, resting: 0, stopped: 0 });
    expect((await t.engine.limits.list(QUEUE)).map(({ field }) => field)).toEqual(['q', 'g', 'n:mail']);
    expect((await take(4)).ids).toHaveLength(4);
    expect(await groups()).toEqual({ ready: 0, resting: 2, stopped: 0 });
    await t.advance(1_011);
    expect((await take(9)).ids).toHaveLength(4);
    // No job of them waits any more, but their rates are used up.
    expect(await groups()).toEqual({ ready: 0, resting: 2, stopped: 0 });
    await t.advance(1_011);
    await take(9);
    expect(await groups()).toEqual({ ready: 0, resting: 0, stopped: 0 });
  });

  describe('aging', () => {
    const aging = (every: number, by = 1) => set('q', { aging: { every, by } }, 'code');
    const ranked = (id: string, priority: number, more: { delayMs?: number; group?: string } = {}) => ({
      id,
      name: 'job',
      hasOwnId: true,
      ...(priority > 0 && { priority }),
      ...more,
      body: encodeBody('job', t.now, { ...(priority > 0 && { priority }), ...more }, ''),
    });

    it('lets a job be overtaken only by jobs added within the aging time', async () => {
      await aging(1_000);
      await t.add(ranked('low', 3));
      await t.advance(1_999);
      await t.add(ranked('middle', 1), ranked('plain', 0));
      await t.advance(1);
      await t.add(ranked('behind', 1));
      await t.advance(999);
      await t.add(ranked('passes', 0));
      await t.advance(1);
      await t.add(ranked('too-late', 0));
      await t.advance(1);
      await t.add(ranked('behind-all', 0));
      // In the same place, the one with the higher priority is first.
      const order = ['plain', 'passes', 'middle', 'too-late', 'behind', 'low', 'behind-all'];
      expect((await take(9)).ids).toEqual(order);
    });

    it('is the same in claims of one job, and if by sets several priorities per step', async () => {
      await aging(1_000, 10);
      await t.add(ranked('low', 20));
      await t.advance(1_500);
      await t.add(ranked('first', 1), ranked('second', 10));
      await t.advance(500);
      await t.add(ranked('third', 1));
      const taken = [];
      for (let i = 0; i < 4; i++) taken.push(...(await take(1)).ids);
      expect(taken).toEqual(['first', 'low', 'third', 'second']);
    });

    it('orders the jobs of a group, and leaves the turns as they are', async () => {
      await aging(1_000);
      await t.add(ranked('a.low', 2, { group: 'a' }), ranked('b.low', 2, { group: 'b' }));
      await t.advance(2_001);
      await t.add(ranked('a.new', 0, { group: 'a' }), ranked('b.new', 1, { group: 'b' }));
      expect((await take(2)).ids).toEqual(['a.low', 'b.low']);
      expect((await take(9)).ids).toEqual(['a.new', 'b.new']);
    });

    it('counts from when a delay is over', async () => {
      await aging(1_000);
      await t.add(ranked('delayed', 1, { delayMs: 5_000 }), ranked('low', 5));
      await t.advance(5_001);
      await t.add(ranked('plain', 0));
      expect((await take(9)).ids).toEqual(['low', 'plain', 'delayed']);
    });

    it('keeps the order of many jobs of each priority', async () => {
      await aging(1_000);
      const of = (name: string, priority: number) =>
        Array.from({ length: 60 }, (_, i) => ranked(`${name}.${String(i).padStart(2, '0')}`, priority));
      const [low, high] = [of('low', 2), of('high', 1)];
      await t.add(...low, ...high);
      await t.advance(1_500);
      const late = of('late', 1);
      await t.add(...late);
      const ids = (some: readonly { id: string }[]) => some.map(({ id }) => id);
      expect((await take(100)).ids).toEqual([...ids(high), ...ids(low).slice(0, 40)]);
      expect((await take(100)).ids).toEqual([...ids(low).slice(40), ...ids(late)]);
    });

    it('ends once the code no longer sets it', async () => {
      await aging(1_000);
      await t.add(ranked('low', 1));
      await t.advance(5_000);
      await t.add(ranked('plain', 0));
      await set('q', null, 'code');
      expect((await take(9)).ids).toEqual(['plain', 'low']);
    });
  });

  describe('groups', () => {
    it('take turns, however many jobs wait in one of them', async () => {
      await t.add(...some('big', 50));
      await t.add(...some('a', 2), ...some('b', 2));
      expect((await take(3)).ids.toSorted()).toEqual(['a.0', 'b.0', 'big.0']);
      expect((await take(3)).ids.toSorted()).toEqual(['a.1', 'b.1', 'big.1']);
      expect((await take(3)).ids).toEqual(['big.2', 'big.3', 'big.4']);
    });

    it('keep their turns if many of them wake at once', async () => {
      await set('g', { concurrency: 1 });
      const groups = Array.from({ length: 900 }, (_, i) => `g${100 + i}`);
      await t.add(...groups.flatMap((group) => some(group, 2)));
      const ids: string[] = [];
      for (let i = 0; i < 3; i++) ids.push(...(await take(200)).ids);
      expect(ids.length).toBe(600);
      await t.settle(...ids.map((id) => completed(id)));
      // The others have not been served yet.
      const others = groups.slice(600).map((group) => `${group}.0`);
      expect((await take(250)).ids).toEqual(others.slice(0, 250));
      expect((await take(50)).ids).toEqual(others.slice(250));
    });

    it('get turns by weight', async () => {
      await set('g:vip', { weight: 3 });
      await t.add(...some('vip', 30), ...some('a', 30));
      const ids: string[] = [];
      for (let i = 0; i < 8; i++) ids.push(...(await take(2)).ids);
      expect(ids.filter((id) => id.startsWith('vip'))).toHaveLength(12);
    });

    it('keep the order of priorities and of adds within each group', async () => {
      await t.add(
        grouped('a.1', { priority: 5 }),
        grouped('a.2'),
        grouped('a.3', { priority: 2 }),
        grouped('a.4'),
      );
      expect((await take(9)).ids).toEqual(['a.2', 'a.4', 'a.3', 'a.1']);
    });

    it('are counted, listed, cancelled and removed as other waiting jobs', async () => {
      await t.add(...some('a', 3));
      expect((await t.engine.admin.counts(QUEUE)).waiting).toBe(3);
      expect(await t.engine.admin.get(QUEUE, 'a.1')).toMatchObject({ state: 'waiting' });
      const { jobs } = await t.engine.admin.jobs(QUEUE, { state: 'waiting', after: null, limit: 9 });
      expect(jobs.map(({ id }) => id)).toEqual(['a.0', 'a.1', 'a.2']);
      expect(await t.engine.admin.cancel(QUEUE, 'a.1', 'why')).toBe('cancelled');
      expect(await t.engine.admin.remove(QUEUE, 'a.2')).toBe('removed');
      expect(await t.add(grouped('a.0'))).toMatchObject({ duplicates: [{ id: 'a.0', state: 'waiting' }] });
      expect((await take(9)).ids).toEqual(['a.0']);
      expect((await t.engine.admin.audit(QUEUE)).violations).toEqual([]);
    });

    it('that are paused start no jobs until they are resumed', async () => {
      await t.add(...some('a', 2), ...some('b', 1));
      await set('g:a', { paused: true });
      expect(await take(9)).toEqual({ ids: ['b.0'], supply: 'empty' });
      await set('g:a', null);
      expect((await take(9)).ids).toEqual(['a.0', 'a.1']);
    });

    it('refuse a whole call that would make one of them too large', async () => {
      await set('g', { maxSize: 3 }, 'code');
      await t.add(...some('a', 2));
      const full = { kind: 'group-full', group: 'a', size: 2, maxSize: 3, needNoRoom: new Set() };
      expect(await t.add(grouped('a.8'), grouped('b.1'), grouped('a.9'))).toEqual(full);
      expect((await t.engine.admin.counts(QUEUE)).waiting).toBe(2);
      expect(await t.add(grouped('a.8'))).toMatchObject({ kind: 'stored' });
    });

    it('accept duplicates however full they are, because duplicates add nothing', async () => {
      await set('g', { maxSize: 2 }, 'code');
      const unique = { digest: 'D', forMs: 0, states: ['waiting'], on: 'skip' } as const;
      const keyed = (id: string) => ({ ...grouped(id), unique: { ...unique, delayMs: 0, longestMs: 0 } });
      const withKey = (id: string) => ({
        ...keyed(id),
        body: grouped(id).body.replace('"group"', '"unique":"D","group"'),
      });
      await t.add(grouped('a.0'), withKey('a.1'));
      expect(await t.add(grouped('a.0'))).toMatchObject({ kind: 'stored', duplicates: [{ id: 'a.0' }] });
      expect(await t.add(withKey('a.2'))).toMatchObject({ duplicates: [{ id: 'a.2', holder: 'a.1' }] });
      const full = {
        kind: 'group-full',
        group: 'a',
        size: 2,
        maxSize: 2,
        needNoRoom: new Set(['a.0', 'a.4']),
      };
      expect(await t.add(grouped('a.0'), withKey('a.4'), grouped('a.3'))).toEqual(full);
      expect((await t.engine.admin.counts(QUEUE)).waiting).toBe(2);
      expect(await take(1)).toMatchObject({ ids: ['a.0'] });
      expect(await t.add(withKey('a.4'), grouped('a.5'))).toMatchObject({ duplicates: [{ id: 'a.4' }] });
    });

    it('with a rate each have their own', async () => {
      await set('g', slow(1));
      await t.add(...some('a', 2), ...some('b', 2));
      expect(await take(9)).toEqual({ ids: ['a.0', 'b.0'], supply: { limitedForMs: 1_010 } });
      await t.advance(1_010);
      expect((await take(9)).ids.toSorted()).toEqual(['a.1', 'b.1']);
    });

    it('return their state', async () => {
      await set('g', { concurrency: 1 }, 'code');
      await set('g:a', { weight: 2 });
      await t.add(...some('a', 3));
      await take(1);
      expect(await t.engine.limits.group(QUEUE, 'a')).toMatchObject({
        code: null,
        live: { weight: 2 },
        rule: { concurrency: 1, weight: 2 },
        waiting: 2,
        running: 1,
      });
      const { groups, next } = await t.engine.limits.groups(QUEUE, '0', 100);
      expect({ names: groups.map(({ field }) => field), next }).toEqual({ names: ['g:a'], next: null });
      await set('g:idle', { paused: true });
      const ruled = await t.engine.limits.ruledGroups(QUEUE, '0', 100);
      expect(ruled.groups.toSorted((a, b) => (a.field < b.field ? -1 : 1))).toMatchObject([
        { field: 'g:a', waiting: 2, running: 1 },
        { field: 'g:idle', rule: { concurrency: 1, paused: true }, waiting: 0, running: 0 },
      ]);
      expect(ruled.next).toBeNull();
      expect(await t.engine.limits.group(QUEUE, 'none')).toMatchObject({ waiting: 0, running: 0 });
    });

    it('go on once after their worker is lost, whether a claim, its recovery or the worker itself comes first', async () => {
      await set('g', { concurrency: 1 }, 'code');
      await t.add(...some('a', 2), ...some('b', 2));
      expect((await take(9, 'lost')).ids).toEqual(['a.0', 'b.0']);
      const recover = async () => (await t.engine.recover(QUEUE, { worker: 'lost', ...recovering })).kind;
      await t.advance(LEASE_MS + 1);
      // The lease is over, but nobody has taken the jobs back: a claim does not do that.
      expect((await take(9)).ids).toEqual([]);
      expect(await recover()).toBe('doubted');
      await t.advance(2_000);
      expect((await take(9)).ids).toEqual([]);
      expect(await recover()).toBe('recovered');
      expect(await recover()).toBe('alive');
      const first = (await take(9)).ids;
      expect(first.map((id) => id.charAt(0)).toSorted()).toEqual(['a', 'b']);
      expect((await t.exchange({ worker: 'lost', settled: first.map(completed) })).kind).toBe(
        'unknown-worker',
      );
      expect(await recover()).toBe('alive');
      expect((await take(9)).ids).toEqual([]);
      await t.settle(...first.map(completed));
      const second = (await take(9)).ids;
      expect([...first, ...second].toSorted()).toEqual(['a.0', 'a.1', 'b.0', 'b.1']);
      await t.settle(...second.map(completed));
      expect((await take(9)).ids).toEqual([]);
      expect((await t.engine.admin.audit(QUEUE)).violations).toEqual([]);
      expect((await t.engine.limits.groups(QUEUE, '0', 9)).groups).toEqual([]);
    });

    it.each([['of'], ['without']])(
      'get the jobs of a lost worker back at the front, in a queue %s slots',
      async (slots) => {
        await set('g', slots === 'of' ? { concurrency: 3 } : { weight: 1 }, 'code');
        await t.add(...some('a', 5), { ...grouped('a.9'), priority: 2 });
        expect((await take(2, 'lost')).ids).toEqual(['a.0', 'a.1']);
        expect((await take(1)).ids).toEqual(['a.2']);
        await t.settle(retried('a.2', { delayMs: 1 }));
        for (const ms of [LEASE_MS + 1, 2_000]) {
          await t.advance(ms);
          await t.engine.recover(QUEUE, { worker: 'lost', ...recovering });
        }
        const started: (readonly string[])[] = [];
        for (let i = 0; i < 6; i++) {
          const { ids } = await take(1);
          started.push(ids);
          await t.settle(...ids.map(completed));
        }
        expect(started.flat()).toEqual(['a.0', 'a.1', 'a.3', 'a.4', 'a.2', 'a.9']);
        expect((await t.engine.admin.audit(QUEUE)).violations).toEqual([]);
      },
    );

    it('in strict order wait for the retry of a job, also after its worker is lost', async () => {
      await set('g', { order: 'strict' }, 'code');
      await t.add(...some('a', 3), ...some('b', 1));
      expect((await take(9)).ids).toEqual(['a.0', 'b.0']);
      await t.settle(retried('a.0', { delayMs: 500 }), completed('b.0'));
      expect((await take(9)).ids).toEqual([]);
      await t.advance(500);
      expect((await take(9)).ids).toEqual(['a.0']);
      await t.settle(released('a.0'));
      expect((await take(9)).ids).toEqual(['a.0']);
      await t.settle(completed('a.0'));
      expect((await take(9)).ids).toEqual(['a.1']);
      await t.settle(dead('a.1'));
      expect((await take(9)).ids).toEqual(['a.2']);
      expect((await t.engine.admin.audit(QUEUE)).violations).toEqual([]);
    });

    it.each([['a retry'], ['the loss of its worker']])(
      'in strict order start no job while paused, also not after %s, and begin with it later',
      async (what) => {
        await set('g', { order: 'strict' }, 'code');
        await set('q', { concurrency: 1 });
        await t.add({ ...grouped('a.0'), priority: 3 });
        expect((await take(1, 'lost')).ids).toEqual(['a.0']);
        await t.add({ ...grouped('a.1'), priority: 1 }, ...some('b', 1));
        await set('g:a', { paused: true });
        if (what === 'a retry')
          await t.exchange({ worker: 'lost', settled: [retried('a.0', { delayMs: 1 })] });
        for (const ms of [LEASE_MS + 1, 2_000]) {
          await t.advance(ms);
          await t.engine.recover(QUEUE, { worker: 'lost', ...recovering });
        }
        expect((await take(9)).ids).toEqual(['b.0']);
        await t.settle(completed('b.0'));
        expect((await take(9)).ids).toEqual([]);
        await set('g:a', null);
        const started: (readonly string[])[] = [];
        for (let i = 0; i < 2; i++) {
          const { ids } = await take(9);
          started.push(ids);
          await t.settle(...ids.map(completed));
        }
        expect(started).toEqual([['a.0'], ['a.1']]);
        expect((await t.engine.admin.audit(QUEUE)).violations).toEqual([]);
      },
    );

    it('in strict order can be stopped by a dead job, until that is removed or run again', async () => {
      await set('g', { order: 'strict', onDead: 'block' }, 'code');
      await t.add(...some('a', 3));
      await take(9);
      await t.settle(dead('a.0'));
      expect((await take(9)).ids).toEqual([]);
      await t.engine.admin.remove(QUEUE, 'a.0');
      expect((await take(9)).ids).toEqual(['a.1']);
    });

    it('in strict order begin again with the dead job that stopped them', async () => {
      await set('g', { order: 'strict', onDead: 'block' }, 'code');
      await t.add(...some('a', 3));
      await take(9);
      await t.settle(dead('a.0'));
      expect(await t.engine.upkeep.retryDead(QUEUE, { ids: ['a.0'] })).toEqual({ retried: ['a.0'] });
      expect((await take(9)).ids).toEqual(['a.0']);
      await t.settle(completed('a.0'));
      expect((await take(9)).ids).toEqual(['a.1']);
      expect((await t.engine.admin.audit(QUEUE)).violations).toEqual([]);
    });
  });

  it('answers a repeated claim in the same way, and counts it once', async () => {
    await set('q', { ...slow(2), concurrency: 2 });
    await t.add(...some('a', 3), 'x');
    const first = await t.exchanged({ want: 9, seq: 1 });
    const again = await t.exchanged({ want: 9, seq: 1 });
    expect(again.claimed).toEqual(first.claimed);
    expect(first.claimed).toHaveLength(2);
    expect((await t.engine.limits.list(QUEUE))[0]).toMatchObject({ field: 'q', left: 0, running: 2 });
  });

  it('leaves no data when all jobs are done', async () => {
    await t.add(...some('a', 2));
    await take(9);
    await t.settle(completed('a.0'), completed('a.1'));
    await take(9);
    expect((await t.engine.limits.groups(QUEUE, '0', 9)).groups).toEqual([]);
    await t.add('plain');
    expect(await t.exchanged({ want: 1 })).not.toHaveProperty('isLimited');
  });
});
