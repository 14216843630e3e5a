import type { FailureRecord } from './outcome.js';

/** The fingerprint of jobs without a failure. */
export const NO_FAILURE = 'unknown';

/** Longer fingerprints are cut. */
export const FINGERPRINT_LENGTH = 160;

/**
 * The error without the parts that differ between jobs, such as ids, times and numbers. So equal faults have equal fingerprints.
 *
 * @param show changes the message before it is shown.
 */
export function fingerprintOf(
  failure: FailureRecord | null,
  show: (text: string) => string = (text) => text,
): string {
  if (!failure) return NO_FAILURE;
  const [line = ''] = show(failure.message).split('\n');
  const words = line
    .slice(0, 300)
    .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/gi, '#')
    .replaceAll(/\b(?=[a-f]*\d)[0-9a-f]{8,}\b/gi, '#')
    .replaceAll(/\d+/g, '#');
  return `${failure.name}: ${words}`.slice(0, FINGERPRINT_LENGTH);
}
