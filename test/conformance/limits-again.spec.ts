import { describe, expect, it } from 'vitest';
import type { LimitRule } from '#lib/contract/limit-verbs.js';
import { completed, job, QUEUE } from '../scripts/support.js';
import { encodeBody } from '#lib/job/job-record.js';
import { ENGINES, useEngine } from './support.js';

const slow = { rate: { max: 1, per: 1_000, window: 'sliding', burst: 1 } } as const;

describe.each(ENGINES)('limits on %s', (kind) => {
  const t = useEngine(kind);
  const set = (field: string, rule: LimitRule | null, part: 'code' | 'live' = 'live') =>
    t.engine.limits.set(QUEUE, field, part, rule);
  const grouped = (id: string) => {
    const group = id.split('.')[0]!;
    return { id, name: 'job', hasOwnId: true, group, body: encodeBody('job', t.now, { group }, '') };
  };
  const take = async (want: number) => (await t.exchanged({ want })).claimed.map(({ id }) => id);

  it('wakes a worker if taking back starts lets a job start, and creates no state of a group without one', async () => {
    const wasRung = async () => (await t.engine.awaitBell([QUEUE], 5)) === QUEUE;
    const charge = (field: string, count: number) =>
      t.engine.limits.charge(QUEUE, [{ field, holdMs: 0, count }]);
    const back = (field: string) => charge(field, -1);
    const { rate } = slow;
    await set('g', { rate });
    await t.add(grouped('a.0'), grouped('a.1'), grouped('b.0'));
    expect(await take(9)).toEqual(['a.0', 'b.0']);
    while (await wasRung());
    await back('g:a');
    expect(await wasRung()).toBe(true);
    expect(await take(9)).toEqual(['a.1']);
    while (await wasRung());
    await back('g:a');
    expect(await wasRung()).toBe(true);
    // It was open already.
    await back('g:a');
    await back('g:c');
    await charge('g:c', 0);
    expect(await wasRung()).toBe(false);
    expect((await t.engine.limits.groups(QUEUE, '0', 9)).groups.map(({ field }) => field)).not.toContain(
      'g:c',
    );
  });

  it.each([
    ['q', 200, 1_000],
    ['q', 3_000, 3_000],
    ['g:a', 200, 1_000],
    ['g:a', 3_000, 3_000],
  ])('with a rate and a hold of %s over %i ms starts no job for %i ms', async (field, holdMs, ms) => {
    await set(field, { rate: { max: 1, per: 1_000, window: 'fixed', burst: 1 } });
    await t.engine.limits.charge(QUEUE, [{ field, holdMs, count: 1 }]);
    await t.add(grouped('a.0'));
    expect((await t.exchanged({ want: 1 })).supply).toEqual({ limitedForMs: ms });
    await t.advance(ms - 1);
    expect((await t.exchanged({ want: 1 })).supply).toEqual({ limitedForMs: 1 });
    await t.advance(1);
    expect(await take(1)).toEqual(['a.0']);
  });

  it.each([
    ['sliding', 10, 1_010],
    ['fixed', 10, 1_000],
    // One more window for those above `max`.
    ['bucket', 10, 1_100],
    ['bucket', 1, 1_100],
  ] as const)(
    'counts a correction above max in a window %s with a burst of %i for %i ms',
    async (window, burst, ms) => {
      await set('q', { rate: { max: 10, per: 1_000, window, burst } });
      await t.engine.limits.charge(QUEUE, [{ field: 'q', holdMs: 0, count: 20 }]);
      const [limit] = await t.engine.limits.list(QUEUE);
      expect(limit).toMatchObject({ left: expect.any(Number), nextInMs: ms });
      await t.add('a');
      await t.advance(ms - 1);
      expect(await take(1)).toHaveLength(0);
      await t.advance(1);
      expect(await take(1)).toHaveLength(1);
    },
  );

  it.each(['sliding', 'fixed', 'bucket'] as const)(
    'counts the starts of a window %s anew if its time becomes shorter, or the clock is set back',
    async (window) => {
      const rate = (per: number) => ({ rate: { max: 1, per, window, burst: 1 } });
      await set('q', rate(3_600_000));
      await t.add('a', 'b', 'c');
      expect(await take(9)).toEqual(['a']);
      await set('q', rate(1_000));
      await t.advance(1_500);
      expect(await take(9)).toEqual(['b']);
      await t.advance(-3_600_000);
      expect(await take(9)).toEqual(['c']);
    },
  );

  it.each(['g', 'n:job'])(
    'let lines that rest start when they are woken after the clock was set back (%s)',
    async (field) => {
      const alone = (id: string) => ({
        id,
        name: 'job',
        hasOwnId: true,
        body: encodeBody('job', t.now, {}, ''),
      });
      await set(field, slow);
      const ids = ['a.0', 'a.1', 'a.2'];
      await t.add(...ids.map(field === 'g' ? grouped : alone));
      expect(await take(9)).toEqual(['a.0']);
      await t.advance(-3_600_000);
      // The line rests until the old time.
      expect(await take(9)).toEqual([]);
      await t.engine.limits.wakeLines(QUEUE);
      expect(await take(9)).toEqual(['a.1']);
      await t.engine.limits.wakeLines(QUEUE);
      expect(await take(9)).toEqual([]);
      await t.advance(1_010);
      expect(await take(9)).toEqual(['a.2']);
    },
  );

  it('of a bucket may have a burst above its max', async () => {
    const taken = async () => {
      const { claimed, supply } = await t.exchanged({ want: 9 });
      return [claimed.length, supply];
    };
    await set('q', { rate: { max: 2, per: 1_000, window: 'bucket', burst: 5 } });
    await t.add('a', 'b', 'c', 'd', 'e', 'f', 'g');
    expect(await taken()).toEqual([5, { limitedForMs: 500 }]);
    await t.advance(500);
    expect(await taken()).toEqual([1, { limitedForMs: 500 }]);
  });

  it('of a name do not apply to jobs with a group', async () => {
    await set('n:job', { concurrency: 1 });
    const alone = (id: string) => ({
      id,
      name: 'job',
      hasOwnId: true,
      body: encodeBody('job', t.now, {}, ''),
    });
    await t.add(grouped('a.0'), grouped('a.1'), alone('b.0'), alone('b.1'));
    expect((await take(9)).toSorted()).toEqual(['a.0', 'a.1', 'b.0']);
  });

  it('of a name that let its jobs start at any time give them no line of their own', async () => {
    await set('n:work', { retryBudget: { max: 1, per: 60_000 } });
    await t.add(job('c.0', { name: 'other' }), 'b.0', 'b.1', grouped('a.0'), grouped('a.1'));
    expect(await take(1)).toEqual(['a.0']);
    const limits = await t.engine.limits.list(QUEUE);
    expect(limits.map(({ field, waiting }) => [field, waiting])).toEqual([
      ['q', 0],
      ['n:work', 0],
    ]);
    // The jobs without a group share one turn.
    expect(await take(3)).toEqual(['c.0', 'b.0', 'a.1']);
  });

  it('of a name count as no group, also when a job arrives while their rate is remembered', async () => {
    await set('q', { concurrency: 1 });
    await set('n:work', { rate: { ...slow.rate, max: 9 } });
    await t.add('b.0');
    expect(await take(9)).toEqual(['b.0']);
    await t.add('b.1');
    expect(await take(9)).toEqual([]);
    expect((await t.engine.limits.overview(QUEUE)).groups).toEqual({ ready: 0, resting: 0, stopped: 0 });
  });

  it.each([
    ['sliding', 3],
    ['fixed', 0],
  ] as const)('of a %s rate that were given back take no starts from a later claim', async (window, left) => {
    await set('q', { rate: { max: 5, per: 1_000, window, burst: 5 } });
    await t.add('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h');
    await t.advance(600);
    const { claimedAt } = await t.exchanged({ want: 3 });
    expect(claimedAt).toBe(t.now);
    await t.advance(window === 'fixed' ? 1_000 : 500);
    await t.exchanged({ want: window === 'fixed' ? 5 : 2 });
    await t.engine.limits.charge(QUEUE, [{ field: 'q', holdMs: 0, count: -3, countedAt: claimedAt }]);
    await t.advance(window === 'fixed' ? 0 : 510);
    const [limit] = await t.engine.limits.list(QUEUE);
    expect(limit).toMatchObject({ left });
  });

  it.each([
    ['once it has refilled', 1_000, 0],
    ['while it has less than half of its burst', 400, 8],
  ])('of a bucket that are given back %s let this many more start: %i ms later, %i', async (_, ms, left) => {
    await set('q', { rate: { max: 10, per: 1_000, window: 'bucket', burst: 10 } });
    await t.add(...'abcdefghijklmnopqrstuvwxyz'.split(''));
    const { claimedAt } = await t.exchanged({ want: 10 });
    await t.advance(ms);
    expect((await t.exchanged({ want: 10 })).claimed).toHaveLength(ms / 100);
    await t.engine.limits.charge(QUEUE, [{ field: 'q', holdMs: 0, count: -8, countedAt: claimedAt }]);
    expect(await t.engine.limits.list(QUEUE)).toMatchObject([{ left }]);
  });

  it('keeps the fields that a later change at run time does not have, but none that the code does not have any more', async () => {
    await set('q', { concurrency: 2, weight: 3 });
    const { rate } = slow;
    await set('q', { rate, concurrency: 5 });
    await set('q', { concurrency: 1 }, 'code');
    await set('q', { maxSize: 9 }, 'code');
    const [limit] = await t.engine.limits.list(QUEUE);
    expect(limit).toMatchObject({ code: { maxSize: 9 }, live: { concurrency: 5, weight: 3, rate } });
    expect(Object.keys(limit!.code!)).toEqual(['maxSize']);
  });

  it('of the code count the jobs that started while a change at run time had removed them', async () => {
    await set('q', { concurrency: 2 }, 'code');
    await t.add('1', '2', '3', '4', '5', '6');
    expect(await take(1)).toEqual(['1']);
    await set('q', { concurrency: false });
    expect(await take(2)).toEqual(['2', '3']);
    await set('q', null);
    expect(await take(9)).toEqual([]);
    await t.settle(completed('1'), completed('2'));
    expect(await take(9)).toEqual(['4']);
    await set('q', { concurrency: false });
    expect(await take(1)).toEqual(['5']);
    await set('q', { concurrency: 3 }, 'code');
    await set('q', { concurrency: 3 });
    expect(await take(9)).toEqual([]);
  });

  it('of all groups count the jobs of a group that started while it had none of its own', async () => {
    await set('g', { concurrency: 1 }, 'code');
    await t.add(grouped('a.0'), grouped('b.0'), grouped('a.1'), grouped('a.2'));
    await set('g:a', { concurrency: false });
    expect((await take(9)).toSorted()).toEqual(['a.0', 'a.1', 'a.2', 'b.0']);
    await t.add(grouped('a.3'), grouped('b.1'));
    await set('g:a', null);
    expect(await take(9)).toEqual([]);
    await t.settle(...['a.0', 'a.1', 'b.0'].map((id) => completed(id)));
    expect(await take(9)).toEqual(['b.1']);
    await t.settle(completed('a.2'));
    expect(await take(9)).toEqual(['a.3']);
  });

  it('wake no worker for a rule that is there already', async () => {
    const rule = {
      breaker: { failures: 1, ratio: 0.5, window: 1_000, openFor: 5_000, probes: 1 },
      retryBudget: { max: 4, per: 10_000 },
    };
    const wasRung = async () => (await t.engine.awaitBell([QUEUE], 5)) === QUEUE;
    for (const part of ['code', 'live'] as const) {
      await set('q', rule, part);
      while (await wasRung());
      await set('q', rule, part);
      expect(await wasRung()).toBe(false);
      await set('q', { ...rule, retryBudget: { max: 5, per: 10_000 } }, part);
      expect(await wasRung()).toBe(true);
    }
  });

  it('count the waiting jobs of all priorities towards the size of a group', async () => {
    const ranked = (id: string, priority: number) => ({
      ...grouped(id),
      priority,
      body: encodeBody('job', t.now, { group: 'a', priority }, ''),
    });
    await set('g', { maxSize: 3 }, 'code');
    await t.add(ranked('a.0', 7), ranked('a.1', 3));
    expect(await t.add(grouped('a.2'), ranked('a.3', 7))).toMatchObject({ kind: 'group-full', size: 2 });
    expect(await t.add(grouped('a.2'))).toMatchObject({ kind: 'stored' });
  });

  it('leave nothing of a group after its pause', async () => {
    const ruled = async () =>
      (await t.engine.limits.ruledGroups(QUEUE, '0', 9)).groups.map(({ field }) => field);
    await t.add(grouped('a.0'), grouped('b.0'));
    await set('g:a', { paused: true });
    await set('g:b', { paused: true, weight: 2 });
    expect(await ruled()).toEqual(['g:a', 'g:b']);
    await set('g:a', { paused: false });
    await set('g:b', { paused: false });
    await set('g:c', { paused: false });
    expect(await ruled()).toEqual(['g:b']);
    expect((await t.engine.limits.group(QUEUE, 'b')).live).toEqual({ weight: 2 });
    expect((await take(9)).toSorted()).toEqual(['a.0', 'b.0']);
  });

  it('lets a promoted job age from its add, not from the end of its delay', async () => {
    await set('q', { aging: { every: 1_000, by: 1 } }, 'code');
    const ranked = (id: string, priority: number, delayMs = 0) =>
      job(id, {
        ...(priority > 0 && { priority }),
        ...(delayMs > 0 && { delayMs }),
        body: encodeBody('job', t.now, { priority, delayMs }, ''),
      });
    await t.add(ranked('promoted', 2, 60_000));
    expect(await t.engine.admin.promoteNow(QUEUE, 'promoted')).toBe('promoted');
    await t.advance(2_001);
    await t.add(ranked('plain', 0), ranked('low', 1));
    expect(await take(9)).toEqual(['promoted', 'plain', 'low']);
  });
});
