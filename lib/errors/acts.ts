import { GodwitError } from './base.js';
import { inQuotes } from './show.js';
import { messageOf } from './thrown.js';

/**
 * There is no job with this id, or it no longer exists.
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
      `queue '${queue}' has no job ${inQuotes(jobId)}; completed jobs are kept only with the option retention`,
    );
  }
}

/**
 * An order was given to processes, but no living process fits, or only processes of a version that takes no orders.
 *
 * @example
 * if (error instanceof ProcessNotFoundError) throw new NotFoundException(error.message);
 */
export class ProcessNotFoundError extends GodwitError {
  readonly code = 'GODWIT_PROCESS_NOT_FOUND';

  constructor(
    /** The process, host or queue that the order named. */
    readonly wanted: {
      /** Id of the process, or `host:pid`. */
      readonly process?: string | undefined;
      /** Name of the machine. */
      readonly host?: string | undefined;
      /** Name of the queue. */
      readonly queue?: string | undefined;
    },
    isOlder: boolean,
  ) {
    const { process, host, queue } = wanted;
    const named = [
      ...(process === undefined ? [] : [`process '${process}'`]),
      ...(host === undefined ? [] : [`host '${host}'`]),
      ...(queue === undefined ? [] : [`queue '${queue}'`]),
    ].join(', ');
    super(
      isOlder
        ? `${named}: the process runs a version of godwit that takes no orders; update it, or stop it`
        : `${named}: no such worker process is alive; inspector.workers() and godwit workers list them`,
    );
  }
}

/**
 * The call does not fit the state of the job or queue. Nothing was changed.
 *
 * @example
 * if (error instanceof WrongStateError) throw new ConflictException(`${error.what} is ${error.state}`);
 */
export class WrongStateError extends GodwitError {
  readonly code = 'GODWIT_WRONG_STATE';

  constructor(
    /** Name of the queue. */
    readonly queue: string,
    /** The subject of the call: `job "a"`, `a job`, `schedule "daily"`. */
    readonly what: string,
    /** Its state: `active`, `not delayed`. */
    readonly state: string,
    advice: string,
  ) {
    super(`${what} in queue '${queue}' is ${state}; ${advice}`);
  }
}

/**
 * Another job has the unique key: `add` with `unique.onDuplicate: 'error'` added nothing, or an ended job was not run again.
 *
 * @example
 * if (error instanceof DuplicateJobError) throw new ConflictException(`already queued as ${error.jobId}`);
 */
export class DuplicateJobError extends GodwitError {
  readonly code = 'GODWIT_DUPLICATE_JOB';

  constructor(
    /** Name of the queue. */
    readonly queue: string,
    /** Id of the job that has the key. */
    readonly jobId: string,
    /** State of that job; undefined if the job is gone but its key is still taken. */
    readonly state: string | undefined,
    advice = "wait for its end, or let onDuplicate be 'skip', 'replace' or 'keepLast'",
  ) {
    super(
      `job ${inQuotes(jobId)} of queue '${queue}' (${state ?? 'gone'}) has the key of this job; ${advice}`,
    );
  }
}

/**
 * A later chunk of a bulk failed: the chunks before it are stored, the others are not.
 *
 * @example
 * if (error instanceof PartialBulkError) await queue.addBulk(jobs.slice(error.results.length));
 */
export class PartialBulkError<Result = unknown> extends GodwitError {
  readonly code = 'GODWIT_PARTIAL_BULK';

  constructor(
    /** Results of the jobs that are stored, in the order of the list. */
    readonly results: readonly Result[],
    /** Number of jobs in the list. */
    readonly asked: number,
    cause: unknown,
  ) {
    super(
      `addBulk stored the first ${results.length} of ${asked} jobs, then failed: ${messageOf(cause)}; ` +
        'add the others again, with your own ids if some may be stored already',
      { cause },
    );
  }
}

/**
 * The job that `addAndWait` added died, was removed or was cancelled. `cause` has name, message and stack of the handler's error,
 * as plain data.
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
    const how = reason === 'removed' || reason === 'cancelled' ? `was ${reason}` : `died (${reason})`;
    super(`job ${inQuotes(jobId)} in queue '${queue}' ${how}: ${message}`, options);
  }
}

/**
 * The job that `addAndWait` added completed, but its result is not stored. Either the job was added before without `retention`,
 * or the result is larger than `maxPayloadBytes` or cannot be written as JSON, or the queue keeps fewer completed jobs
 * (`completed.max`).
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
    super(`job ${inQuotes(jobId)} in queue '${queue}' completed, but its result is not stored: ${why}`);
  }
}

/**
 * The job that `addAndWait` added did not end in time. It was not stopped: unless someone removed it, it will still run.
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
    /** How long `addAndWait` waited, in ms. */
    readonly waitedMs: number,
  ) {
    super(
      `job ${inQuotes(jobId)} in queue '${queue}' did not end within ${waitedMs} ms; it was not stopped, look it up by its id`,
    );
  }
}

/**
 * There is no schedule with this id, or it no longer exists.
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
    super(
      `queue '${queue}' has no schedule ${inQuotes(scheduleId)}; create it with schedules.upsert() first`,
    );
  }
}

/**
 * There is no act on many jobs with this id in the queue. Its record is removed 7 days after the last one of the prefix, or when 100
 * later ones have ended.
 *
 * @example
 * if (error instanceof BulkActNotFoundError) console.log(`the act ${error.bulkActId} is forgotten`);
 */
export class BulkActNotFoundError extends GodwitError {
  readonly code = 'GODWIT_BULK_ACT_NOT_FOUND';

  constructor(
    /** Name of the queue. */
    readonly queue: string,
    /** Id of the act. */
    readonly bulkActId: string,
  ) {
    super(
      `queue '${queue}' has no bulk act ${inQuotes(bulkActId)}; bulkActs.list() lists those that are kept`,
    );
  }
}
