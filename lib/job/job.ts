import { type AbortReason, GodwitError, InvalidOptionError } from '../errors.js';
import { oneLine } from '../errors/show.js';
import { parseDuration, type Duration } from './duration.js';
import type { JobHeaders } from './headers.js';

/**
 * What a handler receives.
 *
 * @example
 * async function send(job: Job<{ to: string }>) {
 *   await mailer.send(job.data.to, { signal: job.signal });
 * }
 */
export interface Job<Data = unknown> {
  /** Passed to `add`, or generated. */
  readonly id: string;
  /** Which handler it is for. */
  readonly name: string;
  /** Name of its queue. */
  readonly queue: string;
  /** The data that was added, after a JSON round trip; with a schema, its output. */
  readonly data: Data;
  /** Which attempt this is, from 1. */
  readonly attempt: number;
  /** Maximum number of attempts. */
  readonly attempts: number;
  /** When it was added, by the clock of Redis. */
  readonly createdAt: Date;
  /** When it was due to run for the first time; null if it was added without a delay. */
  readonly dueAt: Date | null;
  /** When this attempt started, by the clock of Redis. */
  readonly startedAt: Date;
  /** When the job completed or died; null while it runs, and if it is to run again. */
  readonly endedAt: Date | null;
  /** How many times it lost its worker before. */
  readonly stalls: number;
  /** From 1, which runs first; 0 for jobs without a priority, which run before all others. */
  readonly priority: number;
  /** The group whose turn it waited for; null without one. */
  readonly group: string | null;
  /** Small strings that were added beside the data; an empty object without any. */
  readonly headers: JobHeaders;
  /** Ms between adding it and its first run, as asked for; 0 without a delay. */
  readonly delay: number;
  /** Aborts if the run should end early; `signal.reason` is a `JobAbortedError`. */
  readonly signal: AbortSignal;
  /**
   * Whether this process is stopping. The run may go on for `shutdown.timeout`; then `signal` aborts. A long handler checks it between
   * steps, saves how far it has come, and throws `new Snooze('1s')`, so that another process goes on.
   */
  readonly isDraining: boolean;
  /**
   * Reports progress: any JSON. `Queue.get` shows it, and a `progress` event is emitted.
   *
   * @throws {InvalidPayloadError | PayloadTooLargeError | RedisUnavailableError | RedisRefusedError} if it is awaited
   */
  progress(value: unknown): Promise<void>;
  /**
   * Appends a line to the job's log. The last 100 lines (`logs.max`) of up to 2,000 characters are kept as long as the job is.
   *
   * @throws {RedisUnavailableError | RedisRefusedError} if it is awaited
   */
  log(line: string): Promise<void>;
  /**
   * Replaces the data of the job, for this attempt (`job.data`) and for all that follow. It is stored when the promise resolves; an event
   * `updated` is emitted.
   *
   * @throws {InvalidPayloadError | PayloadTooLargeError | RedisUnavailableError | RedisRefusedError}
   * @throws {SchemaViolationError} if the job has a definition and the data does not match its schema
   * @throws {JobAbortedError | WrongStateError} if the worker has lost the job, or the run is over
   * @example
   * await job.update({ ...job.data, url: 'https://mirror.example.org' }); // also for the next attempt
   */
  update(data: Data): Promise<void>;
  /**
   * Says what the job has really cost, where rates count a `cost`: the difference to what was counted at its start is added, or given
   * back. Once for each attempt.
   *
   * @throws {InvalidOptionError | RedisUnavailableError | RedisRefusedError}
   * @example
   * await job.charge(1_234); // tokens that were really used
   */
  charge(cost: number): Promise<void>;
}

export type { AbortReason };

/** A job that snoozes without end must not keep a worker busy. */
export const MIN_SNOOZE_MS = 100;

/**
 * Throw it from a handler to run the job again later, after at least 100 ms. No attempt is counted.
 *
 * @example
 * if (answer.status === 503) throw new Snooze('5m');
 */
export class Snooze extends GodwitError {
  readonly code = 'GODWIT_SNOOZE';
  /** Until it runs again, in ms. */
  readonly delayMs: number;

  /** @throws {InvalidOptionError} if the duration cannot be parsed */
  constructor(delay: Duration) {
    super(`the handler asked to run again in ${oneLine(delay)}`);
    this.delayMs = parseDuration(delay, 'Snooze()');
  }
}

/** What a `RateLimited` holds back: the whole queue, the jobs of this name, or those of this group. */
export type RateLimitScope = 'queue' | 'name' | 'group';

/**
 * Throw it from a handler when a service asks to slow down: no job starts for this time, in any process. The job itself goes back to the
 * head of the line; no attempt is counted.
 *
 * @example
 * if (answer.status === 429) throw new RateLimited(`${answer.headers.get('retry-after') ?? 30}s`);
 */
export class RateLimited extends GodwitError {
  readonly code = 'GODWIT_RATE_LIMITED';
  /** For so long, in ms. */
  readonly delayMs: number;
  /** What is held back. */
  readonly scope: RateLimitScope;
  /** The shared limit that is held back, if one is named. */
  readonly limit: string | undefined;

  /**
   * @param options `scope`: what is held back; `'group'` of a job without a group is the queue. By default the queue. `limit`: a shared limit
   * that the queue uses, so that no queue that uses it starts a job; one that it does not use is ignored.
   * @throws {InvalidOptionError}
   */
  constructor(delay: Duration, options: { readonly scope?: RateLimitScope; readonly limit?: string } = {}) {
    super(`the handler asked that nothing starts for ${oneLine(delay)}`);
    this.delayMs = parseDuration(delay, 'RateLimited()');
    const { scope = 'queue', limit } = options;
    if (scope !== 'queue' && scope !== 'name' && scope !== 'group')
      throw new InvalidOptionError('RateLimited().scope', "one of 'queue', 'name', 'group'", scope);
    if (limit !== undefined && typeof limit !== 'string')
      throw new InvalidOptionError('RateLimited().limit', 'the name of a shared limit', limit);
    this.scope = scope;
    this.limit = limit;
  }
}
