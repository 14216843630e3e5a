import type { CancelAnswer } from '../contract/admin-verbs.js';
import { BULK_STATES } from '../contract/bulk-act-verbs.js';
import type { QueueEngine } from '../contract/engine.js';
import { checkActor } from '../contract/actions.js';
import { JobNotFoundError, WrongStateError } from '../errors.js';
import type { AuditReport, RepairReport } from '../job/audit-report.js';
import { isDefinition, type AnyDefinition, type InputOf, type ResultOf } from '../job/define-job.js';
import { checkJobId } from '../job/job-id.js';
import type { DataIn, DefinitionIn, InputIn, JobIn, NameIn, ResultIn } from '../job/queue-jobs.js';
import type { QueueStats } from '../contract/stats.js';
import type { JobCounts, JobState } from '../job/job-state.js';
import { quoted } from '../job/text.js';
import type { JobOptions } from '../options/job-options.js';
import { boolean, field, integer, refuse, shape } from '../options/check.js';
import type { ResolvedQueueOptions } from '../options/module-options.js';
import { addAndWait, checkWait, type PrepareWait } from './add-and-wait.js';
import type {
  BulkItem,
  BulkJob,
  BulkJobIn,
  DetailedWaitOptions,
  WaitAnswer,
  WaitOptions,
} from './add-arguments.js';
import type { AddResult } from './add-result.js';
import { addInChunks } from './bulk.js';
import {
  actOf,
  actOnAll,
  checkCancelReason,
  checkEvent,
  checkFilter,
  isFilter,
  removeAll,
  type CancelFilter,
  type JobFilter,
  paceOf,
  type BulkPace,
} from './bulk-acts.js';
import { DeadJobs } from './dead-jobs.js';
import { enqueuerOf, type AddLimits, type Enqueuer } from './enqueuer.js';
import { JobFactory } from './job-factory.js';
import { addAgain, parkedError, updateJob, type JobChanges, type UpdateResult } from './job-changes.js';
import {
  checkJobList,
  listJobs,
  countBy,
  type CountOptions,
  type GroupedCounts,
  encodeCursor,
  type JobListOptions,
  type JobPage,
} from './job-list.js';
import { makeJob } from './job-maker.js';
import { startTimes, toSnapshot, type JobSnapshot, type SnapshotIn } from './job-snapshot.js';
import { listGroups, QueueGroup, QueueLimits, untilNoneStarts, type GroupPage } from './queue-limits.js';
import { recordedQueue } from './recorded-queue.js';
import { BulkActs } from './bulk-act-runs.js';
import { Schedules } from './schedules.js';

export type { AddResult, BulkItem, BulkJob, BulkJobIn, DetailedWaitOptions, WaitAnswer, WaitOptions };

const readObliterate = shape({ force: field('force', boolean) });
const statsOptions = shape({ days: field('days', integer(1, 90)) });
const DEFAULT_STATS_DAYS = 7;

/**
 * The handle of one queue: add jobs, look them up, manage the queue. Inject it with `@InjectQueue('email')`.
 *
 * With a type parameter the compiler checks names and data: types of data by name, or an object or a tuple of definitions. If you
 * add a job by a definition, its schema validates the data too.
 *
 * @example
 * ;@Injectable()
 * export class Signup {
 *   constructor(@InjectQueue('email') private readonly emails: Queue<{ welcome: { to: string }; digest: { week: number } }>) {}
 *
 *   async done(to: string) {
 *     await this.emails.add('welcome', { to }, { delay: '10m' });
 *   }
 * }
 *
 * @example
 * export const EmailJobs = {
 *   welcome: defineJob('email', 'welcome', z.object({ to: z.email() })),
 *   purge: defineJob<{ olderThan: string }, 'purge'>('email', 'purge'),
 * };
 * const emails = app.get<Queue<typeof EmailJobs>>(getQueueToken('email'));
 * await emails.add('purge', { olderThan: '1d' });
 * await emails.add(EmailJobs.welcome, { to: 'ada@example.org' });
 */
