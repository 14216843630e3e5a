/**
 * The catalogue of everything that can go wrong, in one place: each class has a stable `code`, a sentence that names
 * the place and the value, and what to do. The README's error table is kept complete by a test.
 */
import { GodwitError } from './errors/base.js';
import { show } from './errors/show.js';

export { GodwitError, show };
export { HandlerNotCalledError } from './errors/handlers.js';
export { NestConflictError } from './errors/nest.js';
export type { NestCopy } from './errors/nest.js';
export { ProcessorScopeError } from './errors/scopes.js';
export { ScheduleNotFoundError } from './errors/schedules.js';
export { WrapHookError } from './errors/wrap.js';

/** Whether a call that failed may have changed something in Redis: `no` is never wrong, `unknown` is honest. */
export type Applied = 'no' | 'unknown';

// ---------------------------------------------------------------- author errors: the call or the configuration is wrong

/** An option has a value that breaks its rule. Nothing was changed. */
export class InvalidOptionError extends GodwitError {
  readonly code = 'GODWIT_INVALID_OPTION';

  constructor(
    /** Where: `forRoot().shutdown.timeout`, `add().delay`. */
    readonly path: string,
    /** What was expected, as a phrase that follows "must be". */
    readonly rule: string,
    readonly received: unknown,
    /** Where "must be" does not say it well. */
    message = `${path} must be ${rule}, got ${show(received)}`,
  ) {
    super(message);
  }
}

/** A queue name outside `[A-Za-z0-9._-]{1,128}`. */
export class InvalidQueueNameError extends GodwitError {
  readonly code = 'GODWIT_INVALID_QUEUE_NAME';

  constructor(readonly received: unknown) {
    super(`a queue name is 1 to 128 characters out of A-Z a-z 0-9 . _ -, got ${show(received)}`);
  }
}

/** A job name that is empty, over 255 bytes, or holds control characters or lone surrogates. */
export class InvalidJobNameError extends GodwitError {
  readonly code = 'GODWIT_INVALID_JOB_NAME';

  constructor(
    readonly received: unknown,
    readonly why: string,
  ) {
    super(
      `a job name is 1 to 255 bytes of well-formed text without control characters: ${show(received)} ${why}`,
    );
  }
}

/** A job id that is empty, over 255 bytes, or holds control characters or lone surrogates. */
export class InvalidJobIdError extends GodwitError {
  readonly code = 'GODWIT_INVALID_JOB_ID';

  constructor(
    readonly received: unknown,
    readonly why: string,
  ) {
    super(
      `a job id is 1 to 255 bytes of well-formed text without control characters: ${show(received)} ${why}`,
    );
  }
}

/** The data of a job, or what a handler returned, cannot be written as JSON without losing something. */
export class InvalidPayloadError extends GodwitError {
  readonly code = 'GODWIT_INVALID_PAYLOAD';

  constructor(
    /** Where inside the data: `data.items[3].at`. */
    readonly path: string,
    /** What stands there: `a function`, `a BigInt`, `a circular reference`. */
    readonly found: string,
  ) {
    super(`${path} is ${found}, which JSON cannot hold; turn it into a string, a number or plain data first`);
  }
}

/** The encoded data is larger than `maxPayloadBytes`. */
export class PayloadTooLargeError extends GodwitError {
  readonly code = 'GODWIT_PAYLOAD_TOO_LARGE';

  constructor(
    readonly bytes: number,
    readonly maxPayloadBytes: number,
    what = 'the data of the job',
    /** Counting stopped early: `bytes` is a lower bound. */
    atLeast = false,
  ) {
    super(
      `${what} takes ${atLeast ? 'at least ' : ''}${bytes} bytes, more than maxPayloadBytes (${maxPayloadBytes}); ` +
        `store it elsewhere and put its address into the job, or raise maxPayloadBytes`,
    );
  }
}

/** One thing a schema did not accept. */
export interface PayloadIssue {
  readonly message: string;
  /** Dotted path inside the data, empty for the data itself. */
  readonly path: string;
}

/** The data does not match the schema given to `defineJob`. In a handler it is unrecoverable. */
export class SchemaViolationError extends GodwitError {
  readonly code = 'GODWIT_SCHEMA_VIOLATION';

