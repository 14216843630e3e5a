import type { StoredJob } from '../contract/admin-verbs.js';
import { decodeBody } from '../job/job-record.js';
import type { JobState } from '../job/job-state.js';
import type { DataIn, NameIn } from '../job/queue-jobs.js';
import type { FailureRecord } from '../job/outcome.js';
import type { ResolvedQueueOptions } from '../options/module-options.js';

/** A job as it stood when it was asked for. */
export interface JobSnapshot<Data = unknown, Name extends string = string> {
  /** Id of the job. */
  readonly id: string;
  /** Name of its queue. */
  readonly queue: string;
  /** Empty where the body cannot be read. */
  readonly name: Name | '';
  /** Where it is. */
  readonly state: JobState;
  /** As it was added. Undefined where it was added without data, or the body cannot be read. */
  readonly data: Data | undefined;
  /** Attempts begun so far: those that failed, and the one that runs or ended well. */
  readonly attempt: number;
  /** Attempts in all. */
  readonly attempts: number;
  /** Workers it was lost with. */
  readonly stalls: number;
  /** When it was added; null where the body cannot be read. */
  readonly createdAt: Date | null;
  /** When it may run, while it is delayed. */
  readonly dueAt: Date | null;
  /** When it completed or died. */
  readonly endedAt: Date | null;
  /** The last attempt that failed. */
  readonly failure:
    | (FailureRecord & {
        /** When, by the clock of Redis. */
        readonly at: Date;
      })
    | null;
  /** What its handler said last with `job.progress`; null where it said nothing. */
  readonly progress: unknown;
  /** What its handlers said with `job.log`, the newest last. */
  readonly logs: readonly string[];
  /** What the handler returned, with `retention`. */
  readonly result: unknown;
  /** Of the attempt that completed it, in microseconds. */
  readonly durationUs: number | null;
  /** Which worker runs it. */
  readonly worker: string | null;
}

/** A job of a `Queue<Jobs>`, told by its name. */
export type SnapshotIn<Jobs = any> = {
  [Name in NameIn<Jobs>]: JobSnapshot<DataIn<Jobs, Name>, Name>;
}[NameIn<Jobs>];

export function toSnapshot(stored: StoredJob, queue: ResolvedQueueOptions): JobSnapshot {
  const body = decodeBody(stored.body);
  const running = stored.state === 'active' ? 1 : 0;
  return {
    id: stored.id,
    queue: queue.name,
    name: body?.name ?? '',
    state: stored.state,
    data: body?.data,
    attempt: stored.attempt ?? stored.failed + running,
    attempts: body?.options.attempts ?? queue.policy.attempts,
    stalls: stored.stalls,
    createdAt: body && new Date(body.createdAt),
    dueAt: date(stored.dueAt),
    endedAt: date(stored.endedAt),
    failure: stored.failure && { ...stored.failure, at: new Date(stored.failedAt ?? 0) },
    progress: json(stored.progress),
    logs: stored.logs,
    result: json(stored.result),
    durationUs: stored.durationUs,
    worker: stored.worker,
  };
}

function date(ms: number | null): Date | null {
  return ms === null ? null : new Date(ms);
}

function json(text: string | null): unknown {
  try {
    return text === null ? null : JSON.parse(text);
  } catch {
    return null;
  }
}
