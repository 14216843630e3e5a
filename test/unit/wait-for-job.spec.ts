import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { StoredJob } from '#lib/contract/admin-verbs.js';
import {
  JobFailedError,
  JobNotFoundError,
  NotRunningError,
  ResultNotKeptError,
  WaitTimeoutError,
} from '#lib/errors.js';
import { QueueEvents } from '#lib/events/queue-events.js';
import { JobWaiter } from '#lib/events/job-wait.js';
import { FakeEventEngine } from './fake-event-engine.js';
import { quiet, soon } from './reader-bench.js';

let engine: FakeEventEngine;
let events: QueueEvents;
let waiter: JobWaiter;

beforeEach(() => {
  vi.useFakeTimers();
  engine = new FakeEventEngine();
  events = new QueueEvents(
    () => engine,
    () => ['email'],
    () => {},
  );
  waiter = new JobWaiter(engine, events);
});

afterEach(async () => {
  await events.close();
  await vi.advanceTimersByTimeAsync(1_000);
  assert.equal(vi.getTimerCount(), 0);
  vi.useRealTimers();
});

/** The state of a promise so far. */
function watch(promise: Promise<unknown>) {
  const seen: { value?: unknown; error?: Error; settled: boolean } = { settled: false };
  promise.then(
    (value) => Object.assign(seen, { value, settled: true }),
    (error: Error) => Object.assign(seen, { error, settled: true }),
  );
  return seen;
}

/** Prepares, adds, and begins to wait, as a producer does. */
async function addAndWait(timeoutMs = 30_000, id = 'a') {
  const wait = waiter.prepare('email', id);
  await wait.ready;
  engine.jobs.set(id, { state: 'waiting' });
  engine.push('email', { type: 'added', id });
  return watch(wait.outcome(timeoutMs));
}

/** The job ends with an event, and leaves its result. */
function complete(result: string | null, id = 'a'): void {
  engine.jobs.set(id, { state: 'completed', result });
  engine.push('email', { type: 'completed', id });
}

