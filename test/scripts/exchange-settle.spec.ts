import { describe, expect, it } from 'vitest';
import {
  completed,
  dead,
  FAILURE,
  job,
  kept,
  LIMITS,
  QUEUE,
  released,
  retried,
  snoozed,
  useQueue,
  WORKER,
} from './support.js';
import { without } from './unchanged.js';

// How an exchange settles runs that ended.
const q = useQueue();

/** Gives a claimed job all keys that a job may have beside its body. */
async function leaveTraces(id: string): Promise<void> {
  await q.admin.hset(q.key('attempts'), id, 1);
  await q.admin.hset(q.key('stalls'), id, 1);
  await q.admin.hset(q.key('failures'), id, '1\n{}');
  await q.engine.note(QUEUE, {
    worker: WORKER,
    id,
    name: 'work',
    attempt: 2,
    progress: '50',
    log: 'half way',
  });
}

describe('completed', () => {
  it('leaves nothing', async () => {
    await q.hold('a', 'b');
    await leaveTraces('a');
    await q.settle(completed('a'), completed('b'));
    const left = Object.keys(await q.dump()).toSorted();
    expect(left).toEqual(['doorbell', 'events', `lane:lane`, 'meta', left[4], `worker:${WORKER}`]);
    expect(left[4]).toMatch(/^stats:\d{4}-\d\d-\d\d$/);
  });

  it('and kept, can be read with its result until its retention is over; attempts and stalls are deleted', async () => {
    await q.hold('a');
    await leaveTraces('a');
    const before = await q.now();
    await q.settle(kept('a', 60_000, '{"sum":3}'));
    const until = Number(await q.admin.zscore(q.key('completed'), 'a'));
    expect(until).toBeGreaterThanOrEqual(before + 60_000);
    expect(until).toBeLessThanOrEqual((await q.now()) + 60_000);
    const stored = await q.engine.admin.get(QUEUE, 'a');
    expect(stored).toMatchObject({ state: 'completed', body: job('a').body, failed: 0, stalls: 0 });
    expect(stored).toMatchObject({ result: '{"sum":3}', attempt: 1, durationUs: 1_500, progress: '50' });
    expect(stored!.endedAt).toBeGreaterThanOrEqual(before);
    expect(await q.admin.exists(q.key('attempts'), q.key('stalls'))).toBe(0);
  });

  it('and kept, is deleted with all its data at the next exchange after its retention', async () => {
    await q.hold('old', 'new');
    await leaveTraces('old');
    await q.settle(kept('old', 60_000, '1'), kept('new', 60_000, '2'));
    await q.admin.zadd(q.key('completed'), await q.now(), 'old');
    await q.exchange();
    expect(await q.zset('completed')).toEqual(['new']);
    expect(await q.admin.hkeys(q.key('jobs'))).toEqual(['new']);
    expect(await q.admin.hkeys(q.key('results'))).toEqual(['new']);
    expect(await q.admin.exists(q.key('failures'), q.key('progress'), q.key('logs'))).toBe(0);
  });

  it('keeps at most the maximum: those whose retention ends first are deleted first', async () => {
    await q.hold('a', 'b', 'c', 'd');
    await q.settle(kept('a', 60_000, '1'), kept('b', 30_000, '2'));
    const few = q.engineWith({ completedMax: 2 });
    await q.exchange({ settled: [kept('c', 90_000, '3'), completed('d')] }, few);
    expect(await q.zset('completed')).toEqual(['a', 'c']);
    expect(Object.keys(await q.hash('jobs'))).toEqual(['a', 'c']);
    expect(Object.keys(await q.hash('results'))).toEqual(['a', 'c']);
    expect((await q.events()).filter(({ type }) => type === 'removed')).toEqual([]);
  });

  it('and kept for no time, leaves nothing', async () => {
    await q.hold('a');
    await q.settle(kept('a', 0, '1'));
    expect(await q.admin.exists(q.key('completed'), q.key('results'), q.key('jobs'))).toBe(0);
  });

  it('and kept, are deleted 400 at a time', async () => {
    const ids = Array.from({ length: 700 }, (_, i) => `j${i}`);
    await q.admin.hset(q.key('jobs'), ...ids.flatMap((id) => [id, 'work\n{}']));
    await q.admin.zadd(q.key('completed'), ...ids.flatMap((id) => [1, id]));
    await q.exchange();
    expect(await q.admin.zcard(q.key('completed'))).toBe(300);
    await q.exchange();
    expect(await q.admin.exists(q.key('completed'), q.key('jobs'))).toBe(0);
  });
});

