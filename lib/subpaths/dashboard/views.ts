import { createHash } from 'node:crypto';
import type { BulkAct } from '../../contract/bulk-act-verbs.js';
import type { StoredJob } from '../../contract/admin-verbs.js';
import type { DayStats, NameStats, StatsCounts } from '../../contract/stats.js';
import type { QueueAction } from '../../contract/actions.js';
import type { QueueInfo, SilentWorkerInfo, WorkerInfo } from '../../inspect/queue-inspector.js';
import { pausedPlace, servingOf } from '../../inspect/serving.js';
import { dataTextOf, decodeBody, type DecodedBody } from '../../job/job-record.js';
import { scheduleOf } from '../../job/job-id.js';
import type { JobCounts, JobState } from '../../job/job-state.js';
import type { LogLine } from '../../job/job-log.js';
import type { AttemptRecord } from '../../job/outcome.js';
import { mergeJobPolicy } from '../../options/job-options.js';
import type { ResolvedQueueOptions } from '../../options/module-options.js';
import { dueTimeOf, type JobSnapshot, type StartTimes } from '../../producer/job-snapshot.js';
import type { LimitInfo } from '../../producer/limit-info.js';
import type { ScheduleSnapshot } from '../../producer/schedules.js';
import type { JobLinkView } from './job-links.js';
import type { Redactor, ShownJson } from './redaction.js';
import type { DashboardAction } from './rights.js';

/**
 * The responses of the API, and how they are created. Times are ms since 1970, by the clock of Redis. The pages import these
 * types.
 */

export interface MeView {
  readonly title: string;
  readonly environment: string;
  readonly readOnly: boolean;
  /** The rights of this person for at least one queue. */
  readonly rights: readonly DashboardAction[];
  readonly actor: string | null;
  /** The clock of Redis. */
  readonly now: number;
  readonly queues: readonly string[];
  /** The queues that this person may pause and resume. */
  readonly pausable: readonly string[];
  /** The queues in which this person may cancel jobs. */
  readonly cancellable: readonly string[];
  /** Whether this person may see what belongs to no queue. */
  readonly canSeeRedis: boolean;
  readonly version: string;
}

/** Why queues are missing in an answer, by queue: another program uses one of their keys, or a record is damaged. */
export type Unreadable = Readonly<Record<string, string>>;

export interface QueueView {
  readonly name: string;
  readonly counts: JobCounts;
  readonly paused: boolean;
  /** `all 2 processes that work on it`, if each of them has paused the queue. */
  readonly pausedPlace: string | null;
  readonly oldestWaitingMs: number | null;
  /** Since midnight, UTC. */
  readonly today: Omit<StatsCounts, 'byName'>;
  /** Processes that work on it. */
  readonly consumers: number;
  /** How many jobs these run at once, and how many run. */
  readonly slots: number;
  readonly running: number;
}

export interface QueueDetail extends QueueView {
  readonly rights: readonly DashboardAction[];
  /** Of the last seven days. */
  readonly byName: Readonly<Record<string, NameStats>>;
  readonly days: readonly Omit<DayStats, 'byName'>[];
  /**
   * Of the queue, of names, and of the group in the query. Without one: of the first 100 groups that dead jobs stop, with waiting jobs, and with
   * a rule of their own.
   */
  readonly limits: readonly LimitInfo[];
  /** Whether there are more groups. */
  readonly hasMoreGroups: boolean;
  /** Names of the shared limits that stop jobs now, if this person may release them: that affects all queues that use them. */
  readonly releasable: readonly string[];
  /** By name, for jobs whose data is checked when it is added or edited: an example of the data, as JSON. */
  readonly definitions: Readonly<Record<string, string | null>>;
}

export interface QueueMemory {
  /** An estimate. Null without a server, or if it refuses the command. */
  readonly bytes: number | null;
}

export interface Attention {
  readonly level: 'bad' | 'warn';
  readonly text: string;
  /** The queue to link to. */
  readonly queue?: string;
  /** The page to link to. */
  readonly page?: 'queue' | 'queues' | 'jobs' | 'dead' | 'delayed' | 'schedules' | 'redis' | 'workers';
}

export interface OverviewView {
  readonly now: number;
  readonly queues: readonly QueueView[];
  readonly unreadable: Unreadable;
  readonly attention: readonly Attention[];
  readonly processes: number;
  /** How many jobs these run at once. Slots that queues share count once. */
  readonly slots: number;
}

