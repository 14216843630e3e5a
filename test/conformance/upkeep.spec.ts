import { describe, expect, it } from 'vitest';
import { decodeBody, encodeBody, type RecordOptions } from '#lib/job/job-record.js';
import { completed, dead, FAILURE, job, kept, QUEUE, retried, WORKER } from '../scripts/support.js';
import { ENGINES, OTHERS, useEngine } from './support.js';

const DAY_MS = 86_400_000;

describe.each(ENGINES)('names of jobs on %s', (kind) => {
  const t = useEngine(kind);
  const unhandled = (name: string) => t.engine.upkeep.unhandledMs(QUEUE, name, DAY_MS);
  const handles = (...names: string[]) => t.engine.upkeep.handles(QUEUE, names, DAY_MS);

  /** An exchange tells the engine what the clock of the store shows. */
  const later = async (ms: number) => {
    const before = t.engine.now();
    await t.advance(ms);
    await t.claim();
    // An answer that arrives late makes it less than `ms`.
    const passed = Math.floor(t.engine.now() - before);
    expect(passed).toBeGreaterThan(ms / 2);
    return passed;
  };

  it('are unhandled since the first question, or since a process last reported that it handles them', async () => {
    expect(await unhandled('a')).toBe(0);
    let passed = await later(5_000);
    expect(await unhandled('a')).toBeGreaterThanOrEqual(passed);
    expect(await unhandled('b')).toBe(0);
    await handles('a', 'c');
    expect(await unhandled('a')).toBeLessThan(1_000);
    passed = await later(3_000);
    expect(await unhandled('c')).toBeGreaterThanOrEqual(passed);
    await handles('');
    for (const name of ['a', 'b', 'c', 'd']) expect(await unhandled(name)).toBeLessThan(1_000);
  });

  it('are handled by pattern too', async () => {
    expect(await unhandled('mail.a')).toBe(0);
    await later(5_000);
    await handles('\nmail.*', '\n');
    expect(await unhandled('mail.a')).toBeLessThan(1_000);
    expect(await unhandled('sms.a')).toBe(0);
    const passed = await later(3_000);
    expect(await unhandled('mail.a')).toBeGreaterThanOrEqual(passed);
    expect(await unhandled('sms.a')).toBeGreaterThanOrEqual(passed);
    await handles('\nmail.*', '\n');
    expect(await unhandled('mail.a')).toBeLessThan(1_000);
    expect(await unhandled('sms.a')).toBeGreaterThanOrEqual(passed);
  });
});