describe('outcome', () => {
  it('resolves with the result as soon as the job has completed', async () => {
    const seen = await addAndWait();
    await soon();
    expect(engine.count('get')).toBeLessThanOrEqual(1);
    complete('{"pages":3}');
    await quiet();
    expect(seen).toEqual({ settled: true, value: { pages: 3 } });
  });

  it('resolves with undefined when the handler returned nothing', async () => {
    const seen = await addAndWait();
    await soon();
    complete(null);
    await quiet();
    expect(seen).toEqual({ settled: true, value: undefined });
  });

  it.each<[how: string, job: Partial<StoredJob> | null, why: RegExp]>([
    ['leaves nothing', null, /without retention/],
    ['has been replaced by another of its id', { state: 'waiting' }, /another job has taken its id/],
    [
      'kept no result',
      { state: 'completed', resultFault: 'result is a BigInt' },
      /not stored: result is a BigInt/,
    ],
    ['has an unreadable result', { state: 'completed', result: '{' }, /is not JSON/],
  ])('rejects with ResultNotKeptError when the job completed and %s', async (_, job, why) => {
    const seen = await addAndWait();
    await soon();
    if (job) engine.jobs.set('a', job);
    else engine.jobs.delete('a');
    engine.push('email', { type: 'completed', id: 'a' });
    await quiet();
    expect(seen.error).toBeInstanceOf(ResultNotKeptError);
    expect(seen.error).toMatchObject({ code: 'GODWIT_RESULT_NOT_KEPT', queue: 'email', jobId: 'a' });
    expect(seen.error?.message).toMatch(why);
  });

  it('reports that a job is gone, not a timeout, when the deadline comes before that is certain', async () => {
    const seen = await addAndWait(1_000);
    engine.jobs.delete('a');
    await vi.advanceTimersByTimeAsync(1_000);
    expect(seen.error).toBeInstanceOf(JobNotFoundError);
  });

  it('resolves when the job had completed before outcome was called', async () => {
    const wait = waiter.prepare('email', 'a');
    await wait.ready;
    engine.push('email', { type: 'added', id: 'a' });
    complete('1');
    await soon();
    const seen = watch(wait.outcome(1_000));
    await quiet();
    expect(seen.value).toBe(1);
  });

  it('rejects with the failure of a job that died, as plain data', async () => {
    const seen = await addAndWait();
    await soon();
    const error = { name: 'constructor', message: 'no such address', stack: 'at x', attempt: 3 };
    engine.push('email', { type: 'dead', id: 'a', reason: 'retries-exhausted', error });
    await quiet();
    expect(seen.error).toBeInstanceOf(JobFailedError);
    expect(seen.error).toMatchObject({ queue: 'email', jobId: 'a', reason: 'retries-exhausted' });
    expect(seen.error?.message).toContain('no such address');
    expect(seen.error?.cause).toStrictEqual({
      name: 'constructor',
      message: 'no such address',
      stack: 'at x',
    });
  });

  it('rejects for a job that died without an error of its own, and for one that was removed', async () => {
    const expired = await addAndWait();
    const removed = await addAndWait(30_000, 'b');
    await soon();
    engine.push('email', { type: 'dead', id: 'a', reason: 'expired' }, { type: 'removed', id: 'b' });
    await quiet();
    expect(expired.error).toMatchObject({ reason: 'expired' });
    expect(expired.error?.cause).toBeUndefined();
    expect(removed.error).toMatchObject({
      reason: 'removed',
      message: expect.stringContaining("in queue 'email' was removed: it had not ended"),
    });
  });

  it('does not treat a retry as the end', async () => {
    const seen = await addAndWait();
    await soon();
    engine.push('email', { type: 'retrying', id: 'a' }, { type: 'active', id: 'a' });
    await quiet();
    expect(seen.settled).toBe(false);
    complete('2');
    await quiet();
    expect(seen.value).toBe(2);
  });

  it('times out at its deadline, not before, and leaves no timers', async () => {
    const seen = await addAndWait(7_000);
    await vi.advanceTimersByTimeAsync(6_999);
    expect(seen.settled).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(seen.error).toBeInstanceOf(WaitTimeoutError);
    expect(seen.error).toMatchObject({ jobId: 'a', waitedMs: 7_000 });
    const asked = engine.count('get');
    await vi.advanceTimersByTimeAsync(20_000);
    expect(engine.count('get')).toBe(asked);
    expect(engine.connections).toBe(0);
  });

  it('accepts a deadline beyond the maximum of a timer', async () => {
    const seen = await addAndWait(Number.MAX_SAFE_INTEGER);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(seen.settled).toBe(false);
    complete('1');
    await quiet();
    expect(seen.value).toBe(1);
  });
});

describe('an earlier job with the same id', () => {
  it.each(['before', 'after'] as const)(
    'does not answer for this one when its end is read %s outcome',
    async (when) => {
      const wait = waiter.prepare('email', 'a');
      await wait.ready;
      const earlier = { type: 'dead', id: 'a', reason: 'expired' } as const;
      if (when === 'before') engine.push('email', earlier, { type: 'added', id: 'a' });
      await soon();
      engine.jobs.set('a', { state: 'waiting' });
      const seen = watch(wait.outcome(30_000));
      if (when === 'after') engine.push('email', earlier, { type: 'added', id: 'a' });
      await quiet();
      expect(seen.settled).toBe(false);
      complete('"mine"');
      await quiet();
      expect(seen.value).toBe('mine');
    },
  );

  it('that is added anew while its end is looked up does not end the wait with nothing', async () => {
    const wait = waiter.prepare('email', 'a');
    await wait.ready;
    engine.jobs.set('a', { state: 'active' });
    const seen = watch(wait.outcome(30_000, { duplicate: true }));
    await soon();
    let answer!: (job: StoredJob) => void;
    vi.spyOn(engine, 'get').mockReturnValueOnce(new Promise((resolve) => (answer = resolve)));
    engine.push('email', { type: 'completed', id: 'a' });
    await quiet();
    engine.jobs.set('a', { state: 'waiting' });
    engine.push('email', { type: 'added', id: 'a' });
    await quiet();
    answer({ state: 'waiting' } as StoredJob);
    await quiet();
    expect(seen.settled).toBe(false);
    complete('"anew"');
    await quiet();
    expect(seen.value).toBe('anew');
  });

  it('is the one that is waited for when it is still in the queue', async () => {
    const wait = waiter.prepare('email', 'a');
    await wait.ready;
    engine.jobs.set('a', { state: 'active' });
    const seen = watch(wait.outcome(30_000, { duplicate: true }));
    await soon();
    engine.push('email', { type: 'dead', id: 'a', reason: 'unrecoverable' });
    await quiet();
    expect(seen.error).toMatchObject({ reason: 'unrecoverable' });
  });

  it('that has ended already answers at once, from its state', async () => {
    engine.jobs.set('a', { state: 'completed', result: '5' });
    const completed = watch(waiter.prepare('email', 'a').outcome(1_000, { duplicate: true }));
    engine.jobs.set('b', {
      state: 'dead',
      failure: { name: 'Error', message: 'no', attempt: 1, reason: 'unrecoverable' },
    });
    const dead = watch(waiter.prepare('email', 'b').outcome(1_000, { duplicate: true }));
    await quiet();
    expect(completed.value).toBe(5);
    expect(dead.error).toMatchObject({ reason: 'unrecoverable', cause: { name: 'Error', message: 'no' } });
  });
});

