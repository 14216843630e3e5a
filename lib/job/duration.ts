import ms from 'ms';
import { InvalidOptionError } from '../errors.js';

/** Milliseconds as a number, or a string such as `'250ms'`, `'10s'`, `'5m'`, `'2h'`, `'90d'`. */
export type Duration = number | string;

/** 10 years: a longer duration is a mistake, and would come near the numbers that Lua cannot represent. */
export const MAX_DURATION_MS = 315_576_000_000;

/** The maximum delay of Node's timers; longer ones fire at once. */
export const MAX_TIMER_MS = 2_147_483_647;

const RULE = "a duration in ms or like '10s'";

const memo = new Map<string, number>();
const MEMO_SIZE = 500;

/**
 * A duration in whole milliseconds, 0 to 10 years. Strings are read by the package `ms`, fractions of a millisecond in
 * them are rounded; a bare number in a string is milliseconds.
 *
 * @throws {InvalidOptionError} for anything else, naming `path` and what was received.
 */
export function parseDuration(value: unknown, path: string): number {
  const duration = readDuration(value);
  if (duration === undefined) throw durationFault(value, path);
  return duration;
}

/** Like `parseDuration`, but `undefined` for an invalid value. */
export function readDuration(value: unknown): number | undefined {
  if (typeof value === 'number') {
    // Adding 0 turns -0 into 0.
    return Number.isInteger(value) && value >= 0 && value <= MAX_DURATION_MS ? value + 0 : undefined;
  }
  return typeof value === 'string' ? readText(value) : undefined;
}

function readText(text: string): number | undefined {
  const known = memo.get(text);
  if (known !== undefined) return known;
  const duration = parseText(text);
  if (Number.isNaN(duration) || duration < 0 || duration > MAX_DURATION_MS) return undefined;
  // Durations made from user input must not fill the cache.
  if (memo.size >= MEMO_SIZE) memo.clear();
  memo.set(text, duration);
  return duration;
}

/** NaN if `ms` cannot parse it; `ms` throws for ''. */
function parseText(text: string): number {
  if (text === '') return Number.NaN;
  // It may return undefined, which its declared type leaves out.
  const parsed: number | undefined = ms(text as ms.StringValue);
  return parsed === undefined ? Number.NaN : Math.round(parsed) + 0;
}

/** The error names the part of the rule that the value breaks. */
function durationFault(value: unknown, path: string): InvalidOptionError {
  const number =
    typeof value === 'string' ? parseText(value) : typeof value === 'number' ? value : Number.NaN;
  let rule = RULE;
  if (number < 0) rule = `${RULE}, not negative`;
  else if (number > MAX_DURATION_MS) rule = `${RULE}, at most 10 years`;
  else if (typeof value === 'number' && !Number.isNaN(value)) rule = `${RULE}, in whole milliseconds`;
  return new InvalidOptionError(path, rule, value);
}