export class Queue<Jobs = any> {
  /** Its name. */
  readonly name: string;
  /** Rules that add jobs at certain times: cron expressions and intervals. */
  readonly schedules: Schedules<Jobs>;
  /** Dead jobs: list, retry or remove them. */
  readonly dead: DeadJobs<Jobs>;
  /** Acts on many jobs in the background: start, watch and stop them. */
  readonly bulkActs: BulkActs<Jobs>;
  /** Limits of how often jobs start and how many run at once, across all processes: list and change them. */
  readonly limits: QueueLimits;
  private ownEnqueuer: Enqueuer | undefined;
  private readonly factory: JobFactory;

  /** @internal */
  constructor(
    private readonly engine: QueueEngine,
    private readonly options: ResolvedQueueOptions,
    private readonly settings: { readonly enqueue: AddLimits },
    private readonly prepareWait: PrepareWait,
  ) {
    this.name = options.name;
    this.dead = new DeadJobs<Jobs>(engine, options);
    this.bulkActs = new BulkActs<Jobs>(engine, options.name);
    this.limits = new QueueLimits(engine, options.name, options);
    this.factory = new JobFactory(options, () => engine.now());
    this.schedules = new Schedules<Jobs>(engine, options, (job) => this.enqueuer.addOrReject(job));
  }

  /** Created at the first add, because until the application starts another module may set the options of the queue. */
  private get enqueuer(): Enqueuer {
    return (this.ownEnqueuer ??= enqueuerOf(this.engine, this.options, this.settings.enqueue));
  }

  /**
   * Adds a job, by its name or by a definition. Resolves when the job is stored in Redis.
   *
   * @throws {InvalidPayloadError | PayloadTooLargeError | InvalidOptionError | InvalidJobIdError | InvalidJobNameError}
   * @throws {SchemaViolationError} if the data, after a JSON round trip, does not match the schema of the definition
   * @throws {RedisUnavailableError} with `applied` after `enqueueTimeout`; repeat it with the same `id`
   * @throws {EnqueueBufferFullError} if too many adds already wait for Redis in this process
   * @throws {RedisRefusedError} if Redis refuses, for example because it is full
   * @throws {NotReplicatedError} if `durability` asks for replicas that did not confirm in time
   */
  add<Job extends JobIn<Jobs>>(job: Job, data: InputIn<Jobs, Job>, options?: JobOptions): Promise<AddResult>;
  // The promise is created where it is settled. An async function would create two more for every job.
  add(job: string | AnyDefinition, data: unknown, options?: JobOptions): Promise<AddResult> {
    if (isDefinition(job)) return this.addDefined(job, data, options);
    try {
      return this.enqueuer.add(
        makeJob(this.options, { name: job, data, options }, this.engine.now(), 'add()'),
      );
    } catch (error) {
      return Promise.reject(error as Error);
    }
  }

  /** @internal The checks of `add` for a job by its name. They need no Redis. */
  checkAdd(name: string, data: unknown, options?: JobOptions): void {
    makeJob(this.options, { name, data, options }, this.engine.now(), 'add()');
  }

  /**
   * Adds many jobs, of any names or of one definition. Up to 1,000 jobs and 32 MiB are added all or none. A larger list is sent
   * in chunks of at most 500 jobs and 4 MiB, each all or none. Only `maxWaiting` with `'dropOldest'` may drop a part of a chunk. The
   * strictest `durability` among the jobs of a call applies to all of them. The results are in the order of the jobs.
   *
   * @throws {PartialBulkError} if a later chunk failed; it contains the results of the stored jobs
   * @throws everything `add` throws, with the index of the entry in the message
   */
  async addBulk(jobs: readonly BulkJobIn<Jobs>[]): Promise<AddResult[]>;
  async addBulk<Definition extends DefinitionIn<Jobs>>(
    job: Definition,
    items: readonly BulkItem<InputOf<Definition>>[],
  ): Promise<AddResult[]>;
  async addBulk(
    jobs: readonly BulkJob[] | AnyDefinition,
    items?: readonly BulkItem<unknown>[],
  ): Promise<AddResult[]> {
    const made = isDefinition(jobs) ? await this.factory.ofItems(jobs, items!) : this.factory.ofEntries(jobs);
    return addInChunks(this.name, made, this.enqueuer);
  }

