import type { JobAbortedError } from '../errors.js';
import { read } from '../errors/thrown.js';
import type { AnyDefinition } from '../job/define-job.js';
import type { Job } from '../job/job.js';
import type { CheckedDefaults } from '../options/job-options.js';
import type { RunTrace } from '../options/telemetry.js';

/**
 * How far a call through enhancers has come. `before`: the method was not called yet. `running`: the method was called and its
 * promise is pending; the method watches its signal itself. `after`: the method has ended.
 */
export type CallStage = 'before' | 'running' | 'after';

/** A job as a pool gives it to its handler. */
export interface HandledJob extends Job<any> {
  /** Why the run should end early, if it should. Unlike `signal`, reading it creates nothing. */
  readonly aborted?: JobAbortedError | undefined;
  /** Whether the run has ended. Whatever the handler returns afterwards is ignored. */
  readonly closed?: boolean | undefined;
  /** Undefined if the pool calls the method directly, without enhancers. */
  stage?: CallStage | undefined;
  /** Whether further jobs may come to fill the batch that the job waits for. */
  readonly mayWait?: boolean | undefined;
  /** Its trace, if there is telemetry. */
  readonly trace?: RunTrace | undefined;
  /** Called when the job begins or ends its wait for a batch. The `timeout` counts only after the wait. */
  waits?(isWaiting: boolean): void;
  /** Called when the job is aborted or its run ends while it waits for a batch. */
  onEnd?: (() => void) | undefined;
}

/**
 * Whether an error only means that the handler obeyed its signal. `fetch` rejects with the reason of the signal, Node's own APIs
 * with an AbortError. Such an error is not a failure of the handler.
 */
export function obeys({ aborted }: HandledJob, error: unknown): boolean {
  return aborted !== undefined && (error === aborted || read(error, 'name') === 'AbortError');
}

/** Runs one job. It may return a value, a promise or an Observable, or throw. */
export type Handler = (job: HandledJob) => unknown;

/** The handler of one job name, as a pool calls it. */
export interface HandlerEntry {
  readonly run: Handler;
  /** `Class.method`, for messages. */
  readonly label: string;
  /** The name or pattern that it is for; `*` for all other names. */
  readonly jobName?: string;
  /** If it has a schema, the data is checked and converted before the call. */
  readonly definition?: AnyDefinition;
  /** Options of the handler. They override those of the queue; those of the job override them. */
  readonly policy?: CheckedDefaults;
  /** Starts the jobs that wait for a batch. Only for handlers of batches. */
  readonly flush?: (() => void) | undefined;
}

/** Finds the handler of a job name. `lib/handlers` supplies it. */
export type FindHandler = (jobName: string) => HandlerEntry | undefined;
