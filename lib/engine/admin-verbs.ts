import type { AuditReport, RepairReport } from '../job/audit-report.js';
import type { JobCounts, JobState } from '../job/job-state.js';
import type { FailureRecord } from '../job/outcome.js';

/** What people ask of a queue and do to it, by hand or from a page: nothing here is on the way of a job. */
export interface AdminVerbs {
  /** Everything about one job, or null. */
  get(queue: string, id: string): Promise<StoredJob | null>;
  counts(queue: string): Promise<JobCounts & { paused: boolean }>;
  remove(queue: string, id: string): Promise<'removed' | 'not-found' | 'active'>;
  /** Runs a delayed job now. */
  promoteNow(queue: string, id: string): Promise<'promoted' | 'not-found' | 'not-delayed'>;
  pause(queue: string): Promise<boolean>;
  resume(queue: string): Promise<boolean>;
  /** Removes the queue with everything in it; refuses while jobs are active unless forced. */
  obliterate(queue: string, force: boolean): Promise<'obliterated' | 'active'>;

  /** Everything that breaks "one place, body present, lease known". Changes nothing and never holds the store long. */
  audit(queue: string): Promise<AuditReport>;
  /** Mends what `audit` finds; past `maxStalls` a job that lost its worker is dead. */
  repair(queue: string, maxStalls: number): Promise<RepairReport>;
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
  /** JSON of what the handler returned, where it was kept. */
  readonly result: string | null;
  readonly attempt: number | null;
  readonly durationUs: number | null;
}
