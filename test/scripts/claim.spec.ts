import { beforeEach, describe, expect, it } from 'vitest';
import type { ExchangeCall, RungClaim } from '#lib/contract/engine.js';
import type { RedisEngine } from '#lib/engine/redis-engine.js';
import { claim } from '#lib/engine/scripts/work.js';
import { isBlocked } from '../support/blocked.js';
import { useServer } from '../support/server.js';
import { dead, job, LEASE_MS, QUEUE, retried, useQueue, WORKER } from './support.js';
import { itRefusesWrongTypes, without } from './unchanged.js';

// A server of its own, since its scripts are forgotten here.
const q = useQueue({ server: useServer() });

/** The worker has made one call, and its bell has a connection. */
beforeEach(async () => {
  await q.exchange({ want: 0 });
  await q.engine.awaitBell([QUEUE], 1);
});

const call = (more = {}) => ({
  worker: WORKER,
  seq: 2,
  leaseMs: LEASE_MS,
  want: 10,
  maySuspect: true,
  settled: [],
  ...more,
});

function leave({
  maxMs = 10_000,
  engine = q.engine,
  ...more
}: { maxMs?: number; engine?: RedisEngine } & Partial<ExchangeCall> = {}): Promise<RungClaim> {
  const left = engine.claimAtBell(QUEUE, call(more), maxMs);
  expect(left).not.toBeNull();
  return left!;
}

/** Called at once: the bell rings already. */
async function claimNow(more = {}): Promise<RungClaim> {
  await q.engine.ring(QUEUE);
  return leave(more);
}

const EMPTY = { kind: 'claimed', claimed: [], isCut: false, held: 0 };

function claimed({ answer }: RungClaim): string[] | null {
  return answer && answer.claimed.map(({ id }) => id);
}

describe('at the bell', () => {
  it('is made as soon as it rings', async () => {
    const left = leave();
    await isBlocked(q.redis);
    await q.add('a');
    // Redis has run it before it answers any other call.
    expect(await q.admin.smembers(q.key('active'))).toEqual(['a']);
    const { rung, isOfTime, ...answer } = await left;
    expect([rung, isOfTime, answer]).toEqual([
      true,
      false,
      { answer: expect.objectContaining({ kind: 'claimed', held: null }) },
    ]);
    expect(await q.wasRung()).toBe(false);
  });

  it('takes no more bytes of bodies than the worker asks for, and wakes another worker for the rest', async () => {
    const body = `job\n1\n\n"${'x'.repeat(1_000)}"`;
    const jobs = ['a', 'b', 'c'].map((id) => ({ ...job(id), body }));
    await q.add(...jobs, { ...job('p', { priority: 1 }), body });
    const { answer } = await claimNow({ want: 9, maxBytes: 2_500 });
    expect(answer).toMatchObject({ claimed: [{ id: 'a' }, { id: 'b' }], isCut: true });
    expect(await q.wasRung()).toBe(true);
    expect((await q.admin.smembers(q.key('active'))).toSorted()).toEqual(['a', 'b']);
    expect(await q.admin.lrange(q.key('wait'), 0, -1)).toEqual(['c']);
    expect(await q.admin.zrange(q.key('prioritized'), '0', '-1')).toEqual(['p']);
    const next = await q.exchanged({ seq: 3, want: 9, maxBytes: 100_000 });
    expect(next).toMatchObject({ claimed: [{ id: 'c' }, { id: 'p' }], isCut: false });
  });

  it('is made when the wait is over, or is interrupted, and finds nothing', async () => {
    const nothing = {
      rung: false,
      isOfTime: false,
      answer: { ...EMPTY, now: expect.any(Number), ageMs: expect.any(Number) },
    };
    expect(await leave({ maxMs: 20 })).toEqual(nothing);
    const left = leave();
    await isBlocked(q.redis);
    q.engine.interruptBell();
    expect(await left).toEqual(nothing);
  });

  it('returns that the bell rang because of a time', async () => {
    await q.add('a', job('later', { delayMs: 60_000 }));
    const ofTime = await leave();
    expect([ofTime.rung, ofTime.isOfTime, claimed(ofTime)]).toEqual([true, true, ['a']]);
  });

  it('is made by a server whose scripts were flushed', async () => {
    const left = leave();
    await isBlocked(q.redis);
    await q.admin.script('FLUSH', 'SYNC');
    await q.add('a');
    expect(claimed(await left)).toEqual(['a']);
  });

  it('is not sent if the bell has no connection yet', () => {
    expect(q.engineWith({}).claimAtBell(QUEUE, call(), 10_000)).toBeNull();
  });
});

