// Modules, decorators, the runtime.
export { QueueModule } from './module/queue.module.js';
export type {
  ConfigKeyOption,
  NamedModuleAsyncOptions,
  NamedModuleOptionsFactory,
  QueueAsyncOptions,
  QueueModuleAsyncOptions,
  QueueModuleOptionsFactory,
  QueueOptionsFactory,
  VisibilityOptions,
} from './module/queue.module.js';
export type { DispatcherAsyncOptions } from './module/dispatcher.registry.js';
export { QueueRuntime } from './module/queue.runtime.js';
export type { JobHandlers, QueueWorker, WorkOptions } from './module/run-time-worker.js';
export type { RuntimeState } from './module/queue.runtime.js';
export { Handle } from './decorators/handle.decorator.js';
export type { HandleDecorator } from './decorators/handle.decorator.js';
export { HandleBatch } from './decorators/handle-batch.decorator.js';
export type { HandleBatchDecorator } from './decorators/handle-batch.decorator.js';
export type { JobBatch } from './worker/batches.js';
export { InjectDispatcher, InjectQueue } from './decorators/inject-queue.decorator.js';
export { getDispatcherToken, getQueueToken, JOB_REF, QUEUE_ENGINE } from './decorators/metadata.js';
export { OnJob } from './decorators/on-job.decorator.js';
export type { OnJobDecorator, OnJobOptions } from './decorators/on-job.decorator.js';
export type { JobEvent, JobEventOf, JobEventType, ListenedJob } from './worker/job-listeners.js';
export { OnQueueEvent } from './decorators/on-queue-event.decorator.js';
export type { OnQueueEventDecorator, OnQueueEventOptions } from './decorators/on-queue-event.decorator.js';
export { Processor } from './decorators/processor.decorator.js';
export type { ProcessorQueue, ProcessorQueues } from './decorators/processor.decorator.js';
export { Schedule } from './decorators/schedule.decorator.js';
export type { ScheduledJob, ScheduleOptions } from './decorators/schedule.decorator.js';
export { Attempt, JobData, JobId, JobRef, Signal } from './decorators/job-params.decorator.js';
export type { JobDataOptions, JobDataPipe } from './decorators/job-params.decorator.js';
export { isQueueContext, QueueExecutionContext } from './handlers/queue-context.js';

// Options.
export type {
  ClusterConnection,
  ClusterNode,
  ConnectionOption,
  MemoryConnection,
  RedisConnection,
} from './options/connection.js';
export type {
  GroupChange,
  LimitChange,
  QueueLimitChange,
  SharedLimitChange,
} from './options/limit-changes.js';
export type {
  GroupOptions,
  SharedLimitOptions,
  NameLimitOptions,
  BreakerOptions,
  RetryBudgetOptions,
  LimitOptions,
  QueueLimitOptions,
  AgingOptions,
  RateOptions,
} from './options/limit-options.js';
export type { DispatcherOptions } from './options/dispatcher-options.js';
export type { DurabilityOption, ReplicationOptions } from './options/job-options.js';
export type { MaxWaitingOptions } from './options/bounds.js';
export type {
  AggregateOptions,
  DebounceOptions,
  ThrottleOptions,
  UniqueOptions,
} from './options/unique-options.js';
export type { HandlerPolicy, JobDefaults, JobOptions, RetentionOptions } from './options/job-options.js';
export type {
  CronTiming,
  EveryTiming,
  Missed,
  Overlap,
  ScheduledJobOptions,
  ScheduleLimits,
  ScheduleRule,
  ScheduleTemplate,
} from './options/schedule-options.js';
export type {
  CompletedOptions,
  DeadOptions,
  ProgressOptions,
  EventsOption,
  UnknownJobRule,
  QueueModuleOptions,
  QueueOptions,
  ScheduleOwnerOptions,
  UpkeepOptions,
} from './options/module-options.js';
export type {
  BatchOptions,
  EnhancerKind,
  EnhancerOptions,
  LeaseOptions,
  LogOptions,
  LogsOptions,
  QueueLogOptions,
  ProcessorOptions,
  ShutdownOptions,
  InjectedToken,
  WorkerOptions,
  WrapHook,
  WrapOption,
} from './options/worker-options.js';

export type {
  MeteredQueue,
  MeteredWork,
  QueueTelemetry,
  RunTrace,
  TelemetrySource,
  TracedAdd,
  TracedEnd,
  TracedJob,
  TracedRun,
} from './options/telemetry.js';
export type { NamedModuleOptions } from './options/named-options.js';