  constructor(
    readonly queue: string,
    readonly jobName: string,
    readonly issues: readonly PayloadIssue[],
  ) {
    super(
      `the data of job '${jobName}' in queue '${queue}' does not match its schema: ` +
        issues.map((issue) => (issue.path ? `${issue.path}: ${issue.message}` : issue.message)).join('; '),
    );
  }
}

/** A queue that was never registered. */
export class UnknownQueueError extends GodwitError {
  readonly code = 'GODWIT_UNKNOWN_QUEUE';

  constructor(
    readonly queue: string,
    readonly known: readonly string[],
  ) {
    super(
      `queue '${queue}' is not registered; add QueueModule.registerQueue({ name: '${queue}' }) to a module` +
        (known.length ? ` (registered: ${known.join(', ')})` : ' (no queue is registered)'),
    );
  }
}

/** One queue name was registered twice with options that differ. */
export class QueueConflictError extends GodwitError {
  readonly code = 'GODWIT_QUEUE_CONFLICT';

  constructor(
    readonly queue: string,
    readonly first: string,
    readonly second: string,
  ) {
    super(`queue '${queue}' is registered twice with different options: ${first} and ${second}; keep one`);
  }
}

/** `registerQueue` or a processor is used, but `QueueModule.forRoot` is not imported anywhere. */
export class MissingRootError extends GodwitError {
  readonly code = 'GODWIT_MISSING_ROOT';

  constructor() {
    super('QueueModule.forRoot() or forRootAsync() is missing; import one of them once, in the root module');
  }
}

/** Everything that is wrong with the configuration, found at bootstrap and said at once. */
export class BootstrapError extends GodwitError {
  readonly code = 'GODWIT_BOOTSTRAP';

  constructor(readonly faults: readonly string[]) {
    super(
      `the queues cannot start, ${faults.length === 1 ? '1 fault' : `${faults.length} faults`}:\n${faults.map((fault) => ` - ${fault}`).join('\n')}`,
    );
  }
}

/** There is no job with this id (any more). */
export class JobNotFoundError extends GodwitError {
  readonly code = 'GODWIT_JOB_NOT_FOUND';

  constructor(
    readonly queue: string,
    readonly jobId: string,
  ) {
    super(
      `queue '${queue}' has no job ${show(jobId)}; completed jobs are kept only with the option retention`,
    );
  }
}

/** The act does not fit the state the job or queue is in. Nothing was changed. */
export class WrongStateError extends GodwitError {
  readonly code = 'GODWIT_WRONG_STATE';

  constructor(
    readonly queue: string,
    readonly what: string,
    readonly state: string,
    advice: string,
  ) {
    super(`${what} in queue '${queue}' is ${state}; ${advice}`);
  }
}

// ---------------------------------------------------------------------------------- store errors: Redis, or the way to it

/** Redis did not answer in time, or the connection broke. `applied` says whether the call may have had its effect. */
export class RedisUnavailableError extends GodwitError {
  readonly code = 'GODWIT_REDIS_UNAVAILABLE';

  constructor(
    readonly verb: string,
    readonly applied: Applied,
    why: string,
    options?: { cause?: unknown },
  ) {
    super(
      `${verb}: ${why}; ${applied === 'no' ? 'nothing was changed, the call can be made again' : 'whether it took effect is unknown, make it again with the same job id'}`,
      options,
    );
  }
}

/** Redis answered with an error: out of memory, a wrong type, no permission. Almost always before anything was written. */
export class RedisRefusedError extends GodwitError {
  readonly code = 'GODWIT_REDIS_REFUSED';

  constructor(
    readonly verb: string,
    /** First word of the reply: `OOM`, `WRONGTYPE`, `NOPERM`, `MISCONF`, `READONLY`. */
    readonly reply: string,
    message: string,
    options?: { cause?: unknown },
    readonly applied: Applied = 'no',
    advice = adviceFor(reply),
  ) {
    const effect = applied === 'no' ? 'nothing was changed' : 'whether it took effect is unknown';
    super(`${verb}: Redis refused, ${effect}: ${message}${advice}`, options);
  }
}

/**
 * The job is stored, but fewer replicas than its `durability` asks for confirmed that in time. It will run unless the
 * primary is lost before a replica has it.
 */
export class NotReplicatedError extends GodwitError {
  readonly code = 'GODWIT_NOT_REPLICATED';
  /** Whether the job survives the loss of the primary. */
  readonly applied: Applied = 'unknown';

