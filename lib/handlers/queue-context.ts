import type { ArgumentsHost, ExecutionContext } from '@nestjs/common';
import { InvalidOptionError } from '../errors.js';
import type { Job } from '../job/job.js';

/** The result of `getType()` of an execution context of a job. */
export const QUEUE_CONTEXT = 'queue';

/**
 * The execution context of a job, for guards, interceptors, filters and parameter decorators. It is also the second argument of a
 * handler.
 *
 * @example
 * canActivate(context: ExecutionContext) {
 *   const { job, attempt } = QueueExecutionContext.of<{ tenant: string }>(context);
 *   return attempt === 1 || this.tenants.isOpen(job.data.tenant);
 * }
 */
export class QueueExecutionContext<Data = unknown> {
  /** @internal */
  constructor(
    /** The job that runs. */
    readonly job: Job<Data>,
    /** `Class.method` of the handler. */
    readonly handler: string,
  ) {}

  /**
   * The context of the job that runs.
   *
   * @throws {InvalidOptionError} for the context of a request or a message; check `isQueueContext` first if both can come.
   */
  static of<Data = unknown>(context: ArgumentsHost): QueueExecutionContext<Data> {
    if (!isQueueContext(context)) {
      throw new InvalidOptionError(
        'QueueExecutionContext.of()',
        `the context of a job, whose getType() is '${QUEUE_CONTEXT}'; ask isQueueContext(context) first`,
        context,
      );
    }
    return context.getArgByIndex(1);
  }

  /** Name of the job's queue. */
  get queue(): string {
    return this.job.queue;
  }

  /** The number of the attempt, from 1. */
  get attempt(): number {
    return this.job.attempt;
  }

  /** Aborts if the run should end early. */
  get signal(): AbortSignal {
    return this.job.signal;
  }
}

/**
 * Whether this is the context of a job, and not of a request or a message.
 *
 * @example
 * canActivate(context: ExecutionContext) {
 *   return isQueueContext(context) || this.checkHeaders(context.switchToHttp().getRequest());
 * }
 */
export function isQueueContext(context: ArgumentsHost | ExecutionContext): boolean {
  return context.getType<string>() === QUEUE_CONTEXT;
}
