import { MAX_TIMER_MS, type Duration } from '../job/duration.js';
import { InvalidOptionError } from '../errors.js';
import { boolean, duration, field, integer, oneOf, orBoolean, shape, type Rule } from './check.js';

/** How many jobs of a queue may wait, and what `add` does when the queue is full. */
export interface MaxWaitingOptions {
  /** Maximum number of waiting jobs, 1 to 1,000,000,000. Delayed and running jobs do not count, and retries are never refused. */
  readonly limit: number;
  /**
   * `'reject'`: `add` rejects with `QueueFullError`. `'wait'`: `add` waits for room, at most for `timeout`, and then rejects with
   * that error. `'dropNew'`: `add` adds nothing and resolves with `dropped: true`; `addAndWait`, `queue.retry` and
   * `schedules.runNow` reject with that error. `'dropOldest'`: `add` stores the job, and the job that has waited longest is removed.
   * Waiting jobs of groups stay, as do new jobs that replace an ended one; if no other job may be removed, the new one is dropped: `add` resolves with
   * `dropped: true`, and `addAndWait` and `schedules.runNow` reject with that error. A bulk with more than `limit` jobs fills the
   * queue; its other jobs are dropped.
   *
   * @default 'reject'
   */
  readonly onFull?: 'reject' | 'wait' | 'dropNew' | 'dropOldest';
  /** How long `add` waits for room with `'wait'`, up to 24 days. @default '30s' */
  readonly timeout?: Duration;
}

/** `MaxWaitingOptions` with every field. */
export interface ResolvedMaxWaiting {
  readonly limit: number;
  readonly onFull: 'reject' | 'wait' | 'dropNew' | 'dropOldest';
  readonly timeoutMs: number;
}

/** What happens to adds while the queue is full. */
export const WHEN_FULL: Readonly<Record<ResolvedMaxWaiting['onFull'], string>> = {
  reject: 'adds are rejected',
  wait: 'adds wait for room',
  dropNew: 'new jobs are dropped',
  dropOldest: 'the oldest waiting jobs are removed',
};

const MOST = 1_000_000_000;

const readFields = shape({
  limit: field('limit', integer(1, MOST)),
  onFull: field('onFull', oneOf('reject', 'wait', 'dropNew', 'dropOldest')),
  timeout: field('timeoutMs', duration(1, MAX_TIMER_MS)),
});

export const readMaxWaiting: Rule<ResolvedMaxWaiting> = (value, path, report) => {
  const given = readFields(value, path, report);
  if (!given) return undefined;
  const { limit, onFull = 'reject', timeoutMs } = given;
  if (limit === undefined) {
    if ((value as MaxWaitingOptions).limit === undefined)
      report(new InvalidOptionError(`${path}.limit`, `an integer from 1 to ${MOST}`, undefined));
    return undefined;
  }
  if (timeoutMs !== undefined && onFull !== 'wait')
    report(
      new InvalidOptionError(
        `${path}.timeout`,
        "left out unless onFull is 'wait'",
        (value as MaxWaitingOptions).timeout,
      ),
    );
  return { limit, onFull, timeoutMs: timeoutMs ?? 30_000 };
};

/**
 * `false`: no events are written. `max`: how many are kept for readers that resume, up to 10,000,000. `age`: how long they are
 * kept; unlimited by default.
 *
 * @default { max: 10000 }
 */
export type EventsOption =
  | boolean
  | {
      /** How many are kept, up to 10,000,000. @default 10000 */
      readonly max?: number;
      /** How long they are kept. @default no limit */
      readonly age?: Duration;
      /**
       * Approximate maximum size of all events with more than 1 KiB of progress, in bytes; the oldest are removed first.
       *
       * @default 67108864
       */
      readonly maxBytes?: number;
      /**
       * Whether `completed` events contain the `result` of the handler. A result of more than `maxBytes / max` bytes of JSON is
       * left out; the event then has `resultFault`.
       *
       * @default false
       */
      readonly results?: boolean;
    };

/** `EventsOption` with every field. */
export interface ResolvedEvents {
  /** 0 if no events are written. */
  readonly max: number;
  /** Null if their age is unlimited. */
  readonly ageMs: number | null;
  readonly maxBytes: number;
  readonly results: boolean;
}

/** Booleans are kept, because `true` means the default number in a module, and in a queue the number of the module. */
type GivenEvents = boolean | Partial<ResolvedEvents>;

const DEFAULT_EVENTS: ResolvedEvents = { max: 10_000, ageMs: null, maxBytes: 67_108_864, results: false };

export const readEvents: Rule<GivenEvents> = orBoolean(
  shape({
    max: field('max', integer(0, 10_000_000)),
    age: field('ageMs', duration()),
    maxBytes: field('maxBytes', integer(0, Number.MAX_SAFE_INTEGER)),
    results: field('results', boolean),
  }),
);

/** If the module has `events: false` and the queue switches them on, the queue gets the default number. */
export function eventsOf(
  given: GivenEvents | undefined,
  inherited: ResolvedEvents = DEFAULT_EVENTS,
): ResolvedEvents {
  if (given === undefined) return inherited;
  if (given === false) return { ...inherited, max: 0 };
  const own = given === true ? {} : given;
  return { ...inherited, max: inherited.max || DEFAULT_EVENTS.max, ...own };
}

/** The largest result in an event, in bytes of JSON: all events with results together stay within `maxBytes`. */
export function maxResultBytes({ max, maxBytes, results }: ResolvedEvents): number {
  return results && max > 0 ? Math.floor(maxBytes / max) : 0;
}
