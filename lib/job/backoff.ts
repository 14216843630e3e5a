import { InvalidOptionError } from '../errors.js';
import { MAX_DURATION_MS, parseDuration, readDuration, type Duration } from './duration.js';
import type { Job } from './job.js';
import { isPlainName } from './job-id.js';
import { isThenable } from './thenable.js';
import { fieldsOf, hasFields, unknownField } from './fields.js';

/**
 * Wait before the next attempt. A duration is a fixed wait. A list has one wait per retry; its last one is used for all further
 * retries.
 */
export type BackoffOption =
  | Duration
  | readonly Duration[]
  | FixedBackoff<Duration>
  | ExponentialBackoff<Duration>
  | NamedBackoff
  | BackoffFunction;

/** Refers to one of the `backoffs` of the queue or module by name. A string with the name means the same. */
export interface NamedBackoff {
  /** Name of the backoff. */
  readonly type: string;
  /** Left out. */
  readonly delay?: never;
}

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
 * Called after each failed attempt with its number, from 1, the error and the job. With null or -1 the job is not tried again: it
 * is dead as `retries-exhausted`. It may return a promise, which is awaited for up to 10 s. If the function throws, takes longer
 * or returns no duration, an error is logged and the job is tried again after 1 s, 2 s, 4 s, ...
 */
export type BackoffFunction = (
  attempt: number,
  error: any,
  job: Job<any>,
) => Duration | null | PromiseLike<Duration | null>;

/** A `BackoffOption` after checking, with all durations in ms. */
export type CheckedBackoff = StoredBackoff | BackoffFunction;

/** The named backoffs of a queue after checking. */
export type Backoffs = ReadonlyMap<string, CheckedBackoff>;

/** A reference to a named backoff. */
export class BackoffName {
  constructor(
    readonly name: string,
    /** The value as the user wrote it: the name, or an object. */
    readonly given: unknown,
  ) {}

  /** The stored form, which is what the user wrote. */
  toJSON(): string {
    return this.name;
  }
}

/** A `CheckedBackoff` that can be stored with a job. */
export type StoredBackoff = number | readonly number[] | FixedBackoff<number> | ExponentialBackoff<number>;

/** Maximum wait of an exponential backoff that sets none. */
export const DEFAULT_MAX_MS = 3_600_000;
const DEFAULT_FACTOR = 2;
const MAX_LIST = 1_000;
const FIXED_FIELDS = ['type', 'delay', 'jitter'];
const EXPONENTIAL_FIELDS = ['type', 'delay', 'max', 'factor', 'jitter'];

/** Maximum bytes of a name. It is stored with each job. */
const MAX_NAME = 64;
const KINDS = ['fixed', 'exponential'];
const NAMED = 'a name from the option "backoffs" of forRoot or registerQueue';
const SHAPES = `a duration in ms or like '10s', a list of durations, { type: 'fixed' | 'exponential', delay }, ${NAMED}, or in defaults and @Handle a function`;
const TYPES = `'fixed' or 'exponential'; for a named backoff, set "backoff" to ${NAMED}`;

/**
 * Reads a backoff or the name of one. Call `checkBackoffName` afterwards to check that the name exists.
 *
 * @throws {InvalidOptionError} naming the field inside `path` that breaks its rule.
 */
export function checkBackoff(option: unknown, path: string): CheckedBackoff | BackoffName {
  if (isBackoffName(option)) return new BackoffName(option, option);
  if (typeof option === 'number') return parseDuration(option, path);
  const read = readDuration(option);
  if (read !== undefined) return read;
  if (typeof option === 'function') return option as BackoffFunction;
  if (Array.isArray(option)) return checkList(option, path);
  if (hasFields(option)) return checkCurve(option, path);
  throw new InvalidOptionError(path, SHAPES, option);
}

function isBackoffName(value: unknown): value is string {
  return isPlainName(value, MAX_NAME) && readDuration(value) === undefined && !KINDS.includes(value);
}

/**
 * Checks the names of `backoffs`.
 *
 * @throws {InvalidOptionError}
 */
