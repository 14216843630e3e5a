import { GodwitError } from './base.js';
import { inQuotes } from './show.js';
import { messageOf, stackOf } from './thrown.js';

/**
 * Why the signal of a run was aborted: it took longer than its `timeout`, the `deadline` of its job has come, the application stops, its
 * worker lost its lease, or the job was cancelled.
 */
export type AbortReason = 'timeout' | 'deadline' | 'shutdown' | 'lease-lost' | 'cancelled';

/**
 * The reason of `job.signal` when it aborts, and the error of an attempt that took longer than its `timeout`.
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
    super(`run of job ${inQuotes(jobId)}, attempt ${attempt}, was aborted (${reason}): ${detail}`);
  }
}

/**
 * Throw it from a handler to end the job without a retry. The job is dead with reason `unrecoverable`.
 *
 * @example
 * if (answer.status === 404) throw new UnrecoverableError('there is no such file');
 */
export class UnrecoverableError extends GodwitError {
  readonly code = 'GODWIT_UNRECOVERABLE';
  protected static override readonly keepsText = true;

  constructor(message = 'the handler threw UnrecoverableError', options?: { cause?: unknown }) {
    super(message, options);
  }
}

/**
 * An instance of a request-scoped or durable processor, or one of its dependencies, could not be created for a job. The attempt has
 * failed as if its handler had thrown; `cause` is the error.
 *
 * @example
 * if (error instanceof ProcessorScopeError) console.error(error.className, error.cause);
 */
export class ProcessorScopeError extends GodwitError {
  readonly code = 'GODWIT_PROCESSOR_SCOPE';

  constructor(
    /** The processor. */
    readonly className: string,
    /** Name of the queue. */
    readonly queue: string,
    /** Id of the job. */
    readonly jobId: string,
    /** The failed step, as the beginning of a sentence. */
    what: string,
    cause: unknown,
  ) {
    super(`${what} for job ${inQuotes(jobId)} of queue '${queue}': ${messageOf(cause)}`, { cause });
    // The stack of the cause shows the class that threw; that of this error would not.
    const frames = stackOf(cause)?.match(/^ +at .*$/gm);
    if (frames) this.stack = [`${this.name}: ${this.message}`, ...frames].join('\n');
  }
}

const SENTENCES = {
  'next-not-called':
    'returned without calling next(), so the handler did not run; return next(), or throw an error',
  'next-called-twice':
    'called next() twice, but the handler ran only once; call it once, and use `attempts` for retries',
  'next-called-late': 'called next() after it had returned; the handler did not run: return next()',
} as const;

/**
 * A hook of `forRoot().wrap` did not call `next()` exactly once. The attempt has failed.
 *
 * @example
 * if (error instanceof WrapHookError) console.error(error.hook, error.fault);
 */
export class WrapHookError extends GodwitError {
  readonly code = 'GODWIT_WRAP_HOOK';

  constructor(
    /** The hook: `forRoot().wrap[1] (withTenant)`. */
    readonly hook: string,
    /** What it did. */
    readonly fault: keyof typeof SENTENCES,
    options?: { cause?: unknown },
  ) {
    super(`${hook} ${SENTENCES[fault]}`, options);
  }
}

/**
 * The return value of a method with `@HandleBatch` has no outcome for this job. The attempt has failed.
 *
 * @example
 * if (error instanceof BatchOutcomeError) console.error(`fix what ${error.handler} returns`);
 */
export class BatchOutcomeError extends GodwitError {
  readonly code = 'GODWIT_BATCH_OUTCOME';

  constructor(
    /** `Class.method` of the handler. */
    readonly handler: string,
    /** The mistake of the method, as a phrase. */
    how: string,
  ) {
    super(`${handler} ${how}`);
  }
}

/**
 * An interceptor ended without a value and without calling the handler. The attempt has failed.
 *
 * @example
 * if (error instanceof HandlerNotCalledError) console.error(`an interceptor of ${error.handler} ended early`);
 */
export class HandlerNotCalledError extends GodwitError {
  readonly code = 'GODWIT_HANDLER_NOT_CALLED';

  constructor(
    /** `Class.method` of the handler. */
    readonly handler: string,
    /** The mistake of the interceptor, as a phrase. */
    how = 'ended without a value and without calling the handler',
    options?: { cause?: unknown },
  ) {
    super(
      `an interceptor of ${handler} ${how}; ` +
        `return next.handle(), or a value that is the result of the job: of(value)`,
      options,
    );
  }
}
