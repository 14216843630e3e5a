import { BaseAdapter } from '@bull-board/api/dist/queueAdapters/base.js';
import type {
  AppJobScheduler,
  JobCleanStatus,
  JobCounts,
  JobSchedulerRepeatOptions,
  JobSchedulerUpdateResult,
  JobState as BoardState,
  JobStatus,
  MetricsType,
  QueueAdapterOptions,
  QueueDefaultJobOptions,
  QueueJob,
  QueueJobJson,
  QueueMetrics,
  QueueWorker,
  Status,
} from '@bull-board/api/dist/types.js';
import { addStored, COMPLETED, DEAD, emptyRow, HOUR_MS, hoursOf, MINUTE_MS } from '../../contract/history.js';
import { worksOn } from '../../contract/process-verbs.js';
import { InvalidOptionError, WrongStateError } from '../../errors.js';
import { parseDuration } from '../../job/duration.js';
import { scheduleOf } from '../../job/job-id.js';
import type { JobState } from '../../job/job-state.js';
import type { JobOptions } from '../../options/job-options.js';
import type { EveryTiming, ScheduleLimits, ScheduleRule } from '../../options/schedule-options.js';
import type { JobSnapshot } from '../../producer/job-snapshot.js';
import type { Queue } from '../../producer/queue.js';
import { editableOf, type ScheduleSnapshot } from '../../producer/schedules.js';

/** Options of a queue on the board: `readOnlyMode`, `allowRetries`, `description`, `displayName`, `prefix` and the others of bull-board. */
export interface GodwitAdapterOptions extends Partial<QueueAdapterOptions> {
  /** Whether completed jobs have a button to run them again. @default true */
  readonly allowCompletedRetries?: boolean;
}

/** The states of the board that a queue has, with ours; the order is that of its tabs. */
const STATES = {
  active: 'active',
  waiting: 'waiting',
  completed: 'completed',
  failed: 'dead',
  delayed: 'delayed',
} as const satisfies Record<string, JobState>;

const STATUS_OF: Record<JobState, BoardState> = {
  active: 'active',
  waiting: 'waiting',
  completed: 'completed',
  dead: 'failed',
  delayed: 'delayed',
  // The board has no list for this state.
  cancelled: 'unknown',
};
const STATUSES = Object.keys(STATES) as (keyof typeof STATES)[];
const MOST = 1_000;
const MOST_SCHEDULES = 1_000;

class Adapter extends BaseAdapter {
  constructor(
    private readonly queue: Queue,
    options: GodwitAdapterOptions = {},
  ) {
    // Flows, which 'bullmq' adds to the board, would load BullMQ.
    super('bull', options);
    if (typeof queue?.jobs !== 'function')
      throw new InvalidOptionError(
        'new GodwitAdapter()',
        'the handle of a queue: app.get(getQueueToken(name)), which is undefined if options of the queue are wrong; start the application without the board to see which',
        queue,
      );
  }

  getName(): string {
    return `${this.prefix}${this.queue.name}`;
  }

  getStatuses(): Status[] {
    return ['latest', ...STATUSES];
  }

  getJobStatuses(): JobStatus[] {
    return [...STATUSES];
  }

  async getJobCounts(): Promise<JobCounts> {
    const { waiting, delayed, active, completed, dead } = await this.queue.counts();
    return { waiting, delayed, active, completed, failed: dead } as JobCounts;
  }

  /** Waiting, delayed and active jobs in the order in which they run; completed and dead jobs from the last one that ended. */
  async getJobs(statuses: JobStatus[], start = 0, end = MOST - 1): Promise<QueueJob[]> {
    const limit = Math.min(MOST, end < 0 ? MOST : end - start + 1);
    const pages = statuses.map(async (status) => {
      const state = STATES[status as keyof typeof STATES];
      if (state === undefined || limit < 1) return [];
      const order = state === 'completed' || state === 'dead' ? 'desc' : 'asc';
      const found: JobSnapshot[] = [];
      let page = await this.queue.jobs({ state, order, limit, offset: start });
      found.push(...page.jobs);
      // If jobs are large, a page is shorter than requested.
      while (page.cursor !== null && found.length < limit) {
        page = await this.queue.jobs({ state, order, limit: limit - found.length, cursor: page.cursor });
        found.push(...page.jobs);
      }
      return found;
    });
    return (await Promise.all(pages)).flat().map((job) => new BoardJob(this.queue, job));
  }