export function checkBackoffs(given: unknown, path: string): Backoffs {
  if (!hasFields(given)) throw new InvalidOptionError(path, 'an object with a backoff for each name', given);
  return new Map(
    fieldsOf(given, []).map(([name, option]) => {
      if (!isBackoffName(name)) {
        const rule = `a name of 1 to ${MAX_NAME} characters out of A-Z a-z 0-9 . _ - that is not a duration and not 'fixed' or 'exponential'`;
        throw new InvalidOptionError(path, `an object whose keys are names: ${rule}`, name);
      }
      const checked = checkBackoff(option, `${path}.${name}`);
      if (!(checked instanceof BackoffName)) return [name, checked];
      throw new InvalidOptionError(
        `${path}.${name}`,
        'a duration, a list, a curve or a function, not a name',
        option,
      );
    }),
  );
}

/**
 * Refuses a name that is not among the backoffs.
 *
 * @throws {InvalidOptionError}
 */
export function checkBackoffName(
  backoff: CheckedBackoff | BackoffName | undefined,
  backoffs: Backoffs | undefined,
  path: string,
): void {
  if (!(backoff instanceof BackoffName) || backoffs?.has(backoff.name)) return;
  const { name, given } = backoff;
  const hasNames = backoffs !== undefined && backoffs.size > 0;
  if (!hasNames && given !== name) throw new InvalidOptionError(`${path}.type`, TYPES, name);
  const names = hasNames ? `one of the named backoffs ${[...backoffs.keys()].join(', ')}` : NAMED;
  throw new InvalidOptionError(path, `a duration in ms or like '10s', or ${names}`, given);
}

/** Replaces the name of a backoff by the backoff itself. */
export function namedBackoff(
  backoff: CheckedBackoff | BackoffName,
  backoffs: Backoffs | undefined,
): CheckedBackoff {
  if (!(backoff instanceof BackoffName)) return backoff;
  const { name } = backoff;
  return (
    backoffs?.get(name) ??
    (() => {
      throw new Error(`there is no backoff '${name}' among the option "backoffs" of this process`);
    })
  );
}

function checkList(list: readonly unknown[], path: string): readonly number[] {
  if (list.length === 0 || list.length > MAX_LIST) {
    throw new InvalidOptionError(path, `a list of 1 to ${MAX_LIST} durations`, list);
  }
  // Array.from visits holes too.
  return Array.from(list, (duration, at) => parseDuration(duration, `${path}[${at}]`));
}

function checkCurve(
  given: object,
  path: string,
): FixedBackoff<number> | ExponentialBackoff<number> | BackoffName {
  const option = Object.fromEntries(fieldsOf(given, EXPONENTIAL_FIELDS));
  const { type } = option;
  if (isBackoffName(type) && Object.keys(option).length === 1) return new BackoffName(type, given);
  if (type !== 'fixed' && type !== 'exponential') throw new InvalidOptionError(`${path}.type`, TYPES, type);
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
 * Exponential is `min(max, delay * factor^(attempt - 1))`, minus jitter as in BullMQ. The wait is evenly spread over
 * `[wait * (1 - jitter), wait]`, so jobs that failed together are not retried together.
 *
 * @returns null if the job must not be tried again. A promise only if the option is a function that returns one; it rejects with
 * the errors that this function throws.
 * @throws {InvalidOptionError} if that function returns no duration, and whatever it throws.
 */
export function backoffDelay(
  option: CheckedBackoff,
  attempt: number,
  error: unknown,
  random: () => number = Math.random,
  job?: Job<any>,
): number | null | Promise<number | null> {
  if (typeof option === 'number') return option;
  if (typeof option === 'function') return ownDelay(option, attempt, error, job);
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
function ownDelay(
  backoff: BackoffFunction,
  attempt: number,
  error: unknown,
  job: Job<any> | undefined,
): number | null | Promise<number | null> {
  const wait = backoff(attempt, error, job!);
  return isThenable(wait) ? Promise.resolve(wait).then(wholeDelay) : wholeDelay(wait);
}

function wholeDelay(wait: unknown): number | null {
  if (wait === null || wait === -1) return null;
  const whole = typeof wait === 'number' && wait >= 0 ? Math.min(Math.round(wait), MAX_DURATION_MS) : wait;
  return parseDuration(whole, 'what the backoff function returned');
}