describe('retried', () => {
  it('waits for its delay, with one more attempt and the error', async () => {
    await q.hold('a');
    const before = await q.now();
    await q.settle(retried('a', { delayMs: 5_000.2 }));
    const due = Number(await q.admin.zscore(q.key('delayed'), 'a'));
    expect(due).toBeGreaterThanOrEqual(before + 5_001);
    expect(due).toBeLessThanOrEqual((await q.now()) + 5_001);
    const stored = await q.engine.admin.get(QUEUE, 'a');
    expect(stored).toMatchObject({ state: 'delayed', failed: 1, failure: FAILURE, dueAt: due });
    expect(stored!.failedAt).toBeGreaterThanOrEqual(before);
  });

  it('without a delay goes to the end of the line, and counts the attempt', async () => {
    await q.hold('a');
    await q.add('b');
    await q.settle(retried('a'));
    expect(await q.list('wait')).toEqual(['b', 'a']);
    await q.claim();
    await q.settle(retried('a'));
    expect(await q.hash('attempts')).toEqual({ a: '2' });
  });

  it('keeps its priority, through a delay too', async () => {
    await q.hold('now', 'later');
    await q.settle(retried('now', { priority: 3 }), retried('later', { priority: 2, delayMs: 60_000 }));
    expect(await q.zset('prioritized')).toEqual(['now']);
    expect(await q.hash('priorities')).toEqual({ later: '2' });
    await q.admin.zadd(q.key('delayed'), 1, 'later');
    await q.exchange();
    expect(await q.zset('prioritized')).toEqual(['later', 'now']);
    expect(await q.hash('priorities')).toEqual({});
  });

  it('as a snooze counts no attempt and records no failure', async () => {
    await q.hold('a');
    await q.settle(snoozed('a', 60_000));
    const stored = await q.engine.admin.get(QUEUE, 'a');
    expect(stored).toMatchObject({ state: 'delayed', failed: 0, failure: null, failedAt: null });
    expect(await q.hash('attempts')).toEqual({ a: '0' });
    expect(await q.admin.exists(q.key('failures'), q.key('priorities'))).toBe(0);
  });
});

describe('retried, and the only one in the queue', () => {
  it.each([
    ['without a delay', {}],
    ['without a delay, with a priority', { priority: 3 }],
  ])('%s is claimed by the same exchange', async (_, more) => {
    await q.hold('a');
    const { claimed } = await q.exchanged({ want: 1, settled: [retried('a', more)] });
    expect(claimed).toMatchObject([{ id: 'a', failed: 1 }]);
  });

  it('with a delay: the same exchange returns when it is due', async () => {
    await q.hold('a');
    const { dueInMs } = await q.settle(retried('a', { delayMs: 60_000 }));
    expect(dueInMs).toBeGreaterThan(50_000);
  });
});