  /**
   * Adds a job and waits for its end. With `detail: true`, the answer also contains the id, and whether another job already had
   * it.
   *
   * @typeParam Result what the handler returns, for a job without a definition
   * @returns the result of the handler, after a JSON round trip
   * @throws {JobFailedError} if it died, was removed or was cancelled
   * @throws {ResultNotKeptError} if it completed, but its result is not stored
   * @throws {JobNotFoundError} if the job is gone and it is unknown how it ended
   * @throws {WaitTimeoutError} if the job did not end in time; the job is not stopped
   * @throws {InvalidOptionError} for its options, the reason of `signal` if that aborts, and everything `add` throws
   * @example
   * const { result, duplicate } = await emails.addAndWait('render', { week: 7 }, { id: 'render-7', detail: true });
   * console.log(result, duplicate); // true: the result of the job that was there
   */
  async addAndWait<Result = never, Name extends NameIn<Jobs> = NameIn<Jobs>>(
    name: Name,
    data: InputIn<Jobs, Name>,
    options: DetailedWaitOptions,
  ): Promise<WaitAnswer<[Result] extends [never] ? ResultIn<Jobs, Name> : NoInfer<Result>>>;
  async addAndWait<Definition extends DefinitionIn<Jobs>>(
    job: Definition,
    data: InputOf<Definition>,
    options: DetailedWaitOptions,
  ): Promise<WaitAnswer<ResultOf<Definition>>>;
  async addAndWait<Result = never, Name extends NameIn<Jobs> = NameIn<Jobs>>(
    name: Name,
    data: InputIn<Jobs, Name>,
    options?: WaitOptions,
  ): Promise<[Result] extends [never] ? ResultIn<Jobs, Name> : NoInfer<Result>>;
  async addAndWait<Definition extends DefinitionIn<Jobs>>(
    job: Definition,
    data: InputOf<Definition>,
    options?: WaitOptions,
  ): Promise<ResultOf<Definition>>;
  async addAndWait(
    job: string | AnyDefinition,
    data: unknown,
    options: WaitOptions | DetailedWaitOptions = {},
    onAdded?: (added: AddResult) => void,
  ): Promise<any> {
    const waiting = checkWait(options, this.options.policy.retentionMs);
    const request = { name: job as string, data, options: waiting.job, awaited: true };
    const plain = isDefinition(job)
      ? await this.factory.ofDefinition(job, data, waiting.job, 'addAndWait()', true)
      : makeJob(this.options, request, this.engine.now(), 'addAndWait()');
    const made = { ...plain, given: options };
    waiting.signal?.throwIfAborted();
    return addAndWait(
      this.prepareWait(this.name, made.id),
      made,
      (one) => this.enqueuer.addOrReject(one),
      waiting,
      onAdded,
    );
  }

  /**
   * Everything about one job, or null if there is none with this id. Completed jobs are deleted, unless they have a `retention`.
   *
   * @throws {InvalidJobIdError}
   * @throws {RedisUnavailableError | RedisRefusedError}
   */
  async get(id: string): Promise<SnapshotIn<Jobs> | null>;
  async get<Data>(id: string): Promise<JobSnapshot<Data> | null>;
  async get(id: string): Promise<JobSnapshot<any, any> | null> {
    const stored = await this.engine.admin.get(this.name, checkJobId(id));
    if (!stored) return null;
    return toSnapshot(stored, this.options, await startTimes(this.engine, this.name, [stored]));
  }

