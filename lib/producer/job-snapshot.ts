import type { QueueEngine } from '../contract/engine.js';
import type { StoredJob } from '../contract/admin-verbs.js';
import type { ProcessList } from '../contract/process-verbs.js';
import { decodeBody } from '../job/job-record.js';
import { NO_HEADERS } from '../job/headers.js';
import type { Job } from '../job/job.js';
import type { JobState } from '../job/job-state.js';
import type { DataIn, NameIn } from '../job/queue-jobs.js';
import type { LogLine } from '../job/job-log.js';
import type { AttemptRecord, FailureRecord } from '../job/outcome.js';
import { RULES } from '../job/rules.js';
import { parseOrNull } from '../job/text.js';
import { mergeJobPolicy } from '../options/job-options.js';
import type { ResolvedQueueOptions } from '../options/module-options.js';

/** A failed attempt of a job. */
export interface FailedAttempt extends Omit<AttemptRecord, 'at'> {
  /** When it failed, by the clock of Redis. */
  readonly at: Date;
}

/** The state of a job at the time of the call. */
export interface JobSnapshot<Data = unknown, Name extends string = string> extends Pick<
  Job,
  'id' | 'queue' | 'stalls' | 'priority' | 'group' | 'headers' | 'delay'
> {
  /** Empty if the job cannot be decoded. */
  readonly name: Name | '';
  /** Its state. */
  readonly state: JobState;
  /** Data as it was added. Undefined if the job cannot be decoded. */
  readonly data: Data | undefined;
  /** How many attempts have begun: the failed ones, and the one that runs or completed. */
  readonly attempt: number;
  /**
   * Maximum number of attempts: the option of the job, or the default of its queue. `attempts` of `@Handle` is not stored, so it
   * is not included here; handlers see it in `job.attempts`.
   */
  readonly attempts: number;
  /** How much it counts against the rates of its queue, name and group; see `cost` of the job options. */
  readonly cost: number;
  /** When it was added; null if the job cannot be decoded. */
  readonly createdAt: Date | null;
  /**
   * When the job is due. If it is no longer delayed: when it was first due. Null if it was never delayed, and for a job of `keepLast` that
   * waits for the end of another one.
   */
  readonly dueAt: Date | null;
  /**
   * When the running or completed attempt started, by the clock of Redis. Null for jobs in other states. For an active job null
   * until its process has reported the start, which takes at most a quarter of the lease.
   */
  readonly startedAt: Date | null;
  /** When it completed, died or was cancelled. */
  readonly endedAt: Date | null;
  /** The last attempt that failed. */
  readonly failure:
    | (FailureRecord & {
        /** When the attempt failed, by the clock of Redis. */
        readonly at: Date;
      })
    | null;
  /**
   * The last five attempts that failed, the latest last, in short. `queue.dead.retry` begins a new list. Pages with `data: false` leave it out.
   */
  readonly failures: readonly FailedAttempt[];
  /** The last value of `job.progress`; null if there was none. */
  readonly progress: unknown;
  /** Lines written with `job.log`, the newest last, each with its attempt. Pages with `data: false` leave them out. */
  readonly logs: readonly LogLine[];
  /** The return value of the handler; kept only with `retention`. */
  readonly result: unknown;
  /**
   * The reason that was passed to `cancel`: of a running job that was asked to stop and has not ended yet, or of a cancelled job
   * that is kept. Otherwise null.
   */
  readonly cancelReason: string | null;
  /** Duration of the attempt that completed the job, in microseconds. */
  readonly durationUs: number | null;
  /** Which worker runs it. */
  readonly worker: string | null;
}

/** A job of a `Queue<Jobs>`; `name` discriminates the type of its data. */
export type SnapshotIn<Jobs = any> = {
  [Name in NameIn<Jobs>]: JobSnapshot<DataIn<Jobs, Name>, Name>;
}[NameIn<Jobs>];

/** When active jobs started, by id. It is read from the reports of the processes, so a run need not write it. */
export type StartTimes = ReadonlyMap<string, number>;

export async function startTimes(
  { processes }: Pick<QueueEngine, 'processes'>,
  queue: string,
  jobs: readonly StoredJob[],
): Promise<StartTimes> {
  return jobs.some(({ state }) => state === 'active') ? startsIn(await processes.list(), queue) : new Map();
}

export function startsIn({ records }: Pick<ProcessList, 'records'>, queue: string): StartTimes {
  const times = new Map<string, number>();
  for (const { pools } of records)
    for (const pool of pools)
      for (const { queue: of, id, since } of pool.jobs) if (of === queue) times.set(id, since);
  return times;
}

export function toSnapshot(stored: StoredJob, queue: ResolvedQueueOptions, starts: StartTimes): JobSnapshot {
  const body = decodeBody(stored.body);
  const running = stored.state === 'active' ? 1 : 0;
  return {
    id: stored.id,
    queue: queue.name,
    name: body?.name ?? '',
    state: stored.state,
    data: body?.data,
    attempt: stored.attempt ?? stored.failed + running,
    attempts: body
      ? mergeJobPolicy(body.options, queue.policy, queue.policy).attempts
      : queue.policy.attempts,
    priority: body?.options.priority ?? 0,
    group: body?.options.group ?? null,
    cost: body?.options.cost ?? 1,
    headers: body?.options.headers ?? NO_HEADERS,
    delay: body?.options.runnableAt === undefined ? 0 : body.options.runnableAt - body.createdAt,
    stalls: stored.stalls,
    createdAt: body && new Date(body.createdAt),
    dueAt: date(dueTimeOf(stored.dueAt ?? body?.options.runnableAt ?? null)),
    startedAt: date(startOf(stored, starts)),
    endedAt: date(stored.endedAt),
    failure: stored.failure && { ...stored.failure, at: new Date(stored.failedAt ?? 0) },
    failures: stored.failures.map(({ at, ...attempt }) => ({ ...attempt, at: new Date(at) })),
    progress: parseOrNull(stored.progress),
    logs: stored.logs,
    result: parseOrNull(stored.result),
    cancelReason: stored.cancelReason,
    durationUs: stored.durationUs,
    worker: stored.worker,
  };
}

function startOf({ id, state, endedAt, durationUs }: StoredJob, starts: StartTimes): number | null {
  if (state === 'active') return starts.get(id) ?? null;
  return endedAt === null || durationUs === null ? null : Math.round(endedAt - durationUs / 1_000);
}

/** Null for a job that waits for the end of another one. */
export function dueTimeOf(dueAt: number | null): number | null {
  return dueAt === RULES.parkedAt ? null : dueAt;
}

export function date(ms: number | null): Date | null {
  return ms === null ? null : new Date(ms);
}
