import { InvalidOptionError } from '../errors.js';
import type { HeadersHook } from '../job/headers.js';
import type { Job } from '../job/job.js';
import type { JobState } from '../job/job-state.js';
import type { DeadReason, FailureRecord } from '../job/outcome.js';
import { readable } from './check.js';

/** A call that adds jobs. */
export interface TracedAdd {
  /** Name of the queue. */
  readonly queue: string;
  /** Name of the jobs; null if they may have several. */
  readonly name: string | null;
  /** How many jobs it adds; null for a call with a single job. */
  readonly count: number | null;
  /** Whether it waits for the end of the job. */
  readonly awaits: boolean;
}

/** What became of a job that was to be added. */
export interface TracedJob {
  /** Its id, or that of the job that holds its id. */
  readonly id: string;
  /** Whether another job holds its id or key. */
  readonly duplicate: boolean;
}

/** A run of a job, as telemetry sees it. */
export interface TracedRun extends Pick<
  Job,
  'id' | 'name' | 'queue' | 'attempt' | 'attempts' | 'headers' | 'stalls'
> {
  /** Ms since the job could first have run; undefined if this is not its first run. */
  readonly waitedMs: number | undefined;
  /** Whether the call that added it waits for its end. */
  readonly awaited: boolean;
}

/** How a run ended, or why a job could not run. */
export interface TracedEnd {
  /** In one word. `released`: given back unfinished; `lost`: its worker has lost it. */
  readonly outcome: 'completed' | 'retrying' | 'dead' | 'snoozed' | 'cancelled' | 'released' | 'lost';
  /** Whether a handler was called, and completed or failed. */
  readonly hasRun: boolean;
  /** How long it ran, in microseconds. */
  readonly durationUs: number;
  /** Why the job is dead, if it is. */
  readonly reason: DeadReason | null;
  /** What went wrong; null if nothing did. */
  readonly failure: FailureRecord | null;
}

/** The trace of one run. */
export interface RunTrace {
  /** Calls the handler, or a listener of its end, inside the trace. */
  call<T>(work: () => T): T;
  /** The run is over. */
  ended(end: TracedEnd): void;
}

/** A queue, as telemetry sees it. */
export interface MeteredQueue {
  /** Its name. */
  readonly name: string;
  /** How many jobs of each state it has. */
  readonly counts: Readonly<Record<JobState, number>>;
  /** For how long the oldest waiting job could have run, in ms; null if nothing waits. */
  readonly oldestWaitingMs: number | null;
}

/** What this process runs of a queue. */
export interface MeteredWork {
  /** Name of the queue. */
  readonly queue: string;
  /** How many jobs run. */
  readonly running: number;
  /** How many could run at once. */
  readonly slots: number;
}

/** What `QueueTelemetry.attach` may read. */
export interface TelemetrySource {
  /**
   * The queues of the prefix.
   *
   * @throws {RedisUnavailableError | RedisRefusedError}
   */
  queues(): Promise<readonly MeteredQueue[]>;
  /** What this process runs now. */
  load(): readonly MeteredWork[];
}

/**
 * Follows the jobs of this process, for traces and metrics: `otel()` of `godwit/otel` makes one. Its methods are called for every job, so they
 * are quick, and none throws.
 */
export interface QueueTelemetry {
  /** Headers for a job that is added now, in the async context of the caller. */
  readonly headers: HeadersHook;
  /**
   * Called instead of a call that adds jobs; it calls `send` once and returns its promise. `read` tells what became of them.
   *
   * @throws everything that `send` throws
   */
  adding<T>(call: TracedAdd, send: () => Promise<T>, read: (answer: T) => readonly TracedJob[]): Promise<T>;
  /** A job was handed over to its handler; its data has not been validated. */
  running(run: TracedRun, worker: string): RunTrace;
  /** A run is over, or a job could not run. `name` is empty if no handler names it. */
  ended(queue: string, name: string, end: TracedEnd): void;
  /** Sends a command to Redis, which is no part of anybody's trace. */
  internal<T>(work: () => T): T;
  /** The application has started. Returns what ends it. */
  attach(source: TelemetrySource): () => void;
}

const METHODS: readonly (keyof QueueTelemetry)[] = [
  'headers',
  'adding',
  'running',
  'ended',
  'internal',
  'attach',
];

/** @throws {InvalidOptionError} */
export function checkTelemetry(value: unknown, path: string): QueueTelemetry {
  const isGood = readable(
    value,
    path,
    () =>
      typeof value === 'object' &&
      value !== null &&
      METHODS.every((name) => typeof (value as QueueTelemetry)[name] === 'function'),
  );
  if (isGood) return value as QueueTelemetry;
  throw new InvalidOptionError(path, 'what otel() of godwit/otel returns', value);
}

/** The headers of the application, and those of the trace. */
export function headersHook(
  given: HeadersHook | undefined,
  telemetry: QueueTelemetry | undefined,
): HeadersHook | undefined {
  if (!telemetry) return given;
  if (!given) return telemetry.headers;
  return (job) => {
    const own = given(job);
    const traced = telemetry.headers(job);
    return traced ? { ...own, ...traced } : own;
  };
}
