import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { BeatAnswer, HeartbeatPlan } from '#lib/contract/engine.js';
import { NotRunningError } from '#lib/errors.js';
import { MemoryEngine } from '#lib/memory/memory-engine.js';
import { MemoryStore } from '#lib/memory/memory-store.js';
import {
  callOf,
  completed,
  FAILURE,
  job,
  LEASE_MS,
  LIMITS,
  QUEUE,
  retried,
  WORKER,
} from '../scripts/support.js';
import { atEnd } from '../support/cleanup.js';
import { latch, within } from '../support/wait.js';

// The parts that only this engine has: its clock, its waits, its heartbeat. test/conformance tests the rest.
let now: number;
let store: MemoryStore;
let engine: MemoryEngine;
let seq: number;

beforeEach(() => {
  now = 1_900_000_000_000;
  store = new MemoryStore({ now: () => now });
  engine = engineOn(store);
  seq = 0;
});

const LEASE = { leaseMs: LEASE_MS, maxBlockMs: 60_000 };

function engineOn(on: MemoryStore): MemoryEngine {
  const made = new MemoryEngine({ store: on, limitsOf: () => LIMITS });
  atEnd(() => made.close());
  return made;
}

const add = (...jobs: Parameters<typeof callOf>[0]) => engine.enqueue(QUEUE, callOf(jobs, ++seq));
const exchange = (more: object = {}) =>
  engine.exchange(QUEUE, {
    worker: WORKER,
    seq: ++seq,
    leaseMs: LEASE_MS,
    want: 0,
    maySuspect: true,
    settled: [],
    ...more,
  });
const plan = (more: Partial<HeartbeatPlan> = {}): HeartbeatPlan => ({
  leaseMs: LEASE_MS,
  beatMs: 3_600_000,
  maxBlockMs: 60_000,
  onReady: () => undefined,
  onBeat: () => {},
  onOrders: () => {},
  onDataLost: () => {},
  onFailure: () => {},
  ...more,
});

describe('the clock', () => {
  it('wakes a worker that sleeps until a job is due, once it has moved', async () => {
    await add(job('a', { delayMs: 60_000 }));
    while ((await engine.awaitBell([QUEUE], 1)) !== null);
    const waits = engine.awaitBell([QUEUE], 60_000);
    let woken = false;
    void waits.then(() => (woken = true));
    now += 59_999;
    engine.clockMoved();
    await exchange({ seq: 1 });
    expect(woken).toBe(false);
    now += 1;
    engine.clockMoved();
    expect(await within(waits, { what: 'the bell' })).toBe(QUEUE);
  });

  it('wakes a worker that may recover the jobs of a silent worker', async () => {
    await add('a');
    await exchange({ seq: 1, want: 1 });
    while ((await engine.awaitBell([QUEUE], 1)) !== null);
    now += LEASE_MS;
    engine.clockMoved();
    expect(await engine.awaitBell([QUEUE], 1)).toBe(QUEUE);
  });

  it('does not end the lease of a live worker: its heartbeat comes first', async () => {
    await add('a');
    await exchange({ seq: 1, want: 1 });
    const heartbeat = engine.openHeartbeat(plan());
    heartbeat.follow(QUEUE, WORKER, LEASE);
    heartbeat.holds(QUEUE, true);
    now += 3_600_000;
    engine.clockMoved();
    expect(await engine.overdue(QUEUE, LEASE_MS)).toEqual([{ worker: WORKER, endsInMs: LEASE_MS }]);
    expect(await exchange({ seq: 2 })).toMatchObject({ kind: 'exchanged', held: 1 });
    await heartbeat.close();
    now += 3_600_000;
    engine.clockMoved();
    expect(await engine.overdue(QUEUE, 0)).toEqual([{ worker: WORKER, endsInMs: LEASE_MS - 3_600_000 }]);
  });

  it('leaves an idle worker known, however far it moves', async () => {
    await exchange({ seq: 1 });
    const heartbeat = engine.openHeartbeat(plan());
    heartbeat.follow(QUEUE, WORKER, LEASE);
    now += 86_400_000;
    engine.clockMoved();
    expect(await exchange({ seq: 2 })).toMatchObject({ kind: 'exchanged' });
    await heartbeat.close();
    now += 86_400_000;
    engine.clockMoved();
    expect(await exchange({ seq: 3 })).toEqual({ kind: 'unknown-worker' });
  });

  it('may be the clock of the machine', async () => {
    const before = Date.now();
    const real = engineOn(new MemoryStore());
    expect(real.now()).toBeGreaterThanOrEqual(before);
    await real.enqueue(QUEUE, callOf([job('a', { delayMs: 50 })], 1));
    expect((await real.admin.get(QUEUE, 'a'))!.dueAt).toBeGreaterThanOrEqual(before + 50);
  });

  it('need not be the clock of the test: faked timers stop nothing', async () => {
    vi.useFakeTimers();
    try {
      await add('a');
      expect(await engine.awaitBell(['silent'], 1)).toBeNull();
    } finally {
      vi.useRealTimers();
    }
  });
});

