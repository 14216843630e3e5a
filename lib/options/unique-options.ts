import { InvalidOptionError } from '../errors.js';
import { readDuration, type Duration } from '../job/duration.js';
import type { JobState } from '../job/job-state.js';
import { faultOfText } from '../job/text.js';
import {
  duration,
  field,
  integer,
  oneOf,
  readable,
  rule,
  shape,
  someOf,
  type Report,
  type Rule,
} from './check.js';

/** Allows one job with a key at a time: see [Flow control](../../docs/guides/flow-control.md). */
export interface UniqueOptions {
  /** The key: 1 to 256 bytes. Set either this or `by`. @default none */
  readonly key?: string;
  /**
   * Builds the key from these fields of the data, such as `['orderId', 'customer.id']`. The data must contain each of them.
   * @default none
   */
  readonly by?: readonly string[];
  /** Whether jobs of other names in the queue may have the same key. @default 'name' */
  readonly scope?: 'name' | 'queue';
  /**
   * How long the job holds the key. `'started'`: until a worker claims it. `'settled'`: until it is completed, dead, cancelled or
   * removed. A duration: for this time, even if the job ends before.
   *
   * @default 'settled'
   */
  readonly until?: Duration;
  /**
   * The states of the other job in which it holds the key. An alternative to `until`.
   *
   * @default ['waiting', 'delayed', 'active']
   */
  readonly states?: readonly JobState[];
  /**
   * How `add` treats the new job while another job holds the key. `'skip'`: nothing. `'replace'`: a waiting or delayed job of
   * the same name gets the new data. `'keepLast'`: like `'replace'`, but if the other job runs, the new job waits for its end;
   * only the last such job is kept. `'error'`: `add` rejects with `DuplicateJobError`.
   *
   * @default 'skip'
   */
  readonly onDuplicate?: 'skip' | 'replace' | 'keepLast' | 'error';
}

/** Several adds with one key become one job, which runs some time after the last of them. */
export interface DebounceOptions {
  /** The key, among jobs of this name: 1 to 256 bytes. */
  readonly key: string;
  /** How long after the last add the job runs, 1 ms to ten years. */
  readonly delay: Duration;
  /** How long after the first add the job runs at the latest. @default none */
  readonly maxWait?: Duration;
}

/** The first add with a key makes a job; for some time further adds make none. */
export interface ThrottleOptions {
  /** The key, among jobs of this name: 1 to 256 bytes. */
  readonly key: string;
  /** How long further adds make no job, counted from the add that made one; 1 ms to ten years. */
  readonly ttl: Duration;
}

/** Collects the data of several adds in one job, which gets it as a list. */
export interface AggregateOptions {
  /** The key, among jobs of this name and group: 1 to 256 bytes. */
  readonly key: string;
  /** The job runs at most this long after the first add: 1 ms to ten years. */
  readonly maxDelay: Duration;
  /** The job runs when nothing was added for this long. @default maxDelay */
  readonly grace?: Duration;
  /** The job runs when it has this number of items: 2 to 10,000. @default 100 */
  readonly maxSize?: number;
  /**
   * The maximum size of the job's data in bytes; an item that does not fit begins the next job. At most `maxPayloadBytes` of the
   * queue. @default 262144, or `maxPayloadBytes` if that is less
   */
  readonly maxBytes?: number;
}

/** `unique`, `debounce`, `throttle` or `aggregate` after checking. */
export interface CheckedKey {
  readonly kind: 'unique' | 'debounce' | 'throttle' | 'aggregate';
  readonly key: string | undefined;
  readonly by: readonly string[] | undefined;
  readonly scope: 'name' | 'queue';
  readonly forMs: number;
  readonly states: readonly JobState[];
  readonly on: 'skip' | 'replace' | 'keepLast' | 'error' | 'debounce' | 'aggregate';
  readonly delayMs: number;
  readonly longestMs: number;
  readonly most?: number;
  /** Undefined: the default. */
  readonly mostBytes?: number | undefined;
}

const MAX_KEY_BYTES = 256;
const MAX_FIELDS = 10;
const MANY_BYTES = 1_000_000_000;
/** The default for the maximum number of bytes that `aggregate` collects. */
export const AGGREGATE_BYTES = 262_144;
const WAITING = ['waiting', 'delayed'] as const;
const UNSETTLED = [...WAITING, 'active'] as const;
const PLAIN = { by: undefined, scope: 'name', forMs: 0, states: [], delayMs: 0, longestMs: 0 } as const;

const readKey = rule((value: unknown, path: string): string => {
  const fault = faultOfText(value, MAX_KEY_BYTES);
  if (fault === undefined) return value as string;
  throw new InvalidOptionError(
    path,
    `a string of 1 to ${MAX_KEY_BYTES} bytes without control characters`,
    value,
  );
});

const readBy = rule((value: unknown, path: string): readonly string[] => {
  const list = readable(value, path, () => (Array.isArray(value) ? [...(value as unknown[])] : []));
  const isGood = list.every((one) => typeof one === 'string' && /^[^.]+(\.[^.]+)*$/.test(one));
  if (isGood && list.length > 0 && list.length <= MAX_FIELDS) return list as string[];
  throw new InvalidOptionError(
    path,
    `a list of 1 to ${MAX_FIELDS} fields of the data, such as 'order.id'`,
    value,
  );
});

