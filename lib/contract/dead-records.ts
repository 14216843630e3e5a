import type { DeadReason, FailureRecord } from '../job/outcome.js';

/** The record of a dead job: it ends with the reason, by which scripts find those of one reason without reading JSON. */
export function deadRecord({ reason: _, ...failure }: FailureRecord, reason: DeadReason): string {
  return JSON.stringify({ ...failure, reason });
}

/*
 * What is kept as the failure of jobs that the store itself declares dead.
 */

/** Its body was deleted or evicted. */
export const CORRUPT = deadRecord(
  { name: 'CorruptJob', message: 'the body of this job is missing', attempt: 0 },
  'corrupt',
);

/** Past `maxStalls`. */
export const STALLED = deadRecord(
  { name: 'StalledJob', message: 'its worker died or went silent too many times', attempt: 0 },
  'stalled',
);