  constructor(
    readonly queue: string,
    /** Replicas that had to confirm. */
    readonly asked: number,
    /** Replicas that did, at the last attempt. */
    readonly answered: number,
    /** Of this attempt and those before it, ms. */
    readonly waitedMs: number,
  ) {
    super(
      `add to queue '${queue}': stored, but ${answered} of ${asked} replicas confirmed it within ${waitedMs} ms; ` +
        'whether it survives the loss of the primary is unknown, make it again with the same job id',
    );
  }
}

/** The server is not Redis 7.0+ or Valkey 7.2+. */
export class UnsupportedRedisError extends GodwitError {
  readonly code = 'GODWIT_UNSUPPORTED_REDIS';

  constructor(
    readonly server: string,
    readonly version: string,
  ) {
    super(
      `${server} ${version} is too old: Redis 7.0 or Valkey 7.2 is needed, for scripts that run at maxmemory`,
    );
  }
}

/** A bulk of more than one chunk failed on the way: the first chunks are in, the rest is not. */
export class PartialBulkError<Result = unknown> extends GodwitError {
  readonly code = 'GODWIT_PARTIAL_BULK';

  constructor(
    /** What became of the jobs that are in, in the order given. */
    readonly results: readonly Result[],
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

/** The queue system is stopped or was never started. */
export class NotRunningError extends GodwitError {
  readonly code = 'GODWIT_NOT_RUNNING';
  readonly applied: Applied = 'no';

  constructor(readonly verb: string) {
    super(`${verb}: the queues are stopped; nothing was changed`);
  }
}

// ------------------------------------------------------------------------------------- waiting for a job (addAndWait)

/** The awaited job died. `cause` holds the name, message and stack of the handler's error as plain data. */
export class JobFailedError extends GodwitError {
  readonly code = 'GODWIT_JOB_FAILED';

  constructor(
    readonly queue: string,
    readonly jobId: string,
    readonly reason: string,
    message: string,
    options?: { cause?: unknown },
  ) {
    super(`job ${show(jobId)} in queue '${queue}' died (${reason}): ${message}`, options);
  }
}

/** The awaited job did not end in time; it goes on. */
export class WaitTimeoutError extends GodwitError {
  readonly code = 'GODWIT_WAIT_TIMEOUT';

  constructor(
    readonly queue: string,
    readonly jobId: string,
    readonly waitedMs: number,
  ) {
    super(
      `job ${show(jobId)} in queue '${queue}' did not end within ${waitedMs} ms; it goes on and can be looked up by its id`,
    );
  }
}

// ------------------------------------------------------------------------------------------------ inside a running job

/** Why the signal of a run was aborted. */
export type AbortReason = 'timeout' | 'shutdown' | 'lease-lost' | 'cancelled';

/** The reason of `job.signal` when it is aborted, and the error of an attempt that ran out of time. */
export class JobAbortedError extends GodwitError {
  readonly code = 'GODWIT_JOB_ABORTED';

  constructor(
    readonly reason: AbortReason,
    readonly jobId: string,
    readonly attempt: number,
    detail: string,
  ) {
    super(`run of job ${show(jobId)}, attempt ${attempt}, was aborted (${reason}): ${detail}`);
  }
}

/** Throw it from a handler: do not try again, the job is dead now with the reason `unrecoverable`. */
export class UnrecoverableError extends GodwitError {
  readonly code = 'GODWIT_UNRECOVERABLE';

  constructor(message = 'the handler says that another attempt cannot help', options?: { cause?: unknown }) {
    super(message, options);
  }
}

function adviceFor(reply: string): string {
  switch (reply) {
    case 'OOM':
      return ' (raise maxmemory or let the workers drain the backlog, which they can at maxmemory)';
    case 'WRONGTYPE':
      return ' (another program uses one of our keys; choose another prefix)';
    case 'NOPERM':
    case 'NOAUTH':
    case 'WRONGPASS':
      return ' (check the user, password and ACL of the connection)';
    case 'MOVED':
    case 'CROSSSLOT':
      return ' (this Redis is a node of a cluster: name its nodes in the connection, as { cluster: [...] })';
    case 'MISCONF':
      return ' (Redis cannot write to its disk)';
    default:
      return '';
  }
}
