import { GodwitError } from './base.js';
import { show } from './show.js';

/**
 * There is no job with this id (any more).
 *
 * @example
 * if (error instanceof JobNotFoundError) throw new NotFoundException(`no job ${error.jobId}`);
 */
export class JobNotFoundError extends GodwitError {
  readonly code = 'GODWIT_JOB_NOT_FOUND';

  constructor(
    /** Name of the queue. */
    readonly queue: string,
    /** Id of the job. */
    readonly jobId: string,
  ) {
    super(
      `queue '${queue}' has no job ${show(jobId)}; completed jobs are kept only with the option retention`,
    );
  }
}

/**
 * The act does not fit the state the job or queue is in. Nothing was changed.
 *
 * @example
 * if (error instanceof WrongStateError) throw new ConflictException(`${error.what} is ${error.state}`);
 */
export class WrongStateError extends GodwitError {
  readonly code = 'GODWIT_WRONG_STATE';

  constructor(
    /** Name of the queue. */
    readonly queue: string,
    /** What the act was for: `job "a"`, `a job`, `schedule "daily"`. */
    readonly what: string,
    /** What it is: `active`, `not delayed`. */
    readonly state: string,
    advice: string,
  ) {
    super(`${what} in queue '${queue}' is ${state}; ${advice}`);
  }
}

/**
 * A bulk of more than one chunk failed on the way: the first chunks are in, the rest is not.
 *
 * @example
 * if (error instanceof PartialBulkError) await queue.addBulk(jobs.slice(error.results.length));
 */
export class PartialBulkError<Result = unknown> extends GodwitError {
  readonly code = 'GODWIT_PARTIAL_BULK';

  constructor(
    /** What became of the jobs that are in, in the order given. */
    readonly results: readonly Result[],
    /** Number of jobs that were to be added. */
    readonly asked: number,
    cause: unknown,
  ) {
    super(
      `addBulk stored the first ${results.length} of ${asked} jobs, then failed: ${(cause as Error).message}; ` +
        'add the others again, with ids of your own where one may be in already',
      { cause },
    );
  }
}

/**
 * The awaited job died, was removed or was cancelled. `cause` holds the name, message and stack of the handler's error as plain
 * data.
 *
 * @example
 * if (error instanceof JobFailedError) console.error(`${error.jobId} died of ${error.reason}`, error.cause);
 */
export class JobFailedError extends GodwitError {
  readonly code = 'GODWIT_JOB_FAILED';

  constructor(
    /** Name of the queue. */
    readonly queue: string,
    /** Id of the job. */
    readonly jobId: string,
    /** A `DeadReason`, `removed` or `cancelled`. */
    readonly reason: string,
    message: string,
    options?: { cause?: unknown },
  ) {
    super(`job ${show(jobId)} in queue '${queue}' died (${reason}): ${message}`, options);
  }
}

/**
 * The awaited job completed, but what its handler returned is not stored: it was added before without `retention`, its result
 * is larger than `maxPayloadBytes` or cannot be written as JSON, or the queue keeps fewer completed jobs (`completed.max`).
 *
 * @example
 * if (error instanceof ResultNotKeptError) console.warn(`job ${error.jobId} is done: ${error.why}`);
 */
export class ResultNotKeptError extends GodwitError {
  readonly code = 'GODWIT_RESULT_NOT_KEPT';

  constructor(
    /** Name of the queue. */
    readonly queue: string,
    /** Id of the job. */
    readonly jobId: string,
    /** Why there is no result. */
    readonly why: string,
  ) {
    super(`job ${show(jobId)} in queue '${queue}' completed, but its result is not stored: ${why}`);
  }
}

/**
 * The awaited job did not end in time. It was not stopped: unless someone removed it, it will still run.
 *
 * @example
 * if (error instanceof WaitTimeoutError) throw new RequestTimeoutException(`job ${error.jobId} takes longer`);
 */
export class WaitTimeoutError extends GodwitError {
  readonly code = 'GODWIT_WAIT_TIMEOUT';

  constructor(
    /** Name of the queue. */
    readonly queue: string,
    /** Id of the job. */
    readonly jobId: string,
    /** How long it was waited for, ms. */
    readonly waitedMs: number,
  ) {
    super(
      `job ${show(jobId)} in queue '${queue}' did not end within ${waitedMs} ms; it was not stopped, look it up by its id`,
    );
  }
}

/**
 * There is no schedule with this id (any more).
 *
 * @example
 * if (error instanceof ScheduleNotFoundError) throw new NotFoundException(`no schedule ${error.scheduleId}`);
 */
export class ScheduleNotFoundError extends GodwitError {
  readonly code = 'GODWIT_SCHEDULE_NOT_FOUND';

  constructor(
    /** Name of the queue. */
    readonly queue: string,
    /** Id of the schedule. */
    readonly scheduleId: string,
  ) {
    super(`queue '${queue}' has no schedule ${show(scheduleId)}; make it with schedules.upsert() first`);
  }
}
