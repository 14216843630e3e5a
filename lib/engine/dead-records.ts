/*
 * What is kept as the failure of jobs that the store itself declares dead, in the form of a `FailureRecord`.
 */

/** Its body was deleted or evicted. */
export const CORRUPT = JSON.stringify({
  name: 'CorruptJob',
  message: 'the body of this job is missing',
  attempt: 0,
  reason: 'corrupt',
});

/** Past `maxStalls`. */
export const STALLED = JSON.stringify({
  name: 'StalledJob',
  message: 'its worker died or went silent too many times',
  attempt: 0,
  reason: 'stalled',
});
