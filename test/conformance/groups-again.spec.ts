import { describe, expect, it } from 'vitest';
import type { LimitRule } from '#lib/contract/limit-verbs.js';
import { encodeBody } from '#lib/job/job-record.js';
import { firing, put, seen, tick } from '../scripts/schedules-support.js';
import { completed, dead, job, LEASE_MS, QUEUE, released, retried, WORKER } from '../scripts/support.js';
import { ENGINES, useEngine } from './support.js';

const recovering = { beatMs: 2_000, leaseMs: LEASE_MS, maxStalls: 5 };

describe.each(ENGINES)('groups on %s', (kind) => {
  const t = useEngine(kind);
  const set = (field: string, rule: LimitRule, part: 'code' | 'live' = 'live') =>
    t.engine.limits.set(QUEUE, field, part, rule);
  const some = (group: string, count: number) =>
    Array.from({ length: count }, (_, i) => ({
      id: `${group}.${i}`,
      name: 'job',
      hasOwnId: true,
      group,
      body: encodeBody('job', t.now, { group }, ''),
    }));
  async function take(want: number, worker?: string) {
    const { claimed } = await t.exchanged({ want, ...(worker && { worker }) });
    return { ids: claimed.map(({ id }) => id) };
  }

  describe('in strict order', () => {
    const recover = (maxStalls: number) =>
      t.engine.recover(QUEUE, { worker: WORKER, ...recovering, maxStalls });
    const lose = async () => {
      await t.advance(LEASE_MS + 1);
      await recover(0);
      await t.advance(2_000);
    };
    const retry = () => t.settle(retried('a.0', { delayMs: 60_000 }));
    const die = () => t.settle(dead('a.0'));
    const cancel = () => t.engine.admin.cancel(QUEUE, 'a.0', 'not needed');
    const wasRung = async () => (await t.engine.awaitBell([QUEUE], 5)) === QUEUE;

    it.each<[string, before: () => Promise<unknown>, act: () => Promise<unknown>]>([
      ['is removed', retry, () => t.engine.admin.remove(QUEUE, 'a.0')],
      ['is cancelled', retry, cancel],
      [
        'is cleaned',
        retry,
        () => t.engine.upkeep.clean(QUEUE, { state: 'delayed', olderThanMs: 0, limit: 9 }),
      ],
      ['is dead and removed', die, () => t.engine.upkeep.removeDead(QUEUE, { ids: ['a.0'] })],
      ['is dead and trimmed', die, () => t.engineWith({ deadMax: 0 }).upkeep.trim(QUEUE)],
      [
        'is dead and a delayed job takes its id',
        async () => (await die(), await t.add(job('sooner', { delayMs: 30_000 }))),
        () => t.add(job('a.0', { delayMs: 60_000 })),
      ],
      [
        'was cancelled and is given back',
        cancel,
        () => t.engine.release(QUEUE, { worker: WORKER, ids: ['a.0'], leave: false }),
      ],
      ['was cancelled and its worker is lost', async () => (await cancel(), await lose()), () => recover(5)],
    ])('wake a worker if the job that holds the others back %s', async (_, before, act) => {
      await set('g', { order: 'strict', onDead: 'block' }, 'code');
      await t.add(...some('a', 2));
      await take(9);
      await before();
      while (await wasRung());
      await act();
      expect(await wasRung()).toBe(true);
      expect((await take(9, 'other')).ids).toEqual(['a.1']);
    });

    it('name the job that must end before the next one starts', async () => {
      const holders = async () => {
        const { groups } = await t.engine.limits.groups(QUEUE, '0', 100);
        return Object.fromEntries(groups.map(({ field, holder }) => [field.slice(2), holder]));
      };
      await set('g', { order: 'strict', onDead: 'block' }, 'code');
      await t.add(...some('a', 2), ...some('b', 1));
      expect(await holders()).toEqual({ a: null, b: null });
      expect((await take(1)).ids).toEqual(['a.0']);
      expect(await holders()).toEqual({ a: 'a.0', b: null });
      await retry();
      expect(await holders()).toMatchObject({ a: 'a.0' });
      await t.advance(60_001);
      await take(2);
      await die();
      expect(await holders()).toMatchObject({ a: 'a.0' });
      await t.engine.admin.remove(QUEUE, 'a.0');
      expect((await t.engine.limits.group(QUEUE, 'a')).holder).toBeNull();
    });

    it('name one of the jobs that ran before the order was set', async () => {
      await t.add(...some('a', 2).toReversed());
      await t.exchanged({ worker: 'other' });
      expect((await take(1, 'other')).ids).toEqual(['a.1']);
      expect((await take(1)).ids).toEqual(['a.0']);
      await set('g', { order: 'strict' }, 'code');
      expect((await t.engine.limits.group(QUEUE, 'a')).holder).toBe('a.0');
    });

    it('wake a worker if a schedule replaces the job that holds the others back by a delayed one', async () => {
      await set('g', { order: 'strict' }, 'code');
      const [first] = some('a', 1);
      await t.engine.schedules.fire(QUEUE, [firing(await put(t, 's'), [tick('a.0', { body: first!.body })])]);
      expect((await take(9)).ids).toEqual(['a.0']);
      await t.add(...some('a', 2).slice(1));
      await retry();
      while (await wasRung());
      const later = tick('a.9', { body: first!.body, dueAt: t.now + 90_000 });
      await t.engine.schedules.fire(QUEUE, [firing(await seen(t, 's'), [later], { overlap: 'replace' })]);
      expect(await wasRung()).toBe(true);
      expect((await take(9, 'other')).ids).toEqual(['a.1']);
    });

    /** The dead job of a group holds back its next one, and a job of another group runs. */
    const stopWhileAnotherRuns = async () => {
      await set('g', { order: 'strict', onDead: 'block' }, 'code');
      await t.add(...some('a', 2));
      await take(9);
      await die();
      await t.add(...some('b', 1));
      expect((await take(9)).ids).toEqual(['b.0']);
    };

    it('wake a worker if a lost job takes the place of the dead job that holds the others back', async () => {
      await stopWhileAnotherRuns();
      await lose();
      while (await wasRung());
      await t.engineWith({ deadMax: 1 }).recover(QUEUE, { worker: WORKER, ...recovering, maxStalls: 0 });
      expect(await wasRung()).toBe(true);
      expect((await take(9, 'other')).ids).toEqual(['a.1']);
    });

    it('wake a worker if another dead job takes the place of the one that holds the others back', async () => {
      await stopWhileAnotherRuns();
      while (await wasRung());
      await t.exchanged({ settled: [dead('b.0')] }, t.engineWith({ deadMax: 1 }));
      expect(await wasRung()).toBe(true);
      expect((await take(9, 'other')).ids).toEqual(['a.1']);
    });

    it('wake a worker if the lost job is dead and does not stop them', async () => {
      await set('g', { order: 'strict' }, 'code');
      await t.add(...some('a', 2));
      await take(9);
      await lose();
      while (await wasRung());
      await recover(0);
      expect(await wasRung()).toBe(true);
      expect((await take(9, 'other')).ids).toEqual(['a.1']);
    });
  });

  it.each([['of'], ['without']])(
    'get the jobs that a worker gives back at the front, in a queue %s slots',
    async (slots) => {
      await set('g', slots === 'of' ? { concurrency: 3 } : { weight: 1 }, 'code');
      await t.add(...some('a', 5));
      expect((await take(3)).ids).toEqual(['a.0', 'a.1', 'a.2']);
      await t.settle(released('a.0'), released('a.1'));
      await t.engine.release(QUEUE, { worker: 'w1', ids: ['a.2'], leave: false });
      expect((await take(1)).ids).toEqual(['a.2']);
      // It goes to the end when it has failed.
      await t.settle(retried('a.2', { delayMs: 0 }));
      const started: (readonly string[])[] = [];
      for (let i = 0; i < 5; i++) {
        const { ids } = await take(1);
        started.push(ids);
        await t.settle(...ids.map(completed));
      }
      expect(started.flat()).toEqual(['a.0', 'a.1', 'a.3', 'a.4', 'a.2']);
      expect((await t.engine.admin.audit(QUEUE)).violations).toEqual([]);
    },
  );

  it('keep the order of all jobs that a worker gives back, also if these are many', async () => {
    await t.add(...some('a', 700));
    const ids = [...(await take(250)).ids, ...(await take(250)).ids, ...(await take(100)).ids];
    expect(ids).toHaveLength(600);
    // Each call puts its jobs before all others, so a worker sends the last ones first.
    await t.settle(...ids.slice(350).map((id) => released(id)));
    await t.settle(...ids.slice(100, 350).map((id) => released(id)));
    await t.settle(...ids.slice(0, 100).map((id) => released(id)));
    const again: (readonly string[])[] = [];
    for (const want of [1, 250, 250, 199]) again.push((await take(want)).ids);
    expect(again.flat()).toEqual(some('a', 700).map(({ id }) => id));
  });

  it.each([['strict'], ['fair']] as const)(
    'that are paused do not delay a suspect of another group, in %s order',
    async (order) => {
      await set('g', { order }, 'code');
      await t.add(...some('a', 1), ...some('b', 1), ...some('c', 1));
      for (const worker of ['lost', 'lost too']) {
        // A worker holds one suspect at most.
        for (let found = 1; found > 0;) found = (await take(9, worker)).ids.length;
        for (const ms of [LEASE_MS + 1, 2_000]) {
          await t.advance(ms);
          await t.engine.recover(QUEUE, { worker, ...recovering });
        }
      }
      await set('g:a', { paused: true });
      await set('g:b', { paused: true });
      expect((await take(9)).ids).toEqual(['c.0']);
      await set('g:b', { paused: false });
      await t.settle(completed('c.0'));
      expect((await take(9)).ids).toEqual(['b.0']);
      await t.settle(completed('b.0'));
      await set('g:a', { paused: false });
      expect((await take(9)).ids).toEqual(['a.0']);
      await t.settle(completed('a.0'));
      expect((await t.engine.admin.audit(QUEUE)).violations).toEqual([]);
    },
  );

  it('keep a name with text that JSON shows like half of a surrogate pair', async () => {
    const group = String.raw`C:\ud83d`;
    await set('g', { concurrency: 1 }, 'code');
    await t.add(...some(group, 1));
    const { ids } = await take(1);
    await t.settle(retried(ids[0]!, { delayMs: 0 }));
    expect((await take(1)).ids).toEqual(ids);
    const { groups } = await t.engine.limits.groups(QUEUE, '0', 10);
    expect(groups.map(({ field }) => field)).toEqual([`g:${group}`]);
  });

  it('take turns again when their dead jobs are retried', async () => {
    await t.add(...some('a', 3), ...some('b', 1));
    const { ids } = await take(4);
    await t.settle(...ids.map((id) => dead(id)));
    // Nothing waits any more, so the queue has no lines.
    expect((await take(1)).ids).toEqual([]);
    await t.engine.upkeep.retryDead(QUEUE, { limit: 10 });
    expect((await take(2)).ids.toSorted()).toEqual(['a.0', 'b.0']);
  });

  it('that a dead job stopped go on when a new job takes its id', async () => {
    await set('g', { order: 'strict', onDead: 'block' }, 'code');
    await t.add(...some('a', 2));
    await take(9);
    await t.settle(dead('a.0'));
    expect((await take(9)).ids).toEqual([]);
    await t.add(...some('a', 1));
    expect((await take(9)).ids).toEqual(['a.1']);
    await t.settle(completed('a.1'));
    expect((await take(9)).ids).toEqual(['a.0']);
    await t.settle(completed('a.0'));
    expect((await t.engine.admin.audit(QUEUE)).violations).toEqual([]);
  });

  describe('that dead jobs stop', () => {
    const block = { order: 'strict', onDead: 'block' } as const;
    const stop = async () => {
      await set('g', block, 'code');
      await t.add(...some('a', 3), ...some('b', 2));
      expect((await take(9)).ids.toSorted()).toEqual(['a.0', 'b.0']);
      await t.settle(dead('a.0'), dead('b.0'));
      expect((await take(9)).ids).toEqual([]);
    };
    const running = async () => (await t.engine.limits.list(QUEUE)).map((one) => one.running);
    const holder = async (group: string) => (await t.engine.limits.group(QUEUE, group)).holder;

    it('do not count against the concurrency of the queue, also when the dead job runs again', async () => {
      await set('q', { concurrency: 2 }, 'code');
      await stop();
      expect(await running()).toEqual([0, 0]);
      expect([await holder('a'), await holder('b')]).toEqual(['a.0', 'b.0']);
      await t.add(...some('c', 1), ...some('d', 1), ...some('e', 1));
      expect((await take(9)).ids.toSorted()).toEqual(['c.0', 'd.0']);
      expect(await running()).toEqual([2, 0]);
      // All slots are in use.
      await t.engine.upkeep.retryDead(QUEUE, { ids: ['a.0'] });
      expect((await take(9)).ids).toEqual([]);
      await t.settle(completed('c.0'), completed('d.0'));
      expect((await take(9)).ids.toSorted()).toEqual(['a.0', 'e.0']);
      await t.settle(completed('a.0'), completed('e.0'));
      expect((await take(9)).ids).toEqual(['a.1']);
      expect((await t.engine.admin.audit(QUEUE)).violations).toEqual([]);
    });

    it('are counted and listed page by page, unless their dead job runs again', async () => {
      const stopped = async (cursor = '0', limit = 9) => {
        const { groups, next } = await t.engine.limits.stoppedGroups(QUEUE, cursor, limit);
        return { found: groups.map(({ field, holder, waiting }) => `${field} ${holder} ${waiting}`), next };
      };
      const count = async () => (await t.engine.limits.overview(QUEUE)).groups.stopped;
      expect([await stopped(), await count()]).toEqual([{ found: [], next: null }, 0]);
      await stop();
      await t.add(...some('c', 2));
      const a = 'g:a a.0 2';
      const b = 'g:b b.0 1';
      const { found, next } = await stopped();
      expect([found.toSorted(), next, await count()]).toEqual([[a, b], null, 2]);
      const first = await stopped('0', 1);
      const second = await stopped(first.next!, 1);
      expect([...first.found, ...second.found].toSorted()).toEqual([a, b]);
      const isStopped = async (group: string) => (await t.engine.limits.group(QUEUE, group)).isStopped;
      expect([await isStopped('a'), await isStopped('c')]).toEqual([true, false]);
      expect((await t.engine.limits.group(QUEUE, 'a')).running).toBe(0);
      await t.engine.upkeep.retryDead(QUEUE, { ids: ['a.0'] });
      expect((await take(9)).ids.toSorted()).toEqual(['a.0', 'c.0']);
      expect([(await stopped()).found, await count(), await isStopped('a')]).toEqual([[b], 1, false]);
      await set('g', { order: 'strict' }, 'code');
      expect([(await stopped()).found, await count()]).toEqual([[], 0]);
      // A job that started meanwhile must end first, so the group is not stopped yet.
      expect((await take(9)).ids).toEqual(['b.1']);
      await set('g', block, 'code');
      expect([(await stopped()).found, await isStopped('b')]).toEqual([[], false]);
    });

    it('are listed page by page, each once', async () => {
      await stop();
      await t.add(...some('c', 2));
      await take(9);
      await t.settle(dead('c.0'));
      const first = await t.engine.limits.stoppedGroups(QUEUE, '0', 2);
      const second = await t.engine.limits.stoppedGroups(QUEUE, first.next!, 2);
      expect([first.groups.length, second.groups.length]).toEqual([2, 1]);
      const fields = [...first.groups, ...second.groups].map(({ field }) => field);
      expect(fields.toSorted()).toEqual(['g:a', 'g:b', 'g:c']);
    });

    it.each<[string, LimitRule]>([
      ['the next job starts after a dead one', { order: 'strict' }],
      ['jobs run beside each other', { concurrency: 1 }],
      ['the one with the fewest running jobs is next', { concurrency: 1, fairness: 'in-flight' }],
    ])('go on if %s by a new rule, also if a job dies after the change', async (_, rule) => {
      await set('g', block, 'code');
      await t.add(...some('a', 3), ...some('b', 3));
      expect((await take(9)).ids.toSorted()).toEqual(['a.0', 'b.0']);
      await t.settle(dead('a.0'));
      await set('g', rule, 'code');
      expect((await take(9)).ids).toEqual(['a.1']);
      expect(await holder('a')).toBe(rule.order ? 'a.1' : null);
      await t.settle(dead('b.0'));
      expect((await take(9)).ids).toEqual(['b.1']);
      await t.settle(completed('a.1'), completed('b.1'));
      await t.engine.upkeep.retryDead(QUEUE, { limit: 9 });
      expect((await take(9)).ids.toSorted()).toEqual(['a.0', 'b.0']);
      await t.settle(completed('a.0'), completed('b.0'));
      expect((await take(9)).ids.toSorted()).toEqual(['a.2', 'b.2']);
      await t.settle(completed('a.2'), completed('b.2'));
      expect((await take(9)).ids).toEqual([]);
      expect((await t.engine.limits.groups(QUEUE, '0', 9)).groups).toEqual([]);
      expect((await t.engine.admin.audit(QUEUE)).violations).toEqual([]);
    });

    it('are stopped again if the old rule comes back', async () => {
      await stop();
      await t.add(...some('c', 1));
      expect((await take(9)).ids).toEqual(['c.0']);
      await t.settle(dead('c.0'));
      await set('g', { order: 'strict' }, 'code');
      // Nothing of the group of the last dead job waits.
      expect((await take(9)).ids.toSorted()).toEqual(['a.1', 'b.1']);
      await set('g', block, 'code');
      await t.settle(completed('a.1'), completed('b.1'));
      await t.add(...some('c', 2).slice(1));
      expect((await take(9)).ids).toEqual([]);
      await t.engine.upkeep.removeDead(QUEUE, { ids: ['a.0', 'c.0'] });
      expect((await take(9)).ids.toSorted()).toEqual(['a.2', 'c.1']);
    });

    it('do not count as running while another job of their group runs', async () => {
      await stop();
      await set('g', { order: 'strict' }, 'code');
      expect((await take(9)).ids.toSorted()).toEqual(['a.1', 'b.1']);
      await set('g', block, 'code');
      const { running: count, holder: its, isStopped } = await t.engine.limits.group(QUEUE, 'a');
      expect([count, its, isStopped]).toEqual([1, 'a.1', false]);
    });

    it.each<[string, LimitRule]>([
      ['lets the next job start after a dead one', { onDead: 'continue' }],
      ['lets jobs run beside each other', { order: 'fair' }],
    ])('stay stopped if only the rule of one group %s', async (_, rule) => {
      await stop();
      await set('g:a', rule);
      expect((await take(9)).ids).toEqual([]);
      expect(await t.engine.limits.group(QUEUE, 'a')).toMatchObject({
        running: 0,
        holder: 'a.0',
        isStopped: true,
      });
      await t.engine.upkeep.removeDead(QUEUE, { ids: ['a.0'] });
      expect((await take(1)).ids).toEqual(['a.1']);
    });

    it('go on if only the rule of one group stops it', async () => {
      const groups = async () => (await t.engine.limits.overview(QUEUE)).groups;
      await set('g', { concurrency: 1, fairness: 'in-flight' }, 'code');
      await set('g:a', block);
      await t.add('x', 'y');
      expect((await take(1)).ids).toEqual(['x']);
      await t.add(...some('a', 1));
      expect((await take(1)).ids).toEqual(['a.0']);
      // The claim starts the job of another line and does not reach the line of the dead one.
      const { claimed } = await t.exchanged({ want: 1, settled: [dead('a.0'), completed('x')] });
      expect(claimed.map(({ id }) => id)).toEqual(['y']);
      expect(await groups()).toEqual({ ready: 1, resting: 0, stopped: 0 });
      expect(await t.exchanged({ want: 1 })).toMatchObject({
        claimed: [],
        supply: 'empty',
        isHeldBack: false,
      });
      expect(await groups()).toEqual({ ready: 0, resting: 0, stopped: 0 });
      await t.add(...some('a', 2).slice(1));
      expect(await t.engine.limits.group(QUEUE, 'a')).toMatchObject({
        running: 0,
        holder: null,
        isStopped: false,
      });
      expect((await t.engine.limits.stoppedGroups(QUEUE, '0', 9)).groups).toEqual([]);
      expect((await take(9)).ids).toEqual(['a.1']);
    });
  });
});