describe('dead', () => {
  it('are kept up to a maximum; the oldest are deleted with all their data, which is reported', async () => {
    await q.hold('a', 'b', 'c');
    await leaveTraces('a');
    await q.settle(dead('a'));
    await q.admin.zadd(q.key('dead'), (await q.now()) - 50, 'a');
    const small = q.engineWith({ deadMax: 2 });
    await q.exchange({ settled: [dead('b'), dead('c')] }, small);
    expect(await q.zset('dead')).toEqual(['b', 'c']);
    expect(Object.keys(await q.hash('jobs')).toSorted()).toEqual(['b', 'c']);
    expect(Object.keys(await q.hash('failures')).toSorted()).toEqual(['b', 'c']);
    expect(await q.hash('attempts')).toEqual({ b: '1', c: '1' });
    expect(await q.admin.exists(q.key('stalls'), q.key('progress'), q.key('logs'))).toBe(0);
    const removed = (await q.events()).filter(({ type }) => type === 'removed');
    expect(removed).toHaveLength(1);
    expect(removed[0]).toMatchObject({ id: 'a', name: 'work', reason: 'retention' });
  });

  it('is kept up to an age', async () => {
    await q.bury('old', 'young');
    await q.admin.zadd(q.key('dead'), (await q.now()) - LIMITS.deadAgeMs - 1, 'old');
    await q.hold('a');
    await q.settle(dead('a'));
    expect((await q.zset('dead')).toSorted()).toEqual(['a', 'young']);
    expect(await q.engine.admin.get(QUEUE, 'old')).toBeNull();
  });

  it('are deleted 400 at a time if the maximum was lowered', async () => {
    const ids = Array.from({ length: 1_500 }, (_, i) => `j${i}`);
    await q.admin.hset(q.key('jobs'), ...ids.flatMap((id) => [id, 'work\n{}']));
    const now = await q.now();
    await q.admin.zadd(q.key('dead'), ...ids.flatMap((id, i) => [now - 2_000 + i, id]));
    await q.hold('a');
    const tiny = q.engineWith({ deadMax: 0 });
    await q.exchange({ settled: [dead('a')] }, tiny);
    expect(await q.admin.zcard(q.key('dead'))).toBe(1_101);
    expect((await q.zset('dead')).at(0)).toBe('j400');
  });
});

describe('released', () => {
  it('goes to the line of the suspects if it has stalled twice', async () => {
    await q.hold('a', 'once', 'twice');
    await q.admin.hset(q.key('stalls'), { once: 1, twice: 2 });
    await q.settle(released('a'), released('once'), released('twice'));
    expect(await q.list('wait')).toEqual(['a', 'once']);
    expect(await q.list('suspects')).toEqual(['twice']);
  });

  it('also wakes a worker for a suspect alone', async () => {
    await q.hold('twice');
    await q.admin.hset(q.key('stalls'), 'twice', 2);
    await q.wasRung();
    await q.settle(released('twice'));
    expect(await q.wasRung()).toBe(true);
  });
});

describe('no longer held', () => {
  const outcomes = {
    completed: completed('x'),
    kept: kept('x', 60_000, '1'),
    retried: retried('x'),
    'retried later': retried('x', { delayMs: 9_000, priority: 4 }),
    dead: dead('x'),
    released: released('x'),
  };

  it.each(Object.keys(outcomes) as (keyof typeof outcomes)[])('%s is lost', async (kind) => {
    await q.add('x');
    await q.claim(1, 'other');
    await q.exchange();
    const before = without(await q.dump(), `worker:${WORKER}`);
    expect((await q.settle(outcomes[kind])).lost).toEqual(['x']);
    expect(without(await q.dump(), `worker:${WORKER}`)).toEqual(before);
  });
});

it('counts completed, failed and dead jobs of the day, kept for 90 days', async () => {
  await q.hold('a', 'b', 'c', 'd', 'e', 'f', 'g');
  await q.settle(
    completed('a'),
    kept('b', 1_000),
    retried('c'),
    snoozed('d', 1_000),
    dead('e'),
    dead('f', false),
    released('g'),
  );
  await q.settle(completed('lost'));
  expect(await q.totals()).toEqual({ processed: '2', failed: '2', dead: '2' });
  const ttl = await q.admin.ttl(q.key('stats'));
  expect(ttl).toBeGreaterThan(7_776_000 - 60);
  expect(ttl).toBeLessThanOrEqual(7_776_000);
});

it('settles 500 runs of every kind in one call', async () => {
  const ids = Array.from({ length: 500 }, (_, i) => `j${i}`);
  const kinds = [
    completed,
    (id: string) => kept(id, 60_000, '1'),
    (id: string) => retried(id),
    dead,
    released,
  ];
  for (const kind of kinds) {
    const mine = ids.map((id) => `${kinds.indexOf(kind)}${id}`);
    await q.add(...mine.map((id) => job(id)));
    await q.claim(2_000);
    const { lost } = await q.settle(...mine.map((id) => kind(id)));
    expect(lost).toEqual([]);
  }
  expect(await q.engine.admin.counts(QUEUE)).toMatchObject({ waiting: 500, dead: 500, completed: 500 });
});
