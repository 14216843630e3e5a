// Compiled with each module resolution of TypeScript.
import { QueueModule, type Job } from 'godwit';
import { QueueHealthIndicator } from 'godwit/terminus';
import { QueueTesting } from 'godwit/testing';

export const queues: typeof QueueModule = QueueModule;
export const health: QueueHealthIndicator | undefined = undefined;
export const testing: QueueTesting | undefined = undefined;
export const name = (job: Job<{ to: string }>): string => job.data.to.toUpperCase();
// @ts-expect-error -- resolved, and not `any`
export const wrong = (job: Job<{ to: string }>): number => job.data.to;
// @ts-expect-error -- neither is this one
QueueTesting.nothing();
// @ts-expect-error -- nor this one
QueueHealthIndicator.nothing();