// Jobs.
export { defineJob } from './job/define-job.js';
export type { AnyDefinition, InputOf, JobDefinition, JobOf, OutputOf, ResultOf } from './job/define-job.js';
export type { DataIn, DefinitionIn, InputIn, JobIn, NameIn, ResultIn } from './job/queue-jobs.js';
export { RateLimited, Snooze } from './job/job.js';
export type { RateLimitScope } from './job/job.js';
export type {
  BackoffFunction,
  BackoffOption,
  ExponentialBackoff,
  FixedBackoff,
  NamedBackoff,
} from './job/backoff.js';
export type { Duration } from './job/duration.js';
export type { HeadersContext, HeadersHook, JobHeaders } from './job/headers.js';
export type { Job } from './job/job.js';
export type {
  AuditReport,
  Repair,
  RepairAct,
  RepairReport,
  Violation,
  ViolationKind,
} from './job/audit-report.js';
export type { DayStats, NameStats, QueueStats, StatsCounts } from './contract/stats.js';
export type { JobCounts, JobState } from './job/job-state.js';
export { DEAD_REASONS } from './job/outcome.js';
export type { DeadReason, FailureRecord } from './job/outcome.js';
export type { LogLine } from './job/job-log.js';

// Adding jobs and reading their state.
export { QueueGroup, QueueLimits, SharedLimit } from './producer/queue-limits.js';
export type { GroupPage } from './producer/queue-limits.js';
export type { BreakerInfo, HoldReason, LimitInfo, RateInfo, RetryBudgetInfo } from './producer/limit-info.js';
export { QueueProducer } from './producer/queue-producer.js';
export { Queue } from './producer/queue.js';
export type {
  AddResult,
  BulkItem,
  BulkJob,
  BulkJobIn,
  DetailedWaitOptions,
  WaitAnswer,
  WaitOptions,
} from './producer/queue.js';
export type { PayloadMode } from './job/payload.js';
export type { DataMatch } from './contract/admin-verbs.js';
export type { BulkPace, CancelFilter, JobFilter } from './producer/bulk-acts.js';
export type { BulkAct, BulkKind } from './contract/bulk-act-verbs.js';
export { BulkActs } from './producer/bulk-act-runs.js';
export type { BulkActFilter, BulkActOptions } from './producer/bulk-act-runs.js';
export { DeadJobs } from './producer/dead-jobs.js';
export type { DeadFilter, DeadJob, DeadJobIn, DeadListOptions, DeadPage } from './producer/dead-jobs.js';
export type { JobChanges, UpdateResult } from './producer/job-changes.js';
export type { CountOptions, GroupedCounts, JobListOptions, JobPage } from './producer/job-list.js';
export type { FailedAttempt, JobSnapshot, SnapshotIn } from './producer/job-snapshot.js';
export { Schedules } from './producer/schedules.js';
export type { TemplateIn, ScheduleRun, UpsertResult, ScheduleSnapshot } from './producer/schedules.js';

// Inspecting workers and queues.
export { QueueInspector } from './inspect/queue-inspector.js';
export { ProcessOrders, type OrderedProcess, type ProcessOrderOptions } from './inspect/process-orders.js';
export type {
  HostCounts,
  QueueSeries,
  SeriesCounts,
  SeriesOptions,
  SeriesPoint,
  TimeSummary,
} from './inspect/queue-series.js';
export type { QueueAction } from './contract/actions.js';
export type { ActionPage, ActionsOptions } from './inspect/queue-actions.js';
export type { QueueInfo } from './inspect/queue-inspector.js';
export type {
  RunningJobInfo,
  SilentWorkerInfo,
  WorkerInfo,
  WorkerPoolInfo,
  WorkersOptions,
} from './inspect/queue-inspector.js';

// Events.
export { QueueEvents, ofType } from './events/queue-events.js';
export type { SinceOption } from './events/queue-events.js';
export type { EventsStatus } from './events/event-status.js';
export type { CancelAnswer } from './contract/admin-verbs.js';
export { EVENT_TYPES } from './contract/engine.js';
export type { EventType, ServerWarning } from './contract/engine.js';
export type {
  ActiveEvent,
  AddedEvent,
  CancelledEvent,
  UpdatedEvent,
  CompletedEvent,
  DeadEvent,
  DelayedEvent,
  EndEvent,
  EventOf,
  PausedEvent,
  BreakerOpenedEvent,
  BreakerClosedEvent,
  ProgressEvent,
  QueueEvent,
  ReleasedEvent,
  RemovedEvent,
  PublishedEvent,
  ResumedEvent,
  RetryingEvent,
  StalledEvent,
} from './events/queue-event.js';
export type { DrainedEvent } from './events/drained.js';

// Dispatchers, for queues of other programs.
export { Dispatcher } from './dispatcher/dispatcher.js';
export type { DispatchedBatch, DispatcherStatus } from './dispatcher/dispatcher.js';

// Errors.
export * from './errors.js';