export interface JobRow extends Pick<
  JobSnapshot,
  'id' | 'name' | 'state' | 'attempt' | 'priority' | 'stalls' | 'durationUs' | 'worker' | 'group'
> {
  /** Null if the job has no such option, and this process does not know the default of the queue. */
  readonly attempts: number | null;
  readonly createdAt: number | null;
  readonly dueAt: number | null;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  readonly reason: string | null;
  /** The first line of the last error. */
  readonly error: string | null;
}

/** A job that was found by its id. */
export interface FoundJob extends JobRow {
  readonly queue: string;
}

export interface JobListView {
  readonly jobs: readonly JobRow[];
  readonly cursor: string | null;
  readonly examined: number;
  /** How many jobs of the state there are. */
  readonly total: number;
  /** How many jobs of each state there are. */
  readonly counts: JobCounts;
  readonly rights: readonly DashboardAction[];
  /** The job whose id is the text that was searched, in any state. */
  readonly withId: JobRow | null;
  /** Host and process id of the workers of active jobs, by the names of the workers. Those of other states are left out. */
  readonly processes: Readonly<Record<string, string>>;
}

export interface JobDetail extends JobRow {
  readonly queue: string;
  readonly delay: number;
  readonly failure: {
    readonly name: string;
    readonly message: string;
    readonly stack: string | null;
    readonly attempt: number;
    readonly at: number;
  } | null;
  /** The last failed attempts, the latest last. */
  readonly failures: readonly AttemptRecord[];
  readonly data: ShownJson | null;
  /** The codec of data that is not JSON. */
  readonly codec: string | null;
  readonly result: ShownJson | null;
  readonly resultFault: string | null;
  readonly progress: ShownJson | null;
  readonly logs: readonly LogLine[];
  readonly cancelReason: string | null;
  readonly options: Readonly<Record<string, unknown>>;
  readonly headers: ShownJson | null;
  /** The reasons why the job waits, as sentences. */
  readonly waitsFor: readonly string[];
  /** Whether it is active, and its worker has gone silent. */
  readonly isLost: boolean;
  /** Host and process id of the workers that are alive, by the names of the workers. */
  readonly processes: Readonly<Record<string, string>>;
  readonly links: readonly JobLinkView[];
  /** The schedule that added it. */
  readonly schedule: string | null;
  readonly rights: readonly DashboardAction[];
  readonly now: number;
}

export interface ScheduleView extends Pick<
  ScheduleSnapshot,
  'queue' | 'id' | 'lastJobId' | 'fired' | 'paused' | 'ended' | 'owner'
> {
  /** `cron` or `every`, `tz` and limits, as it was given; null if it cannot be read. */
  readonly rule: Readonly<Record<string, unknown>> | null;
  readonly jobName: string;
  readonly data: ShownJson | null;
  /** Options of its jobs; null without the right to see data. */
  readonly options: ShownJson | null;
  /** Changes with the rule and the job. */
  readonly version: string;
  readonly nextAt: number | null;
  readonly lastAt: number | null;
  readonly next: readonly number[];
  readonly rights: readonly DashboardAction[];
}

export interface SchedulesView {
  readonly schedules: readonly ScheduleView[];
  /** By queue: how many more schedules it has. Queues whose schedules are all listed are left out. */
  readonly notShown: Readonly<Record<string, number>>;
  readonly unreadable: Unreadable;
}

/**
 * By queue and schedule, for the first schedules of each queue: the states of the jobs of the last occurrences, the newest last. Null: the
 * job has ended and is not kept.
 */
export type ScheduleResults = Readonly<
  Record<string, Readonly<Record<string, readonly (JobState | null)[]>>>
>;

/** An act on many jobs in the background. */
export interface BulkActView extends Omit<BulkAct, 'filter' | 'reason' | 'startedAt' | 'updatedAt'> {
  /** The filter as it is recorded: without values of data. */
  readonly filter: string;
  readonly startedAt: number;
  readonly updatedAt: number;
  /** Whether this person may stop and continue it. */
  readonly canControl: boolean;
}

/** The next occurrences of a schedule with another rule. */
export interface NextView {
  readonly next: readonly number[];
}

/** The jobs of a schedule that still exist, the latest first. */
export interface ScheduleHistory {
  readonly jobs: readonly JobRow[];
  /** Whether a search ended before it had looked at all jobs of a state. */
  readonly isPartial: boolean;
}