describe('when events are lost', () => {
  it('finds the result in the state, soon for short jobs and every few seconds for long ones', async () => {
    const seen = await addAndWait();
    await soon();
    engine.jobs.set('a', { state: 'active' });
    await vi.advanceTimersByTimeAsync(15_000);
    expect(engine.count('get')).toBeLessThanOrEqual(8);
    engine.jobs.set('a', { state: 'completed', result: '6' });
    await vi.advanceTimersByTimeAsync(5_000);
    expect(seen.value).toBe(6);

    const quick = await addAndWait(30_000, 'b');
    engine.jobs.set('b', { state: 'completed', result: '7' });
    await vi.advanceTimersByTimeAsync(250);
    expect(quick.value).toBe(7);
  });

  it('reads the state at once after a gap, and after a reconnect', async () => {
    const gap = await addAndWait();
    const reconnect = await addAndWait(30_000, 'b');
    await vi.advanceTimersByTimeAsync(10_000); // the next question by timer is seconds away
    engine.cut();
    engine.jobs.set('a', { state: 'completed', result: '8' });
    engine.jobs.set('b', { state: 'completed', result: '9' });
    for (let n = 0; n < 3; n++) engine.push('email', { type: 'completed', id: 'other' });
    engine.trim('email', 4);
    await quiet();
    engine.heal();
    await quiet();
    expect([gap.value, reconnect.value]).toEqual([8, 9]);
  });

  it('believes a completed event after a gap that may have held the added one', async () => {
    const wait = waiter.prepare('email', 'a');
    await wait.ready;
    engine.push('email', { type: 'paused' }); // so that the trimmed ones are between two that are read
    await soon();
    engine.cut();
    engine.push('email', { type: 'added', id: 'a' });
    engine.trim('email', 2);
    engine.push('email', { type: 'active', id: 'a' });
    engine.heal();
    const seen = watch(wait.outcome(30_000));
    engine.jobs.set('a', { state: 'active' });
    await soon();
    engine.jobs.delete('a');
    engine.push('email', { type: 'completed', id: 'a' });
    await soon();
    expect(seen.error).toBeInstanceOf(ResultNotKeptError);
  });

  it('keeps waiting for a job that is gone while its event may still arrive', async () => {
    const seen = await addAndWait();
    await soon();
    engine.jobs.delete('a');
    await vi.advanceTimersByTimeAsync(1_000);
    expect(seen.settled).toBe(false);
    engine.push('email', { type: 'completed', id: 'a' });
    await quiet();
    expect(seen.error).toBeInstanceOf(ResultNotKeptError);
  });

  it('reports an unknown end when the job is gone and no event arrives', async () => {
    const seen = await addAndWait();
    await soon();
    engine.jobs.delete('a');
    await vi.advanceTimersByTimeAsync(3_000);
    expect(seen.error).toBeInstanceOf(JobNotFoundError);
  });

  it('reads the state again when the answer is older than the event', async () => {
    const seen = await addAndWait();
    await soon();
    engine.push('email', { type: 'active', id: 'a' });
    let answer!: (job: StoredJob) => void;
    const get = vi.spyOn(engine, 'get').mockReturnValueOnce(new Promise((resolve) => (answer = resolve)));
    await vi.advanceTimersByTimeAsync(600);
    expect(get).toHaveBeenCalledOnce(); // a question by timer is under way
    complete('10');
    await quiet();
    answer({ state: 'active', result: null } as StoredJob);
    await quiet();
    expect(seen.value).toBe(10);
  });
});

