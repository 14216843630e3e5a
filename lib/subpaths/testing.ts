// `godwit/testing`: queues in tests, without Redis.
export { createTestJob } from './testing/create-test-job.js';
export type { TestJob, TestJobOptions } from './testing/create-test-job.js';
export { QueueTestingError } from './testing/test-bench.js';
export type { FilteredJob } from './testing/manual-workers.js';
export { QueueTesting } from './testing/queue-testing.js';
export type { AdvanceOptions } from './testing/queue-testing.js';
export { QueueTestingModule } from './testing/queue-testing.module.js';
export type { AddedJob, JobRun, RunOutcome } from './testing/records.js';
export type { RunOptions } from './testing/run-one.js';
export type { QueueTestingOptions } from './testing/test-bench.js';
export { TestQueue } from './testing/test-queue.js';
export type { DrainOptions, JobFilter } from './testing/test-queue.js';
