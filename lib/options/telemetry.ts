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

/** The result of adding one job. */
export interface TracedJob {
  /** Id of the job; if `duplicate`, the id of the job that holds its id or key. */
  readonly id: string;
  /** Whether another job holds its id or key. */
  readonly duplicate: boolean;
}

/** A run of a job, as telemetry sees it. */
export interface TracedRun extends Pick<
  Job,
  'id' | 'name' | 'queue' | 'attempt' | 'attempts' | 'headers' | 'stalls'
> {
  /** Ms since the job was first due; undefined if this is not its first run. */
  readonly waitedMs: number | undefined;
  /** Whether the call that added the job waits for its end. */
  readonly awaited: boolean;
}

/** How a run ended, or why a job could not run. */
export interface TracedEnd {
  /** The outcome. `released`: the job was given back unfinished; `lost`: the lease of its worker expired. */
  readonly outcome: 'completed' | 'retrying' | 'dead' | 'snoozed' | 'cancelled' | 'released' | 'lost';
  /** Whether a handler was called and returned or threw. */
  readonly hasRun: boolean;
  /** Duration of the run, in microseconds. */
  readonly durationUs: number;
  /** Why the job is dead, if it is. */
  readonly reason: DeadReason | null;
  /** The error; null if there was none. */
  readonly failure: FailureRecord | null;
}

/** The trace of one run. */
export interface RunTrace {
  /** Id of the trace, for the exemplars of metrics; absent if the trace is not recorded. */
  readonly traceId?: string | undefined;
  /** Calls the handler, or a listener of its end, inside the trace. */
  call<T>(work: () => T): T;
  /** Called when the run is over. */
  ended(end: TracedEnd): void;
}

/** A queue, as telemetry sees it. */
export interface MeteredQueue {
  /** Its name. */
  readonly name: string;
  /** Number of jobs in each state. */
  readonly counts: Readonly<Record<JobState, number>>;
  /** How long ago the oldest waiting job became due, in ms; null if no job waits. */
  readonly oldestWaitingMs: number | null;
}

/** The jobs of a queue that this process runs. */
export interface MeteredWork {
  /** Name of the queue. */
  readonly queue: string;
  /** Number of running jobs. */
  readonly running: number;
  /** How many jobs may run at once. */
  readonly slots: number;
}

/** The data that `QueueTelemetry.attach` may read. */
export interface TelemetrySource {
  /**
   * The queues of the prefix.
   *
   * @throws {RedisUnavailableError | RedisRefusedError}
   */
  queues(): Promise<readonly MeteredQueue[]>;
  /** The jobs that this process runs now. */
  load(): readonly MeteredWork[];
}

/**
 * Receives the adds and runs of jobs in this process, for traces and metrics; `otel()` of `godwit/otel` creates one. The methods
 * are called for every job, so they must be fast and must not throw.
 */
export interface QueueTelemetry {
  /** Headers for a job that is added now, in the async context of the caller. */
  readonly headers: HeadersHook;
  /**
   * Wraps a call that adds jobs. It must call `send` once and return its promise. `read` extracts the added jobs from the result.
   *
   * @throws everything that `send` throws
   */
  adding<T>(call: TracedAdd, send: () => Promise<T>, read: (answer: T) => readonly TracedJob[]): Promise<T>;
  /** Called before the handler of a job runs. The data has not been validated yet. */
  running(run: TracedRun, worker: string): RunTrace;
  /** Called when a run is over or a job could not run. `name` is empty if it is unknown. */
  ended(queue: string, name: string, end: TracedEnd): void;
  /** Sends a command to Redis outside of any trace. */
  internal<T>(work: () => T): T;
  /** Called when the application has started. Returns a function that ends the telemetry. */
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

/** Combines the headers of the application with those of the trace. */
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
