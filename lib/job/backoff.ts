import { InvalidOptionError } from '../errors.js';
import { MAX_DURATION_MS, parseDuration, type Duration } from './duration.js';
import { isThenable } from './thenable.js';
import { fieldsOf, hasFields, unknownField } from './fields.js';

/** Wait before the next attempt. A duration is a fixed wait; a list has one wait per retry, the last one repeats. */
export type BackoffOption =
  Duration | readonly Duration[] | FixedBackoff<Duration> | ExponentialBackoff<Duration> | BackoffFunction;

/** The same wait every time. */
export interface FixedBackoff<Time> {
  /** Kind of backoff. */
  readonly type: 'fixed';
  /** The wait. */
  readonly delay: Time;
  /** The random part of the wait, 0 to 1: the wait is between `delay * (1 - jitter)` and `delay`. @default 0 */
  readonly jitter?: number;
}

/** The first wait is `delay`; each further one is `factor` times as long, up to `max`. */
export interface ExponentialBackoff<Time> {
  /** Kind of backoff. */
  readonly type: 'exponential';
  /** The first wait. */
  readonly delay: Time;
  /** The longest wait; not below `delay`. @default '1h', or `delay` if that is longer */
  readonly max?: Time;
  /** How many times longer each wait is, 1 to 100. @default 2 */
  readonly factor?: number;
  /** As for `fixed`. @default 0 */
  readonly jitter?: number;
}

/**
 * Called after each failed attempt with its number, from 1, and the error. It may return a promise, which is awaited for up to
 * 10 s. If it fails, takes longer or returns no duration, that is logged, and the job is tried again after 1 s, 2 s, 4 s, ...
 */
export type BackoffFunction = (attempt: number, error: unknown) => Duration | PromiseLike<Duration>;

/** A `BackoffOption` after checking, with all durations in ms. */
export type CheckedBackoff = StoredBackoff | BackoffFunction;

/** A `CheckedBackoff` that can be stored with a job. */
export type StoredBackoff = number | readonly number[] | FixedBackoff<number> | ExponentialBackoff<number>;

const DEFAULT_MAX_MS = 3_600_000;
const DEFAULT_FACTOR = 2;
const MAX_LIST = 1_000;
const FIXED_FIELDS = ['type', 'delay', 'jitter'];
const EXPONENTIAL_FIELDS = ['type', 'delay', 'max', 'factor', 'jitter'];

/** @throws {InvalidOptionError} naming the field inside `path` that breaks its rule. */
export function checkBackoff(option: unknown, path: string): CheckedBackoff {
  if (typeof option === 'number' || typeof option === 'string') return parseDuration(option, path);
  if (typeof option === 'function') return option as BackoffFunction;
  if (Array.isArray(option)) return checkList(option, path);
  if (hasFields(option)) return checkCurve(option, path);
  throw new InvalidOptionError(
    path,
    "a duration, a list of durations, { type: 'fixed' | 'exponential', delay } or a function",
    option,
  );
}

function checkList(list: readonly unknown[], path: string): readonly number[] {
  if (list.length === 0 || list.length > MAX_LIST) {
    throw new InvalidOptionError(path, `a list of 1 to ${MAX_LIST} durations`, list);
  }
  // Array.from visits holes too.
  return Array.from(list, (duration, at) => parseDuration(duration, `${path}[${at}]`));
}

function checkCurve(given: object, path: string): FixedBackoff<number> | ExponentialBackoff<number> {
  const option = Object.fromEntries(fieldsOf(given, EXPONENTIAL_FIELDS));
  const { type } = option;
  if (type !== 'fixed' && type !== 'exponential') {
    throw new InvalidOptionError(`${path}.type`, "'fixed' or 'exponential'", type);
  }
  const fields = type === 'fixed' ? FIXED_FIELDS : EXPONENTIAL_FIELDS;
  for (const key of Object.keys(option)) if (!fields.includes(key)) throw unknownField(path, key, fields);

  const delay = parseDuration(option['delay'], `${path}.delay`);
  const jitter = checkNumber(option['jitter'], 0, 1, `${path}.jitter`);
  if (type === 'fixed') return { type, delay, ...(jitter !== undefined && { jitter }) };

  const factor = checkNumber(option['factor'], 1, 100, `${path}.factor`);
  const max = option['max'] === undefined ? undefined : parseDuration(option['max'], `${path}.max`);
  if (max !== undefined && max < delay)
    throw new InvalidOptionError(`${path}.max`, `at least delay (${delay} ms)`, option['max']);
  return {
    type,
    delay,
    ...(max !== undefined && { max }),
    ...(factor !== undefined && { factor }),
    ...(jitter !== undefined && { jitter }),
  };
}

function checkNumber(value: unknown, min: number, max: number, path: string): number | undefined {
  if (value === undefined) return undefined;
  if (typeof value === 'number' && value >= min && value <= max) return value;
  throw new InvalidOptionError(path, `a number from ${min} to ${max}`, value);
}

/**
 * Whole ms to wait after the given attempt, from 1, has failed.
 *
 * Exponential is `min(max, delay * factor^(attempt - 1))`, with jitter taken off as in BullMQ: evenly spread over
 * `[wait * (1 - jitter), wait]`, so that jobs that failed together do not come back together.
 *
 * @returns a promise only if the option is a function that returns one; it rejects as this throws.
 * @throws {InvalidOptionError} if that function returns no duration, and whatever it throws.
 */
export function backoffDelay(
  option: CheckedBackoff,
  attempt: number,
  error: unknown,
  random: () => number = Math.random,
): number | Promise<number> {
  if (typeof option === 'number') return option;
  if (typeof option === 'function') return ownDelay(option, attempt, error);
  if (isList(option)) return option[Math.min(attempt, option.length) - 1]!;
  if (option.type === 'fixed') return withJitter(option.delay, option.jitter, random);
  const max = option.max ?? Math.max(DEFAULT_MAX_MS, option.delay);
  // The power overflows to Infinity, and Infinity times a delay of 0 would be NaN.
  const grown = option.delay === 0 ? 0 : option.delay * (option.factor ?? DEFAULT_FACTOR) ** (attempt - 1);
  return withJitter(Math.min(max, Math.round(grown)), option.jitter, random);
}

/** `Array.isArray` does not narrow readonly arrays. */
function isList(option: object): option is readonly number[] {
  return Array.isArray(option);
}

function withJitter(wait: number, jitter: number | undefined, random: () => number): number {
  return jitter === undefined ? wait : Math.ceil(wait * (1 - jitter * random()));
}

/** Computed numbers can be fractional or infinite: they are rounded and capped, while configured ones are refused. */
function ownDelay(backoff: BackoffFunction, attempt: number, error: unknown): number | Promise<number> {
  const wait = backoff(attempt, error);
  return isThenable(wait) ? Promise.resolve(wait).then(wholeDelay) : wholeDelay(wait);
}

function wholeDelay(wait: unknown): number {
  const whole = typeof wait === 'number' && wait >= 0 ? Math.min(Math.round(wait), MAX_DURATION_MS) : wait;
  return parseDuration(whole, 'what the backoff function returned');
}