  /**
   * Lists jobs of one or several states, in pages. A cursor stays valid while jobs come, go and move: a job that keeps its place is listed
   * exactly once. The call works in small steps, so it does not block Redis.
   *
   * @throws {InvalidOptionError | InvalidJobNameError}
   * @throws {RedisUnavailableError | RedisRefusedError}
   * @example
   * const { jobs, cursor } = await emails.jobs({ state: 'waiting', name: 'welcome', limit: 20, data: false });
   * console.log(jobs.map((job) => job.id), cursor); // pass the cursor for the next page
   * await emails.jobs({ state: ['active', 'waiting'], name: ['welcome', 'digest'], offset: 40, limit: 20 });
   */
  async jobs(options: JobListOptions<NameIn<Jobs>>): Promise<JobPage<SnapshotIn<Jobs>>> {
    const page = await listJobs(this.engine, this.name, checkJobList(options));
    const starts = await startTimes(this.engine, this.name, page.jobs);
    const jobs = page.jobs.map((job) => toSnapshot(job, this.options, starts) as SnapshotIn<Jobs>);
    return { jobs, cursor: encodeCursor(page.next), examined: page.examined };
  }

  /**
   * Counts the jobs in each state; completed and cancelled jobs count only if they are kept. With `by`, counts the jobs of one
   * state by name or priority. Such a call looks at up to 10,000 jobs, in small steps, and returns their number in `examined`.
   *
   * @throws {InvalidOptionError}
   * @example
   * const { counts, isComplete } = await emails.counts({ by: 'name', state: 'waiting' });
   * console.log(counts['welcome'] ?? 0, isComplete);
   *
   * @throws {RedisUnavailableError | RedisRefusedError}
   */
  async counts(): Promise<JobCounts>;
  async counts(options: CountOptions): Promise<GroupedCounts>;
  async counts(options?: CountOptions): Promise<JobCounts | GroupedCounts> {
    if (options !== undefined) return countBy(this.engine, this.name, options);
    const { admin } = this.engine;
    const { waiting, delayed, active, completed, dead, cancelled } = await admin.counts(this.name);
    return { waiting, delayed, active, completed, dead, cancelled };
  }

  /**
   * Returns the handle of one group: read its state, change its limits and weight, pause it.
   *
   * @throws {InvalidOptionError} if it cannot be the name of a group
   * @example
   * await emails.group('tenant-7').set({ concurrency: 2 });
   */
  group(name: string): QueueGroup {
    return new QueueGroup(this.engine, this.name, name);
  }

  /**
   * A handle of this queue that records what a person or program does with it: who, what, which, and the result, but no data.
   * `QueueInspector.actions` lists it. Each change takes one more call to Redis, and resolves when it is recorded; changes by a
   * filter are recorded at their start too. If an action cannot be recorded, it is logged. Reading is not recorded.
   *
   * @param actor who acts: 1 to 256 bytes, such as the name of the user
   * @throws {InvalidOptionError}
   * @example
   * await emails.as('ada@example.org').dead.retry('welcome-7');
   */
  as(actor: string): Queue<Jobs> {
    const { actions } = this.engine;
    return recordedQueue(this as Queue<Jobs>, {
      actions,
      actor: checkActor(actor, 'as()'),
      queue: this.name,
    });
  }

  /**
   * Lists groups that have waiting jobs, or whose concurrency or rate counts jobs that have started, in pages and in no order. A delayed
   * job of a group is counted once it is due and a worker has claimed jobs after that.
   *
   * @throws {InvalidOptionError}
   * @throws {RedisUnavailableError | RedisRefusedError}
   * @example
   * const { groups, cursor } = await emails.groups({ limit: 100 });
   * console.log(groups.map(({ name, waiting }) => `${name}: ${waiting}`), cursor);
   */
  async groups(options: { readonly limit?: number; readonly cursor?: string } = {}): Promise<GroupPage> {
    return listGroups(this.engine, this.name, options);
  }

