import { expect, it } from 'vitest';
import type { ClaimedJob } from '#lib/contract/engine.js';
import { encodeBody } from '#lib/job/job-record.js';
import type { Outcome } from '#lib/job/outcome.js';
import { resolveModuleOptions, resolveQueueOptions } from '#lib/options/module-options.js';
import { Runner } from '#lib/worker/runner.js';
import { endOfTurn, latch } from '../support/wait.js';

const ADDED = 1_900_000_000_000;
const body = encodeBody('job', ADDED, { expiresInMs: 1_000 }, '1');

const queue = resolveQueueOptions({ name: 'q' }, resolveModuleOptions());

type Parts = ConstructorParameters<typeof Runner>[0];

/** How the run of a job ends that is claimed at `now`. */
function outcomeOf(job: Partial<ClaimedJob>, now: number, parts: Partial<Parts> = {}): Outcome {
  let end: Outcome | undefined;
  const runner = new Runner({
    queue,
    find: () => ({ label: 'Test.job', run: () => undefined }),
    now: () => now,
    unhandledMs: async () => 0,
    note: async () => true,
    charge: async () => {},
    ended: ({ outcome }) => (end = outcome),
    ...parts,
  });
  runner.start({ id: 'a', body, failed: 0, stalls: 0, ...job });
  return end!;
}

/** How a job ends that is claimed long after its time. */
function started(more: Partial<ClaimedJob>, now = ADDED + 60_000): string {
  const outcome = outcomeOf(more, now);
  return outcome.kind === 'dead' ? outcome.reason : outcome.kind;
}

it('lets a job expire that was not started in its time', () => {
  expect(started({}, ADDED + 1_000)).toBe('completed');
  expect(started({}, ADDED + 1_001)).toBe('expired');
});

it.each([
  ['has failed', { failed: 1 }],
  ['lost its worker', { stalls: 1 }],
  ['was snoozed, or given back while it ran, or retried by a person', { started: true as const }],
])('never lets a job expire that %s', (_, more) => {
  expect(started(more)).toBe('completed');
});

it.each([
  ['has just been added', 0, 100, 200],
  ['was added two seconds ago', 2_000, 250, 500],
  ['was added an hour ago', 3_600_000, 500, 1_000],
])('delays a job without a handler that %s', (_, ageMs, least, most) => {
  const delays = Array.from({ length: 200 }, () => {
    const outcome = outcomeOf({ body: encodeBody('unknown', ADDED, {}, '1') }, ADDED + ageMs, {
      find: () => undefined,
    });
    return outcome.kind === 'retried' ? outcome.delayMs : NaN;
  });
  expect(Math.min(...delays)).toBeGreaterThanOrEqual(least);
  expect(Math.max(...delays)).toBeLessThanOrEqual(most);
});

it('takes a retry out of its budget if the run is given up before the budget has answered', async () => {
  const answer = latch();
  const unbooked: string[] = [];
  const runner = new Runner({
    queue,
    find: () => ({ label: 'Test.job', run: () => Promise.reject(new Error('no')) }),
    now: () => ADDED,
    unhandledMs: async () => 0,
    note: async () => true,
    charge: async () => {},
    reports: {
      completed: () => {},
      failed: () => answer.promise.then(() => 0),
      unbooked: ({ name }) => void unbooked.push(name),
    },
    ended: () => {},
  });
  runner.start({ id: 'a', body, failed: 0, stalls: 0 });
  await endOfTurn();
  for (const run of runner.runs) runner.giveUp(run);
  answer.open();
  await endOfTurn();
  expect(unbooked).toEqual(['job']);
});