describe.each(ENGINES)('dead letters on %s', (kind) => {
  const t = useEngine(kind);
  const get = (id: string) => t.engine.admin.get(QUEUE, id);
  const expired = (id: string) => {
    const run = dead(id);
    return {
      ...run,
      outcome: {
        ...run.outcome,
        kind: 'dead' as const,
        reason: 'expired' as const,
        failure: FAILURE,
        counted: false,
      },
    };
  };

  /** Two of each of two names, with a second between them. */
  async function four(): Promise<void> {
    for (const [i, id] of ['a', 'b', 'c', 'd'].entries()) {
      await t.hold(job(id, { name: i % 2 ? 'mail' : 'work' }));
      await t.settle(i < 2 ? dead(id) : expired(id));
      await t.advance(1_000);
    }
  }

  it('are listed in the order in which they died, with all stored data', async () => {
    await four();
    const { jobs, next } = await t.engine.admin.jobs(QUEUE, { state: 'dead', after: null, limit: 9 });
    expect(next).toBeNull();
    expect(jobs.map(({ id }) => id)).toEqual(['a', 'b', 'c', 'd']);
    const failure = { ...FAILURE, reason: 'unrecoverable' };
    expect(jobs[0]).toMatchObject({
      id: 'a',
      body: job('a').body,
      endedAt: t.now - 4_000,
      failed: 1,
      failure,
    });
  });

  it('are listed page by page, from a position on, even if the job there is gone', async () => {
    await four();
    const first = await t.engine.admin.jobs(QUEUE, { state: 'dead', after: null, limit: 2 });
    expect(first.next).toEqual({ line: 'dead', at: String(t.now - 3_000), id: 'b' });
    await t.engine.admin.remove(QUEUE, 'b');
    const second = await t.engine.admin.jobs(QUEUE, { state: 'dead', after: first.next, limit: 2 });
    expect(second.jobs.map(({ id }) => id)).toEqual(['c', 'd']);
    expect(second.next).toBeNull();
  });

  it('are kept up to a number of bytes, and the last one in any case', async () => {
    const bounded = t.engineWith({ deadMaxBytes: 100_000 });
    const large = (id: string) => job(id, { body: `work\n${'x'.repeat(30_000)}` });
    const left = async () => {
      while ((await bounded.upkeep.trim(QUEUE)) > 0);
      return (await bounded.admin.jobs(QUEUE, { state: 'dead', after: null, limit: 9 })).jobs.map(
        ({ id }) => id,
      );
    };
    await t.bury('a');
    for (const id of ['b', 'c', 'd']) {
      await t.advance(10);
      await t.bury(large(id));
    }
    expect(await left()).toEqual(['a', 'b', 'c', 'd']);
    await t.advance(10);
    await t.bury(large('e'));
    expect(await left()).toEqual(['c', 'd', 'e']);
    expect((await t.events()).filter(({ type }) => type === 'removed')).toMatchObject([
      { id: 'a', reason: 'retention' },
      { id: 'b', reason: 'retention' },
    ]);
    await t.advance(10);
    await t.bury(job('f', { body: `work\n${'x'.repeat(200_000)}` }));
    expect(await left()).toEqual(['f']);
    expect(await bounded.upkeep.overgrown([QUEUE])).toEqual([QUEUE]);
  });

  it('count with their failed attempts', async () => {
    await four();
    const most = (deadMaxBytes: number) => t.engineWith({ deadMaxBytes }).upkeep.trim(QUEUE);
    // The data and the last errors have less than 600 bytes.
    expect(await most(1_200)).toBe(0);
    expect(await most(600)).toBeGreaterThan(0);
  });

  it('are found by name, reason and age', async () => {
    await four();
    const ids = async (match: object) =>
      (await t.engine.admin.jobs(QUEUE, { state: 'dead', after: null, limit: 9, ...match })).jobs.map(
        ({ id }) => id,
      );
    expect(await ids({ name: 'mail' })).toEqual(['b', 'd']);
    expect(await ids({ reason: 'expired' })).toEqual(['c', 'd']);
    expect(await ids({ reason: 'expired', name: 'mail' })).toEqual(['d']);
    expect(await ids({ olderThanMs: 3_000 })).toEqual(['a', 'b']);
    expect(await ids({ newerThanMs: 3_000 })).toEqual(['b', 'c', 'd']);
    expect(await ids({ newerThanMs: 3_000, olderThanMs: 2_000 })).toEqual(['b', 'c']);
    expect(await ids({ newerThanMs: 2_000, olderThanMs: 3_000 })).toEqual([]);
    expect(await ids({ name: ['none', 'mail'], reason: 'expired' })).toEqual(['d']);
    expect(await ids({ name: 'none' })).toEqual([]);
  });

  it('that died in the same ms are sorted by the bytes of their ids', async () => {
    const ids = ['\u{1F600}', '\uFFFD', 'b', 'a'];
    await t.bury(...ids);
    const { jobs } = await t.engine.admin.jobs(QUEUE, { state: 'dead', after: null, limit: 9 });
    expect(jobs.map(({ id }) => id)).toEqual(['a', 'b', '\uFFFD', '\u{1F600}']);
    const { next } = await t.engine.admin.jobs(QUEUE, { state: 'dead', after: null, limit: 3 });
    const rest = await t.engine.admin.jobs(QUEUE, { state: 'dead', after: next, limit: 3 });
    expect(rest.jobs.map(({ id }) => id)).toEqual(['\u{1F600}']);
  });

  it('go back to the line by their ids, as if they were new', async () => {
    await four();
    const which = { ids: ['c', 'none', 'a', 'c'] };
    expect(await t.engine.upkeep.retryDead(QUEUE, which)).toEqual({ retried: ['c', 'a'] });
    expect(await t.engine.upkeep.retryDead(QUEUE, which)).toEqual({ retried: [] });
    expect(await t.engine.upkeep.retryDead(QUEUE, { ids: [] })).toEqual({ retried: [] });
    expect(await get('a')).toMatchObject({ state: 'waiting', failed: 0, stalls: 0, failure: null });
    expect(await t.claim()).toEqual(['c', 'a']);
  });

  it('by their ids, are left alone if they died later than the caller has seen', async () => {
    await four();
    const { jobs } = await t.engine.admin.jobs(QUEUE, { state: 'dead', after: null, limit: 9 });
    const until = jobs[1]!.endedAt!;
    const ids = ['d', 'b', 'a', 'c'];
    expect(await t.engine.upkeep.removeDead(QUEUE, { ids: ['c', 'd'], until })).toEqual({ removed: [] });
    expect(await t.engine.upkeep.retryDead(QUEUE, { ids, until })).toEqual({ retried: ['b', 'a'] });
    expect(await t.engine.upkeep.removeDead(QUEUE, { ids, until: jobs[2]!.endedAt! })).toEqual({
      removed: ['c'],
    });
    expect((await get('d'))!.state).toBe('dead');
  });

  it('go back to the line, as many as requested, those that died first', async () => {
    await four();
    expect(await t.engine.upkeep.retryDead(QUEUE, { limit: 1, name: 'mail' })).toEqual({ retried: ['b'] });
    expect(await t.engine.upkeep.retryDead(QUEUE, { limit: 0 })).toEqual({ retried: [] });
    expect(await t.engine.upkeep.retryDead(QUEUE, { limit: 9 })).toEqual({ retried: ['a', 'c', 'd'] });
  });

  it('go back with their priority, and never expire, because a person wants them run', async () => {
    const body = (options: RecordOptions) => encodeBody('work', t.now - 9_000, options, '1');
    const bodies: Record<string, string> = {
      last: body({ priority: 2_097_151, delayMs: 5 }),
      first: body({ attempts: 3, priority: 1 }),
      plain: body({ expiresInMs: 1 }),
      'no body': 'work\nnot a body of ours',
      'no priority': 'work\n0\n{"p":1.5}\n1',
      'no number': 'work\n0\n{"p":"7"}\n1',
      'no json': 'work\n0\n{"p":7,}\n1',
    };
    await t.bury(...Object.entries(bodies).map(([id, text]) => ({ id, name: 'work', body: text })));
    await t.engine.upkeep.retryDead(QUEUE, { limit: 9 });
    const { claimed } = await t.exchanged({ want: 9 });
    const plain = Object.keys(bodies)
      .filter((id) => id !== 'last' && id !== 'first')
      .toSorted();
    expect(claimed.map(({ id }) => id)).toEqual([...plain, 'first', 'last']);
    for (const { id, body: text, started } of claimed)
      expect({ text, started }).toEqual({ text: bodies[id], started: true });
  });

  it('go back without their deadline, and with all other options as they were', async () => {
    const headers = { deadline: '1', note: ',"deadline":1' };
    const stored = { attempts: 3, deadline: t.now - 1, headers };
    const body = (options: RecordOptions, data: string) => encodeBody('work', t.now - 9_000, options, data);
    const data = '{"deadline":1}';
    await t.bury(
      { id: 'a', name: 'work', body: body(stored, data) },
      { id: 'b', name: 'work', body: body(stored, data) },
    );
    await t.engine.upkeep.retryDead(QUEUE, { ids: ['b'], data: '{"deadline":2}' });
    await t.engine.upkeep.retryDead(QUEUE, { limit: 9 });
    const { claimed } = await t.exchanged({ want: 9 });
    expect(claimed.map(({ id, body: text }) => [id, decodeBody(text)])).toMatchObject([
      ['b', { options: { attempts: 3, headers }, data: { deadline: 2 } }],
      ['a', { options: { attempts: 3, headers }, data: { deadline: 1 } }],
    ]);
    for (const { body: text } of claimed) expect(decodeBody(text)!.options.deadline).toBeUndefined();
  });

  it('keep a deadline that is part of an option of a newer version', async () => {
    const body = encodeBody('work', t.now, { unknown: { later: { deadline: 5 } } }, '1');
    await t.bury({ id: 'a', name: 'work', body });
    await t.engine.upkeep.retryDead(QUEUE, { ids: ['a'] });
    expect((await t.exchanged({ want: 1 })).claimed[0]!.body).toBe(body);
  });

  it('without a body have nothing to run', async () => {
    await t.bury({ id: 'empty', name: 'work', body: '' }, 'whole');
    expect(await t.engine.upkeep.retryDead(QUEUE, { limit: 9 })).toEqual({ retried: ['whole'] });
    expect(await t.engine.upkeep.retryDead(QUEUE, { ids: ['empty'] })).toEqual({ retried: [] });
  });

  it('are removed by id or by filter, and nothing else is', async () => {
    await four();
    await t.add('waiting');
    expect(await t.engine.upkeep.removeDead(QUEUE, { ids: ['a', 'waiting', 'a'] })).toEqual({
      removed: ['a'],
    });
    expect(await t.engine.upkeep.removeDead(QUEUE, { limit: 9, reason: 'expired' })).toEqual({
      removed: ['c', 'd'],
    });
    expect(await t.engine.admin.counts(QUEUE)).toMatchObject({ dead: 1, waiting: 1 });
  });
});