  /**
   * Counters per day (UTC), in total and by job name; kept for 90 days.
   *
   * @param options `days`: today and the days before, 1 to 90; by default 7
   * @throws {InvalidOptionError}
   * @example
   * const { days, total } = await emails.stats({ days: 30 });
   * console.log(days[0]?.date, days[0]?.processed, total.byName['welcome']?.failed ?? 0);
   */
  async stats(options: { readonly days?: number } = {}): Promise<QueueStats> {
    const { days = DEFAULT_STATS_DAYS } = statsOptions(options, 'stats()', refuse) ?? {};
    return this.engine.admin.stats(this.name, days);
  }

  /**
   * Whether the queue is paused. A pause applies to every process.
   *
   * @throws {RedisUnavailableError | RedisRefusedError}
   */
  async isPaused(): Promise<boolean> {
    return (await this.engine.admin.counts(this.name)).paused;
  }

  /**
   * From now on no process claims from this queue; running jobs continue. Resolves when no worker will start a job that it had
   * claimed before: at once if no job is active, otherwise after a quarter of a second. The result is false if the queue was
   * paused already.
   *
   * @throws {RedisUnavailableError | RedisRefusedError}
   */
  async pause(): Promise<boolean> {
    const isNew = await this.engine.admin.pause(this.name);
    await untilNoneStarts(this.engine, this.name);
    return isNew;
  }

  /**
   * Ends a `pause`. Resolves to false if the queue was not paused.
   *
   * @throws {RedisUnavailableError | RedisRefusedError}
   */
  resume(): Promise<boolean> {
    return this.engine.admin.resume(this.name);
  }

  /**
   * Removes a job that is not running, or all jobs that match a filter. Each removal writes an event `removed`. The call works in
   * small steps, so it does not block Redis.
   *
   * For a filter, `pace` has a `rate`, `onProgress` and a `signal` that stops the call. Jobs that are added or end after the call
   * began are then not changed. This process does the work: if it ends, the other jobs stay.
   *
   * @returns for a filter, the number of removed jobs
   * @throws {JobNotFoundError | InvalidJobIdError} for one job
   * @throws {WrongStateError} for one job, while it runs
   * @throws {InvalidOptionError | InvalidJobNameError} for a filter
   * @example
   * await queue.remove('welcome-7');
   * console.log(await queue.remove({ state: 'completed', olderThan: '2d' }));
   * await queue.remove({ state: 'dead', name: 'digest' }, { rate: { max: 100, per: '1s' } });
   */
  async remove(id: string): Promise<void>;
  async remove(
    filter: JobFilter<NameIn<Jobs>, Exclude<JobState, 'active'>>,
    pace?: BulkPace,
  ): Promise<number>;
  async remove(which: string | JobFilter, pace?: BulkPace): Promise<number | void> {
    if (isFilter(which)) return removeAll(this.engine, this.name, which, pace);
    const answer = await this.engine.admin.remove(this.name, checkJobId(which));
    if (answer === 'not-found') throw new JobNotFoundError(this.name, which);
    if (answer === 'active')
      throw new WrongStateError(
        this.name,
        `job ${quoted(which)}`,
        'active',
        'wait for the end of its run, or cancel it',
      );
  }

