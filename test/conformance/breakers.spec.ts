import { describe, expect, it } from 'vitest';
import type { BreakerRule, LimitRule } from '#lib/job/limit-rule.js';
import type { RunReport, ShareCall } from '#lib/contract/limit-verbs.js';
import { encodeBody } from '#lib/job/job-record.js';
import { QueueLimits } from '#lib/producer/queue-limits.js';
import { QUEUE } from '../scripts/support.js';
import { ENGINES, OTHERS, useEngine } from './support.js';

const BREAKER: BreakerRule = { failures: 3, ratio: 0.5, window: 1_000, openFor: 500, probes: 2 };
const NOTHING = { firstMs: 0, eachMs: 0 };

describe.each(ENGINES)('circuit breakers and retry budgets on %s', (kind) => {
  const t = useEngine(kind);
  const set = (field: string, rule: LimitRule | null, part: 'code' | 'live' = 'code') =>
    t.engine.limits.set(QUEUE, field, part, rule);
  const report = async (counts: Partial<RunReport>, field = 'q') => {
    const [answer] = await t.engine.limits.report(QUEUE, [
      { field, completed: 0, failed: 0, retries: 0, firsts: 0, ...counts },
    ]);
    return answer!.breaker;
  };
  const named = (id: string) => {
    const name = id.split('.')[0]!;
    return { id, name, hasOwnId: true, body: encodeBody(name, t.now, {}, '') };
  };
  const state = async (field = 'q') =>
    (await t.engine.limits.list(QUEUE)).find((one) => one.field === field)!.breaker;
  const wasRung = async () => (await t.engine.awaitBell([QUEUE], 5)) === QUEUE;
  async function take(want: number) {
    const { claimed, supply } = await t.exchanged({ want });
    return { ids: claimed.map(({ id }) => id), supply };
  }

  it('opens by number and share of failed runs within its window', async () => {
    await set('q', { breaker: BREAKER });
    expect(await report({ completed: 4, failed: 3 })).toBe('');
    expect(await state()).toBe('closed');
    await t.advance(1_000);
    // Earlier counts have expired.
    expect(await report({ failed: 2 })).toBe('');
    await t.advance(899);
    expect(await report({ completed: 1, failed: 1 })).toBe('opened');
    expect(await state()).toBe('open');
  });

  it.each(['q', 'n:a', 's:api'])('does not stay open longer if the clock is set back (%s)', async (field) => {
    await set(field, { breaker: BREAKER });
    await t.add(named('a.0'));
    const { limits } = t.engine;
    const find = async () =>
      [...(await limits.list(QUEUE)), ...(await limits.shared(QUEUE))].find((one) => one.field === field)!;
    expect(await report({ failed: 3 }, field)).toBe('opened');
    expect(await find()).toMatchObject({ breaker: 'open', nextInMs: 500 });
    await t.advance(-3_600_000);
    expect(await find()).toMatchObject({ breaker: 'half-open', nextInMs: 0 });
    expect((await take(1)).ids).toEqual(['a.0']);
    expect(await report({ failed: 1 }, field)).toBe(field === 's:api' ? '' : 'tried');
  });

  it('counts anew after a claim has found no more limits', async () => {
    await set('q', { breaker: BREAKER });
    await report({ failed: 2 });
    await set('q', null);
    await take(1);
    await set('q', { breaker: BREAKER });
    expect(await report({ failed: 1 })).toBe('');
  });

  it.each(['q', 'n:a'])(
    'lets as many probe jobs start as it says, whatever they cost (%s)',
    async (field) => {
      await set(field, { breaker: BREAKER });
      await set('n:b', { rate: { max: 9, per: 1_000, window: 'fixed', burst: 9 } });
      const cost2 = (id: string) => ({ ...named(id), body: encodeBody('a', t.now, { cost: 2 }, '') });
      await t.add(cost2('a.1'), cost2('a.2'), cost2('a.3'));
      await report({ failed: 3 }, field);
      await t.advance(500);
      expect((await take(9)).ids).toEqual(['a.1', 'a.2']);
    },
  );

  it('lets no job start while it is open, then some, and all once one of them completed', async () => {
    await set('q', { breaker: BREAKER });
    await t.add('a', 'b', 'c', 'd', 'e', 'f');
    expect((await take(1)).ids).toEqual(['a']);
    expect(await report({ failed: 3 })).toBe('opened');
    expect(await take(9)).toEqual({ ids: [], supply: { limitedForMs: 500 } });
    // Runs that began before say nothing about it.
    expect(await report({ completed: 9 })).toBe('');
    await t.advance(500);
    expect(await state()).toBe('half-open');
    expect(await take(9)).toEqual({ ids: ['b', 'c'], supply: { limitedForMs: 500 } });
    expect(await state()).toBe('half-open');
    expect(await report({ failed: 1, completed: 1 })).toBe('tried');
    expect(await state()).toBe('open');
    await t.advance(500);
    // The job that tries it may be lost with its worker. Others try it later.
    expect((await take(1)).ids).toEqual(['d']);
    await t.advance(500);
    expect((await take(1)).ids).toEqual(['e']);
    expect(await report({ completed: 1 })).toBe('closed');
    expect(await state()).toBe('closed');
    expect(await take(9)).toEqual({ ids: ['f'], supply: 'empty' });
    const events = (await t.events()).filter(({ type }) => type.startsWith('breaker'));
    expect(events).toMatchObject([
      { type: 'breakerOpened', id: '', name: '', delayMs: 500 },
      { type: 'breakerClosed', id: '', name: '' },
    ]);
    // It counts anew.
    expect(await report({ failed: 2 })).toBe('');
  });

  it('of a name holds back only jobs of that name, and stays open when none waits', async () => {
    await set('n:sync', { breaker: { ...BREAKER, probes: 1 } });
    await t.add(named('sync.1'), named('other.1'));
    expect((await take(9)).ids).toEqual(['sync.1', 'other.1']);
    expect(await report({ failed: 3 }, 'n:sync')).toBe('opened');
    expect(await take(9)).toMatchObject({ ids: [] });
    await t.advance(2_000);
    expect(await take(9)).toEqual({ ids: [], supply: 'empty' });
    expect(await state('n:sync')).toBe('half-open');
    await t.add(named('sync.2'), named('sync.3'), named('other.2'));
    expect((await take(9)).ids.toSorted()).toEqual(['other.2', 'sync.2']);
    expect(await report({ failed: 1 }, 'n:sync')).toBe('tried');
    await t.add(named('other.3'));
    expect((await take(9)).ids).toEqual(['other.3']);
    await t.advance(500);
    await t.add(named('sync.4'));
    expect((await take(9)).ids).toEqual(['sync.3']);
    expect(await report({ completed: 1 }, 'n:sync')).toBe('closed');
    expect((await take(9)).ids).toEqual(['sync.4']);
    const events = (await t.events()).filter(({ type }) => type.startsWith('breaker'));
    expect(events.map(({ name }) => name)).toEqual(['sync', 'sync']);
  });

  it('does not change if no run has ended, and reserves no retry then', async () => {
    const retryBudget = { max: 1, per: 10_000 };
    await set('q', { breaker: BREAKER, retryBudget });
    await t.add('a', 'b');
    await report({ failed: 3 });
    await t.advance(500);
    expect((await take(1)).ids).toEqual(['a']);
    expect(await report({})).toBe('');
    expect(await state()).toBe('half-open');
    const [answer] = await t.engine.limits.report(QUEUE, [
      { field: 'q', completed: 0, failed: 0, retries: 0, firsts: 0 },
    ]);
    expect(answer).toMatchObject({ firstMs: 0, eachMs: 0 });
  });

  it.each(['q', 'n:a'])(
    'writes an event when a person closes it, and none if it is closed (%s)',
    async (field) => {
      await set(field, { breaker: BREAKER });
      await t.add(named('a.1'));
      await report({ failed: 3 }, field);
      expect((await take(1)).ids).toEqual([]);
      await t.engine.awaitBell([QUEUE], 5);
      const before = await t.engine.lastEvent(QUEUE);
      expect(await report({ closes: true }, field)).toBe('closed');
      expect([await state(field), await wasRung()]).toEqual(['closed', true]);
      expect(await report({ closes: true }, field)).toBe('');
      const name = field === 'q' ? '' : 'a';
      expect(await t.events(before)).toMatchObject([{ type: 'breakerClosed', name }]);
      expect(await report({ failed: 2 }, field)).toBe('');
      expect((await take(1)).ids).toEqual(['a.1']);
    },
  );

  it.each(['q', 'n:a', 's:api'])(
    'writes an event when a person clears it, unless the code has one too (%s)',
    async (field) => {
      const { limits } = t.engine;
      const own = new QueueLimits(t.engine, QUEUE, {});
      const clear = () =>
        field === 's:api' ? own.shared('api').clear() : own.clear(field === 'q' ? {} : { name: 'a' });
      const closed = async (since: number) =>
        (await t.events(since)).filter(({ type }) => type === 'breakerClosed').length;
      const breakerOf = async () =>
        [...(await limits.list(QUEUE)), ...(await limits.shared(QUEUE))].find((one) => one.field === field)
          ?.breaker;
      const before = await t.engine.lastEvent(QUEUE);
      await set(field, { concurrency: 9 });
      await set(field, { breaker: BREAKER }, 'live');
      await clear();
      expect(await closed(before)).toBe(0);
      await set(field, { breaker: BREAKER }, 'live');
      expect(await report({ failed: 3 }, field)).toBe('opened');
      await clear();
      expect([await closed(before), await breakerOf()]).toEqual([1, null]);
      await set(field, { breaker: BREAKER }, 'live');
      expect(await breakerOf()).toBe('closed');
      await set(field, { breaker: BREAKER });
      expect(await report({ failed: 3 }, field)).toBe('opened');
      await clear();
      expect([await closed(before), await breakerOf()]).toEqual([1, 'open']);
    },
  );

  it('is closed by a release, also with a hold and a rate', async () => {
    const rate = { max: 4, per: 1_000, window: 'fixed', burst: 4 } as const;
    await set('q', { breaker: BREAKER, rate });
    await t.add('a', 'b', 'c', 'd', 'e', 'f', 'g');
    expect((await take(1)).ids).toEqual(['a']);
    await report({ failed: 3 });
    await t.engine.limits.charge(QUEUE, [{ field: 'q', holdMs: 700, count: 0 }]);
    await t.advance(500);
    expect(await take(9)).toEqual({ ids: [], supply: { limitedForMs: 200 } });
    await t.advance(200);
    expect((await take(9)).ids).toEqual(['b', 'c']);
    await t.engine.limits.charge(QUEUE, [{ field: 'q', holdMs: -1, count: 0 }]);
    expect(await state()).toBe('closed');
    expect((await take(9)).ids).toEqual(['d']);
  });

  it('lets the next probes start at once if the first called no handler', async () => {
    const [q, again] = ['q', { holdMs: 0, count: -2, probesAgain: true }];
    await set(q, { breaker: BREAKER });
    await t.add('a', 'b', 'c', 'd', 'e');
    await t.claim(1);
    await report({ failed: 3 });
    await t.engine.limits.charge(QUEUE, [{ field: q, ...again }]);
    // It is open, so there were no probes.
    expect(await take(9)).toEqual({ ids: [], supply: { limitedForMs: 500 } });
    await t.advance(500);
    expect((await take(9)).ids).toEqual(['b', 'c']);
    while (await wasRung());
    await t.engine.limits.charge(QUEUE, [{ field: q, ...again, probesAgain: false }]);
    expect(await wasRung()).toBe(false);
    expect((await take(9)).ids).toEqual([]);
    await t.engine.limits.charge(QUEUE, [{ field: q, ...again }]);
    expect(await wasRung()).toBe(true);
    expect(await take(9)).toEqual({ ids: ['d', 'e'], supply: { limitedForMs: 500 } });
    expect(await state()).toBe('half-open');
  });

  it('is changed while it holds, and holds nothing back once its rule is gone', async () => {
    await set('q', { breaker: BREAKER });
    await set('q', { breaker: { ...BREAKER, failures: 1 } }, 'live');
    expect(await report({ failed: 1 })).toBe('opened');
    await t.add('a');
    expect((await take(9)).ids).toEqual([]);
    await set('q', { breaker: false }, 'live');
    expect(await state()).toBeNull();
    expect((await take(9)).ids).toEqual(['a']);
    expect(await report({ failed: 9 })).toBe('');
  });

  it('of a shared limit stops all queues that use it, and is reported by an event in each', async () => {
    const { limits } = t.engine;
    const [OTHER] = OTHERS;
    await set('s:api', { breaker: { ...BREAKER, probes: 1 } });
    let seq = 0;
    const ask = async (queue: string, call: Partial<ShareCall> = {}) => {
      if (call.kept === undefined) seq += 1;
      const base = { limits: ['api'], worker: queue, seq, running: 0, want: 3, kept: null, leaseMs: 60_000 };
      const { granted, opensInMs } = await limits.share(queue, { ...base, ...call });
      return { granted, opensInMs };
    };
    const shared = async () => (await limits.shared(QUEUE))[0]!.breaker;
    const told = async (queue: string) => {
      await t.engine.openEvents();
      const batches = await t.engine.readEvents(new Map([[queue, 0]]), 5);
      return batches.flatMap(({ events }) => events).filter(({ type }) => type.startsWith('breaker'));
    };
    expect(await ask(OTHER)).toEqual({ granted: 3, opensInMs: null });
    expect(await report({ failed: 3 }, 's:api')).toBe('opened');
    // The starts that were granted before are given back now. That says nothing about the breaker.
    await ask(OTHER, { want: 0, kept: 0 });
    expect(await ask(OTHER)).toEqual({ granted: 0, opensInMs: 500 });
    expect(await shared()).toBe('open');
    await t.advance(500);
    expect(await ask(OTHER)).toEqual({ granted: 1, opensInMs: 1 });
    expect(await ask(QUEUE)).toEqual({ granted: 0, opensInMs: 500 });
    // No job was there to try it, so another worker may.
    await ask(OTHER, { seq: 3, want: 0, kept: 0 });
    expect(await ask(QUEUE)).toEqual({ granted: 1, opensInMs: 1 });
    await ask(QUEUE, { want: 0, kept: 1, running: 1 });
    expect(await ask(OTHER)).toEqual({ granted: 0, opensInMs: 500 });
    expect(await report({ completed: 1 }, 's:api')).toBe('closed');
    expect(await ask(OTHER)).toEqual({ granted: 3, opensInMs: null });
    for (const queue of [QUEUE, OTHER])
      expect(await told(queue)).toMatchObject([
        { type: 'breakerOpened', name: '', reason: 'api', delayMs: 500 },
        { type: 'breakerClosed', name: '', reason: 'api' },
      ]);
  });

  it('of a shared limit is also reported in queues that wait for a place and have no lease any more', async () => {
    const [OTHER] = OTHERS;
    await set('s:api', { breaker: BREAKER, concurrency: 1 });
    const ask = (queue: string) =>
      t.engine.limits.share(queue, {
        limits: ['api'],
        worker: queue,
        seq: 1,
        running: 0,
        want: 1,
        kept: null,
        leaseMs: 1_000,
      });
    expect(await ask(QUEUE)).toMatchObject({ granted: 1 });
    expect(await ask(OTHER)).toMatchObject({ granted: 0 });
    await t.advance(1_001);
    expect(await report({ failed: 3 }, 's:api')).toBe('opened');
    await t.engine.openEvents();
    const batches = await t.engine.readEvents(new Map([[OTHER, 0]]), 5);
    const types = batches.flatMap(({ events }) => events.map(({ type }) => type));
    expect(types).toContain('breakerOpened');
  });

  it('gives retries places, `max` at once and then one by one', async () => {
    await set('q', { retryBudget: { max: 2, per: 1_000 } });
    const book = (retries: number) =>
      t.engine.limits.report(QUEUE, [
        { field: 'q', completed: 0, failed: 0, retries, firsts: retries > 0 ? 9 : 0 },
      ]);
    const delay = async () =>
      (await t.engine.limits.list(QUEUE)).find(({ field }) => field === 'q')!.retryDelayMs;
    expect(await delay()).toBe(0);
    expect(await book(3)).toEqual([{ breaker: '', firstMs: -500, eachMs: 500 }]);
    expect(await delay()).toBe(1_000);
    expect(await book(1)).toEqual([{ breaker: '', firstMs: 1_000, eachMs: 500 }]);
    // Booked retries that do not happen.
    await book(-3);
    expect(await book(2)).toEqual([{ breaker: '', firstMs: 0, eachMs: 500 }]);
    expect(await delay()).toBe(1_000);
    await t.advance(10_000);
    expect(await delay()).toBe(0);
    await book(-9);
    expect(await book(1)).toEqual([{ breaker: '', firstMs: -500, eachMs: 500 }]);
    // No claim looks at it.
    await t.add('a');
    expect(await take(9)).toEqual({ ids: ['a'], supply: 'empty' });
    await set('q', { retryBudget: false }, 'live');
    expect(await book(9)).toEqual([{ breaker: '', ...NOTHING }]);
    expect(await delay()).toBe(0);
  });

  it('delays no retry longer if the clock is set back', async () => {
    await set('q', { retryBudget: { max: 2, per: 1_000 } });
    const book = async (retries: number) => {
      const runs = { field: 'q', completed: 0, failed: 0, retries, firsts: 0 };
      return (await t.engine.limits.report(QUEUE, [runs]))[0]!.firstMs;
    };
    expect(await book(3)).toBe(-500);
    await t.advance(-3_600_000);
    expect((await t.engine.limits.list(QUEUE))[0]!.retryDelayMs).toBe(1_000);
    expect(await book(1)).toBe(1_000);
    expect(await book(1)).toBe(1_500);
    await t.advance(10_000);
    expect(await book(1)).toBe(-500);
  });

  it('gives more places to retries by a percentage of the first attempts', async () => {
    await set('q', { retryBudget: { max: 2, per: 1_000, percent: 20 } });
    const book = async (retries: number, firsts: number) => {
      const runs = { field: 'q', completed: 0, failed: 0, retries, firsts };
      return (await t.engine.limits.report(QUEUE, [runs]))[0]!.firstMs;
    };
    const delay = async () => (await t.engine.limits.list(QUEUE))[0]!.retryDelayMs;
    await book(0, 10);
    expect(await delay()).toBe(0);
    // 2 of `max` and 2 of 10 first attempts may run now, the next one by one, 4 in each `per`.
    expect(await book(4, 0)).toBeLessThanOrEqual(-3 * 250);
    expect(await delay()).toBe(250);
    expect(await book(1, 0)).toBe(250);
    expect(await delay()).toBe(500);
    await t.advance(250);
    // 10 more first attempts allow 2 more.
    await book(0, 10);
    expect(await delay()).toBe(167);
    // First attempts no longer count after `per`.
    await t.advance(1_100);
    expect(await delay()).toBe(0);
    await book(2, 0);
    expect(await delay()).toBe(500);
    await set('q', { retryBudget: { max: 2, per: 1_000 } }, 'live');
    await book(0, 90);
    expect(await delay()).toBe(500);
  });

  // Their times were taken from `max` alone, so a minute of failures kept its jobs waiting for hours.
  it('gives retries that wait the share of as many first attempts as in the last `per`', async () => {
    await set('q', { retryBudget: { max: 10, per: 10_000, percent: 20 } });
    const field = 'q' as const;
    for (let second = 0; second < 10; second++) {
      await t.engine.limits.report(QUEUE, [{ field, completed: 0, failed: 0, retries: 0, firsts: 1_000 }]);
      await t.advance(1_000);
    }
    const longest = async () => {
      const runs = { field, completed: 0, failed: 0, retries: 1_000, firsts: 1_000 };
      const { firstMs, eachMs } = (await t.engine.limits.report(QUEUE, [runs]))[0]!;
      return firstMs + 999 * eachMs;
    };
    let last = 0;
    for (let second = 0; second < 60; second++) {
      last = await longest();
      await t.advance(1_000);
    }
    // 60,000 retries. 2,010 of them are allowed at once, and 201 in each second.
    expect(last + 60_000).toBeGreaterThan(270_000);
    expect(last + 60_000).toBeLessThan(310_000);
  });

  it('answers each report, also for a field without a rule', async () => {
    await set('n:a', { breaker: { ...BREAKER, failures: 1 } });
    expect(
      await t.engine.limits.report(QUEUE, [
        { field: 'q', completed: 1, failed: 1, retries: 1, firsts: 1 },
        { field: 'n:a', completed: 0, failed: 1, retries: 1, firsts: 1 },
      ]),
    ).toEqual([
      { breaker: '', ...NOTHING },
      { breaker: 'opened', ...NOTHING },
    ]);
  });
});