describe('changes nothing, and leaves it to an exchange,', () => {
  it('if it was made elsewhere meanwhile, or a later one was', async () => {
    const left = leave();
    await isBlocked(q.redis);
    expect(await q.exchanged({ seq: 2, want: 10 })).toMatchObject({ claimed: [] });
    await q.add('a');
    expect(await left).toMatchObject({ rung: true, answer: null });
    expect(await q.list('wait')).toEqual(['a']);
    expect(await q.exchanged({ seq: 3 })).toMatchObject({ claimed: [] });
    expect(await claimNow({ seq: 3 })).toMatchObject({ rung: true, answer: null });
    expect(await claimNow()).toMatchObject({ rung: true, answer: null });
    expect(await q.list('wait')).toEqual(['a']);
  });

  it('if the worker is no longer known', async () => {
    await q.add('a');
    await q.admin.del(q.key('worker'));
    expect(await leave()).toMatchObject({ rung: true, answer: null });
    expect(await q.list('wait')).toEqual(['a']);
    expect(await q.admin.exists(q.key('worker'), q.key('active'))).toBe(0);
  });

  const states: Record<string, () => Promise<unknown>> = {
    'the queue is paused': async () => {
      await q.add('a');
      await q.engine.admin.pause(QUEUE);
    },
    'a suspect waits': async () => {
      await q.add('a', 'b');
      await q.admin.rpush(q.key('suspects'), 'b');
    },
    'a body is missing': async () => {
      await q.add('a', 'b');
      await q.admin.hdel(q.key('jobs'), 'b');
    },
  };
  it.each(Object.keys(states))('if %s', async (state) => {
    await states[state]!();
    await q.engine.ring(QUEUE);
    const before = await q.dump();
    expect(await leave()).toMatchObject({ rung: true, answer: null });
    await q.engine.ring(QUEUE);
    expect(await q.dump()).toEqual(before);
  });
});

it('changes nothing if nothing waits, except when the worker was last seen', async () => {
  await q.add(job('due', { dueAt: 1 }));
  await q.admin.zrem(q.key('doorbell'), 'due');
  await q.admin.pexpire(q.key('worker'), 1_000);
  const before = without(await q.dump(), 'doorbell', 'worker:w1');
  const record = await q.hash('worker');
  expect(await leave()).toMatchObject({ rung: true, answer: EMPTY });
  expect(without(await q.dump(), 'doorbell', 'worker:w1')).toEqual(before);
  expect(await q.hash('worker')).toEqual(record);
  expect(await q.admin.pttl(q.key('worker'))).toBeGreaterThan(60_000);
  // It keeps its number, or leaves it out.
  await q.add('a');
  expect(claimed(await leave({ seq: 3 }))).toEqual(['a']);
});

it.each([0, -1])('claims nothing if it wants %i', async (want) => {
  await q.add('a');
  expect(await leave({ want })).toMatchObject({ rung: true, answer: null });
  expect(await q.list('wait')).toEqual(['a']);
});

it('claims in order: those without a priority, then by priority, as many as it may', async () => {
  await q.add(job('p9', { priority: 9 }), 'a', job('p1', { priority: 1 }), 'b');
  const first = await leave({ want: 3 });
  expect(claimed(first)).toEqual(['a', 'b', 'p1']);
  expect(await q.zset('prioritized')).toEqual(['p9']);
  // It may have been the only one that was woken.
  expect(await q.wasRung()).toBe(true);
  await q.add('c', 'd');
  expect(claimed(await leave({ seq: 3, want: 1 }))).toEqual(['c']);
  expect(await q.wasRung()).toBe(true);
  expect(claimed(await claimNow({ seq: 4 }))).toEqual(['d', 'p9']);
  expect(await q.wasRung()).toBe(false);
});