  /**
   * Ends a job in any state, from any process: it is never retried.
   *
   * `'cancelled'`: the job had not started and is gone. `'signalled'`: the job runs. Within a heartbeat (a quarter of
   * `lease.duration`: 2 s) its `job.signal` aborts with a `JobAbortedError` with reason `cancelled`. If its handler then throws,
   * or its worker dies or stops, the job ends as cancelled. If the handler returns normally, the job is completed. A second call
   * does not change the reason. `'not-found'`: there is no such job, or it has completed or died.
   *
   * With a filter it cancels all matching jobs, in small steps; `pace` is as in `remove`. A filter without a state matches waiting,
   * delayed and active jobs.
   *
   * @returns for a filter, the number of jobs that were cancelled or signalled
   * @param reason one line of 1 to 1,000 bytes, passed to the event `cancelled`, the signal and callers that wait for the job
   * @throws {InvalidJobIdError | InvalidOptionError | InvalidJobNameError}
   * @example
   * if ((await queue.cancel(id, 'the customer changed her mind')) === 'signalled') console.log('it ends soon');
   */
  async cancel(id: string, reason?: string): Promise<CancelAnswer>;
  async cancel(filter: CancelFilter<NameIn<Jobs>>, reason?: string, pace?: BulkPace): Promise<number>;
  async cancel(
    which: string | CancelFilter,
    reason?: string,
    pace?: BulkPace,
  ): Promise<CancelAnswer | number> {
    const text = checkCancelReason(reason, 'cancel().reason');
    const { admin } = this.engine;
    if (!isFilter(which)) return admin.cancel(this.name, checkJobId(which), text);
    const filter = checkFilter(which, 'cancel()', BULK_STATES.cancel);
    const cancel = actOf(this.engine, this.name, 'cancel', text);
    return actOnAll(this.engine, this.name, filter, cancel, paceOf(pace, 'cancel()'));
  }

  /**
   * Changes a waiting or delayed job: its data, when it runs, its priority. With a definition, the schema checks the data. Either
   * all changes apply or none; an event `updated` is written. The handler of a running job calls `job.update` instead.
   *
   * @throws {JobNotFoundError}
   * @throws {WrongStateError} with the state, if the job runs or has ended
   * @throws {InvalidOptionError | InvalidJobIdError | InvalidPayloadError | PayloadTooLargeError}
   * @throws {SchemaViolationError}
   * @example
   * const { state, dueAt } = await emails.update('digest-7', { delay: '2h', priority: 3 });
   * console.log(state, dueAt);
   */
  async update(id: string, changes: JobChanges<DataIn<Jobs>>): Promise<UpdateResult>;
  async update<Definition extends DefinitionIn<Jobs>>(
    job: Definition,
    id: string,
    changes: JobChanges<InputOf<Definition>>,
  ): Promise<UpdateResult>;
  async update(first: string | AnyDefinition, second: unknown, third?: unknown): Promise<UpdateResult> {
    if (!isDefinition(first)) return updateJob(this.engine, this.options, first, second);
    const definition = this.factory.ownDefinition(first, 'update()');
    return updateJob(this.engine, this.options, second as string, third, definition);
  }

  /**
   * Queues a delayed job now, or all delayed jobs that match a filter; `pace` is as in `remove`. Jobs that wait for their next
   * attempt are delayed jobs, too; jobs of `keepLast` that wait for the end of another one stay delayed.
   *
   * @returns for a filter, the number of promoted jobs
   * @throws {JobNotFoundError | WrongStateError | InvalidJobIdError} for one job
   * @throws {InvalidOptionError | InvalidJobNameError} for a filter
   * @example
   * console.log(await queue.promote({ name: 'digest' })); // `{}`: all delayed jobs
   */
  async promote(id: string): Promise<void>;
  async promote(filter: Omit<JobFilter<NameIn<Jobs>>, 'state' | 'reason'>, pace?: BulkPace): Promise<number>;
  async promote(
    which: string | Omit<JobFilter, 'state' | 'reason'>,
    pace?: BulkPace,
  ): Promise<number | void> {
    if (isFilter(which)) {
      const filter = checkFilter(which, 'promote()', BULK_STATES.promote);
      const promote = actOf(this.engine, this.name, 'promote');
      return actOnAll(this.engine, this.name, filter, promote, paceOf(pace, 'promote()'));
    }
    const answer = await this.engine.admin.promoteNow(this.name, checkJobId(which));
    if (answer === 'not-found') throw new JobNotFoundError(this.name, which);
    if (answer === 'parked') throw parkedError(this.name, which);
    if (answer === 'not-delayed')
      throw new WrongStateError(
        this.name,
        `job ${quoted(which)}`,
        'not delayed',
        'only delayed jobs are promoted',
      );
  }