export interface DeadGroup {
  readonly queue: string;
  readonly reason: string;
  readonly name: string;
  /** The error without the parts that differ between jobs. */
  readonly error: string;
  readonly count: number;
  readonly firstAt: number;
  readonly lastAt: number;
  readonly sample: string;
}

export interface DeadView {
  readonly groups: readonly DeadGroup[];
  /** By queue: how many dead jobs were read (the newest), and how many exist. */
  readonly examined: Readonly<Record<string, { readonly examined: number; readonly total: number }>>;
  readonly rights: Readonly<Record<string, readonly DashboardAction[]>>;
  readonly unreadable: Unreadable;
}

export type WorkerView = Omit<
  WorkerInfo & Partial<Pick<SilentWorkerInfo, 'silentMs'>>,
  'startedAt' | 'pools'
> & {
  readonly startedAt: number;
  readonly pools: readonly (Omit<WorkerInfo['pools'][number], 'jobs'> & {
    readonly jobs: readonly { queue: string; id: string; name: string; attempt: number; since: number }[];
  })[];
};

export interface WorkersView {
  readonly now: number;
  /** Maximum age of the report of a process, in ms. */
  readonly maxReportMs: number;
  readonly workers: readonly WorkerView[];
  /** Those that went silent in the last 10 minutes. */
  readonly silent: readonly WorkerView[];
}

export interface ActionsView {
  readonly now: number;
  /** The newest first. */
  readonly actions: readonly (Omit<QueueAction, 'at'> & { readonly at: number })[];
  readonly cursor: string | null;
}

export interface RedisView {
  readonly server: string | null;
  /** The reply of `INFO`, by section. */
  readonly sections: readonly {
    readonly title: string;
    readonly facts: readonly (readonly [string, string])[];
  }[];
  readonly warnings: readonly { readonly code: string; readonly message: string }[];
  readonly roundTripMs: number;
}

/** The result of one call of a bulk act. The next call continues at `cursor`. */
export interface BulkView {
  readonly done: number;
  readonly examined: number;
  readonly cursor: string | null;
  /** Jobs that were added or ended later than this are not changed. */
  readonly before: number;
}

/** The options of a queue; the defaults if no module of this process registers it. */
export interface KnownQueue extends ResolvedQueueOptions {
  readonly isRegistered: boolean;
}

const ERROR_LENGTH = 300;

export function toRow(job: StoredJob, queue: KnownQueue, starts: StartTimes, redactor: Redactor): JobRow {
  const body = decodeBody(job.body);
  const { failure, endedAt, durationUs } = job;
  const ranFrom = endedAt === null || durationUs === null ? null : Math.round(endedAt - durationUs / 1_000);
  return {
    id: job.id,
    name: body?.name ?? '',
    state: job.state,
    attempt: job.attempt ?? job.failed + (job.state === 'active' ? 1 : 0),
    attempts: attemptsOf(body, queue),
    priority: body?.options.priority ?? 0,
    stalls: job.stalls,
    createdAt: body?.createdAt ?? null,
    dueAt: dueTimeOf(job.dueAt),
    startedAt: job.state === 'active' ? (starts.get(job.id) ?? null) : ranFrom,
    endedAt,
    durationUs,
    reason: failure?.reason ?? null,
    error:
      failure && redactor.text(`${failure.name}: ${failure.message}`).split('\n')[0]!.slice(0, ERROR_LENGTH),
    worker: job.worker,
    group: body?.options.group ?? null,
  };
}

function attemptsOf(body: DecodedBody | null, { isRegistered, policy }: KnownQueue): number | null {
  if (!isRegistered) return body?.options.attempts ?? null;
  return body ? mergeJobPolicy(body.options, policy, policy).attempts : policy.attempts;
}

