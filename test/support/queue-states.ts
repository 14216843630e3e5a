import { expect } from 'vitest';
import type { JobCounts } from '#lib/job/job-state.js';
import type { Queue } from '#lib/producer/queue.js';
import { PATIENT, type Handlers } from './queue-app.js';
import { latch, until, type Latch } from './wait.js';

export const die = () => {
  throw new Error('no luck');
};

/** The error with which a call ends; fails the test if the call succeeds. */
export async function refused(call: Promise<unknown>): Promise<Record<string, unknown>> {
  return call.then(
    (value) => expect.fail(`it answered ${JSON.stringify(value)}`),
    (error: unknown) => error as Record<string, unknown>,
  );
}

/** The counts of a queue with these jobs and no others. */
export function countsOf(jobs: Partial<JobCounts> = {}): JobCounts {
  return { waiting: 0, delayed: 0, active: 0, completed: 0, dead: 0, cancelled: 0, ...jobs };
}

/**
 * Adds one job in each state and one with a priority to a queue, and pauses it. The job `active` runs until its gate
 * opens.
 */
export async function oneOfEach(queue: Queue): Promise<Record<string, string>> {
  const active = await queue.add('active', 1, { id: 'active' });
  await until(async () => (await queue.get(active.id))?.state === 'active', PATIENT);
  await queue.add('done', 1, { id: 'completed', retention: '1h' });
  await queue.add('die', 1, { id: 'dead', attempts: 1 });
  await until(async () => (await queue.counts()).completed + (await queue.counts()).dead === 2, PATIENT);
  await queue.pause();
  await queue.add('done', 1, { id: 'waiting' });
  await queue.add('done', 1, { id: 'ranked', priority: 3 });
  await queue.add('done', 1, { id: 'delayed', delay: '1h', priority: 2 });
  return { active: 'active', completed: 'completed', dead: 'dead', waiting: 'waiting', delayed: 'delayed' };
}

export function gated(): { gate: Latch; handlers: Handlers } {
  const gate = latch('the gate');
  return { gate, handlers: { active: () => gate.promise, done: () => 'done', die } };
}
