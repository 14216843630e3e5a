import { expect, it } from 'vitest';
import { encodeBody } from '#lib/job/job-record.js';
import { resolveModuleOptions, resolveQueueOptions } from '#lib/options/module-options.js';
import { Runner } from '#lib/worker/runner.js';

const ADDED = 1_900_000_000_000;
const body = encodeBody('job', ADDED, { expiresInMs: 1_000 }, '1');

const queue = resolveQueueOptions({ name: 'q' }, resolveModuleOptions());

/** What happens to a job that is claimed long after its time. */
function started(more: { failed?: number; stalls?: number; started?: true }, now = ADDED + 60_000): string {
  let end = '';
  const runner = new Runner({
    queue,
    find: () => ({ label: 'Test.job', run: () => undefined }),
    now: () => now,
    unhandledMs: async () => 0,
    note: async () => true,
    charge: async () => {},
    ended: ({ outcome }) => (end = outcome?.kind === 'dead' ? outcome.reason : outcome!.kind),
  });
  runner.start({ id: 'a', body, failed: 0, stalls: 0, ...more });
  return end;
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
