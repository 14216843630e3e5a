import { UnrecoverableError } from 'godwit';
import type { Answer } from './webhook-sender.js';

/** Timeout, too early, too many requests: 4xx that ask for another try. */
const PASSING = [408, 425, 429];

/**
 * What an answer means for the delivery, in the words of the queue: returning is success, throwing asks for another
 * attempt, `UnrecoverableError` says that none would help.
 */
export function judge({ status, reason, text }: Answer): void {
  if (status >= 200 && status < 300) return;
  const message = `${status} ${reason}${text === '' ? '' : `: ${text}`}`;
  if (status >= 300 && status < 400) throw new UnrecoverableError(`redirects are not followed: ${message}`);
  if (status >= 400 && status < 500 && !PASSING.includes(status)) throw new UnrecoverableError(message);
  throw new Error(message);
}
