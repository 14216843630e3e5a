import type { AbortReason } from '../errors.js';

/**
 * What a handler receives.
 *
 * @example
 * async function send(job: Job<{ to: string }>) {
 *   await mailer.send(job.data.to, { signal: job.signal });
 * }
 */
export interface Job<Data = unknown> {
  /** Given to `add`, or generated. */
  readonly id: string;
  /** Which handler it is for. */
  readonly name: string;
  /** Name of its queue. */
  readonly queue: string;
  /** What the producer gave, as JSON gives it back; with a schema, what the schema makes of that. */
  readonly data: Data;
  /** Which try this is, from 1. */
  readonly attempt: number;
  /** How many tries there are in all. */
  readonly attempts: number;
  /** When it was added, by the clock of Redis. */
  readonly createdAt: Date;
  /** Aborted when the run should end early; `signal.reason` is a `JobAbortedError` that says why. */
  readonly signal: AbortSignal;
  /**
   * Any JSON a person may watch: shown by `Queue.get` and said as a `progress` event.
   *
   * @throws {InvalidPayloadError | PayloadTooLargeError | RedisUnavailableError | RedisRefusedError} where it is awaited
   */
  progress(value: unknown): Promise<void>;
  /**
   * Adds a line to the job's log; the last 100 lines of up to 2,000 characters are kept as long as the job is.
   *
   * @throws {RedisUnavailableError | RedisRefusedError} where it is awaited
   */
  log(line: string): Promise<void>;
}

export type { AbortReason };
