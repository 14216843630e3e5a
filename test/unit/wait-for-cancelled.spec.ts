import assert from 'node:assert/strict';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { JobFailedError, JobNotFoundError } from '#lib/errors.js';
import { QueueEvents } from '#lib/events/queue-events.js';
import { JobWaiter } from '#lib/events/job-wait.js';
import { FakeEventEngine } from './fake-event-engine.js';

// Waiting for a job that is cancelled. Only the reason is left of the job, for a while.
let engine: FakeEventEngine;
let events: QueueEvents;

beforeEach(() => {
  vi.useFakeTimers();
  engine = new FakeEventEngine();
  events = new QueueEvents(
    () => engine,
    () => ['email'],
    () => {},
  );
});

afterEach(async () => {
  await events.close();
  await vi.advanceTimersByTimeAsync(1_000);
  assert.equal(vi.getTimerCount(), 0);
  vi.useRealTimers();
});

/** A wait for a job that was in the queue and is gone. Returns what the wait rejects with. */
async function waiting(): Promise<{ error?: Error }> {
  const seen: { error?: Error } = {};
  const wait = new JobWaiter(engine, events).prepare('email', 'a');
  await wait.ready;
  engine.jobs.set('a', { state: 'waiting' });
  engine.push('email', { type: 'added', id: 'a' });
  wait.outcome(30_000).catch((error: Error) => (seen.error = error));
  await vi.advanceTimersByTimeAsync(150);
  engine.jobs.delete('a');
  return seen;
}

const asCancelled = {
  reason: 'cancelled',
  message: expect.stringContaining('was cancelled: not wanted any more') as string,
};

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
