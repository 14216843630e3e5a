import type { Job } from '../job/job.js';

/** Runs one job. It may return a value, a promise or an Observable, or throw. */
export type Handler = (job: Job<any>) => unknown;

/** How a pool finds what to call; the other half, discovery, supplies it. */
export type FindHandler = (jobName: string) => Handler | undefined;