  async getJob(id: string): Promise<QueueJob | null> {
    const job = await this.queue.get(id);
    return job && new BoardJob(this.queue, job);
  }

  async getJobLogs(id: string): Promise<string[]> {
    return ((await this.queue.get(id))?.logs ?? []).map(({ text }) => text);
  }

  /** Adds a job with the options of the form of the board. */
  async addJob(name: string, data: unknown, options: object = {}): Promise<QueueJob> {
    const { id } = await this.queue.add(name, data, toJobOptions(options as Record<string, unknown>));
    return (await this.getJob(id)) ?? new BoardJob(this.queue, gone(this.queue.name, id, name, data));
  }

  async clean(status: JobCleanStatus, graceMs: number): Promise<void> {
    const state = STATES[(status === 'wait' ? 'waiting' : status) as keyof typeof STATES];
    if (state === 'active')
      throw new WrongStateError(
        this.queue.name,
        'a job',
        'active',
        'wait for the end of its run, or cancel it',
      );
    await this.queue.remove({ state, olderThan: graceMs });
  }

  /** Removes the jobs that wait; delayed ones stay, as in BullMQ. */
  empty(): Promise<void> {
    return this.clean('wait', 0);
  }

  async promoteAll(): Promise<void> {
    await this.queue.promote({});
  }

  isPaused(): Promise<boolean> {
    return this.queue.isPaused();
  }

  async pause(): Promise<void> {
    await this.queue.pause();
  }

  async resume(): Promise<void> {
    await this.queue.resume();
  }

  async obliterate({ force = false }: { force?: boolean } = {}): Promise<void> {
    try {
      await this.queue.obliterate({ force });
    } catch (error) {
      // The board recognises by these words that jobs are active, and offers to force the deletion.
      if (error instanceof WrongStateError)
        throw new Error('Cannot obliterate queue with active jobs', { cause: error });
      throw error;
    }
  }

  /** The counters of today, and the minutes of the last hour, the newest first. Only `history` counts by the minute. */
  async getMetrics(type: MetricsType): Promise<QueueMetrics> {
    const engine = this.queue['engine'];
    const now = engine.now();
    const [{ total }, rows] = await Promise.all([
      this.queue.stats({ days: 1 }),
      engine.admin.minutes(this.queue.name, hoursOf(now - HOUR_MS, now), 'name'),
    ]);
    const [count, counter] = type === 'completed' ? [total.processed, COMPLETED] : [total.dead, DEAD];
    const minutes = Array.from({ length: HOUR_MS / MINUTE_MS }, emptyRow);
    for (const { minute, text } of rows) {
      const sum = minutes[Math.floor((now - minute) / MINUTE_MS)];
      if (sum) addStored(text, [sum]);
    }
    const [current = 0, ...data] = minutes.map((sum) => sum[counter]!);
    return { meta: { count, prevTS: Math.floor(now), prevCount: count - current }, data, count: data.length };
  }

  async getRedisInfo(): Promise<string | null> {
    const info = await this.queue['engine'].admin.serverInfo(this.queue.name);
    // bull-board does not know the name that Valkey 9 uses.
    return info?.replace(/^server_mode:/m, 'redis_mode:') ?? null;
  }

  override async getWorkers(): Promise<QueueWorker[]> {
    const { records } = await this.queue['engine'].processes.list();
    const now = this.queue['engine'].now();
    return records
      .filter((record) => worksOn(record, this.queue.name))
      .map(({ id, host, pid, startedAt }) => ({
        id,
        name: String(pid),
        addr: host,
        age: Math.max(0, Math.round((now - startedAt) / 1_000)),
      }));
  }

  override getQueueDefaultJobOptions(): QueueDefaultJobOptions {
    const { attempts, backoff } = this.queue['options'].policy;
    const shown =
      typeof backoff === 'number'
        ? { backoff }
        : typeof backoff === 'object' && 'type' in backoff
          ? { backoff: { type: backoff.type, delay: backoff.delay } }
          : {};
    return { attempts, ...shown };
  }

  /** The form of the board knows one limit; `queue.limits` has several. */
  async getGlobalConcurrency(): Promise<number | null> {
    return null;
  }

  async setGlobalConcurrency(concurrency: number): Promise<void> {
    throw new InvalidOptionError(
      'concurrency',
      'set with queue.limits.set({ concurrency }), or per process with @Processor(queue, { concurrency })',
      concurrency,
    );
  }

  getJobSchedulersCount(): Promise<number> {
    return this.queue.schedules.count();
  }

