import type { AuditReport, RepairReport } from '../job/audit-report.js';
import type { JobCounts, JobState } from '../job/job-state.js';
import type { QueueStats } from './stats.js';
import type { FailureRecord } from '../job/outcome.js';
import type { DeadMatch, Place } from './upkeep-verbs.js';
import type { QueueRef } from './queue-ref.js';

/** Verbs for people and dashboards: look up, change and repair queues. No job needs them to run. */
export interface AdminVerbs {
  /** Everything about one job, or null. */
  get(queue: QueueRef, id: string): Promise<StoredJob | null>;
  /** Jobs of one state in their order, or in the opposite one. */
  jobs(queue: QueueRef, call: JobsCall): Promise<JobsAnswer>;
  counts(queue: QueueRef): Promise<JobCounts & { paused: boolean }>;
  /** For how long the oldest waiting job could have run, among those that have not failed before; null if there is none. */
  oldestWaitingMs(queue: QueueRef): Promise<number | null>;
  remove(queue: QueueRef, id: string): Promise<'removed' | 'not-found' | 'active'>;
  /** Ends a job that has not started. A running job is marked: unless it completes, it ends as cancelled whatever its outcome is. */
  cancel(queue: QueueRef, id: string, reason: string): Promise<CancelAnswer>;
  /** Why a job that is gone was cancelled, and how long ago. Kept for a minute, for at most `RULES.cancelledMax` jobs. */
  cancelled(queue: QueueRef, id: string): Promise<{ readonly reason: string; readonly agoMs: number } | null>;
  /** Counters of today and the days before, `days` in all. */
  stats(queue: QueueRef, days: number): Promise<QueueStats>;
  /** Runs a delayed job now. */
  promoteNow(queue: QueueRef, id: string): Promise<'promoted' | 'not-found' | 'not-delayed'>;
  pause(queue: QueueRef): Promise<boolean>;
  resume(queue: QueueRef): Promise<boolean>;
  /** Removes the queue with everything in it; refuses while jobs are active unless forced. */
  obliterate(queue: QueueRef, force: boolean): Promise<'obliterated' | 'active'>;

  /** Finds every job that is not in exactly one place with a body, or runs without a lease. Changes nothing, and works in short steps. */
  audit(queue: QueueRef): Promise<AuditReport>;
  /** Fixes what `audit` finds; a job that has lost more than `maxStalls` workers is dead. */
  repair(queue: QueueRef, maxStalls: number): Promise<RepairReport>;
}

/**
 * `cancelled`: the job had not started and is gone. `signalled`: it runs, and will end when its run does. `not-found`: there is no such job,
 * or it has ended.
 */
export type CancelAnswer = 'cancelled' | 'signalled' | 'not-found';

/** Reasons and ages are of dead jobs alone. */
export interface JobsCall extends DeadMatch {
  readonly state: JobState;
  /** A text in the id, the name or the last error, in any case. @default any job */
  readonly contains?: string | undefined;
  readonly after: JobsPlace | null;
  readonly limit: number;
  /** @default false */
  readonly backward?: boolean | undefined;
  /** Without data, progress and log, and without a result of more than some KiB. @default false */
  readonly brief?: boolean | undefined;
}

/** Where a page ended: the waiting jobs are in several lines, each worker holds jobs of its own. */
export interface JobsPlace extends Place {
  readonly line: string;
}

export interface JobsAnswer {
  readonly jobs: readonly StoredJob[];
  /** Where to go on; null at the end. There may be more although fewer than `limit` were found. */
  readonly next: JobsPlace | null;
  /** Jobs that were looked at. */
  readonly examined: number;
}

/** Jobs that one call looks at, at most some more: a filter that fits none ends here. */
export const MOST_EXAMINED = 10_000;

/** Where a line is among those that are there now, or the one behind it. */
export function indexFrom(lines: readonly string[], line: string, backward: boolean): number {
  const at = lines.indexOf(line);
  if (at >= 0) return at;
  const next = lines.findIndex((one) => (backward ? one < line : one > line));
  return next < 0 ? lines.length : next;
}

/** The body of a job without its data. */
export function withoutData(body: string): string {
  return /^[^\n]*\n[^\n]*\n[^\n]*\n/.exec(body)?.[0] ?? '';
}

export interface StoredJob {
  readonly id: string;
  readonly body: string;
  readonly state: JobState;
  readonly failed: number;
  readonly stalls: number;
  readonly failure: FailureRecord | null;
  /** When the last failure was written, ms. */
  readonly failedAt: number | null;
  readonly dueAt: number | null;
  readonly endedAt: number | null;
  readonly worker: string | null;
  readonly progress: string | null;
  readonly logs: readonly string[];
  /** JSON of the result, if it was stored. */
  readonly result: string | null;
  /** Why the result of a completed job could not be stored. */
  readonly resultFault: string | null;
  readonly attempt: number | null;
  readonly durationUs: number | null;
}
