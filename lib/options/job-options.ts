import type { Duration } from '../job/duration.js';
import type { BackoffOption } from '../job/backoff.js';

/** What a queue or the module may set for all jobs. */
export interface JobDefaults {
  /** Runs in all, the first included. @default 3 */
  readonly attempts?: number;
  /** Wait before the next attempt. @default { type: 'exponential', delay: '1s', max: '1h', jitter: 0.2 } */
  readonly backoff?: BackoffOption;
  /** Longest run of one attempt; then `job.signal` aborts and the attempt has failed. @default none */
  readonly timeout?: Duration;
  /** How long a completed job stays readable with its result; 0: it leaves nothing. @default 0 */
  readonly retention?: Duration;
  /** Not started within this time after it could first have run: dead as `expired`. @default none */
  readonly expiresIn?: Duration;
}

/** What `add` takes beside the data. */
export interface JobOptions extends Omit<JobDefaults, 'backoff'> {
  /** A second `add` with an id that is still in the queue is answered as a duplicate. @default generated */
  readonly id?: string;
  /** Run it after this time. @default 0 */
  readonly delay?: Duration;
  /** Run it at this moment; not together with `delay`. A number is ms since 1970. */
  readonly runAt?: Date | number;
  /** 1 (first) to 2,097,151 (last); jobs without one go before all of them. */
  readonly priority?: number;
  /** As in the queue's defaults, but not a function: it must be stored. */
  readonly backoff?: Exclude<BackoffOption, (...args: never[]) => unknown>;
}

/** `JobOptions` after checking: milliseconds and plain values, only what was given. */
export interface CheckedJobOptions {
  id?: string;
  delayMs?: number;
  dueAt?: number;
  priority?: number;
  attempts?: number;
  backoff?: Exclude<BackoffOption, (...args: never[]) => unknown>;
  timeoutMs?: number;
  retentionMs?: number;
  expiresInMs?: number;
}
