import { describe, expect, it } from 'vitest';
import type { EnqueueJob, KeyClaim } from '#lib/contract/engine.js';
import { decodeBody, encodeBody } from '#lib/job/job-record.js';
import { callOf, completed, dead, FAILURE, job, kept, QUEUE, released, retried } from '../scripts/support.js';
import { ENGINES, useEngine } from './support.js';

const UNSETTLED = ['waiting', 'delayed', 'active'] as const;

describe.each(ENGINES)('keys of jobs on %s', (kind) => {
  const t = useEngine(kind);
  let ids = 0;
  const madeId = () => `0mwtqbbga5wm6p${(ids++).toString(36).padStart(4, '0')}A`;

  function keyed(data: string, claim: Partial<KeyClaim> = {}, more: Partial<EnqueueJob> = {}): EnqueueJob {
    const unique = {
      digest: 'D',
      forMs: 0,
      states: UNSETTLED,
      on: 'skip' as const,
      delayMs: 0,
      longestMs: 0,
      ...claim,
    };
    const options = { digest: unique.digest, ...(unique.on === 'keepLast' && { isUnique: true as const }) };
    const body = encodeBody('work', t.now, options, data);
    const delay = unique.delayMs > 0 ? { delayMs: unique.delayMs } : {};
    return { id: madeId(), name: 'work', body, unique, ...delay, ...more };
  }
  const add = async (job: EnqueueJob) => {
    const answer = await t.add(job);
    if (answer.kind !== 'stored') throw new Error(answer.kind);
    return {
      ...answer.duplicates.find(({ id }) => id === job.id),
      id: job.id,
      isNew: answer.duplicates.every(({ parked }) => parked),
    };
  };
  const dataOf = async (id: string) => (await t.engine.admin.get(QUEUE, id))?.body.split('\n')[3];
  const stateOf = async (id: string) => (await t.engine.admin.get(QUEUE, id))?.state;
  const violations = async () => (await t.engine.admin.audit(QUEUE)).violations;

  it('are held by a job whose header has half of a surrogate pair', async () => {
    const headers = { 'x-title': 'cut \ud83d', 'x-path': String.raw`C:\ud83d` };
    const body = encodeBody('work', t.now, { digest: 'D', headers }, '1');
    const first = await add(keyed('1', {}, { body }));
    expect(await add(keyed('2', {}, { body }))).toMatchObject({ holder: first.id });
    expect((await t.engine.admin.get(QUEUE, first.id))?.body).toBe(body);
  });

  it('let one job with a key wait, be delayed or run, and return its id and state', async () => {
    const first = await add(keyed('1'));
    expect(first.isNew).toBe(true);
    expect(await add(keyed('2'))).toMatchObject({ holder: first.id, state: 'waiting', isNew: false });
    expect(await t.claim()).toEqual([first.id]);
    expect(await add(keyed('3'))).toMatchObject({ holder: first.id, state: 'active', isNew: false });
    await t.settle(retried(first.id, { delayMs: 60_000 }));
    expect(await add(keyed('4'))).toMatchObject({ holder: first.id, state: 'delayed', isNew: false });
    expect(await dataOf(first.id)).toBe('1');
    expect((await add(keyed('5', { digest: 'other' }))).isNew).toBe(true);
    expect((await t.events()).filter(({ type }) => type === 'added').map(({ id }) => id)).toHaveLength(2);
  });

  it('do not let a job replace the data of a job with another name', async () => {
    const other = (data: string, on: KeyClaim['on']) => {
      const job = keyed(data, { on });
      return { ...job, name: 'other', body: job.body.replace(/^work/, 'other') };
    };
    const first = await add(keyed('1'));
    for (const on of ['replace', 'keepLast'] as const) {
      const answer = await add(other('2', on));
      expect(answer).toMatchObject({ holder: first.id, state: 'waiting', isNew: false });
      expect(answer).not.toHaveProperty('replaced');
    }
    expect(await dataOf(first.id)).toBe('1');
    expect(await add(keyed('3', { on: 'replace' }))).toMatchObject({ holder: first.id, replaced: true });
    expect(await dataOf(first.id)).toBe('3');
  });

  it.each([
    ['completed', (id: string) => t.settle(completed(id))],
    ['completed and kept', (id: string) => t.settle(kept(id, 60_000))],
    ['dead', (id: string) => t.settle(dead(id))],
  ])('are free again when the job is %s, by any call', async (_, end) => {
    const first = await add(keyed('1'));
    await t.claim();
    await end(first.id);
    expect((await add(keyed('2'))).isNew).toBe(true);
  });

  it('are free again when the job was removed or cancelled', async () => {
    const first = await add(keyed('1'));
    await t.engine.admin.remove(QUEUE, first.id);
    const second = await add(keyed('2'));
    expect(second.isNew).toBe(true);
    await t.engine.admin.cancel(QUEUE, second.id, 'why');
    expect((await add(keyed('3'))).isNew).toBe(true);
  });

  it('are held in the states that the option names', async () => {
    const first = await add(keyed('1'));
    await t.claim();
    const waits = { states: ['waiting', 'delayed'] } as const;
    const second = await add(keyed('2', waits));
    expect(second.isNew).toBe(true);
    expect(await add(keyed('3', waits))).toMatchObject({ holder: second.id, state: 'waiting' });
    await t.settle(completed(first.id));
    await t.claim();
    await t.settle(dead(second.id));
    expect(await add(keyed('4', { states: ['dead'] }))).toMatchObject({ holder: second.id, state: 'dead' });
    expect((await add(keyed('5', { states: ['completed'] }))).isNew).toBe(true);
  });

  it('are held for a time, even if the job ends', async () => {
    const throttled = { forMs: 5_000, states: [] };
    const first = await add(keyed('1', throttled));
    await t.claim();
    await t.settle(completed(first.id));
    await t.engine.upkeep.freeKeys(QUEUE, ['D']);
    const again = await add(keyed('2', throttled));
    expect(again).toMatchObject({ holder: first.id, isNew: false });
    expect(again).not.toHaveProperty('state');
    await t.advance(5_000);
    expect((await add(keyed('3', throttled))).isNew).toBe(true);
  });

  it('give the new data to the waiting or delayed job, which keeps its place', async () => {
    const replace = { on: 'replace' } as const;
    const first = await add(keyed('1', replace));
    await t.add('other');
    const before = await t.engine.lastEvent(QUEUE);
    expect(await add(keyed('2', replace))).toMatchObject({
      holder: first.id,
      state: 'waiting',
      replaced: true,
    });
    expect(await dataOf(first.id)).toBe('2');
    expect((await t.events(before)).map(({ type, id, name }) => [type, id, name])).toEqual([
      ['updated', first.id, 'work'],
    ]);
    expect(await t.claim(1)).toEqual([first.id]);
    const late = await add(keyed('3', replace));
    expect(late).toMatchObject({ holder: first.id, state: 'active' });
    expect(late).not.toHaveProperty('replaced');
    await t.settle(retried(first.id, { delayMs: 1_000 }));
    expect(await add(keyed('4', replace))).toMatchObject({ state: 'delayed', replaced: true });
    expect(await dataOf(first.id)).toBe('4');
  });

  it('debounce: run with the last data, a delay after the last add, and at most a maximum after the first', async () => {
    const debounce = { on: 'debounce', states: ['delayed'], delayMs: 1_000, longestMs: 2_500 } as const;
    const start = t.now;
    const first = await add(keyed('1', debounce));
    const dueAt = async () => (await t.engine.admin.get(QUEUE, first.id))?.dueAt;
    expect(await dueAt()).toBe(start + 1_000);
    await t.advance(900);
    expect(await add(keyed('2', debounce))).toMatchObject({
      holder: first.id,
      state: 'delayed',
      replaced: true,
    });
    expect(await dueAt()).toBe(start + 1_900);
    await t.advance(900);
    await add(keyed('3', debounce));
    expect(await dueAt()).toBe(start + 2_500);
    await t.advance(700);
    expect(await t.claim()).toEqual([first.id]);
    expect(await dataOf(first.id)).toBe('3');
    const second = await add(keyed('4', debounce));
    expect(second.isNew).toBe(true);
    // A job that failed waits for its retry, which no add puts off.
    await t.advance(1_000);
    await t.claim();
    await t.settle(retried(second.id, { delayMs: 60_000 }));
    expect((await add(keyed('5', debounce))).isNew).toBe(true);
  });

  /** The ids of the jobs in the order in which they run, and the priority that a caller sees. */
  const inOrder = async () => {
    const { jobs } = await t.engine.admin.jobs(QUEUE, { state: 'waiting', limit: 5, after: null } as never);
    return jobs.map(({ id, body }) => [id, decodeBody(body)?.options.priority]);
  };
  const ranked = (data: string, claim: Partial<KeyClaim>, priority?: number) => {
    const body = encodeBody(
      'work',
      t.now,
      { digest: claim.digest ?? 'D', ...(priority && { priority }) },
      data,
    );
    return keyed(data, claim, { body, ...(priority && { priority }) });
  };

  it('debounce: run with the priority of the last add', async () => {
    const claim = { on: 'debounce', states: ['delayed'], delayMs: 1_000 } as const;
    const [first, second, third] = [
      await add(ranked('1', { ...claim, digest: 'A' }, 5)),
      await add(ranked('1', { ...claim, digest: 'B' }, 7)),
      await add(ranked('1', { ...claim, digest: 'C' })),
    ];
    await add(ranked('2', { ...claim, digest: 'A' }, 9));
    await add(ranked('2', { ...claim, digest: 'B' }));
    await add(ranked('2', { ...claim, digest: 'C' }, 3));
    await t.advance(1_000);
    expect(await t.claim()).toEqual([second.id, third.id, first.id]);
  });

  describe('keep the last one', () => {
    const last = { on: 'keepLast' } as const;
    const ends: [string, (id: string) => Promise<unknown>][] = [
      ['completed', (id) => t.settle(completed(id))],
      ['completed and kept', (id) => t.settle(kept(id, 60_000))],
      ['dead', (id) => t.settle(dead(id))],
      [
        'cancelled',
        async (id) => {
          await t.engine.admin.cancel(QUEUE, id, 'why');
          await t.settle(released(id));
        },
      ],
    ];

    /** One that runs, and the job that waits for its end. */
    async function running() {
      const first = await add(keyed('1', last));
      await t.claim();
      const next = await add(keyed('2', last));
      return { first: first.id, next: next.id, isNew: next.isNew };
    }

    it.each(ends)('runs it once the first one is %s', async (_, end) => {
      const { first, next, isNew } = await running();
      expect(isNew).toBe(true);
      expect(await t.claim()).toEqual([]);
      expect(await add(keyed('3', last))).toMatchObject({ holder: next, state: 'delayed', replaced: true });
      await end(first);
      expect(await t.engine.upkeep.freeKeys(QUEUE, ['D'])).toBe(1);
      expect(await t.claim()).toEqual([next]);
      expect(await dataOf(next)).toBe('3');
      expect(await t.engine.upkeep.freeKeys(QUEUE, ['D'])).toBe(0);
      // It has the key now.
      const third = await add(keyed('4', last));
      expect([third.isNew, await stateOf(third.id)]).toEqual([true, 'delayed']);
      expect(await violations()).toEqual([]);
    });

    it.each(['cancel', 'remove', 'clean'] as const)('runs it after a %s of the delayed one', async (act) => {
      const { first, next } = await running();
      const ids = [(await add(keyed('o', { digest: 'E' }, { delayMs: 60_000 }))).id, first];
      await t.settle(retried(first, { delayMs: 60_000 }));
      await {
        cancel: () => t.engine.admin.cancelAll(QUEUE, ids, 'why'),
        remove: () => t.engine.admin.removeAll(QUEUE, ids),
        clean: () => t.engine.upkeep.clean(QUEUE, { state: 'delayed', olderThanMs: 0, limit: 2 }),
      }[act]();
      expect(await t.claim()).toEqual([next]);
      const { id, isNew } = await add(keyed('3', last));
      expect([isNew, await stateOf(id)]).toEqual([true, 'delayed']);
      expect(await t.engine.upkeep.freeKeys(QUEUE, ['D'])).toBe(0);
      expect(await violations()).toEqual([]);
    });

    it.each(ends)('is found by the upkeep if no worker reported that the first one is %s', async (_, end) => {
      const { first, next } = await running();
      expect(await t.engine.upkeep.overgrown([QUEUE])).toEqual([QUEUE]);
      await t.engine.upkeep.trim(QUEUE);
      expect(await t.claim()).toEqual([]);
      await end(first);
      await t.engine.upkeep.overgrown([QUEUE]);
      expect(await t.engine.upkeep.trim(QUEUE)).toBeGreaterThan(0);
      expect(await t.claim()).toEqual([next]);
    });

    it('is found by the next add too', async () => {
      const { first, next } = await running();
      await t.settle(completed(first));
      expect(await add(keyed('3', last))).toMatchObject({ holder: next, state: 'waiting', replaced: true });
      expect(await t.claim()).toEqual([next]);
      expect(await dataOf(next)).toBe('3');
    });

    it('keeps waiting while the first one is retried or has lost its worker', async () => {
      const { first, next } = await running();
      await t.settle(retried(first, { delayMs: 0, failure: FAILURE }));
      await t.engine.upkeep.freeKeys(QUEUE, ['D']);
      expect(await t.claim()).toEqual([first]);
      await t.settle(released(first));
      await t.engine.upkeep.freeKeys(QUEUE, ['D']);
      expect(await t.claim()).toEqual([first]);
      expect(await stateOf(next)).toBe('delayed');
    });

    it('replaces a job that waits, and keeps its priority for later', async () => {
      const waiting = await add(keyed('1', last));
      expect(await add(keyed('2', last))).toMatchObject({
        holder: waiting.id,
        state: 'waiting',
        replaced: true,
      });
      await t.claim();
      const next = await add(keyed('3', last, { priority: 7 }));
      await t.settle(completed(waiting.id));
      await t.engine.upkeep.freeKeys(QUEUE, ['D']);
      expect(
        (await t.engine.admin.jobs(QUEUE, { state: 'waiting', limit: 5, after: null } as never)).jobs,
      ).toMatchObject([{ id: next.id }]);
    });

    it('has the priority of the last add', async () => {
      const first = await add(keyed('1', last));
      await t.claim();
      const next = await add(ranked('2', last, 7));
      await add(ranked('3', last, 2));
      const other = await add(ranked('4', { digest: 'E' }, 5));
      await t.settle(completed(first.id));
      await t.engine.upkeep.freeKeys(QUEUE, ['D']);
      expect(await inOrder()).toEqual([
        [next.id, 2],
        [other.id, 5],
      ]);
      await t.claim();
      await add(ranked('5', last, 7));
      await t.settle(completed(next.id));
      // The next add finds that the first one has ended.
      const waiting = await add(ranked('6', last));
      expect(await inOrder()).toEqual([[waiting.holder, undefined]]);
    });

    it('stays behind the first one if a person wants to run or move it, but takes new data', async () => {
      const { first, next } = await running();
      const { admin } = t.engine;
      expect(await admin.promoteNow(QUEUE, next)).toBe('parked');
      const seen = (await admin.get(QUEUE, next))!.body.split('\n')[2]!;
      const options = { seen, changed: seen };
      for (const time of [{ delayMs: 0 }, { delayMs: 60_000 }, { dueAt: t.now + 1 }])
        expect(await admin.update(QUEUE, { id: next, options, ...time })).toEqual({ kind: 'parked' });
      expect(await admin.update(QUEUE, { id: next, data: '3' })).toMatchObject({ kind: 'updated' });
      expect(await t.claim()).toEqual([]);
      await t.settle(completed(first));
      await t.engine.upkeep.freeKeys(QUEUE, ['D']);
      expect(await t.claim()).toEqual([next]);
      expect(await dataOf(next)).toBe('3');
    });

    it('may be cancelled while it waits; then the next add waits', async () => {
      const { first, next } = await running();
      await t.engine.admin.cancel(QUEUE, next, 'why');
      const other = await add(keyed('3', last));
      expect(other.isNew).toBe(true);
      await t.settle(completed(first));
      await t.engine.upkeep.freeKeys(QUEUE, ['D']);
      expect(await t.claim()).toEqual([other.id]);
    });

    it('answers a repeated call as the first time', async () => {
      const first = await add(keyed('1', last));
      await t.claim();
      const call = {
        lane: 'another',
        seq: 1,
        rememberMs: 60_000,
        withinMs: 5_000,
        jobs: [keyed('2', last), keyed('3', { ...last, digest: 'E' })],
      };
      const answer = await t.engine.enqueue(QUEUE, call);
      await t.settle(completed(first.id));
      await t.engine.upkeep.freeKeys(QUEUE, ['D']);
      expect(await t.engine.enqueue(QUEUE, call)).toEqual(answer);
      const again = { ...call, seq: 2, jobs: [keyed('4', last)] };
      const second = await t.engine.enqueue(QUEUE, again);
      expect(second).toMatchObject({ duplicates: [{ holder: call.jobs[0]!.id, replaced: true }] });
      await t.claim();
      expect(await t.engine.enqueue(QUEUE, again)).toEqual(second);
    });
  });

  it('are dropped once their jobs are gone', async () => {
    const first = await add(keyed('1'));
    expect(await t.engine.upkeep.freeKeys(QUEUE, ['D', 'never there'])).toBe(0);
    await t.claim();
    await t.settle(completed(first.id));
    expect(await t.engine.upkeep.overgrown([QUEUE])).toEqual([QUEUE]);
    expect(await t.engine.upkeep.trim(QUEUE)).toBe(1);
    expect(await t.engine.upkeep.overgrown([QUEUE])).toEqual([]);
  });

  it('go with everything else when the queue is obliterated', async () => {
    await add(keyed('1'));
    await t.engine.admin.obliterate(QUEUE, true);
    expect((await add(keyed('2'))).isNew).toBe(true);
  });

  it('are not taken by a job that a full queue drops', async () => {
    const of = (id: string) => job(id, { group: 'g', body: encodeBody('work', t.now, { group: 'g' }, '') });
    await t.add(of('g1'));
    const maxWaiting = { limit: 1, onFull: 'dropOldest' as const };
    const throttled = { forMs: 60_000, states: [] } as const;
    const [dropped, waiting] = [keyed('1', throttled), keyed('1', { digest: 'W' })];
    const call = { ...callOf([dropped, waiting], 1, 'bounded'), maxWaiting };
    expect(await t.engine.enqueue(QUEUE, call)).toMatchObject({
      duplicates: [
        { id: dropped.id, dropped: true },
        { id: waiting.id, dropped: true },
      ],
    });
    expect((await add(keyed('2', throttled))).isNew).toBe(true);
    expect((await add(keyed('2', { digest: 'W' }))).isNew).toBe(true);
  });

  it('stay with their holder if a full queue drops a job that should run again but is gone', async () => {
    const of = (id: string) => job(id, { group: 'g', body: encodeBody('work', t.now, { group: 'g' }, '') });
    await t.add(of('g1'));
    const maxWaiting = { limit: 1, onFull: 'dropOldest' as const };
    const again = keyed('1', { on: 'again', states: [] });
    expect(await t.engine.enqueue(QUEUE, { ...callOf([again], 1, 'bounded'), maxWaiting })).toMatchObject({
      duplicates: [{ id: again.id, dropped: true }],
    });
    expect(await violations()).toEqual([]);
    expect((await add(keyed('2'))).isNew).toBe(true);
  });

  it('are waited for by a job of a group also if the queue has too many jobs', async () => {
    await add(keyed('1', { on: 'keepLast' }));
    await t.claim();
    const of = (id: string) => job(id, { group: 'g', body: encodeBody('work', t.now, { group: 'g' }, '') });
    await t.add(of('g1'), of('g2'));
    const maxWaiting = { limit: 1, onFull: 'dropOldest' as const };
    const parked = keyed('2', { on: 'keepLast' }, { group: 'g' });
    expect(await t.engine.enqueue(QUEUE, { ...callOf([parked], 1, 'bounded'), maxWaiting })).toEqual({
      kind: 'stored',
      duplicates: [{ id: parked.id, parked: true }],
    });
    expect(await stateOf(parked.id)).toBe('delayed');
  });

  it('go to the job that waited for them if a full queue drops a job that ends the wait', async () => {
    const running = await add(keyed('0', { on: 'keepLast' }));
    await t.claim();
    const parked = await add(keyed('1', { on: 'keepLast' }, { priority: 1 }));
    const of = (id: string) => job(id, { group: 'g', body: encodeBody('work', t.now, { group: 'g' }, '') });
    await t.add(of('g1'));
    const maxWaiting = { limit: 2, onFull: 'dropOldest' as const };
    const next = keyed('2', { states: ['waiting'] }, { priority: 2 });
    expect(await t.engine.enqueue(QUEUE, { ...callOf([next], 1, 'bounded'), maxWaiting })).toMatchObject({
      duplicates: [{ id: next.id, dropped: true }],
    });
    expect(await stateOf(running.id)).toBe('active');
    expect(await add(keyed('3', { states: ['waiting'] }))).toMatchObject({ holder: parked.id, isNew: false });
  });

  it('need no room in a full queue for jobs that only wait for the key', async () => {
    let seq = 0;
    const bounded = (...jobs: EnqueueJob[]) =>
      t.engine.enqueue(QUEUE, {
        ...callOf(jobs, ++seq, 'bounded'),
        maxWaiting: { limit: 2, onFull: 'reject' as const },
      });
    const full = { kind: 'queue-full', waiting: 2, needNoRoom: new Set() };
    const last = { digest: 'L', on: 'keepLast' } as const;
    const running = keyed('0', last);
    await t.add(running);
    await t.claim();
    const first = keyed('1');
    await t.add(first, keyed('1', { digest: 'other' }));
    expect(await bounded(keyed('2'))).toMatchObject({ kind: 'stored', duplicates: [{ holder: first.id }] });
    expect(await bounded(keyed('3', { on: 'replace' }), keyed('3'))).toMatchObject({ kind: 'stored' });
    expect(await dataOf(first.id)).toBe('3');
    expect(await bounded(keyed('4', { digest: 'new' }))).toEqual(full);
    const again = keyed('4');
    const needNoRoom = new Set([again.id]);
    expect(await bounded(again, keyed('4', { digest: 'new' }))).toEqual({ ...full, needNoRoom });
    // The key counts for a time: also when its job is gone.
    const timed = { digest: 'T', forMs: 60_000, states: [] };
    await t.add(keyed('5', timed, { delayMs: 1 }));
    expect(await bounded(keyed('6', timed))).toMatchObject({ kind: 'stored' });
    // Waits for the end of the running one, and takes the data of the next.
    expect(await bounded(keyed('7', last))).toMatchObject({ kind: 'stored', duplicates: [{ parked: true }] });
    expect(await bounded(keyed('8', last))).toMatchObject({
      kind: 'stored',
      duplicates: [{ replaced: true }],
    });
    expect(await t.engine.admin.counts(QUEUE)).toMatchObject({ waiting: 2, delayed: 2, active: 1 });
    expect(await violations()).toEqual([]);
  });

  describe('of a job with `unique` that is to run again', () => {
    /** A job whose body says that its key is that of `unique`. */
    const exclusive = (data: string, claim: Partial<KeyClaim> = {}) => {
      const job = keyed(data, claim);
      const { digest } = job.unique!;
      return { ...job, body: encodeBody('work', t.now, { digest, isUnique: true }, data) };
    };
    const die = async (job: EnqueueJob) => {
      await t.add(job);
      await t.claim();
      await t.settle(dead(job.id));
      return job.id;
    };
    const retry = (...named: string[]) => t.engine.upkeep.retryDead(QUEUE, { ids: named });
    const again = (job: EnqueueJob) =>
      add({ ...exclusive('9', { on: 'again', states: [] }), id: job.id, hasOwnId: true });

    it.each([
      ['waits', () => undefined],
      ['runs', () => t.claim()],
      ['is delayed', (id: string) => t.claim().then(() => t.settle(retried(id, { delayMs: 60_000 })))],
    ])('is refused while another job with the key %s', async (_, bring) => {
      const old = await die(exclusive('1'));
      const { id: holder } = await add(exclusive('2'));
      await bring(holder);
      const before = await t.engine.lastEvent(QUEUE);
      expect(await retry(old)).toEqual({ retried: [], refused: [{ id: old, holder }] });
      expect(await t.engine.upkeep.retryDead(QUEUE, { limit: 9 })).toEqual({
        retried: [],
        refused: [{ id: old, holder }],
      });
      expect(await stateOf(old)).toBe('dead');
      expect(await t.engine.lastEvent(QUEUE)).toBe(before);
    });

    it('is refused while a job waits for another one with the key to end', async () => {
      const last = { on: 'keepLast' } as const;
      const first = exclusive('1', last);
      await t.add(first);
      await t.claim();
      const { id: holder } = await add(exclusive('2', last));
      await t.settle(dead(first.id));
      expect(await retry(first.id)).toEqual({ retried: [], refused: [{ id: first.id, holder }] });
      await t.engine.upkeep.freeKeys(QUEUE, ['D']);
      expect(await retry(first.id)).toEqual({ retried: [], refused: [{ id: first.id, holder }] });
      expect(await violations()).toEqual([]);
    });

    it.each([
      ['completed and kept', (id: string) => t.settle(kept(id, 60_000))],
      ['dead', (id: string) => t.settle(dead(id))],
      ['gone', (id: string) => t.settle(completed(id))],
    ])('takes it back once the other job is %s', async (_, end) => {
      const old = await die(exclusive('1'));
      const other = await add(exclusive('2'));
      await t.claim();
      await end(other.id);
      await t.engine.upkeep.freeKeys(QUEUE, ['D']);
      expect(await retry(old)).toEqual({ retried: [old] });
      expect(await add(exclusive('3'))).toMatchObject({ holder: old, state: 'waiting', isNew: false });
    });

    it('goes to the first of several dead ones', async () => {
      const first = await die(exclusive('1'));
      const second = await die(exclusive('2'));
      const other = await die(exclusive('3', { digest: 'other' }));
      expect(await t.engine.upkeep.retryDead(QUEUE, { limit: 9 })).toEqual({
        retried: [first, other],
        refused: [{ id: second, holder: first }],
      });
      expect(await add(exclusive('4'))).toMatchObject({ holder: first });
    });

    it('stays free if the limit leaves its job dead', async () => {
      const first = await die(exclusive('1'));
      await die(exclusive('2'));
      await die(exclusive('3', { digest: 'other' }));
      expect(await t.engine.upkeep.retryDead(QUEUE, { limit: 1 })).toEqual({ retried: [first] });
      expect(await add(exclusive('4', { digest: 'other' }))).toMatchObject({ isNew: true });
    });

    it('is taken by a completed one with its id, or refused with the job that has it', async () => {
      const old = exclusive('1');
      await t.add(old);
      await t.claim();
      await t.settle(kept(old.id, 60_000));
      const other = await add(exclusive('2'));
      expect(await again(old)).toMatchObject({ holder: other.id, state: 'waiting', isNew: false });
      expect(await stateOf(old.id)).toBe('completed');
      await t.claim();
      expect(await again(old)).toMatchObject({ holder: other.id, state: 'active', isNew: false });
      await t.settle(completed(other.id));
      expect(await again(old)).toMatchObject({ isNew: true });
      expect(await again(old)).toMatchObject({ state: 'waiting', isNew: false });
      expect(await again(old)).not.toHaveProperty('holder');
      expect(await add(exclusive('3'))).toMatchObject({ holder: old.id, state: 'waiting' });
    });

    it('keeps the time for which it counts', async () => {
      const timed = { forMs: 60_000, states: [] };
      const old = await die(exclusive('1', timed));
      expect(await retry(old)).toEqual({ retried: [old] });
      await t.claim();
      await t.settle(completed(old));
      expect(await add(exclusive('2', timed))).toMatchObject({ holder: old, isNew: false });
    });

    it('is ignored if it is the key of another option, or of an older version', async () => {
      const old = await die(keyed('1'));
      const other = await add(keyed('2'));
      expect(await retry(old)).toEqual({ retried: [old] });
      expect(await add(keyed('3'))).toMatchObject({ holder: other.id });
    });
  });
});
