import type { Overlap } from '../options/schedule-options.js';
import type { QueueRef } from './queue-ref.js';

/**
 * Schedules in the store: a record that it does not read, a next time, and counters. A write succeeds only if the revision and
 * the next time are those that the caller has read. Every change except a firing increases the revision.
 */
export interface ScheduleVerbs {
  /** One schedule or null, and the store's clock. */
  get(queue: QueueRef, id: string): Promise<{ now: number; schedule: StoredSchedule | null }>;
  /** A page of all schedules, ordered by creation. Fewer than `limit` if their records are large. */
  list(queue: QueueRef, page: { offset: number; limit: number }): Promise<SchedulePage>;
  /** Writes a schedule if its revision is unchanged. A paused schedule stays paused. */
  put(queue: QueueRef, call: PutSchedule): Promise<'written' | 'changed'>;
  /** Removes a schedule. Returns whether there was one. */
  remove(queue: QueueRef, id: string): Promise<boolean>;
  /** Adds no more jobs until `resume`. */
  pause(queue: QueueRef, id: string): Promise<'paused' | 'unchanged' | 'not-found'>;
  /** Continues at `nextAt`, if its revision is unchanged. */
  resume(queue: QueueRef, call: ResumeSchedule): Promise<'resumed' | 'unchanged' | 'changed' | 'not-found'>;

  /** Due schedules, after the first `offset` of them. */
  due(queue: QueueRef, offset: number): Promise<DueAnswer>;
  /** Adds the jobs of occurrences and sets the next times, for each schedule only if its revision and next time are unchanged. */
  fire(queue: QueueRef, calls: readonly FireSchedule[]): Promise<FireAnswer>;
  /** Which of the queues have schedules with a next time. */
  scheduled(queues: readonly QueueRef[]): Promise<readonly string[]>;
}

export interface StoredSchedule {
  readonly id: string;
  /** The record as `put` wrote it. */
  readonly record: string;
  readonly revision: number;
  readonly mode: 'running' | 'paused' | 'ended';
  /** Null while it is paused or ended. */
  readonly nextAt: number | null;
  /** How many jobs its occurrences have added. */
  readonly fired: number;
  /** The last occurrence that added a job, and the id of that job. */
  readonly lastAt: number | null;
  readonly lastJob: string | null;
  readonly createdAt: number;
  /** The last occurrences that added a job, at most `RULES.recent`, newest last. */
  readonly recent: readonly number[];
}

export interface SchedulePage {
  readonly total: number;
  readonly schedules: readonly StoredSchedule[];
}

export interface PutSchedule {
  readonly id: string;
  /** The revision that was read. 0: there was no such schedule. */
  readonly revision: number;
  readonly record: string;
  /** Ms since 1970. Null: the schedule has ended. `keep`: unchanged. */
  readonly nextAt: number | null | 'keep';
}

export interface ResumeSchedule {
  readonly id: string;
  readonly revision: number;
  /** Null: the schedule has ended. */
  readonly nextAt: number | null;
}

export interface DueAnswer {
  readonly now: number;
  readonly due: readonly StoredSchedule[];
  /** Ms until the first schedule that is not due yet. */
  readonly nextInMs: number | null;
}

export interface FireSchedule {
  readonly id: string;
  /** The revision that was read. */
  readonly revision: number;
  /** The next time that was read. */
  readonly seenAt: number;
  /** Null: the schedule has ended. */
  readonly nextAt: number | null;
  /** Maximum number of jobs. Null: no limit. */
  readonly limit: number | null;
  readonly overlap: Overlap;
  /**
   * Set for an interval that counts from the end of the last run. If the last job has not ended, nothing is added until `nextAt`.
   * When its end is seen for the first time, nothing is added until this many ms from now. If `nextAt` is null, no job follows.
   */
  readonly afterEndMs?: number | null;
  /** The jobs, ordered by their times. */
  readonly jobs: readonly OccurrenceJob[];
}

/** The job of one occurrence. */
export interface OccurrenceJob {
  readonly id: string;
  readonly body: string;
  /** When it occurs, ms since 1970. */
  readonly at: number;
  /** When it may run: `at` plus its jitter. */
  readonly dueAt: number;
  readonly priority?: number;
}

export interface FireAnswer {
  /** For each call: how many jobs it added. Null if the schedule had changed and nothing was done. */
  readonly made: readonly (number | null)[];
  /** How many schedules are still due. */
  readonly due: number;
  /** Ms until the first schedule that is not due yet. */
  readonly nextInMs: number | null;
}
