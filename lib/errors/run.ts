import { GodwitError } from './base.js';
import { show } from './show.js';

/**
 * Why the signal of a run was aborted: it took longer than its `timeout`, the application stops, its worker was taken for dead, or
 * somebody called `Queue.cancel`.
 */
export type AbortReason = 'timeout' | 'shutdown' | 'lease-lost' | 'cancelled';

/**
 * The reason of `job.signal` when it is aborted, and the error of an attempt that ran out of time.
 *
 * @example
 * job.signal.addEventListener('abort', () => {
 *   const { reason } = job.signal.reason as JobAbortedError;
 *   console.log(`stops: ${reason}`);
 * });
 */
export class JobAbortedError extends GodwitError {
  readonly code = 'GODWIT_JOB_ABORTED';

  constructor(
    /** Why. */
    readonly reason: AbortReason,
    /** Id of the job. */
    readonly jobId: string,
    /** Which attempt, from 1. */
    readonly attempt: number,
    detail: string,
  ) {
    super(`run of job ${show(jobId)}, attempt ${attempt}, was aborted (${reason}): ${detail}`);
  }
}

/**
 * Throw it from a handler: do not try again, the job is dead now with the reason `unrecoverable`.
 *
 * @example
 * if (answer.status === 404) throw new UnrecoverableError('there is no such file');
 */
export class UnrecoverableError extends GodwitError {
  readonly code = 'GODWIT_UNRECOVERABLE';

  constructor(message = 'the handler says that another attempt cannot help', options?: { cause?: unknown }) {
    super(message, options);
  }
}
