import { InvalidOptionError } from '../errors.js';
import { faultOfText } from './text.js';

const MAX_BYTES = 1000;
const DEFAULT = 'no reason was given';

/** One line, since events and logs carry it. @throws {InvalidOptionError} */
export function checkCancelReason(reason: unknown, path: string): string {
  if (reason === undefined) return DEFAULT;
  if (faultOfText(reason, MAX_BYTES) === undefined) return reason as string;
  const rule = `1 to ${MAX_BYTES} bytes of well-formed text without control characters`;
  throw new InvalidOptionError(path, rule, reason);
}