describe.each(ENGINES)('cleaning on %s', (kind) => {
  const t = useEngine(kind);
  const aged = (id: string, ageMs: number, more = {}) =>
    job(id, { body: encodeBody('work', t.now - ageMs, {}, '1'), ...more });
  const clean = async (state: 'waiting' | 'delayed' | 'completed' | 'dead', olderThanMs = 0, limit = 100) =>
    (await t.engine.upkeep.clean(QUEUE, { state, olderThanMs, limit })).removed;

  it('takes waiting jobs by when they were added, of all lines', async () => {
    await t.add(aged('a', 5_000), aged('b', 100), aged('c', 9_000), 'without a time');
    await t.add(aged('p', 5_000, { priority: 3 }), aged('q', 10, { priority: 1 }));
    expect(await clean('waiting', 5_000)).toEqual(['a', 'c', 'p']);
    expect(await clean('waiting', 0, 2)).toEqual(['b', 'without a time']);
    expect(await clean('waiting')).toEqual(['q']);
  });

  it('stops after 200 jobs in a line that are too young', async () => {
    const young = Array.from({ length: 199 }, (_, i) => aged(`y${i}`, 0));
    await t.add(aged('old', 5_000), ...young, aged('last seen', 5_000));
    expect(await clean('waiting', 1_000)).toEqual(['old', 'last seen']);
    await t.add(aged('one more', 0), aged('unseen', 5_000));
    expect(await clean('waiting', 1_000)).toEqual([]);
  });

  it('takes delayed jobs in the order in which they are due', async () => {
    await t.add(aged('late', 5_000, { delayMs: 99 }), aged('soon', 5_000, { delayMs: 9 }));
    await t.add(aged('new', 0, { delayMs: 1 }));
    expect(await clean('delayed', 1_000)).toEqual(['soon', 'late']);
    expect(await clean('delayed')).toEqual(['new']);
  });

  it('takes completed jobs by when they ended, and none whose retention is over', async () => {
    await t.hold('over', 'short', 'long');
    await t.settle(kept('over', 1_000), kept('short', 20_000), kept('long', 60_000));
    await t.advance(5_000);
    expect(await clean('completed', 5_001)).toEqual([]);
    expect(await clean('completed', 5_000, 1)).toEqual(['short']);
    expect(await clean('completed', 5_000)).toEqual(['long']);
  });

  it('takes dead jobs by when they died', async () => {
    await t.bury('a');
    await t.advance(1_000);
    await t.bury('b');
    expect(await clean('dead', 1_000)).toEqual(['a']);
    expect(await clean('dead', 0)).toEqual(['b']);
    expect(await clean('dead', 0)).toEqual([]);
  });
});