  async getJobSchedulers(): Promise<Omit<AppJobScheduler, 'queueName'>[]> {
    const found = await this.queue.schedules.list({ limit: MOST_SCHEDULES });
    return found.map(toScheduler);
  }

  removeJobScheduler(id: string): Promise<boolean> {
    return this.queue.schedules.remove(id);
  }

  override get supportsJobSchedulerUpdate(): boolean {
    return true;
  }

  /** Changes the times of the schedule. Its job and its other options do not change; `afterEnd` only fits an interval. */
  async updateJobScheduler(id: string, repeat: JobSchedulerRepeatOptions): Promise<JobSchedulerUpdateResult> {
    const there = await this.queue.schedules.get(id);
    if (!there) return 'not-found';
    const old = editableOf(there);
    const { startAt, immediately, jitter, overlap, missed, maxMissed, afterEnd } = old.rule as EveryTiming &
      ScheduleLimits;
    const { pattern, every, tz, limit, endDate } = repeat;
    const rule = {
      ...defined({ startAt, immediately, jitter, overlap, missed, maxMissed, limit, endAt: endDate }),
      ...(pattern === undefined
        ? { every, ...defined({ afterEnd }) }
        : { cron: pattern, ...defined({ tz }) }),
    };
    try {
      await this.queue.schedules.upsert(id, rule as ScheduleRule, old.template);
    } catch (error) {
      if (error instanceof InvalidOptionError) return 'invalid-schedule';
      throw error;
    }
    return 'updated';
  }

  override get supportsJobSchedulerRun(): boolean {
    return true;
  }

  async runJobSchedulerNow(scheduleId: string): Promise<QueueJob | 'not-found'> {
    const there = await this.queue.schedules.get(scheduleId);
    if (!there) return 'not-found';
    const { id } = await this.queue.schedules.runNow(scheduleId);
    const { name = '', data = null } = there.template ?? {};
    return (await this.getJob(id)) ?? new BoardJob(this.queue, gone(this.queue.name, id, name, data));
  }
}

/** A job as the board shows and changes it. */
class BoardJob implements QueueJob {
  readonly id: string;
  readonly opts: {
    readonly delay?: number;
    readonly attempts: number;
    readonly priority?: number;
    readonly group?: { readonly id: string };
  };
  /** The schedule that added the job. */
  readonly repeatJobKey?: string;

  constructor(
    private readonly queue: Queue,
    private readonly job: JobSnapshot,
  ) {
    const { id, attempts, priority, group } = job;
    // If this option differs from the `delay` of a delayed job, the board says that its time is unknown.
    const delay = job.state === 'delayed' ? delayOf(job) : job.delay;
    this.id = id;
    this.opts = {
      attempts,
      ...(delay > 0 && { delay }),
      ...(priority > 0 && { priority }),
      ...(group !== null && { group: { id: group } }),
    };
    const schedule = scheduleOf(id);
    if (schedule !== undefined) this.repeatJobKey = schedule;
  }

  promote(): Promise<void> {
    return this.queue.promote(this.id);
  }

  remove(): Promise<void> {
    return this.queue.remove(this.id);
  }

  async retry(): Promise<void> {
    await this.queue.retry(this.id);
  }

  async updateData(data: unknown): Promise<void> {
    await this.queue.update(this.id, { data });
  }

  async changeDelay(delay: number): Promise<void> {
    await this.queue.update(this.id, { delay });
  }

  async changePriority({ priority = 0 }: { priority?: number }): Promise<void> {
    await this.queue.update(this.id, { priority });
  }

  async getState(): Promise<BoardState> {
    const job = await this.queue.get(this.id);
    return job ? STATUS_OF[job.state] : 'unknown';
  }

  toJSON(): QueueJobJson {
    const { job } = this;
    const { failure, progress, createdAt, endedAt } = job;
    return {
      id: job.id,
      name: job.name,
      data: job.data ?? null,
      opts: this.opts,
      timestamp: createdAt?.getTime() ?? 0,
      processedBy: job.worker,
      // A dead job has no start. The board would count its run from 1970.
      processedOn: (job.startedAt ?? endedAt)?.getTime() ?? null,
      finishedOn: endedAt?.getTime() ?? null,
      delay: delayOf(job),
      progress: isShown(progress) ? progress : 0,
      attemptsMade: job.attempt,
      failedReason: failure ? [failure.reason, failure.message].filter(Boolean).join(': ') : '',
      stacktrace: stacksOf(job),
      returnvalue: job.result,
      priority: job.priority,
      stalledCounter: job.stalls,
      ...(this.repeatJobKey !== undefined && { repeatJobKey: this.repeatJobKey }),
    };
  }
}

