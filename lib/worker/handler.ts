import type { AnyDefinition } from '../job/define-job.js';
import type { Job } from '../job/job.js';

/** Runs one job. It may return a value, a promise or an Observable, or throw. */
export type Handler = (job: Job<any>) => unknown;

/** What a pool calls for a job name. */
export interface HandlerEntry {
  readonly run: Handler;
  /** `Class.method`, for messages. */
  readonly label: string;
  /** With a schema, the data is checked and coerced by it before the call. */
  readonly definition?: AnyDefinition;
}

/** How a pool finds what to call; the other half, discovery, supplies it. */
export type FindHandler = (jobName: string) => HandlerEntry | undefined;