describe.each(ENGINES)('retention on %s', (kind) => {
  const t = useEngine(kind, { deadMax: 3, deadAgeMs: DAY_MS, completedMax: 2, eventsAgeMs: DAY_MS });
  const { trim, overgrown } = {
    trim: () => t.engine.upkeep.trim(QUEUE),
    overgrown: () => t.engine.upkeep.overgrown([QUEUE, ...OTHERS]),
  };
  const counts = () => t.engine.admin.counts(QUEUE);

  it('keeps so many dead jobs, and so many completed ones', async () => {
    await t.bury('a', 'b', 'c', 'd', 'e');
    expect(await counts()).toMatchObject({ dead: 3 });
    expect(await t.engine.admin.get(QUEUE, 'b')).toBeNull();
    await t.hold('k1', 'k2', 'k3');
    await t.settle(kept('k1', 9_000), kept('k2', 5_000), kept('k3', 7_000));
    expect(await counts()).toMatchObject({ completed: 2 });
    expect(await t.engine.admin.get(QUEUE, 'k2')).toBeNull();
    expect(await overgrown()).toEqual([]);
    expect(await trim()).toBe(0);
  });

  it('removes jobs that are too old, a part with each call', async () => {
    await t.bury('a', 'b');
    await t.hold('kept');
    await t.settle(kept('kept', 1_000));
    await t.advance(1_000);
    expect(await overgrown()).toEqual([QUEUE]);
    expect(await trim()).toBe(1);
    expect(await trim()).toBe(0);
    await t.advance(DAY_MS);
    expect(await overgrown()).toEqual([QUEUE]);
    expect(await trim()).toBeGreaterThan(2);
    await t.engine.upkeep.trim(QUEUE);
    expect(await counts()).toMatchObject({ dead: 0, completed: 0 });
  });

  it('removes events by their age, and their numbers continue', async () => {
    await t.add('a');
    await t.advance(DAY_MS - 1);
    await t.add('b');
    expect(await trim()).toBe(0);
    await t.advance(1);
    expect(await overgrown()).toEqual([QUEUE]);
    expect(await trim()).toBe(1);
    expect(await overgrown()).toEqual([]);
    expect((await t.events()).map(({ number, id }) => [number, id])).toEqual([[2, 'b']]);
    expect(await t.engine.lastEvent(QUEUE)).toBe(2);
  });

  it('follows the limits of the caller', async () => {
    await t.bury('a', 'b', 'c');
    const stricter = t.engineWith({ deadMax: 1 });
    expect(await stricter.upkeep.overgrown([QUEUE])).toEqual([QUEUE]);
    expect(await stricter.upkeep.trim(QUEUE)).toBe(2);
    expect(await counts()).toMatchObject({ dead: 1 });
  });

  it('has one process per group of queues at a time', async () => {
    const { upkeep } = t.engine;
    expect(await upkeep.claimUpkeep(['a', 'b'], 60_000)).toBe(true);
    expect(await upkeep.claimUpkeep(['b', 'a'], 60_000)).toBe(false);
    expect(await t.engineWith().upkeep.claimUpkeep(['a', 'b'], 60_000)).toBe(false);
    expect(await upkeep.claimUpkeep(['a'], 60_000)).toBe(true);
  });

  it('leaves no data of jobs that were retried and completed', async () => {
    await t.hold('a');
    await t.settle(retried('a'));
    await t.claim();
    await t.engine.note(QUEUE, {
      worker: WORKER,
      id: 'a',
      name: 'work',
      attempt: 2,
      log: 'x',
      progress: '1',
    });
    await t.settle(completed('a'));
    expect(await t.engine.admin.audit(QUEUE)).toMatchObject({ violations: [], checked: 0 });
    await t.hold('a');
    expect(await t.engine.admin.get(QUEUE, 'a')).toMatchObject({
      failed: 0,
      logs: [],
      progress: null,
      failure: null,
    });
  });
});
