import type { Overlap } from '../options/schedule-options.js';

/**
 * Schedules as the store keeps them: a record it does not read, a next time, and counters. Whether one is still as it was
 * seen is told by its revision, which every change but a firing makes a new one, and by its next time.
 */
export interface ScheduleVerbs {
  /** One schedule or null, and the store's clock. */
  get(queue: string, id: string): Promise<{ now: number; schedule: StoredSchedule | null }>;
  /** A page of all, those made first first; fewer than asked where their records are large. */
  list(queue: string, page: { offset: number; limit: number }): Promise<SchedulePage>;
  /** Writes one, if it is still as it was seen; one that is paused stays so. */
  put(queue: string, call: PutSchedule): Promise<'written' | 'changed'>;
  /** Answers whether there was one. */
  remove(queue: string, id: string): Promise<boolean>;
  /** No occurrence counts any more. */
  pause(queue: string, id: string): Promise<'paused' | 'unchanged' | 'not-found'>;
  /** Goes on at `nextAt`, if it is still as it was seen. */
  resume(queue: string, call: ResumeSchedule): Promise<'resumed' | 'unchanged' | 'changed' | 'not-found'>;

  /** Schedules whose time has come, behind the first `offset` of them. */
  due(queue: string, offset: number): Promise<DueAnswer>;
  /** Makes the jobs of occurrences and sets the next times, for each schedule only if it is still as it was seen. */
  fire(queue: string, calls: readonly FireSchedule[]): Promise<FireAnswer>;
  /** Those of the queues that have schedules with a next time. */
  scheduled(queues: readonly string[]): Promise<readonly string[]>;
}

export interface StoredSchedule {
  readonly id: string;
  /** As it was put. */
  readonly record: string;
  readonly revision: number;
  readonly mode: 'running' | 'paused' | 'ended';
  /** Null while it is paused or ended. */
  readonly nextAt: number | null;
  /** How many jobs its occurrences have added. */
  readonly fired: number;
  /** The last occurrence that made a job, and that job. */
  readonly lastAt: number | null;
  readonly lastJob: string | null;
  readonly createdAt: number;
}

export interface SchedulePage {
  readonly total: number;
  readonly schedules: readonly StoredSchedule[];
}

export interface PutSchedule {
  readonly id: string;
  /** As it was seen; 0: there was none. */
  readonly revision: number;
  readonly record: string;
  /** Ms since 1970; null: there is none, it has ended; `keep`: as it is. */
  readonly nextAt: number | null | 'keep';
}

export interface ResumeSchedule {
  readonly id: string;
  readonly revision: number;
  /** Null: there is none, it has ended. */
  readonly nextAt: number | null;
}

export interface DueAnswer {
  readonly now: number;
  readonly due: readonly StoredSchedule[];
  /** Until the first one that is not due yet. */
  readonly nextInMs: number | null;
}

export interface FireSchedule {
  readonly id: string;
  /** As it was seen. */
  readonly revision: number;
  /** The next time as it was seen. */
  readonly seenAt: number;
  /** Null: none is left, it has ended. */
  readonly nextAt: number | null;
  /** Jobs it may make in all; null: as many as it likes. */
  readonly limit: number | null;
  readonly overlap: Overlap;
  /** In the order of their times. */
  readonly jobs: readonly OccurrenceJob[];
}

/** The job of one occurrence. */
export interface OccurrenceJob {
  readonly id: string;
  readonly body: string;
  /** When it occurs, ms since 1970. */
  readonly at: number;
  /** When it may run: later than `at` by its jitter. */
  readonly dueAt: number;
  readonly priority?: number;
}

export interface FireAnswer {
  /** For each call: how many jobs it made, null where the schedule had changed and nothing was done. */
  readonly made: readonly (number | null)[];
  /** Schedules that are due still. */
  readonly due: number;
  /** Until the first one that is not due yet. */
  readonly nextInMs: number | null;
}
