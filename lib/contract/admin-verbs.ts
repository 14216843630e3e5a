import type { AuditReport, RepairReport } from '../job/audit-report.js';
import type { JobCounts, JobState } from '../job/job-state.js';
import type { CountedBy, MinutesCall, StoredMinuteRow } from './history.js';
import type { QueueStats } from './stats.js';
import type { LogLine } from '../job/job-log.js';
import type { ResolvedMaxWaiting } from '../options/bounds.js';
import type { AttemptRecord, FailureRecord } from '../job/outcome.js';
import type { DeadMatch, Place } from './upkeep-verbs.js';
import type { QueueRef } from './queue-ref.js';

/** Verbs for people and dashboards: look up, change and repair queues. No job needs them to run. */
export interface AdminVerbs {
  /** Everything about one job, or null. `isBrief`: without what `brief` of `JobsCall` leaves out. */
  get(queue: QueueRef, id: string, isBrief?: boolean): Promise<StoredJob | null>;
  /** A page of the jobs of one state, in their order or in reverse order. */
  jobs(queue: QueueRef, call: JobsCall): Promise<JobsAnswer>;
  counts(queue: QueueRef): Promise<QueueCounts>;
  /** How long the oldest waiting job could have run already. Jobs that have failed before are ignored. Null if there is none. */
  oldestWaitingMs(queue: QueueRef): Promise<number | null>;
  /** The last add that found no room in the queue or in its group, to within a second. Null if there was none. */
  lastFull(queue: QueueRef): Promise<LastFull | null>;
  remove(queue: QueueRef, id: string): Promise<RemoveAnswer>;
  /** Removes many jobs. It is fastest if the ids are in the order of the list. The answers are in the order of the ids. */
  removeAll(queue: QueueRef, ids: readonly string[]): Promise<readonly RemoveAnswer[]>;
  /** Ends a job that has not started. A running job is marked: unless it completes, it ends as cancelled. */
  cancel(queue: QueueRef, id: string, reason: string): Promise<CancelAnswer>;
  /** Cancels many jobs. It is fastest if the ids are in the order of the list. The answers are in the order of the ids. */
  cancelAll(queue: QueueRef, ids: readonly string[], reason: string): Promise<readonly CancelAnswer[]>;
  /** Why a job that is gone was cancelled, and how long ago. Kept for a minute, for at most `RULES.cancelledMax` jobs. */
  cancelled(queue: QueueRef, id: string): Promise<{ readonly reason: string; readonly agoMs: number } | null>;
  /** Counters of today and the days before, `days` in all. */
  stats(queue: QueueRef, days: number): Promise<QueueStats>;
  /** Adds to the counters of minutes. */
  countMinutes(queue: QueueRef, call: MinutesCall): Promise<void>;
  /** The counters of these hours by job name or by host, in no particular order. Each hour is given by its start. */
  minutes(queue: QueueRef, hours: readonly number[], by: CountedBy): Promise<readonly StoredMinuteRow[]>;
  /** Changes data, due time and priority of a job that waits or is delayed. A parked job keeps its time. */
  update(queue: QueueRef, call: UpdateCall): Promise<UpdateAnswer>;
  /** Runs a delayed job now. `parked`: it waits for the end of the job that has its key. */
  promoteNow(queue: QueueRef, id: string): Promise<PromoteAnswer>;
  /**
   * About how many bytes of Redis the jobs and schedules of the queue take: large keys are sampled. Without counters, and without the jobs'
   * places in workers. Null if there is no server.
   */
  memoryBytes(queue: QueueRef): Promise<number | null>;
  /** The reply of `INFO`. Null if there is no server. */
  serverInfo(queue: QueueRef): Promise<string | null>;
  /** Makes a write that changes nothing. Rejects if the server of the queue refuses writes. */
  tryWrite(queue: QueueRef): Promise<void>;
  pause(queue: QueueRef): Promise<boolean>;
  /** Writes an event of the application's own. Does nothing if the queue keeps no events. */
  publish(queue: QueueRef, name: string, payload: string): Promise<void>;
  resume(queue: QueueRef): Promise<boolean>;
  /** Removes the queue with everything in it. Refuses while jobs are active, unless forced. */
  obliterate(queue: QueueRef, force: boolean): Promise<'obliterated' | 'active'>;

  /**
   * Finds every job that is not in exactly one place with a body, or that runs without a lease. Changes nothing, and works in
   * small steps.
   */
  audit(queue: QueueRef): Promise<AuditReport>;
  /** Fixes what `audit` finds. A job that has lost more than `maxStalls` workers becomes dead. */
  repair(queue: QueueRef, maxStalls: number): Promise<RepairReport>;
}

export interface QueueCounts extends JobCounts {
  readonly paused: boolean;
  /** Whether it has limits or groups. */
  readonly isLimited: boolean;
}