describe('when Redis is away', () => {
  it('continues once it is back, and keeps the result of the event', async () => {
    const seen = await addAndWait();
    await soon();
    engine.failing.set('get', new Error('no'));
    complete('11');
    await vi.advanceTimersByTimeAsync(12_000);
    expect(seen.settled).toBe(false);
    engine.failing.clear();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(seen.value).toBe(11);
  });

  it('does not delay the add for longer than two seconds', async () => {
    engine.cut();
    const wait = waiter.prepare('email', 'a');
    const ready = watch(wait.ready);
    await vi.advanceTimersByTimeAsync(1_999);
    expect(ready.settled).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(ready).toEqual({ settled: true, value: undefined });
    wait.cancel();
  });

  it('rejects when the application has stopped', async () => {
    const seen = await addAndWait();
    engine.failing.set('get', new NotRunningError('get'));
    await soon();
    await events.close();
    await vi.advanceTimersByTimeAsync(500);
    expect(seen.error).toBeInstanceOf(NotRunningError);
  });

  it('still finds the result while the application stops and events have ended', async () => {
    const seen = await addAndWait();
    await vi.advanceTimersByTimeAsync(10_000);
    await events.close();
    complete('12');
    await vi.advanceTimersByTimeAsync(500);
    expect(seen.value).toBe(12);
    const late = waiter.prepare('email', 'b');
    await late.ready;
    late.cancel();
  });
});

describe('the subscription', () => {
  it('is shared by all waits and outlives them by ten seconds, so that requests do not open one each', async () => {
    for (let n = 0; n < 5; n++) {
      const both = [await addAndWait(30_000, `x${n}`), await addAndWait(30_000, `y${n}`)];
      await soon();
      complete('1', `x${n}`);
      complete('2', `y${n}`);
      await quiet();
      expect(both.map((seen) => seen.value)).toEqual([1, 2]);
      await vi.advanceTimersByTimeAsync(9_000);
    }
    expect([engine.count('openEvents'), engine.count('closeEvents')]).toEqual([1, 0]);
    await vi.advanceTimersByTimeAsync(2_100);
    expect([engine.count('openEvents'), engine.count('closeEvents')]).toEqual([1, 1]);
  });

  it('is released by cancel, once', async () => {
    const [first, second] = [waiter.prepare('email', 'a'), waiter.prepare('email', 'b')];
    await soon();
    first.cancel();
    first.cancel();
    await vi.advanceTimersByTimeAsync(15_000);
    expect(engine.connections).toBe(1);
    second.cancel();
    await vi.advanceTimersByTimeAsync(12_000);
    expect(engine.connections).toBe(0);
  });
});

describe('a job that is cancelled', () => {
  const asCancelled = {
    reason: 'cancelled',
    message: expect.stringContaining('was cancelled: not wanted any more') as string,
  };

  /** A wait for a job that was in the queue and is gone. Only the reason is left of it, for a while. */
  async function waiting() {
    const seen = await addAndWait();
    await vi.advanceTimersByTimeAsync(150);
    engine.jobs.delete('a');
    return seen;
  }

  it('gets the reason from the event', async () => {
    const seen = await waiting();
    engine.push('email', { type: 'cancelled', id: 'a', reason: 'not wanted any more' });
    await vi.advanceTimersByTimeAsync(0);
    expect(seen.error).toBeInstanceOf(JobFailedError);
    expect(seen.error).toMatchObject(asCancelled);
  });

  it('gets it from the store if the event was lost', async () => {
    const seen = await waiting();
    engine.cancellations.set('a', { reason: 'not wanted any more', agoMs: 0 });
    await vi.advanceTimersByTimeAsync(6_000);
    expect(seen.error).toBeInstanceOf(JobFailedError);
    expect(seen.error).toMatchObject(asCancelled);
  });

  it('does not take the end of an earlier job with the same id for its own', async () => {
    const seen = await waiting();
    engine.cancellations.set('a', { reason: 'not wanted any more', agoMs: 20_000 });
    await vi.advanceTimersByTimeAsync(8_000);
    expect(seen.error).toBeInstanceOf(JobNotFoundError);
  });
});
