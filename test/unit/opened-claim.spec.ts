import { expect, it } from 'vitest';
import { encodeBody } from '#lib/job/job-record.js';
import { DEFAULTS } from '#lib/options/job-options.js';
import { openClaim } from '#lib/worker/opened-claim.js';

const ADDED = 1_900_000_000_000;
const body = encodeBody('job', ADDED, { expiresInMs: 1_000 }, '1');

/** How a job that is claimed long after its time is opened. */
function opened(more: { failed?: number; stalls?: number; started?: true }, now = ADDED + 60_000): string {
  const claim = openClaim(
    { id: 'a', body, failed: 0, stalls: 0, ...more },
    {
      queue: 'q',
      policy: DEFAULTS,
      find: () => ({}) as never,
      voice: { queue: 'q', maxPayloadBytes: 1, note: () => Promise.resolve() },
      now: () => now,
    },
  );
  return 'run' in claim ? 'runs' : claim.outcome.kind === 'dead' ? claim.outcome.reason : claim.outcome.kind;
}

it('lets a job expire that was not started in its time', () => {
  expect(opened({}, ADDED + 1_000)).toBe('runs');
  expect(opened({}, ADDED + 1_001)).toBe('expired');
});

it.each([
  ['has failed', { failed: 1 }],
  ['lost its worker', { stalls: 1 }],
  ['was snoozed, or given back while it ran, or retried by a person', { started: true as const }],
])('never lets a job expire that %s', (_, more) => {
  expect(opened(more)).toBe('runs');
});