/** An add that found no room. */
export interface LastFull {
  /** When, ms since 1970. */
  readonly at: number;
  /** How many jobs may wait. */
  readonly limit: number;
  /** What happens to such adds. */
  readonly onFull: ResolvedMaxWaiting['onFull'];
  /** The full group; null if the queue was full. */
  readonly group: string | null;
}

export type PromoteAnswer = 'promoted' | 'not-found' | 'not-delayed' | 'parked';

export type RemoveAnswer = 'removed' | 'not-found' | 'active';

/**
 * `cancelled`: the job had not started and is gone. `signalled`: it runs, and will end when its run does. `not-found`: there is
 * no such job, or it has ended.
 */
export type CancelAnswer = 'cancelled' | 'signalled' | 'not-found';

/** Fields that are left out do not change. */
export interface UpdateCall {
  readonly id: string;
  /** Only if the job has this name. */
  readonly name?: string;
  /** JSON. */
  readonly data?: string;
  /** Only if the job has this data. */
  readonly seenData?: string;
  /** The options line of the body: as it was read, and the new one. */
  readonly options?: { readonly seen: string; readonly changed: string };
  /** Due this long from now. `dueAt`: due at this time. */
  readonly delayMs?: number;
  readonly dueAt?: number;
  readonly priority?: number;
}

/**
 * `changed`: the options or the data are not the ones that were read, so read them again. `other-name`: the job has another name.
 * `unreadable`: its body cannot be decoded. `parked`: its time cannot change, because it waits for the end of the job that has its
 * key. The other kinds name the state in which a job cannot be changed.
 */
export type UpdateAnswer =
  | {
      readonly kind: 'updated';
      readonly state: 'waiting' | 'delayed' | 'active';
      /** Null unless it is delayed. */
      readonly dueAt: number | null;
    }
  | {
      readonly kind:
        | 'not-found'
        | 'changed'
        | 'other-name'
        | 'unreadable'
        | 'parked'
        | Exclude<JobState, 'waiting' | 'delayed'>;
    };

/** The reason filters dead jobs only. Ages are counted from the end of a job or, before it ends, from its add. */
export interface JobsCall extends DeadMatch {
  readonly state: JobState;
  /**
   * Only jobs of this group. The waiting ones in the line of the group come first, and no other jobs of `grouped` are looked at.
   * @default any job
   */
  readonly group?: string | undefined;
  /** Only jobs with this text in the id, the name or the last error; case is ignored for A to Z. @default any job */
  readonly contains?: string | undefined;
  /** Only jobs whose data has these values in these fields. @default any job */
  readonly where?: DataMatch | undefined;
  /** Only jobs with a priority from `from` to `to`; 0 is none. @default any job */
  readonly priority?: PriorityRange | undefined;
  /** Only active jobs of these workers, whose jobs are the only ones looked at. @default any job */
  readonly workers?: readonly string[] | undefined;
  readonly after: JobsPlace | null;
  /**
   * If `after` is null: how many jobs of the state to skip. Skipped jobs count even if they do not match the filters.
   *
   * @default 0
   */
  readonly offset?: number | undefined;
  readonly limit: number;
  /** @default false */
  readonly backward?: boolean | undefined;
  /** Leaves out data, progress, log, failed attempts and results of more than `RULES.briefResult` bytes. @default false */
  readonly brief?: boolean | undefined;
}

/** Both ends are included. */
export interface PriorityRange {
  readonly from: number;
  readonly to: number;
}

/** Fields of the data of a job, by path (`customer.id`), with their values. */
export type DataMatch = Readonly<Record<string, string | number | boolean | null>>;

/**
 * The end of a page. Waiting jobs are in several lines, and the active jobs of each worker are a line too. In a line that is a list, the
 * id is several ids, one per line: the last listed jobs and, after an empty line, the jobs that come next.
 */
export interface JobsPlace extends Place {
  readonly line: string;
}

export interface JobsAnswer {
  readonly jobs: readonly StoredJob[];
  /** The place of the next page. Null at the end. A page that is not the last may have fewer jobs than `limit`. */
  readonly next: JobsPlace | null;
  /** How many jobs the call looked at. */
  readonly examined: number;
}

/** One call looks at about this many jobs, so that a filter without matches ends. */
export const MOST_EXAMINED = 10_000;

/** The index of a line among the current ones. If the line is gone, the index of the next one. */
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
  /** The last failed attempts, at most `RULES.attemptsKept`, the latest last. */
  readonly failures: readonly AttemptRecord[];
  readonly dueAt: number | null;
  readonly endedAt: number | null;
  readonly worker: string | null;
  readonly progress: string | null;
  /** The newest last. */
  readonly logs: readonly LogLine[];
  /** JSON of the result, if it was stored. */
  readonly result: string | null;
  /** Why the result of a completed job could not be stored. */
  readonly resultFault: string | null;
  /** The reason of the cancellation: of a running job that was asked to stop, or of a cancelled job that is kept. */
  readonly cancelReason: string | null;
  readonly attempt: number | null;
  readonly durationUs: number | null;
}