/** @param canSeeData without it, data, result, progress and log stay on the server. */
export function toDetail(
  job: StoredJob,
  queue: KnownQueue,
  starts: StartTimes,
  redactor: Redactor,
  {
    canSeeData,
    isFull,
    rights,
    now,
    waitsFor,
    isLost,
    processes,
    links,
  }: Pick<JobDetail, 'rights' | 'now' | 'waitsFor' | 'isLost' | 'processes' | 'links'> & {
    canSeeData: boolean;
    isFull: boolean;
  },
): JobDetail {
  const body = decodeBody(job.body);
  const { failure } = job;
  const show = (json: string | null) => (canSeeData ? redactor.show(json, isFull) : null);
  const text = redactor.text;
  const { headers, ...options } = body?.options ?? {};
  return {
    ...toRow(job, queue, starts, redactor),
    queue: queue.name,
    delay: body?.options.runnableAt === undefined ? 0 : body.options.runnableAt - body.createdAt,
    failure: failure && {
      name: failure.name,
      message: text(failure.message),
      stack: failure.stack === undefined ? null : text(failure.stack),
      attempt: failure.attempt,
      at: job.failedAt ?? 0,
    },
    failures: job.failures.map(({ message, stack, ...attempt }) => ({
      ...attempt,
      message: text(message),
      ...(stack !== undefined && { stack: text(stack) }),
    })),
    data: body === null || body.codec !== undefined ? null : show(dataTextOf(job.body)),
    codec: body?.codec ?? null,
    result: show(job.result),
    resultFault: job.resultFault,
    progress: show(job.progress),
    logs: canSeeData ? job.logs.map((line) => ({ ...line, text: text(line.text) })) : [],
    cancelReason: job.cancelReason === null ? null : text(job.cancelReason),
    options,
    headers: headers ? show(JSON.stringify(headers)) : null,
    schedule: scheduleOf(job.id) ?? null,
    waitsFor,
    isLost,
    processes,
    links,
    rights,
    now,
  };
}

export function toQueueView(
  { name, counts, paused, oldestWaitingMs }: QueueInfo,
  today: StatsCounts,
  workers: readonly WorkerInfo[],
): QueueView {
  const pools = workers.flatMap((worker) => worker.pools.filter(({ queues }) => queues.includes(name)));
  const jobs = pools.flatMap((pool) => pool.jobs);
  const { processed, failed, dead, cancelled } = today;
  return {
    name,
    counts,
    paused,
    pausedPlace: pausedPlace(name, workers),
    oldestWaitingMs,
    today: { processed, failed, dead, cancelled },
    consumers: servingOf(workers, name).processes,
    slots: pools.reduce((sum, { concurrency }) => sum + concurrency, 0),
    running: Math.max(counts.active, jobs.filter(({ queue }) => queue === name).length),
  };
}

export function toScheduleView(
  one: ScheduleSnapshot,
  next: readonly Date[],
  rights: readonly DashboardAction[],
  redactor: Redactor,
): ScheduleView {
  const { template } = one;
  const canSeeData = rights.includes('read-data');
  return {
    queue: one.queue,
    id: one.id,
    rule: one.rule && { ...one.rule },
    jobName: template?.name ?? '',
    ...shownOfSchedule(one, canSeeData, redactor),
    nextAt: one.nextAt?.getTime() ?? null,
    lastAt: one.lastAt?.getTime() ?? null,
    lastJobId: one.lastJobId,
    fired: one.fired,
    paused: one.paused,
    ended: one.ended,
    owner: one.owner,
    next: next.map((at) => at.getTime()),
    rights,
  };
}

/** The values that a person can edit, and a digest that does not depend on values hidden from this person. */
export function shownOfSchedule(
  { rule, template }: Pick<ScheduleSnapshot, 'rule' | 'template'>,
  canSeeData: boolean,
  redactor: Redactor,
): Pick<ScheduleView, 'data' | 'options' | 'version'> {
  const show = (value: unknown) => (canSeeData && template ? redactor.show(JSON.stringify(value)) : null);
  const data = show(template?.data ?? null);
  const options = show(template?.options ?? {});
  const seen = JSON.stringify([rule, template?.name, data?.version, options?.version]);
  return { data, options, version: createHash('sha256').update(seen).digest('hex').slice(0, 16) };
}

/** A worker, with its work for the queues that this person may see. */
export function toWorkerView(worker: WorkerInfo, canSee: (queue: string) => boolean): WorkerView | null {
  const pools = worker.pools
    .filter(({ queues }) => queues.some(canSee))
    .map((pool) => ({
      ...pool,
      queues: pool.queues.filter(canSee),
      paused: pool.paused.filter(canSee),
      quiet: pool.quiet.filter(canSee),
      jobs: pool.jobs
        .filter(({ queue }) => canSee(queue))
        .map(({ since, ...job }) => ({ ...job, since: since.getTime() })),
    }));
  const { moreQueues, startedAt, ...rest } = worker;
  const more = moreQueues?.filter(canSee);
  if (pools.length === 0 && !more?.length) return null;
  return { ...rest, startedAt: startedAt.getTime(), pools, ...(more && { moreQueues: more }) };
}