it('stores a lease, and the record that answers a repetition', async () => {
  await q.add('a');
  await leave();
  const lease = Number(await q.admin.zscore(q.key('workers'), WORKER));
  expect(lease - (await q.now())).toBeGreaterThan(LEASE_MS - 5_000);
  const again = await q.exchanged({ seq: 2, want: 10 });
  expect(again.claimed).toEqual([{ ...job('a'), name: undefined, failed: 0, stalls: 0 }]);
  expect(await q.hash('worker')).toMatchObject({ seq: '2', gave: 'a', lost: '' });
});

it('returns how often a job has failed and stalled, and which attempt this is', async () => {
  await q.hold('x', 'y');
  await q.settle(retried('x', { delayMs: 0 }), dead('y'));
  await q.admin.hset(q.key('stalls'), 'x', 1);
  await q.add('fresh');
  const seq = Number(await q.admin.hget(q.key('worker'), 'seq')) + 1;
  const { answer } = await claimNow({ seq });
  expect(answer!.claimed).toEqual([
    { id: 'x', body: job('x').body, failed: 1, stalls: 1 },
    { id: 'fresh', body: job('fresh').body, failed: 0, stalls: 0 },
  ]);
  const started = (await q.events()).filter(({ type }) => type === 'active').slice(-2);
  expect(started.map(({ id, attempt, name }) => [id, attempt, name])).toEqual([
    ['x', 2, 'work'],
    ['fresh', 1, 'work'],
  ]);
});

it('writes an event for each job with its own name, unless no events are kept', async () => {
  await q.add(job('a', { name: 'one' }), job('b', { name: 'other' }));
  await leave();
  const started = (await q.events()).filter(({ type }) => type === 'active');
  expect(started.map(({ id, name }) => [id, name])).toEqual([
    ['a', 'one'],
    ['b', 'other'],
  ]);
  const length = await q.admin.xlen(q.key('events'));
  const silent = q.engineWith({ maxEvents: 0 });
  await silent.awaitBell(['other'], 1);
  await q.engine.enqueue(QUEUE, { lane: 'l', seq: 1, rememberMs: 1000, withinMs: 1000, jobs: [job('c')] });
  expect(claimed(await leave({ seq: 3, engine: silent }))).toEqual(['c']);
  expect(await q.admin.xlen(q.key('events'))).toBe(length + 1);
});

it('takes large bodies, and 1,000 jobs', async () => {
  const large = `work\n"${'x'.repeat(3_000)}"`;
  await q.add(job('large', { body: large }), 'small');
  const { answer } = await leave();
  expect(answer!.claimed.map(({ body }) => body)).toEqual([large, job('small').body]);
  await q.add(...Array.from({ length: 1_000 }, (_, i) => `j${i}`));
  expect(claimed(await leave({ seq: 3, want: 5_000 }))).toHaveLength(1_000);
});

itRefusesWrongTypes(q, {
  keys: claim.keys,
  prepare: async () => {
    await q.hold('x');
    await q.settle(retried('x', { delayMs: 0 }));
    await q.add('a', 'b', job('p', { priority: 1 }), job('q', { priority: 1 }));
    const seq = Number(await q.admin.hget(q.key('worker'), 'seq')) + 1;
    const values = claim.encode(
      Object.fromEntries(claim.keys.map((kind) => [kind, q.key(kind)])) as Parameters<typeof claim.encode>[0],
      {
        worker: WORKER,
        seq,
        leaseMs: LEASE_MS,
        want: 4,
        maxBytes: 1_000_000,
        separator: '|',
        maxEvents: 10,
      },
      {},
    );
    return () => q.engine['store'].call(claim, values, 5_000);
  },
  except: ['events', 'jobsA'],
});
