import { setImmediate as turn } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { MemoryEngine } from '#lib/memory/memory-engine.js';
import { MemoryStore } from '#lib/memory/memory-store.js';
import { Recoverer } from '#lib/worker/recoverer.js';
import { callOf, LIMITS } from '../scripts/support.js';
import { atEnd } from '../support/cleanup.js';

const LEASE_MS = 8_000;
const BEAT_MS = LEASE_MS / 4;
const STEP_MS = 250;
const QUEUE = 'work';

let engine: MemoryEngine;
let recoverer: Recoverer;
let recovered: [worker: string, at: number][];
let adds: number;

/** In steps. Between them the verbs of the engine answer, and their turns of the event loop are not virtual. */
async function passes(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= STEP_MS) {
    await vi.advanceTimersByTimeAsync(STEP_MS);
    for (let turns = 0; turns < 5; turns++) await turn();
  }
}

const leaseEnd = (worker: string) => engine.store.at(QUEUE).workers.get(worker)!.leaseAt!;
const renew = (worker: string) => engine.beat(QUEUE, worker, LEASE_MS);
const watch = async () => {
  const [first] = await engine.overdue(QUEUE, LEASE_MS);
  recoverer.watch(QUEUE, 'ours', first!.endsInMs);
};

/** The worker claims a job of its own name, so it has a lease. */
async function hold(worker: string): Promise<void> {
  await engine.enqueue(QUEUE, callOf([worker], ++adds));
  const claim = { worker, seq: 1, leaseMs: LEASE_MS, want: 1, maySuspect: true, settled: [] };
  await engine.exchange(QUEUE, claim);
}

beforeEach(() => {
  vi.useFakeTimers();
  Logger.overrideLogger(false);
  adds = 0;
  recovered = [];
  engine = new MemoryEngine({
    store: new MemoryStore(performance),
    limitsOf: () => LIMITS,
  });
  const recover = engine.recover.bind(engine);
  engine.recover = async (queue, call) => {
    const answer = await recover(queue, call);
    if (answer.kind === 'recovered') recovered.push([call.worker, performance.now()]);
    return answer;
  };
  recoverer = new Recoverer(engine, () => ({ leaseMs: LEASE_MS, maxStalls: 5 }));
  atEnd(() => recoverer.stop());
});
afterEach(() => {
  vi.useRealTimers();
});

describe('a worker that dies', () => {
  it('is recovered when its lease ends, although it was renewed after the last exchange that reported it', async () => {
    await hold('other');
    await watch();
    for (let beats = 1; beats <= 5; beats++) {
      await passes(BEAT_MS);
      await renew('other');
    }
    const end = leaseEnd('other');
    await passes(4 * LEASE_MS);
    expect(recovered).toEqual([['other', end]]);
  });

  it('is recovered when its own lease ends, beside others that died a little earlier', async () => {
    await hold('first');
    await watch();
    await passes(BEAT_MS / 2);
    await hold('second');
    const ends = [leaseEnd('first'), leaseEnd('second')];
    await passes(4 * LEASE_MS);
    expect(recovered).toEqual([
      ['first', ends[0]],
      ['second', ends[1]],
    ]);
  });
});

it('no longer checks a queue that its process has left', async () => {
  await hold('other');
  await watch();
  const looks = vi.spyOn(engine, 'overdue');
  for (let beats = 1; beats <= 3; beats++) {
    await passes(BEAT_MS);
    await renew('other');
  }
  const { length } = looks.mock.calls;
  expect(length).toBeGreaterThan(0);
  recoverer.remove(QUEUE);
  await passes(4 * LEASE_MS);
  expect(looks).toHaveBeenCalledTimes(length);
});

it('plans no check if its process has left the queue during one', async () => {
  await hold('other');
  await watch();
  const looks = vi.spyOn(engine, 'overdue').mockImplementation(async () => {
    recoverer.remove(QUEUE);
    return [{ worker: 'other', endsInMs: LEASE_MS }];
  });
  await passes(4 * LEASE_MS);
  expect(looks).toHaveBeenCalledTimes(1);
});

it('does not check the worker of its own process, nor a queue in which no job is held', async () => {
  await hold('other');
  await hold('ours');
  await watch();
  const looks = vi.spyOn(engine, 'overdue');
  await passes(BEAT_MS);
  await renew('ours');
  await engine.release(QUEUE, { worker: 'other', ids: ['other'], leave: true });
  await passes(LEASE_MS);
  expect(looks).toHaveBeenCalledTimes(1);
  await passes(4 * LEASE_MS);
  expect(looks).toHaveBeenCalledTimes(1);
  expect(recovered).toEqual([]);
});