const readUntil = rule((value: unknown, path: string): 'started' | 'settled' | number => {
  if (value === 'started' || value === 'settled') return value;
  const ms = readDuration(value);
  if (ms !== undefined && ms > 0) return ms;
  throw new InvalidOptionError(path, "'started', 'settled', or a duration from 1 ms", value);
});

/** The option `deduplication` of BullMQ has its key in `id`. */
const WORDS = { id: 'use the field key for the key' };

const readUniqueFields = shape(
  {
    key: field('key', readKey),
    by: field('by', readBy),
    scope: field('scope', oneOf('name', 'queue')),
    until: field('until', readUntil),
    states: field('states', someOf('waiting', 'delayed', 'active', 'completed', 'dead', 'cancelled')),
    onDuplicate: field('onDuplicate', oneOf('skip', 'replace', 'keepLast', 'error')),
  },
  WORDS,
);

export const readUnique: Rule<CheckedKey> = (value, path, report) => {
  const given = readUniqueFields(value, path, report);
  if (!given) return undefined;
  const { key, by, scope = 'name', until, states, onDuplicate: on = 'skip' } = given;
  const refuse = (option: string, phrase: string) =>
    report(new InvalidOptionError(`${path}.${option}`, phrase, (value as never)[option]));
  if (key === undefined && by === undefined) refuse('key', 'given, or the option by');
  if (key !== undefined && by !== undefined) refuse('by', 'left out if key is given');
  if (until !== undefined && states !== undefined) refuse('states', 'left out if until is given');
  if (states?.length === 0) refuse('states', 'a list of at least one state');
  if (on === 'keepLast' && until !== undefined && until !== 'settled')
    refuse('until', "'settled' if onDuplicate is 'keepLast'");
  if (on === 'replace' && states?.length && !WAITING.some((one) => states.includes(one)))
    refuse(
      'states',
      "a list with 'waiting' or 'delayed' if onDuplicate is 'replace': only such a job gets the new data",
    );
  if (on === 'keepLast' && states !== undefined) refuse('states', "left out if onDuplicate is 'keepLast'");
  const forMs = typeof until === 'number' ? until : 0;
  const counted = states ?? (until === 'started' ? WAITING : UNSETTLED);
  return { ...PLAIN, kind: 'unique', key, by, scope, forMs, states: forMs > 0 ? [] : counted, on };
};

/** Reports the options among these that were not given. A refused option is reported already. */
function refuseMissing(
  given: unknown,
  checked: Readonly<Record<string, unknown>>,
  path: string,
  report: Report,
): void {
  for (const [option, value] of Object.entries(checked))
    if (value === undefined && (given as never)[option] === undefined)
      report(new InvalidOptionError(`${path}.${option}`, 'given', undefined));
}

const readDebounceFields = shape(
  {
    key: field('key', readKey),
    delay: field('delayMs', duration(1)),
    maxWait: field('longestMs', duration(1)),
  },
  WORDS,
);

export const readDebounce: Rule<CheckedKey> = (value, path, report) => {
  const given = readDebounceFields(value, path, report);
  if (!given) return undefined;
  const { key, delayMs, longestMs = 0 } = given;
  refuseMissing(value, { key, delay: delayMs }, path, report);
  if (longestMs > 0 && delayMs !== undefined && longestMs < delayMs)
    report(new InvalidOptionError(`${path}.maxWait`, 'at least delay', (value as DebounceOptions).maxWait));
  return {
    ...PLAIN,
    kind: 'debounce',
    key,
    on: 'debounce',
    states: ['delayed'],
    delayMs: delayMs ?? 1,
    longestMs,
  };
};

const readAggregateFields = shape({
  key: field('key', readKey),
  maxDelay: field('longestMs', duration(1)),
  grace: field('graceMs', duration(1)),
  maxSize: field('most', integer(2, 10_000)),
  maxBytes: field('mostBytes', integer(1, MANY_BYTES)),
});

export const readAggregate: Rule<CheckedKey> = (value, path, report) => {
  const given = readAggregateFields(value, path, report);
  if (!given) return undefined;
  const { key, longestMs = 1, graceMs = longestMs, most = 100, mostBytes } = given;
  refuseMissing(value, { key, maxDelay: given.longestMs }, path, report);
  if (given.longestMs !== undefined && graceMs > longestMs)
    report(new InvalidOptionError(`${path}.grace`, 'at most maxDelay', (value as AggregateOptions).grace));
  const on = 'aggregate';
  return { ...PLAIN, kind: on, on, key, forMs: graceMs, delayMs: graceMs, longestMs, most, mostBytes };
};

const readThrottleFields = shape({ key: field('key', readKey), ttl: field('forMs', duration(1)) }, WORDS);

export const readThrottle: Rule<CheckedKey> = (value, path, report) => {
  const given = readThrottleFields(value, path, report);
  if (!given) return undefined;
  const { key, forMs } = given;
  refuseMissing(value, { key, ttl: forMs }, path, report);
  return { ...PLAIN, kind: 'throttle', key, on: 'skip', forMs: forMs ?? 1 };
};
