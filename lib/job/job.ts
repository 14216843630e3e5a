import { type AbortReason, GodwitError, InvalidOptionError } from '../errors.js';
import { oneLine } from '../errors/show.js';
import { parseDuration, type Duration } from './duration.js';
import { hasFields, unknownField } from './fields.js';
import type { JobHeaders } from './headers.js';

/**
 * The job that a handler receives.
 *
 * @typeParam Data type of `data`.
 * @typeParam Input what `update` takes: with a schema, its input. `JobOf` sets both.
 * @example
 * async function send(job: Job<{ to: string }>) {
 *   await mailer.send(job.data.to, { signal: job.signal });
 * }
 */
export interface Job<Data = unknown, Input = Data> {
  /** Id of the job: passed to `add`, or generated. */
  readonly id: string;
  /** Name of the job; selects the handler. */
  readonly name: string;
  /** Name of its queue. */
  readonly queue: string;
  /** The data passed to `add`, after a JSON round trip; with a schema, the output of the schema. */
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
  /** When the job completed or died; null while it runs, and if it will run again. */
  readonly endedAt: Date | null;
  /** How many times it lost its worker before. */
  readonly stalls: number;
  /** Priority of the job. 1 runs first; 0 means none, and such jobs run before all others. */
  readonly priority: number;
  /** The group of the job; null without one. */
  readonly group: string | null;
  /** The headers of the job; an empty object if it has none. */
  readonly headers: JobHeaders;
  /** The delay that was requested when the job was added, in ms; 0 without a delay. */
  readonly delay: number;
  /** Aborts if the run should end early; `signal.reason` is a `JobAbortedError`. */
  readonly signal: AbortSignal;
  /**
   * Whether this process is stopping. The run may continue for `shutdown.timeout`; then `signal` aborts. A long handler can check
   * this between steps, save its progress and throw `new Snooze('1s')`, so that another process continues.
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
   * Replaces the data of the job, for this attempt and all later ones. With a schema, it takes the input of the schema, as `add` does.
   * When the promise resolves, the data is stored and `job.data` is what later attempts get; an event `updated` is emitted.
   *
   * Await it: otherwise its errors are lost.
   *
   * @throws {InvalidPayloadError | PayloadTooLargeError | RedisUnavailableError | RedisRefusedError}
   * @throws {SchemaViolationError} if the job has a definition and the data does not match its schema
   * @throws {JobAbortedError | WrongStateError} if the worker has lost the job, or the run is over
   * @example
   * await job.update({ ...job.data, url: 'https://mirror.example.org' }); // also for the next attempt
   */
  update(data: Input): Promise<void>;
  /**
   * Reports the actual cost of the job to rates that count a `cost`. The difference to the cost counted at the start is added or
   * given back. 0 to 1,000,000,000. Call it at most once per attempt, and again only if it was rejected. A sliding or fixed window forgets what is
   * above its `max` after `per`; a bucket carries it over.
   *
   * @throws {InvalidOptionError | RedisUnavailableError | RedisRefusedError}
   * @example
   * await job.charge(1_234); // tokens that were really used
   */
  charge(cost: number): Promise<void>;
  /** The fields of the job, without `signal` and `isDraining`: `JSON.stringify(job)` and JSON loggers show these. */
  toJSON(): Omit<Job<Data>, 'signal' | 'isDraining' | 'progress' | 'log' | 'update' | 'charge' | 'toJSON'>;
}

export type { AbortReason };

/** Minimum snooze. A job that always snoozes must not keep a worker busy. */
export const MIN_SNOOZE_MS = 100;

/** Longest time for which a process without a handler puts a job off. */
export const MAX_PUT_OFF_MS = 30_000;

/**
 * Throw it from a handler to run the job again later, after at least 100 ms. No attempt is counted.
 *
 * @example
 * if (answer.status === 503) throw new Snooze('5m');
 */
export class Snooze extends GodwitError {
  readonly code = 'GODWIT_SNOOZE';
  /** Time until the job runs again, in ms. */
  readonly delayMs: number;

  /** @throws {InvalidOptionError} if the duration cannot be parsed */
  constructor(delay: Duration) {
    super(`the handler asked to run again in ${oneLine(delay)}`);
    this.delayMs = parseDuration(delay, 'Snooze()');
  }
}

/** Which jobs a `RateLimited` stops from starting: those of the whole queue, of this name, or of this group. */
export type RateLimitScope = 'queue' | 'name' | 'group';

/**
 * Throw it from a handler when a service asks to slow down: no job starts for this time, in any process. The job itself goes back
 * to the front of the waiting jobs; no attempt is counted.
 *
 * @example
 * // The header is in seconds. It may also be a date; then wait 30 s.
 * if (answer.status === 429) throw new RateLimited(1_000 * (Number(answer.headers.get('retry-after')) || 30));
 */
export class RateLimited extends GodwitError {
  readonly code = 'GODWIT_RATE_LIMITED';
  /** How long no job starts, in ms. */
  readonly delayMs: number;
  /** Which jobs do not start. */
  readonly scope: RateLimitScope;
  /** The shared limit that this applies to, if one is named. */
  readonly limit: string | undefined;

  /**
   * @param options `scope`: which jobs do not start; by default all jobs of the queue. `'group'` also means all jobs of the queue if
   * this job has no group, and `'name'` if it has one. `limit`: a shared limit of the queue; then no job of any queue that uses this limit starts. If the
   * queue does not use this limit, all its jobs stop instead, and a warning is logged. Not both.
   * @throws {InvalidOptionError}
   */
  constructor(delay: Duration, options: { readonly scope?: RateLimitScope; readonly limit?: string } = {}) {
    super(`the handler asked that no job starts for ${oneLine(delay)}`);
    this.delayMs = parseDuration(delay, 'RateLimited()');
    if (!hasFields(options))
      throw new InvalidOptionError('RateLimited()', 'given an object of options', options);
    const known = ['scope', 'limit'];
    for (const name in options) if (!known.includes(name)) throw unknownField('RateLimited()', name, known);
    const { scope = 'queue', limit } = options;
    if (scope !== 'queue' && scope !== 'name' && scope !== 'group')
      throw new InvalidOptionError('RateLimited().scope', "one of 'queue', 'name', 'group'", scope);
    if (limit !== undefined && typeof limit !== 'string')
      throw new InvalidOptionError('RateLimited().limit', 'the name of a shared limit', limit);
    if (limit !== undefined && options.scope !== undefined)
      throw new InvalidOptionError(
        'RateLimited().scope',
        'left out with a limit, which stops the jobs of all queues that use it',
        scope,
      );
    this.scope = scope;
    this.limit = limit;
  }
}
