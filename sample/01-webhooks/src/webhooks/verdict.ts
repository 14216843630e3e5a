import { UnrecoverableError } from 'godwit';
import type { Answer } from './webhook-sender.js';

/** Timeout, too early, too many requests: 4xx that ask for another try. */
const PASSING = [408, 425, 429];

/**
 * Translates an HTTP response for the queue: it returns on success, throws to ask for another attempt, and throws
 * `UnrecoverableError` if another attempt would not help.
 */
export function judge({ status, reason, text }: Answer): void {
  if (status >= 200 && status < 300) return;
  const message = `${status} ${reason}${text === '' ? '' : `: ${text}`}`;
  if (status >= 300 && status < 400) throw new UnrecoverableError(`redirects are not followed: ${message}`);
  if (status >= 400 && status < 500 && !PASSING.includes(status)) throw new UnrecoverableError(message);
  throw new Error(message);
}