describe('a heartbeat', () => {
  it('sends heartbeats for workers that hold jobs, and passes the answer on', async () => {
    const heard = latch<[string, string, BeatAnswer]>('a beat');
    const heartbeat = engine.openHeartbeat(plan({ beatMs: 1, onBeat: (...beat) => heard.open(beat) }));
    await add('a');
    await exchange({ seq: 1, want: 1 });
    heartbeat.follow('idle', 'w9', LEASE);
    heartbeat.follow(QUEUE, WORKER, LEASE);
    heartbeat.holds(QUEUE, true);
    expect(await heard.wait()).toEqual([QUEUE, WORKER, expect.objectContaining({ kind: 'alive', held: 1 })]);
    await heartbeat.close();
    await heartbeat.close();
  });

  it('sends no more heartbeats for a queue that was left', async () => {
    const queues: string[] = [];
    const heartbeat = engine.openHeartbeat(plan({ onBeat: (queue) => queues.push(queue) }));
    for (const queue of ['left', 'stays']) {
      heartbeat.follow(queue, WORKER, LEASE);
      heartbeat.holds(queue, true);
    }
    heartbeat.leave('left');
    heartbeat.holds('left', true);
    engine.clockMoved();
    await engine.open();
    expect(queues).toEqual(['stays']);
    await heartbeat.close();
  });
});

describe('waits', () => {
  it('do not keep the process alive', async () => {
    const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
    await engine.openEvents();
    const before = timers();
    const bell = engine.awaitBell([QUEUE], 60_000);
    const read = engine.readEvents(new Map([[QUEUE, 0]]), 60_000).catch((error: unknown) => error);
    const heartbeat = engine.openHeartbeat(plan({ beatMs: 60_000 }));
    expect(timers()).toBe(before);
    await heartbeat.close();
    await engine.close();
    expect(await within(bell, { what: 'the wait for a bell' })).toBeNull();
    expect(await within(read, { what: 'the wait for events' })).toBeInstanceOf(NotRunningError);
  });

  it('of one engine are not ended by another one on the same store', async () => {
    const other = engineOn(store);
    const waits = engine.awaitBell([QUEUE], 60_000);
    other.interruptBell();
    await other.close();
    await engine.ring(QUEUE);
    expect(await within(waits, { what: 'the bell' })).toBe(QUEUE);
  });
});

it('answers in a later turn of the event loop, so that other code can run', async () => {
  let ended = false;
  let turns = 0;
  const count = () => {
    turns += 1;
    if (!ended) setImmediate(count);
  };
  setImmediate(count);
  for (let i = 0; i < 50; i++) await exchange({ seq: i + 1 });
  ended = true;
  expect(turns).toBeGreaterThanOrEqual(50);
});

it('returns copies: changing an answer changes nothing in the store', async () => {
  await add('a');
  await exchange({ seq: 1, want: 1 });
  const failure = { ...FAILURE };
  await exchange({ seq: 2, settled: [retried('a', { delayMs: 9_000, failure })] });
  failure.message = 'changed';
  const first = (await engine.admin.get(QUEUE, 'a'))!;
  Object.assign(first.failure!, { message: 'changed' });
  (first.logs as unknown[]).push('changed');
  expect(await engine.admin.get(QUEUE, 'a')).toMatchObject({ failure: FAILURE, logs: [] });
});

it('keeps stores apart', async () => {
  await add('a');
  const other = engineOn(new MemoryStore({ now: () => now }));
  expect((await other.admin.counts(QUEUE)).waiting).toBe(0);
  expect(await other.enqueue(QUEUE, callOf(['a'], 1))).toEqual({ kind: 'stored', duplicates: [] });
});

it('treats an add as confirmed by the requested number of replicas', async () => {
  const call = { ...callOf(['a'], 1), replication: { replicas: 2, timeoutMs: 1_000 } };
  const answer = { kind: 'stored', duplicates: [], replicas: 2 };
  expect(await engine.enqueue(QUEUE, call)).toEqual(answer);
  expect(await engine.enqueue(QUEUE, call)).toEqual(answer);
});

describe('the time a call takes', () => {
  const JOBS = 100_000;
  const BATCH = 100;

  it.each([
    ['in the line', (i: number) => job(`j${i}`)],
    ['by priority', (i: number) => job(`j${i}`, { priority: (i % 7) + 1 })],
    ['delayed, all due', (i: number) => job(`j${i}`, { dueAt: now - (i % 977) })],
  ])(
    'does not grow with the jobs: %s',
    async (_, jobOf) => {
      const began = performance.now();
      for (let first = 0; first < JOBS; first += 1_000)
        await add(...Array.from({ length: 1_000 }, (__, i) => jobOf(first + i)));
      let settled: ReturnType<typeof completed>[] = [];
      let done = 0;
      for (let nth = 1; done < JOBS; nth++) {
        const answer = await exchange({ seq: nth, want: BATCH, settled });
        if (answer.kind !== 'exchanged') throw new Error(answer.kind);
        done += settled.length;
        settled = answer.claimed.map(({ id }) => completed(id));
      }
      expect((await engine.admin.audit(QUEUE)).checked).toBe(0);
      // A pass over all jobs in each call would take minutes.
      expect(performance.now() - began).toBeLessThan(60_000);
    },
    90_000,
  );
});
