/**
 * The catalogue of everything that can go wrong, in one place: each class has a stable `code`, a sentence that names
 * the place and the value, and what to do. A test keeps the table in docs/reference/errors.md complete.
 */
export { GodwitError } from './errors/base.js';
export { show } from './errors/show.js';

// The call or the configuration is wrong.
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
  ScheduleNotFoundError,
  JobNotFoundError,
  WrongStateError,
  PartialBulkError,
  ResultNotKeptError,
  JobFailedError,
  WaitTimeoutError,
} from './errors/acts.js';

// Redis, or the way to it.
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

// Inside a running job.
export type { AbortReason } from './errors/run.js';