function delayOf({ createdAt, dueAt }: JobSnapshot): number {
  return dueAt && createdAt ? Math.max(0, dueAt.getTime() - createdAt.getTime()) : 0;
}

/** One for each failed attempt that is kept, the last one in full. */
function stacksOf({ failure, failures }: JobSnapshot): string[] {
  const earlier = failures.filter(({ attempt }) => attempt !== failure?.attempt);
  const stacks = earlier.map(({ name, message, stack = '' }) => `${name}: ${message}\n${stack}`);
  return failure?.stack ? [...stacks, failure.stack] : stacks;
}

/** A job that ended before it could be read, with the fields that are known from its add. */
function gone(queue: string, id: string, name: string, data: unknown): JobSnapshot {
  return {
    id,
    queue,
    name,
    state: 'completed',
    data,
    attempt: 1,
    attempts: 1,
    priority: 0,
    group: null,
    cost: 1,
    headers: {},
    delay: 0,
    stalls: 0,
    createdAt: new Date(),
    dueAt: null,
    startedAt: null,
    endedAt: null,
    failure: null,
    failures: [],
    progress: null,
    logs: [],
    result: null,
    cancelReason: null,
    durationUs: null,
    worker: null,
  };
}

/** The board shows these kinds of progress. */
function isShown(value: unknown): value is string | boolean | number | object {
  return (
    ['string', 'boolean', 'number'].includes(typeof value) || (typeof value === 'object' && value !== null)
  );
}

function toScheduler(one: ScheduleSnapshot): Omit<AppJobScheduler, 'queueName'> {
  const rule: { cron?: string; every?: unknown; tz?: string } & Omit<ScheduleRule, 'cron' | 'every'> =
    one.rule ?? {};
  const { id, template, nextAt, lastAt, lastJobId, fired } = one;
  return {
    id,
    name: template?.name ?? '',
    ...defined({
      pattern: rule.cron,
      every: rule.every === undefined ? undefined : parseDuration(rule.every, 'every'),
      tz: rule.tz,
      limit: rule.limit,
      startDate: toMs(rule.startAt),
      endDate: toMs(rule.endAt),
      next: nextAt?.getTime(),
      lastRun: lastAt?.getTime(),
      lastRunJobId: lastJobId ?? undefined,
    }),
    iterationCount: fired,
    ...(template && { template: { data: template.data, opts: { ...template.options } } }),
  };
}

function toMs(at: Date | number | undefined): number | undefined {
  return at === undefined ? undefined : Number(at);
}

function defined<T extends object>(fields: T): { [K in keyof T]?: NonNullable<T[K]> } {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined && value !== null),
  ) as never;
}

/** Options of the form of the board that Godwit calls differently. `add` checks all others. */
function toJobOptions({ jobId, removeOnComplete, group, ...options }: Record<string, unknown>): JobOptions {
  return defined({
    ...options,
    id: jobId,
    // The board sends the options of a job back as it got them.
    group: (group as { id?: unknown } | undefined)?.id ?? group,
    retention: retentionOf(removeOnComplete, 'addJob().options.removeOnComplete'),
  }) as JobOptions;
}

/** `{ age }` in seconds is a retention; `true` deletes at once, which is the default here. */
function retentionOf(value: unknown, path: string): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (value === true) return 0;
  const { age } = value as { age?: unknown };
  if (typeof age === 'number') return age * 1_000;
  throw new InvalidOptionError(path, 'true, or { age } in seconds', value);
}

/**
 * Shows a queue on a board of `@bull-board/api` 9, with all its functions: pages, search by id, retry, promote, remove, clean,
 * empty, add, pause, schedules. Dead jobs are in the tab "failed". It needs `@bull-board/api` and one of its server adapters. The
 * board has no login, so protect its route.
 *
 * @throws {InvalidOptionError} if it is not given the handle of a queue
 * @example
 * const serverAdapter = new ExpressAdapter();
 * serverAdapter.setBasePath('/queues');
 * createBullBoard({ queues: [new GodwitAdapter(app.get(getQueueToken('email')))], serverAdapter });
 * app.use('/queues', serverAdapter.getRouter());
 */
export const GodwitAdapter: {
  /** A queue by its handle, `app.get(getQueueToken(name))`. */
  new (queue: Queue, options?: GodwitAdapterOptions): BaseAdapter;
} = Adapter;
