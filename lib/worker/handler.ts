import type { JobAbortedError } from '../errors.js';
import { read } from '../errors/thrown.js';
import type { AnyDefinition } from '../job/define-job.js';
import type { Job } from '../job/job.js';
import type { CheckedDefaults } from '../options/job-options.js';

/**
 * How far a call through enhancers has come: `before` the method, `running` while the method is at work on a promise and
 * hears its signal itself, `after` it.
 */
export type CallStage = 'before' | 'running' | 'after';

/** A job as a pool gives it to its handler. */
export interface HandledJob extends Job<any> {
  /** Why the run should end early, where it should; unlike `signal` it costs nothing to look at. */
  readonly aborted?: JobAbortedError | undefined;
  /** Whether the run is over for the pool: what its handler says is not heard any more. */
  readonly closed?: boolean | undefined;
  /** Undefined where the method itself is what is called. */
  stage?: CallStage | undefined;
  /** Whether it may wait until others of its batch come: not while the workers stop. */
  readonly mayWait?: boolean | undefined;
  /** It waits for others of its batch: its `timeout` counts only once it does not any more. */
  waits?(isWaiting: boolean): void;
  /** Called when it is aborted, or its run ends, while it waits. */
  onEnd?: (() => void) | undefined;
}

/**
 * Whether a handler says no more than that it heard its signal, which is no failure of its own: `fetch` rejects with the reason of
 * the signal, Node's own APIs with an AbortError.
 */
export function obeys({ aborted }: HandledJob, error: unknown): boolean {
  return aborted !== undefined && (error === aborted || read(error, 'name') === 'AbortError');
}

/** Runs one job. It may return a value, a promise or an Observable, or throw. */
export type Handler = (job: HandledJob) => unknown;

/** What a pool calls for a job name. */
export interface HandlerEntry {
  readonly run: Handler;
  /** `Class.method`, for messages. */
  readonly label: string;
  /** With a schema, the data is checked and coerced by it before the call. */
  readonly definition?: AnyDefinition;
  /** Between the options of the queue and those of the job. */
  readonly policy?: CheckedDefaults;
  /** Starts the jobs that wait for others of their batch; only if the handler takes batches. */
  readonly flush?: (() => void) | undefined;
}

/** How a pool finds what to call; the other half, discovery, supplies it. */
export type FindHandler = (jobName: string) => HandlerEntry | undefined;
