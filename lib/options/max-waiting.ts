import { MAX_TIMER_MS, type Duration } from '../job/duration.js';
import { InvalidOptionError } from '../errors.js';
import { duration, field, integer, oneOf, shape, type Rule } from './check.js';

/** How many jobs of a queue may wait, and what `add` does when the queue is full. */
export interface MaxWaitingOptions {
  /** Maximum number of waiting jobs, 1 to 1,000,000,000. Delayed and running jobs do not count, and retries are never refused. */
  readonly limit: number;
  /**
   * `'reject'`: `add` rejects with `QueueFullError`. `'wait'`: `add` waits for room, at most for `timeout`, and then rejects with
   * that error. `'dropNew'`: `add` adds nothing and resolves with `dropped: true`. `'dropOldest'`: `add` stores the job, and the
   * job that has waited longest is removed.
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
