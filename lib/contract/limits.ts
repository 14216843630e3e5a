import type { ResolvedQueueOptions } from '../options/module-options.js';
import type { QueueLimits } from './engine.js';

/** The limits of an engine for a queue with these options. */
export function limitsOf({
  events,
  progress,
  dead,
  completed,
  lease,
  logs,
  policy,
}: ResolvedQueueOptions): QueueLimits {
  return {
    leaseMs: lease.leaseMs,
    logsMax: logs.max,
    maxEvents: events.max,
    eventsAgeMs: events.ageMs,
    eventsMaxBytes: events.maxBytes,
    progressMaxBytes: progress.maxBytes,
    deadMax: dead.max,
    deadMaxBytes: dead.maxBytes,
    deadAgeMs: dead.ageMs,
    completedMax: completed.max,
    cancelledMs: policy.cancelledRetentionMs,
  };
}