  /**
   * Queues a job that has ended again, with its id, data and options. The job must be kept: completed, cancelled or dead (as
   * `dead.retry`). It is queued now; its `delay` and `deadline` no longer apply. The data of its first run (result, log,
   * attempts) is deleted. If several processes call this at once, one of them queues the job.
   *
   * @throws {JobNotFoundError | InvalidJobIdError}
   * @throws {WrongStateError} with the state, if the job has not ended
   * @throws {DuplicateJobError} if the job has `unique`, and another job that has not ended has its key
   * @throws everything `add` throws
   * @example
   * await queue.retry('report-2026-07');
   */
  async retry(id: string): Promise<void> {
    const answer = await addAgain(this.engine, this.options, id, (job) => this.enqueuer.addOrReject(job));
    if (answer === 'dead') await this.dead.retry(id);
  }

  /**
   * Writes an event of the application. `QueueEvents` and `@OnQueueEvent('published')` receive it, in order with the events of
   * jobs, and it is kept as long as they are. If Redis does not reply, the event may or may not be written; repeating the call
   * may write it twice.
   *
   * @param payload any JSON of at most 1,000 bytes
   * @throws {InvalidOptionError | InvalidPayloadError | PayloadTooLargeError}
   * @throws {WrongStateError} if the queue keeps no events
   * @throws {RedisUnavailableError | RedisRefusedError}
   * @example
   * await queue.publish('imported', { rows: 3_000 });
   */
  async publish(name: string, payload?: unknown): Promise<void> {
    await this.engine.admin.publish(this.name, name, checkEvent(this.options, name, payload));
  }

  /**
   * Deletes the queue with everything in it, including schedules and counters, in one step; Redis frees the memory in the
   * background. Outcomes of jobs that were running are ignored. Event ids continue to rise, so readers can continue. The limits in
   * the code stay.
   *
   * @throws {WrongStateError} while jobs run, unless `force`
   */
  async obliterate(options: { readonly force?: boolean } = {}): Promise<void> {
    const { force = false } = readObliterate(options, 'obliterate()', refuse)!;
    if ((await this.engine.admin.obliterate(this.name, force)) === 'active') {
      throw new WrongStateError(
        this.name,
        'a job',
        'active',
        'pause the queue and let its runs end, or use { force: true }',
      );
    }
  }

  /**
   * Finds every job that is not in exactly one place with its data, and every running job without a lease. There are none unless
   * keys were deleted, evicted or written by other programs. The audit changes nothing and may run at any time. It reads every id
   * (in small steps), so use it by hand and in tests, not as a health check.
   *
   * @throws {RedisUnavailableError | RedisRefusedError}
   */
  audit(): Promise<AuditReport> {
    return this.engine.admin.audit(this.name);
  }

  /**
   * Fixes what `audit` finds, while workers continue: a job without data becomes dead as `corrupt`; a job in no list is queued
   * again; a job in two places keeps the later of its states; active jobs without a worker are queued again and a stall is
   * counted; leftovers of deleted jobs are removed. Safe to repeat; afterwards `audit` finds nothing.
   *
   * @throws {RedisUnavailableError | RedisRefusedError}
   */
  repair(): Promise<RepairReport> {
    return this.engine.admin.repair(this.name, this.options.lease.maxStalls);
  }

  private async addDefined(job: AnyDefinition, data: unknown, options?: JobOptions): Promise<AddResult> {
    return this.enqueuer.add(await this.factory.ofDefinition(job, data, options, 'add()'));
  }
}
