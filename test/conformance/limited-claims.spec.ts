import { describe, expect, it } from 'vitest';
import type { LimitRule } from '#lib/contract/limit-verbs.js';
import { encodeBody } from '#lib/job/job-record.js';
import { RULES } from '#lib/job/rules.js';
import { completed, job, LEASE_MS, QUEUE, released, retried } from '../scripts/support.js';
import { ENGINES, useEngine } from './support.js';

const recovering = { beatMs: 2_000, leaseMs: LEASE_MS, maxStalls: 5 };

// How many jobs one claim takes, and which, if there are limits, suspects or jobs that kept their slot.
describe.each(ENGINES)('a claim under limits on %s', (kind) => {
  const t = useEngine(kind);
  const set = (field: string, rule: LimitRule | null, part: 'code' | 'live' = 'live') =>
    t.engine.limits.set(QUEUE, field, part, rule);
  const fixed = (max: number) => ({ rate: { max, per: 1_000, window: 'fixed', burst: max } }) as const;
  const wasRung = async () => (await t.engine.awaitBell([QUEUE], 5)) === QUEUE;

  /** A job with an id like `tenant.3`, of that group. */
  const grouped = (id: string, cost?: number) => {
    const group = id.split('.')[0]!;
    return job(id, { group, body: encodeBody('work', t.now, { group, ...(cost && { cost }) }, '') });
  };

  /** The claimed jobs, and when the next claim can succeed. */
  async function take(want: number, worker?: string) {
    const { claimed, supply } = await t.exchanged({ want, ...(worker && { worker }) });
    return { ids: claimed.map(({ id }) => id), supply };
  }

  /** Adds jobs that two workers are lost with. */
  async function addSuspects(...jobs: Parameters<typeof t.add>) {
    await t.add(...jobs);
    for (const worker of ['lost', 'lost too']) {
      expect((await take(9, worker)).ids).toHaveLength(jobs.length);
      for (const ms of [LEASE_MS + 1, 2_000]) {
        await t.advance(ms);
        await t.engine.recover(QUEUE, { worker, ...recovering });
      }
    }
  }

  it.each<[string, LimitRule]>([
    ['q', { rate: { max: 1, per: 1_000, burst: 1, window: 'bucket' } }],
    ['q', { concurrency: 1 }],
    ['g', { rate: { max: 1, per: 1_000, burst: 1, window: 'bucket' } }],
    ['g', { concurrency: 1 }],
    ['g', { order: 'strict' }],
  ])('says whether the rule of %s %j holds waiting jobs back', async (field, rule) => {
    await set(field, rule);
    await t.add(grouped('a.1'));
    expect(await t.exchanged({ want: 1 })).toMatchObject({ isHeldBack: false });
    expect(await t.exchanged({ want: 9 })).toMatchObject({ claimed: [], isHeldBack: false });
    await t.add(grouped('a.2'));
    expect(await t.exchanged({ want: 9 })).toMatchObject({ claimed: [], isHeldBack: true });
    await t.add(job('b'));
    const { claimed, isHeldBack } = await t.exchanged({ want: 9 });
    // A job without a group waits for the limit of the queue only.
    expect([claimed.length, isHeldBack]).toEqual([field === 'q' ? 0 : 1, true]);
    expect((await t.exchanged({ want: 0 })).isHeldBack).toBeUndefined();
  });

  const BREAKER = { failures: 5, ratio: 0.5, window: 1_000, openFor: 1_000, probes: 1 };

  it.each<[boolean, string, LimitRule]>([
    [true, 'q', { rate: { max: 5, per: 1_000, burst: 5, window: 'bucket' } }],
    [true, 'g', { rate: { max: 5, per: 1_000, burst: 5, window: 'bucket' } }],
    [true, 'q', { breaker: BREAKER }],
    [true, 'n:mail', { breaker: BREAKER }],
    [true, 'g:a', { paused: true }],
    [true, 'q', { concurrency: 5 }],
    [true, 'n:mail', { concurrency: 5 }],
    [false, 'g', { concurrency: 5 }],
    [false, 'g:a', { concurrency: 5 }],
    [false, 'g', { order: 'strict' }],
    [false, 'q', { maxSize: 5 }],
  ])(
    'says %s to whether claimed jobs must start at once, with the rule of %s %j',
    async (expected, field, rule) => {
      await t.add(grouped('a.0'), job('m', { name: 'mail', body: encodeBody('mail', t.now, {}, '') }));
      await set(field, rule);
      for (const want of [0, 1])
        expect(await t.exchanged({ want })).toMatchObject({
          isLimited: true,
          ...(expected && { startsAtOnce: true }),
        });
      expect('startsAtOnce' in (await t.exchanged({ want: 1 }))).toBe(expected);
    },
  );

  describe('claims ahead again', () => {
    const mustStart = async () => 'startsAtOnce' in (await t.exchanged({ want: 0 }));
    const hold = (field: string, holdMs: number) =>
      t.engine.limits.charge(QUEUE, [{ field, holdMs, count: 0 }]);

    it('when the last hold is over', async () => {
      await set('g', { concurrency: 5 }, 'code');
      await hold('g:a', 2_000);
      await hold('g:b', 1_000);
      await t.add(grouped('a.0'), grouped('b.0'));
      await t.advance(1_999);
      expect(await mustStart()).toBe(true);
      expect((await take(9)).ids).toEqual(['b.0']);
      await t.advance(1);
      expect(await mustStart()).toBe(false);
      expect((await take(9)).ids).toEqual(['a.0']);
    });

    it('at the first end of a hold that was ended early', async () => {
      await set('g', { concurrency: 5 }, 'code');
      await hold('q', 1_000);
      await hold('q', -1);
      expect(await mustStart()).toBe(true);
      await t.advance(1_000);
      expect(await mustStart()).toBe(false);
    });

    it.each(['before', 'after'])('but starts no job of a breaker that opened %s a hold', async (when) => {
      await set('n:mail', { breaker: BREAKER });
      const named = (id: string, name: string) => job(id, { name, body: encodeBody(name, t.now, {}, '') });
      const open = () =>
        t.engine.limits.report(QUEUE, [{ field: 'n:mail', completed: 0, failed: 5, retries: 0, firsts: 0 }]);
      if (when === 'before') await open();
      await hold('n:other', 500);
      if (when === 'after') await open();
      await t.add(named('m', 'mail'), named('o', 'other'));
      await t.advance(501);
      expect((await take(9)).ids).toEqual(['o']);
      await t.advance(500);
      expect((await take(9)).ids).toEqual(['m']);
    });

    it.each<[string, LimitRule]>([
      ['q', { rate: { max: 5, per: 1_000, burst: 5, window: 'bucket' } }],
      ['q', { breaker: BREAKER }],
      ['q', { concurrency: 5 }],
      ['g', { rate: { max: 5, per: 1_000, burst: 5, window: 'bucket' } }],
      ['g:a', { paused: true }],
    ])('when %s no longer has %j', async (field, rule) => {
      await set('g', { concurrency: 5 }, 'code');
      await set(field, rule);
      expect(await mustStart()).toBe(true);
      await set(field, null);
      expect(await mustStart()).toBe(false);
    });

    it('when the last paused group resumes', async () => {
      for (const field of ['g:a', 'g:b']) await set(field, { paused: true });
      await t.add(grouped('a.0'), grouped('b.0'));
      await set('g:a', { paused: false });
      expect(await mustStart()).toBe(true);
      await set('g:b', { paused: false });
      expect(await mustStart()).toBe(false);
      expect((await take(9)).ids).toEqual(['a.0', 'b.0']);
    });

    it('unless it would have to read too many limits', async () => {
      const others = Array.from({ length: RULES.rulesRead }, (_, i) => `g:other-${i}`);
      for (const field of others) await set(field, { weight: 2 });
      for (const paused of [true, false]) await set('g:a', { paused });
      expect(await mustStart()).toBe(false);
      await set('g:one-more', { weight: 2 });
      for (const paused of [true, false]) await set('g:a', { paused });
      expect(await mustStart()).toBe(true);
    });
  });

  it.each([
    ['jobs without a priority', 0],
    ['jobs with a priority', 1],
  ])('takes suspects first, then %s, together no more than it wants', async (_, priority) => {
    await addSuspects('s', 's2');
    await set('q', { concurrency: 9 });
    await t.add(...['a', 'b', 'c'].map((id) => job(id, { priority })));
    expect((await take(1)).ids).toEqual(['s']);
    expect((await take(2)).ids).toEqual(['s2', 'a']);
    expect((await take(9)).ids).toEqual(['b', 'c']);
  });

  it('takes as many jobs of a group at its turn as the call says, and the same number of the others', async () => {
    const ids = (group: string, from: number, count: number) =>
      Array.from({ length: count }, (_, i) => `${group}.${from + i}`);
    await t.add(...'abcd'.split('').flatMap((group) => ids(group, 0, 8).map((id) => grouped(id))));
    const batches = async (want: number, perTurn: number) =>
      (await t.exchanged({ want, perTurn })).claimed.map(({ id }) => id);
    expect(await batches(7, 3)).toEqual([...ids('a', 0, 3), ...ids('b', 0, 3), 'c.0']);
    // Group c has had one job of its turn, and d none.
    expect(await batches(6, 3)).toEqual([...ids('d', 0, 3), ...ids('c', 1, 3)]);
    // A limit of the group counts more.
    await set('g:a', { concurrency: 4 });
    expect(await batches(5, 3)).toEqual(['a.3', ...ids('b', 3, 3), 'd.3']);
    expect(await batches(4, 1)).toEqual(['c.4', 'd.4', 'c.5', 'd.5']);
  });

  it('takes jobs with a priority only if it wants more jobs than wait without one', async () => {
    await set('q', { concurrency: 9 });
    await t.add('a', 'b', job('low', { priority: 2 }), job('high', { priority: 1 }), 'c');
    expect((await take(2)).ids).toEqual(['a', 'b']);
    expect((await take(2)).ids).toEqual(['c', 'high']);
  });

  it('starts no suspect beyond the concurrency of the queue, and counts one that it starts', async () => {
    await addSuspects('s');
    await set('q', { concurrency: 1 });
    await t.add('a', 'b');
    const { claimed } = await t.exchanged({ want: 1, maySuspect: false });
    expect(claimed.map(({ id }) => id)).toEqual(['a']);
    expect((await take(9)).ids).toEqual([]);
    await t.settle(completed('a'));
    expect((await take(9)).ids).toEqual(['s']);
    await set('q', { concurrency: 2 });
    expect((await take(9)).ids).toEqual(['b']);
  });

  it('starts a suspect with the last start of a rate, and none without', async () => {
    await addSuspects('s', 's2');
    await set('q', fixed(1));
    expect(await take(9)).toEqual({ ids: ['s'], supply: { limitedForMs: 1_000 } });
    expect(await take(9)).toEqual({ ids: [], supply: { limitedForMs: 1_000 } });
    await t.advance(1_000);
    expect((await take(9)).ids).toEqual(['s2']);
  });

  it('wakes another worker if one more job may start, also after it started a suspect', async () => {
    await addSuspects('s');
    await set('q', { concurrency: 3 });
    await t.add('a', 'b', 'c');
    while (await wasRung());
    expect((await take(2)).ids).toEqual(['s', 'a']);
    expect(await wasRung()).toBe(true);
    expect((await take(1)).ids).toEqual(['b']);
    expect(await wasRung()).toBe(false);
  });

  it('starts a suspect before its turn, and leaves the turns of other groups as they are', async () => {
    await addSuspects(grouped('b.9'));
    const some = (group: string) => [0, 1, 2, 3, 4, 5].map((n) => grouped(`${group}.${n}`));
    await t.add(...some('b'));
    // One job with this weight counts as five turns.
    await set('g:b', { weight: 0.2 });
    expect((await t.exchanged({ want: 1, maySuspect: false })).claimed).toHaveLength(1);
    await set('g:b', null);
    await t.add(...some('a'));
    expect((await take(1)).ids).toEqual(['b.9']);
    await t.add(...some('c'));
    // No job of these two has started yet, so they come before the other group.
    expect((await take(7)).ids).toEqual(['a.0', 'c.0', 'a.1', 'c.1', 'a.2', 'c.2', 'a.3']);
  });

  it('answers "empty" while groups wait for the concurrency of the queue', async () => {
    await set('q', { concurrency: 1 });
    await t.add(grouped('a.0'), grouped('b.0'), grouped('c.0'));
    expect(await take(9)).toEqual({ ids: ['a.0'], supply: 'empty' });
    expect(await take(9)).toEqual({ ids: [], supply: 'empty' });
    await t.settle(completed('a.0'));
    expect(await take(9)).toEqual({ ids: ['b.0'], supply: 'empty' });
  });

  it('takes no more jobs that kept their slot than it wants, and others after them', async () => {
    await addSuspects(grouped('s.0'));
    await set('g', { order: 'strict' }, 'code');
    await t.add(grouped('a.0'), grouped('b.0'));
    await t.exchanged({ want: 2, maySuspect: false });
    await t.settle(retried('a.0', { delayMs: 0 }), retried('b.0', { delayMs: 0 }));
    await t.add(grouped('c.0'), grouped('d.0'));
    expect((await take(1)).ids).toEqual(['s.0']);
    expect((await take(1)).ids).toEqual(['a.0']);
    expect((await take(2)).ids).toEqual(['b.0', 'c.0']);
    expect((await take(9)).ids).toEqual(['d.0']);
  });

  it.each([
    ['a retry', false],
    ['a suspect', true],
  ])(
    'starts %s of a group in strict order within the rate of the group, and not while it is held',
    async (_, isSuspect) => {
      await set('g', { order: 'strict', ...fixed(3) }, 'code');
      if (isSuspect) await addSuspects(grouped('a.0'));
      else {
        await t.add(grouped('a.0'));
        await take(9);
        await t.settle(retried('a.0', { delayMs: 0 }));
      }
      await t.advance(1_000);
      await t.engine.limits.charge(QUEUE, [{ field: 'g:a', holdMs: 5_000, count: 0 }]);
      await t.add(grouped('a.1'), grouped('b.0'));
      expect(await take(9)).toEqual({ ids: ['b.0'], supply: { limitedForMs: 5_000 } });
      await t.advance(5_000);
      for (let i = 0; i < 3; i += 1) {
        expect((await take(9)).ids).toEqual(['a.0']);
        await t.settle(isSuspect ? released('a.0') : retried('a.0', { delayMs: 0 }));
      }
      expect(await take(9)).toEqual({ ids: [], supply: { limitedForMs: 1_000 } });
      await t.advance(1_000);
      expect((await take(9)).ids).toEqual(['a.0']);
      await t.settle(completed('a.0'));
      expect((await take(9)).ids).toEqual(['a.1']);
    },
  );

  it('starts a retry of a group in strict order before the rounds of others', async () => {
    await set('g', { order: 'strict' }, 'code');
    await t.add(grouped('a.0'), grouped('a.1'));
    expect((await take(9)).ids).toEqual(['a.0']);
    await t.settle(retried('a.0', { delayMs: 0 }));
    await t.add('1', '2', '3', grouped('b.0'));
    expect((await take(9)).ids).toEqual(['a.0', 'b.0', '1', '2', '3']);
  });

  it('starts no retry of a held group in strict order, and those of other groups first', async () => {
    await set('g', { order: 'strict' }, 'code');
    await t.add(grouped('a.0'), grouped('b.0'));
    expect((await take(9)).ids).toEqual(['a.0', 'b.0']);
    await t.add(grouped('c.0'));
    await t.settle(retried('a.0', { delayMs: 0 }), retried('b.0', { delayMs: 0 }));
    await t.engine.limits.charge(QUEUE, [{ field: 'g:a', holdMs: 5_000, count: 0 }]);
    expect((await take(1)).ids).toEqual(['b.0']);
    expect(await take(9)).toEqual({ ids: ['c.0'], supply: { limitedForMs: 5_000 } });
    await t.advance(5_000);
    expect((await take(9)).ids).toEqual(['a.0']);
  });

  it('starts further jobs of a group whose suspect kept its slot in an order that is not strict any more', async () => {
    await set('g', { order: 'strict' }, 'code');
    await addSuspects(grouped('a.0'));
    await set('g', { concurrency: 2 }, 'code');
    await t.add(grouped('a.1'), grouped('a.2'));
    expect((await take(1)).ids).toEqual(['a.0']);
    expect((await take(9)).ids).toEqual(['a.1']);
  });

  it.each([250, 550, 10_000])(
    'keeps the order of jobs without a group that it sorts in several claims of %i bytes',
    async (maxBytes) => {
      await t.add(grouped('a.0'));
      const body = encodeBody('work', t.now, {}, 'x'.repeat(80));
      const all = ['p1', 'p2', 'p3', 'p4', 'r1', 'r2', 'r3'];
      await t.add(...all.map((id) => job(id, { body, ...(id.startsWith('r') && { priority: 1 }) })));
      const ids: string[] = [];
      for (let i = 0; i < 9; i += 1)
        ids.push(...(await t.exchanged({ want: 9, maxBytes })).claimed.map(({ id }) => id));
      expect(ids.filter((id) => !id.startsWith('a'))).toEqual(all);
    },
  );

  it.each([['q'], ['g:a']])(
    'starts no job once the costs of others have used up the rate of %s',
    async (field) => {
      await set(field, fixed(5));
      await t.add(grouped('a.0', 2), grouped('a.1', 3), grouped('a.2', 1));
      expect(await take(9)).toEqual({ ids: ['a.0', 'a.1'], supply: { limitedForMs: 1_000 } });
    },
  );

  describe('with costs', () => {
    const rate = (max: number, window: 'sliding' | 'fixed' | 'bucket', burst = max) => ({
      rate: { max, per: 1_000, window, burst },
    });

    it.each([
      ['sliding', 1_010],
      ['fixed', 1_000],
    ] as const)('waits until a job fits what is left of a %s window', async (window, openMs) => {
      await set('q', rate(10, window));
      await t.add(grouped('a.0', 6), grouped('b.0', 5), grouped('c.0', 1), grouped('c.1', 4));
      // The small job behind it waits too: otherwise it might wait without end.
      expect(await take(9)).toEqual({ ids: ['a.0'], supply: { limitedForMs: openMs } });
      expect((await take(9)).ids).toEqual([]);
      await t.advance(openMs);
      expect((await take(9)).ids).toEqual(['b.0', 'c.0', 'c.1']);
    });

    it.each([
      ['owe its cost', 9, 600],
      ['use up the rest', 4, 100],
    ])('lets the last job of a bucket %s', async (_, cost, openMs) => {
      await set('q', rate(10, 'bucket'));
      await t.add(grouped('a.0', 6), grouped('b.0', cost), grouped('c.0', 1));
      expect(await take(9)).toEqual({ ids: ['a.0', 'b.0'], supply: { limitedForMs: openMs } });
    });

    it('needs all of a rate that was lowered below the cost', async () => {
      await set('q', rate(4, 'fixed'));
      await t.add(grouped('a.0', 1), grouped('a.1', 6), grouped('a.2', 1));
      expect(await take(9)).toEqual({ ids: ['a.0'], supply: { limitedForMs: 1_000 } });
      await t.advance(1_000);
      expect(await take(9)).toEqual({ ids: ['a.1'], supply: { limitedForMs: 1_000 } });
    });

    it('holds back one group, and lets the others go on', async () => {
      await set('g', rate(10, 'fixed'));
      await t.add(grouped('a.0', 6), grouped('a.1', 5), grouped('a.2', 1), grouped('b.0', 9));
      expect(await take(9)).toEqual({ ids: ['a.0', 'b.0'], supply: { limitedForMs: 1_000 } });
      await t.add(grouped('b.1', 1));
      expect((await take(9)).ids).toEqual(['b.1']);
      await t.advance(1_000);
      expect((await take(9)).ids).toEqual(['a.1', 'a.2']);
    });

    it('holds back a suspect, and keeps its slot', async () => {
      await set('g', { ...rate(10, 'fixed'), concurrency: 1 });
      await addSuspects(grouped('a.0', 6));
      await t.add(grouped('a.1', 1));
      await t.engine.limits.charge(QUEUE, [{ field: 'g:a', holdMs: 0, count: 5 }]);
      const suspect = async () =>
        (await t.exchanged({ want: 1, maySuspect: true })).claimed.map(({ id }) => id);
      expect(await suspect()).toEqual([]);
      await t.advance(1_000);
      expect(await suspect()).toEqual(['a.0']);
    });

    it.each([
      ['q', 5],
      ['g:a', 5],
      ['n:work', 5],
    ])('spreads starts of %s only by what jobs cost', async (field, burst) => {
      await set(field, rate(100, 'sliding', burst));
      const all = [0, 1, 2].map((i) =>
        field === 'g:a'
          ? grouped(`a.${i}`, 40)
          : job(`x.${i}`, { name: 'work', body: encodeBody('work', t.now, { cost: 40 }, '') }),
      );
      await t.add(...all);
      // After a cost of 40 there is half of the time in which the rate allows it.
      expect((await take(9)).supply).toEqual({ limitedForMs: 200 });
      await t.advance(200);
      expect((await take(9)).ids).toHaveLength(1);
      await t.advance(200);
      expect((await take(9)).ids).toEqual([]);
      await t.advance(601);
      expect((await take(9)).ids).toHaveLength(1);
    });

    it.each(['q', 'g:a'])(
      'wakes a worker when so much of %s is given back that a job fits',
      async (field) => {
        await set(field, rate(10, 'fixed'));
        await t.add(grouped('a.0', 7), grouped('a.1', 5));
        expect((await take(9)).ids).toEqual(['a.0']);
        await wasRung();
        await t.engine.limits.charge(QUEUE, [{ field, holdMs: 0, count: -2 }]);
        expect(await wasRung()).toBe(true);
        expect((await take(9)).ids).toEqual(['a.1']);
      },
    );
  });

  describe('of names that get limits', () => {
    const named = (id: string, more: { priority?: number } = {}) => {
      const name = id.split('.')[0]!;
      return job(id, { name, ...more, body: encodeBody(name, t.now, more, '') });
    };
    const some = (name: string, count: number) =>
      Array.from({ length: count }, (_, i) => named(`${name}.${i}`));
    /** Claims until nothing more may start now, as workers do. */
    async function takeAll(want: number) {
      const ids: string[] = [];
      for (let supply: unknown = 'more'; supply === 'more';) {
        const taken = await take(want);
        ids.push(...taken.ids);
        ({ supply } = taken);
      }
      return ids;
    }

    it('counts jobs that waited in the line of all other jobs', async () => {
      await set('n:x', { concurrency: 1 });
      await t.add(...some('y', 5), named('y.low', { priority: 3 }), ...some('z', 2), ...some('x', 1));
      expect((await take(1)).ids).toEqual(['y.0']);
      await set('n:y', { concurrency: 1 });
      expect(await takeAll(2)).toEqual(['x.0', 'z.0', 'z.1']);
      const started: (readonly string[])[] = [];
      for (let id = 'y.0'; started.length < 5;) {
        await t.settle(completed(id));
        const ids = await takeAll(9);
        started.push(ids);
        id = ids[0]!;
      }
      expect(started).toEqual([['y.1'], ['y.2'], ['y.3'], ['y.4'], ['y.low']]);
      expect((await t.engine.admin.audit(QUEUE)).violations).toEqual([]);
    });

    it('holds the jobs of a name, also if another name was held before', async () => {
      await t.add(...some('a', 3));
      await t.engine.limits.charge(QUEUE, [{ field: 'n:a', holdMs: 5_000, count: 0 }]);
      expect(await takeAll(9)).toEqual([]);
      await t.add(...some('b', 3));
      expect(await takeAll(1)).toEqual(['b.0', 'b.1', 'b.2']);
      await t.add(named('b.3'), named('c.0'), named('b.4'));
      expect((await take(1)).ids).toEqual(['b.3']);
      await t.engine.limits.charge(QUEUE, [{ field: 'n:b', holdMs: 6_000, count: 0 }]);
      expect(await takeAll(9)).toEqual(['c.0']);
      await t.advance(5_000);
      expect(await takeAll(9)).toEqual(['a.0', 'a.1', 'a.2']);
      await t.advance(1_000);
      expect(await takeAll(9)).toEqual(['b.4']);
    });
  });

  it('of an empty queue does not mention a rate that is not used up, and does not begin its window', async () => {
    await set('q', fixed(2));
    expect(await take(9)).toEqual({ ids: [], supply: 'empty' });
    await t.advance(900);
    await t.add('a');
    expect(await take(9)).toEqual({ ids: ['a'], supply: 'empty' });
    expect(await take(9)).toEqual({ ids: [], supply: 'empty' });
    await t.add('b', 'c');
    expect(await take(9)).toEqual({ ids: ['b'], supply: { limitedForMs: 1_000 } });
  });

  it('forgets what a rate has counted, once its rule is gone and nothing else is limited', async () => {
    await set('q', fixed(1));
    await t.add('a', 'b');
    expect((await take(1)).ids).toEqual(['a']);
    await set('q', null);
    expect((await take(9)).ids).toEqual(['b']);
    await take(9);
    expect(await t.exchanged({ want: 1 })).not.toHaveProperty('isLimited');
    await set('q', fixed(1));
    await t.add('c');
    expect((await take(9)).ids).toEqual(['c']);
  });
});
