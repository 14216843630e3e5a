import { InvalidOptionError } from '../errors.js';
import { MAX_TIMER_MS, type Duration } from '../job/duration.js';
import { duration, field, integer, oneOf, rule, shape, type Report } from './check.js';

/** Maximum number of tasks that one call moves: Redis moves a thousand in less than a millisecond. */
export const MAX_BATCH = 1_000;

/** `QueueModule.registerDispatcher(options)`. Both keys are full names: the `prefix` of `forRoot` is not added. */
export interface DispatcherOptions {
  /** Name for `@InjectDispatcher` and the log. @default the `delayedKey` */
  readonly name?: string;
  /** Sorted set that other programs fill: `ZADD delayedKey due task`. */
  readonly delayedKey: string;
  /** List that other programs empty: `BLPOP readyKey 0`. On Redis Cluster both keys need the same hash tag. */
  readonly readyKey: string;
  /** Tasks moved per call, 1 to 1,000. @default 100 */
  readonly batchSize?: number;
  /** Unit of the scores: seconds since 1970, with fractions, or milliseconds. @default 's' */
  readonly unit?: 's' | 'ms';
  /**
   * How often to look for new tasks that are due before the next known one, 10 ms to 24 days; known tasks are moved when they
   * are due.
   *
   * @default '1s'
   */
  readonly pollInterval?: Duration;
  /** No task is moved while the list has this many, 1 to 1,000,000,000. @default no limit */
  readonly maxReady?: number;
}

/** `DispatcherOptions` with every default filled in, in ms. */
export interface ResolvedDispatcherOptions extends Required<
  Omit<DispatcherOptions, 'pollInterval' | 'maxReady'>
> {
  readonly pollMs: number;
  readonly maxReady: number | undefined;
}

const MAX_KEY_BYTES = 1_024;
const KEY_RULE = `the name of a key: 1 to ${MAX_KEY_BYTES} bytes of well-formed text`;

/** @throws {InvalidOptionError} */
export function checkKey(value: unknown, path: string): string {
  const isKey =
    typeof value === 'string' &&
    value !== '' &&
    Buffer.byteLength(value) <= MAX_KEY_BYTES &&
    // Lone surrogates would all become one and the same character.
    !/\p{Surrogate}/u.test(value);
  if (!isKey) throw new InvalidOptionError(path, KEY_RULE, value);
  return value;
}

const readName = rule((value: unknown, path: string): string => {
  if (typeof value === 'string' && value !== '' && value.length <= MAX_KEY_BYTES) return value;
  throw new InvalidOptionError(path, `1 to ${MAX_KEY_BYTES} characters`, value);
});
const readKey = rule(checkKey);

const readDispatcher = shape({
  name: field('name', readName),
  // Both are required, so they are checked below even if they are missing.
  delayedKey: field('delayedKey', (value) => value),
  readyKey: field('readyKey', (value) => value),
  batchSize: field('batchSize', integer(1, MAX_BATCH)),
  unit: field('unit', oneOf('s', 'ms')),
  pollInterval: field('pollMs', duration(10, MAX_TIMER_MS)),
  maxReady: field('maxReady', integer(1, 1_000_000_000)),
});

/**
 * @param isOurs whether a key belongs to the queues of this application.
 * @throws {InvalidOptionError} at the first fault, unless `report` collects.
 */
export function resolveDispatcherOptions(
  options: DispatcherOptions,
  isOurs: (key: string) => boolean,
  report: Report,
): ResolvedDispatcherOptions {
  const path = pathOf(options);
  const given = readDispatcher(options, path, report);
  const key = (name: 'delayedKey' | 'readyKey') => {
    const read = given && readKey(given[name], `${path}.${name}`, report);
    if (read !== undefined && isOurs(read)) report(ownKey(`${path}.${name}`, read));
    return read ?? '';
  };
  const delayedKey = key('delayedKey');
  const readyKey = key('readyKey');
  if (delayedKey === readyKey && delayedKey !== '') {
    report(new InvalidOptionError(`${path}.readyKey`, 'another key than delayedKey', readyKey));
  }
  return {
    name: given?.name ?? delayedKey,
    delayedKey,
    readyKey,
    batchSize: given?.batchSize ?? 100,
    unit: given?.unit ?? 's',
    pollMs: given?.pollMs ?? 1_000,
    maxReady: given?.maxReady,
  };
}

function ownKey(path: string, key: string): InvalidOptionError {
  const what = 'a key of your own';
  const message = `${path} must be ${what}, but '${key}' belongs to a queue of Godwit, which moves its delayed jobs itself`;
  return new InvalidOptionError(path, what, key, message);
}

function pathOf(options: Partial<DispatcherOptions> | null | undefined): string {
  const name = typeof options === 'object' ? (options?.name ?? options?.delayedKey) : undefined;
  return typeof name === 'string' && /^[\w.:{}-]{1,128}$/.test(name)
    ? `registerDispatcher('${name}')`
    : 'registerDispatcher()';
}
