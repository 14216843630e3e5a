/**
 * All errors of the package. Each class has a stable `code` and a message that names the place and the value and says what to do.
 * A test keeps the table in docs/reference/errors.md complete.
 */
export { GodwitError } from './errors/base.js';

// Wrong calls and wrong configuration.
export {
  InvalidOptionError,
  InvalidQueueNameError,
  InvalidJobNameError,
  InvalidJobIdError,
  InvalidPayloadError,
  PayloadTooLargeError,
} from './errors/options.js';
export {
  UnknownQueueError,
  QueueConflictError,
  MissingRootError,
  BootstrapError,
  NestConflictError,
} from './errors/setup.js';
export { SchemaViolationError } from './errors/options.js';
export type { PayloadIssue, SchemaSide } from './errors/options.js';
export {
  BatchOutcomeError,
  HandlerNotCalledError,
  ProcessorScopeError,
  WrapHookError,
  JobAbortedError,
  UnrecoverableError,
} from './errors/run.js';
export type { NestCopy } from './errors/setup.js';
export {
  DuplicateJobError,
  BulkActNotFoundError,
  ScheduleNotFoundError,
  JobNotFoundError,
  WrongStateError,
  PartialBulkError,
  ProcessNotFoundError,
  ResultNotKeptError,
  JobFailedError,
  WaitTimeoutError,
} from './errors/acts.js';

// Redis, or the connection to it, fails.
export {
  RedisUnavailableError,
  QueueFormatError,
  RedisRefusedError,
  NotReplicatedError,
  UnsupportedRedisError,
  EnqueueBufferFullError,
  GroupFullError,
  QueueFullError,
  NotRunningError,
} from './errors/store.js';
export type { Applied } from './errors/store.js';

// Errors of a running job.
export type { AbortReason } from './errors/run.js';
