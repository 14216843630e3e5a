import { Log } from '../contract/log.js';
import type { GroupCounts, LimitState } from '../contract/limit-verbs.js';
import { bulkActsOf, type BulkAct } from '../contract/bulk-act-verbs.js';
import type { QueueEngine } from '../contract/engine.js';
import { within } from '../contract/retry.js';
import type { ScheduleVerbs } from '../contract/schedule-verbs.js';
import {
  InvalidOptionError,
  RedisRefusedError,
  RedisUnavailableError,
  UnknownQueueError,
} from '../errors.js';
import type { JobCounts } from '../job/job-state.js';
import { checkQueueName } from '../job/job-id.js';
import { messageOf } from '../errors/thrown.js';
import { counted, listed, quoted } from '../job/text.js';
import { field, readable, refuse, rule, shape } from '../options/check.js';
import { ProcessOrders } from './process-orders.js';
import { readActionsCall, toAction, type ActionPage, type ActionsOptions } from './queue-actions.js';
import { readSpan, seriesOf, type QueueSeries, type SeriesOptions } from './queue-series.js';
import { worksOn, type PoolRecord, type ProcessRecord, type RunningJob } from '../contract/process-verbs.js';

/** The state of a queue at the time of the call. */
export interface QueueInfo {
  /** Name of the queue. */
  readonly name: string;
  /** How many jobs are in each state. */
  readonly counts: JobCounts;
  /** Whether the queue is paused, for every process. */
  readonly paused: boolean;
  /**
   * How long the oldest waiting job has waited since it was first due, in ms. Jobs that have run before or were retried do not
   * count; null if no other job waits.
   */
  readonly oldestWaitingMs: number | null;
}

/** Options of `workers()`. */
export interface WorkersOptions {
  /**
   * Lists only processes that work on this queue, with its pools and running jobs. The queue need not be registered here. The pool
   * may be missing in a process that has so many that some are left out (`morePools`).
   *
   * @default all
   */
  readonly queue?: string;
}

const readWorkers = shape({
  queue: field(
    'queue',
    rule((name: unknown) => checkQueueName(name)),
  ),
});

/** How many queues are queried at once. */
const AT_ONCE = 50;
/** If some of them have not answered by then, all others are queried at once. */
const SLOW_MS = 500;
/** How many unreadable entries are remembered, so that each is logged once. */
const MAX_LOGGED = 1000;

/**
 * Lists worker processes with the jobs they run, and queues with their counts, for dashboards and health checks. Inject it by its
 * class. It also works in processes that only add jobs.
 *
 * @example
 * constructor(private readonly inspector: QueueInspector) {}
 * ;@Get('workers') workers() { return this.inspector.workers(); }
 */
export class QueueInspector {
  private readonly logger = new Log('QueueInspector');
  /** Orders to worker processes: pause, resume, quiet. */
  readonly processes: ProcessOrders;
  private readonly logged = new Set<string>();

  /** @internal */
  constructor(
    private readonly engine: Pick<
      QueueEngine,
      'actions' | 'admin' | 'bulkActs' | 'limits' | 'processes' | 'schedules' | 'now'
    >,
    private readonly names: () => readonly string[],
    processes = new ProcessOrders(engine.processes),
  ) {
    this.processes = processes;
  }

  /**
   * The live worker processes of this prefix, sorted by host and process id. A process that stops disappears at once, one that crashes
   * within the lease (`forRoot().lease.duration`). The information is at most a quarter of the lease old, unless a handler blocks the
   * event loop of its process.
   *
   * @throws {InvalidOptionError | InvalidQueueNameError}
   * @throws {RedisUnavailableError}
   * @example
   * for (const { host, pid, pools } of await inspector.workers({ queue: 'media' })) {
   *   for (const { name, id, since } of pools.flatMap((pool) => pool.jobs)) console.log(host, pid, name, id, since);
   * }
   */
  async workers(options: WorkersOptions = {}): Promise<WorkerInfo[]> {
    const { queue } = readWorkers(options, 'workers()', refuse)!;
    return (await this.allWorkers(queue)).workers;
  }

  /**
   * The worker processes that went silent in the last 10 minutes, with their last reports: they were killed, hang as a whole, or do not reach
   * Redis. Other workers run their jobs. A process that stops is not among them, nor one whose host and process id a new process has.
   *
   * @throws {InvalidOptionError | InvalidQueueNameError}
   * @throws {RedisUnavailableError}
   * @example
   * for (const { host, pid, silentMs } of await inspector.silentWorkers()) console.log(host, pid, silentMs);
   */
  async silentWorkers(options: WorkersOptions = {}): Promise<SilentWorkerInfo[]> {
    const { queue } = readWorkers(options, 'silentWorkers()', refuse)!;
    return (await this.allWorkers(queue)).silent;
  }

  /** @internal The living processes and those that went silent, read at once. */
  async allWorkers(queue?: string): Promise<{ workers: WorkerInfo[]; silent: SilentWorkerInfo[] }> {
    const { records, silent, unreadable } = await this.engine.processes.list();
    for (const { process, why } of unreadable) this.logUnreadable(process, why);
    const shown = <T extends WorkerInfo>(all: readonly T[]): T[] => {
      const sorted = all.toSorted(byPlace);
      return queue === undefined ? sorted : sorted.flatMap((worker) => ofQueue(worker, queue));
    };
    const lost = silent.map(({ record, silentMs }) => ({ ...toWorkerInfo(record), silentMs }));
    return { workers: shown(records.map(toWorkerInfo)), silent: shown(lost) };
  }

  /**
   * All queues of this prefix with their counts, or only the named ones. First come the queues of this application, in the order
   * in which they were registered. Then come, by name, all other queues that any process has added jobs or schedules to or works on.
   * Obliterated queues are not listed.
   *
   * @throws {InvalidOptionError | InvalidQueueNameError}
   * @throws {UnknownQueueError} if there is no queue with one of the names
   * @throws {RedisUnavailableError}
   * @example
   * for (const { name, counts } of await inspector.queues()) console.log(name, counts.waiting);
   */
  async queues(only?: readonly string[]): Promise<QueueInfo[]> {
    return readEach(await this.namesOf(only), (name) => this.info(name));
  }

  /**
   * @internal The names of all queues of this prefix, or the given ones.
   *
   * @throws {UnknownQueueError} if there is no queue with one of the names
   */
  async namesOf(only?: readonly string[]): Promise<readonly string[]> {
    if (only !== undefined && !readable(only, 'queues()', () => Array.isArray(only)))
      throw new InvalidOptionError('queues()', 'a list of names of queues, or nothing for all', only);
    const registered = this.registered;
    const isHere = only?.every((name) => registered.includes(checkQueueName(name)));
    let known = registered;
    if (!isHere) {
      try {
        known = await this.known();
      } catch (error) {
        // On Redis Cluster, the node with the list may be down while the nodes with these queues are up.
        if (only && error instanceof RedisUnavailableError && (await this.haveJobs(only))) return only;
        throw error;
      }
    }
    const unknown = only?.find((name) => !known.includes(name));
    if (unknown !== undefined) throw new UnknownQueueError(unknown, known);
    return only ?? known;
  }

  /**
   * The history of a queue: counters and percentiles for each step, for the whole time, by job name, and by the host on which jobs
   * ran. Only processes with `forRoot({ history: true })` count; the newest counters are up to 10 s late. The last 72 hours are
   * kept. The queue need not be registered here.
   *
   * @throws {InvalidOptionError | InvalidQueueNameError}
   * @throws {RedisUnavailableError}
   * @example
   * const { points } = await inspector.series('email', { from: Date.now() - 3_600_000, step: '5m' });
   * for (const { at, completed, run } of points) console.log(at, completed, run.p95);
   * const { byHost } = await inspector.series('email', { from: Date.now() - 86_400_000 });
   * for (const [host, { failed, lastAt }] of Object.entries(byHost)) console.log(host, failed, lastAt);
   */
  series(queue: string, options: SeriesOptions = {}): Promise<QueueSeries> {
    return this.readSeries(queue, options, true);
  }

  /** @internal The same without `byHost`: with many hosts, that takes most of the time. */
  seriesWithoutHosts(queue: string, options: SeriesOptions): Promise<QueueSeries> {
    return this.readSeries(queue, options, false);
  }

  private async readSeries(queue: string, options: SeriesOptions, hasHosts: boolean): Promise<QueueSeries> {
    const queueName = checkQueueName(queue);
    const span = readSpan(options, this.engine.now());
    const { hours, name, host } = span;
    const { admin } = this.engine;
    const [ofNames, ofHosts] = await Promise.all([
      host === undefined ? admin.minutes(queueName, hours, 'name') : [],
      host !== undefined || (hasHosts && name === undefined) ? admin.minutes(queueName, hours, 'host') : [],
    ]);
    return seriesOf(queueName, { name: ofNames, host: ofHosts }, span);
  }

  /**
   * The actions of people and programs, newest first: through `queue.as(actor)` and `createInspector({ actor })`, with the command `godwit`, and
   * on the dashboard. About the last 10,000 actions of the prefix are kept. They never contain data of jobs.
   *
   * @throws {InvalidOptionError | InvalidQueueNameError}
   * @throws {RedisUnavailableError | RedisRefusedError}
   * @example
   * const { actions, cursor } = await inspector.actions({ queue: 'email', limit: 20 });
   * for (const { at, actor, action, target, result } of actions) console.log(at, actor, action, target, result);
   * console.log(cursor); // pass it for the next page
   */
  async actions(options: ActionsOptions = {}): Promise<ActionPage> {
    const { actions, next } = await this.engine.actions.list(readActionsCall(options));
    return { actions: actions.map(toAction), cursor: next };
  }

  /**
   * Acts on many jobs in the background, of all queues of the prefix, the latest first: how far they are, and whether the process
   * that works on them is alive. `queue.bulkActs` starts, stops and continues them.
   *
   * @throws {RedisUnavailableError | RedisRefusedError}
   * @example
   * for (const { kind, queue, state, done, total } of await inspector.bulkActs()) console.log(kind, queue, state, done, total);
   */
  async bulkActs(): Promise<BulkAct[]> {
    return bulkActsOf(await this.engine.bulkActs.list(), this.engine.now());
  }

  /** @internal Like `queues`, without the queues that cannot be read. The faults are their errors; see `readEach`. */
  async readableQueues(
    only?: readonly string[],
  ): Promise<{ queues: QueueInfo[]; faults: Map<string, Error> }> {
    const faults = new Map<string, Error>();
    const queues = await readEach(await this.namesOf(only), (name) => this.info(name), faults);
    return { queues, faults };
  }

  /**
   * @internal Why the servers of these queues refuse writes: the disk is full, the server is a replica, too few replicas are connected.
   * Each reason once.
   */
  async refusedWrites(queues: readonly string[]): Promise<RefusedWrites[]> {
    const tried = await Promise.allSettled(queues.map((queue) => this.engine.admin.tryWrite(queue)));
    const byText = new Map<string, RefusedWrites>();
    for (const one of tried) {
      // Other errors are reported where queues are read.
      if (one.status === 'fulfilled' || !(one.reason instanceof RedisRefusedError)) continue;
      // A user for monitoring may have no right to write.
      const { reply, message } = one.reason;
      const text = `Redis refuses writes: ${message.slice(message.indexOf(reply))}`;
      if (reply !== 'NOPERM') byText.set(text, { reply, text });
    }
    return [...byText.values()];
  }

  /** @internal About how many bytes of Redis the queue takes. Null without a server, or if the user may not ask for it. */
  async memoryBytes(name: string): Promise<number | null> {
    return this.engine.admin.memoryBytes(name).catch((error: unknown) => {
      if (error instanceof RedisRefusedError) return null;
      throw error;
    });
  }

  /** @internal The limits of these queues that can be read, with their groups; the shared limits have the empty name. */
  async limits(names: readonly string[], faults?: Map<string, Error>): Promise<LimitsOfQueue[]> {
    const found = await readSome(names, (queue) => this.limitsOf(queue), faults);
    // On Redis Cluster they may be on another node than the queues.
    const some = names.length === 0 ? [] : ['shared limits'];
    const shared = await readSome(some, () => this.sharedLimits(names[0]!), faults);
    return [...found, ...shared];
  }

  /** @internal The limits of a queue, with its groups. */
  async limitsOf(queue: string): Promise<LimitsOfQueue> {
    return { queue, ...(await this.engine.limits.overview(queue)) };
  }

  /** @internal The shared limits, with the empty name. */
  async sharedLimits(queue: string): Promise<LimitsOfQueue> {
    const limits = await this.engine.limits.shared(queue);
    return { queue: '', limits, groups: { ready: 0, resting: 0, stopped: 0 } };
  }

  /**
   * @internal How late the most overdue schedule of each of these queues is, in ms; 0 if none is. Without queues that have no
   * schedule with a next occurrence.
   */
  async scheduleLags(
    names: readonly string[],
    faults?: Map<string, Error>,
  ): Promise<{ readonly queue: string; readonly lagMs: number }[]> {
    const { schedules } = this.engine;
    const read = async (queue: string) => ({ queue, lagMs: await scheduleLag(schedules, queue) });
    return readSome(await schedules.scheduled(names), read, faults);
  }

  /** @internal Names of the queues of this application. */
  get registered(): readonly string[] {
    return this.names();
  }

  /** Whether these queues have jobs, so they exist. Those that cannot be read are left to their own errors, unless it is all. */
  private async haveJobs(names: readonly string[]): Promise<boolean> {
    const hasJobs = async (name: string) =>
      Object.values(await this.engine.admin.counts(name)).some((count) => count > 0);
    const faults = new Map<string, Error>();
    const answers = await readSome(names, hasJobs, faults);
    const isAway = [...faults.values()].every((error) => error instanceof RedisUnavailableError);
    return isAway && answers.length > 0 && answers.every(Boolean);
  }

  private async known(): Promise<readonly string[]> {
    const { registered } = this;
    const others = (await this.engine.processes.queues()).filter((name) => !registered.includes(name));
    return [...registered, ...others.toSorted()];
  }

  /** @internal Like `queues` for one queue, without the check that it exists. */
  async info(name: string): Promise<QueueInfo> {
    return (await this.look(name)).info;
  }

  /** @internal Like `info`, and whether the queue has limits or groups. */
  async look(name: string): Promise<{ readonly info: QueueInfo; readonly isLimited: boolean }> {
    const { admin } = this.engine;
    const { paused, isLimited, ...counts } = await admin.counts(name);
    const oldestWaitingMs = counts.waiting === 0 ? null : await admin.oldestWaitingMs(name);
    return { info: { name, counts, paused, oldestWaitingMs }, isLimited };
  }

  private logUnreadable(process: string, why: string): void {
    if (this.logged.has(process)) return;
    if (this.logged.size >= MAX_LOGGED) this.logged.clear();
    this.logged.add(process);
    this.logger.debug(`the record of process ${quoted(process)} cannot be read: ${quoted(why)}`);
  }
}

/**
 * @internal Reads something about each of these queues, in their order, from a limited number of queues at once.
 *
 * @param faults gets the errors of single queues, so that a broken queue or a node of a cluster that is down does not hide all others.
 * Without it, and if no queue can be read, the first error is thrown.
 */
export async function readEach<T>(
  names: readonly string[],
  read: (name: string) => Promise<T>,
  faults?: Map<string, Error>,
  atOnce = AT_ONCE,
): Promise<T[]> {
  const found = await readSome(names, read, faults, atOnce);
  const first = names.length > 0 && faults?.get(names[0]!);
  if (first && found.length === 0) throw first;
  return found;
}

/** Like `readEach`, but returns an empty list if no queue can be read and there are `faults`. */
async function readSome<T>(
  names: readonly string[],
  read: (name: string) => Promise<T>,
  faults: Map<string, Error> | undefined,
  atOnce = AT_ONCE,
): Promise<T[]> {
  const tryToRead = async (name: string): Promise<T[]> => {
    try {
      return [await read(name)];
    } catch (error) {
      if (!faults) throw error;
      faults.set(name, error as Error);
      return [];
    }
  };
  const reads: Promise<T[]>[] = [];
  let isSlow = false;
  for (let at = 0; at < names.length; at += atOnce) {
    const some = names.slice(at, at + atOnce).map(tryToRead);
    reads.push(...some);
    if (isSlow) continue;
    const start = performance.now();
    const ended = Promise.all(some);
    const isPatient = !faults || atOnce < AT_ONCE;
    // oxlint-disable-next-line no-await-in-loop -- a limited number at once
    await (isPatient ? ended : within(SLOW_MS, ended));
    // Each queue of a node that is down takes the whole time of a call. The others do not wait for them.
    isSlow = !isPatient && performance.now() - start >= SLOW_MS;
  }
  return (await Promise.all(reads)).flat(1);
}

/** Queues that a text about an error names. */
const MOST_NAMED = 20;

/** @internal Why queues cannot be read, each reason once: if a node of a cluster is down, it is the same for many queues. */
export function reasonsOf(faults: ReadonlyMap<string, Error>): { reason: string; queues: string }[] {
  const byReason = new Map<string, string[]>();
  for (const [queue, error] of faults) {
    const reason = messageOf(error);
    const queues = byReason.get(reason);
    if (queues) queues.push(queue);
    else byReason.set(reason, [queue]);
  }
  return Array.from(byReason, ([reason, queues]) => {
    const names = queues.slice(0, MOST_NAMED);
    if (queues.length > MOST_NAMED) names.push(counted(queues.length - MOST_NAMED, 'other'));
    return { reason, queues: `${queues.length === 1 ? 'queue' : 'queues'} ${listed(names)}` };
  });
}

/** @internal Why a server refuses writes. */
export interface RefusedWrites {
  /** First word of its reply: `MISCONF`, `READONLY`, `OOM`, `NOREPLICAS`. */
  readonly reply: string;
  readonly text: string;
}

/** @internal */
export interface LimitsOfQueue {
  readonly queue: string;
  readonly limits: readonly LimitState[];
  readonly groups: GroupCounts;
}

/** @internal How late the most overdue schedule of a queue is, in ms; 0 if none is. */
export async function scheduleLag(schedules: Pick<ScheduleVerbs, 'due'>, queue: string): Promise<number> {
  const { now, due } = await schedules.due(queue, 0);
  return Math.max(0, ...due.map(({ nextAt }) => now - (nextAt ?? now)));
}

/** A worker process, from its last report. Times are by the clock of Redis. */
export interface WorkerInfo extends Omit<ProcessRecord, 'startedAt' | 'pools' | 'blockedMs' | 'obeyed'> {
  /** When its workers started. */
  readonly startedAt: Date;
  /** One pool for each queue, or for each set of queues that share a concurrency. */
  readonly pools: readonly WorkerPoolInfo[];
  /**
   * The longest time for which a handler or other code blocked its event loop in the last minute, in ms: meanwhile no job starts, ends
   * or times out. 0 for less than 100 ms, and if an older version reports.
   */
  readonly blockedMs: number;
}

/** A worker process that went silent, from its last report. */
export interface SilentWorkerInfo extends WorkerInfo {
  /** How long ago its lease ended, in ms. */
  readonly silentMs: number;
}

/** The slots that share one concurrency. */
export interface WorkerPoolInfo extends Omit<PoolRecord, 'jobs'> {
  /** The running jobs, longest first, at most 50. */
  readonly jobs: readonly RunningJobInfo[];
}

/** A running job, without its data. */
export interface RunningJobInfo extends Omit<RunningJob, 'since'> {
  /** When the run began. */
  readonly since: Date;
}

function toWorkerInfo({ pools, startedAt, obeyed: _, blockedMs = 0, ...rest }: ProcessRecord): WorkerInfo {
  return { ...rest, blockedMs, startedAt: new Date(startedAt), pools: pools.map(toPoolInfo) };
}

/** The process, reduced to one queue; nothing if it does not work on that queue. */
function ofQueue<T extends WorkerInfo>(worker: T, queue: string): T[] {
  if (!worksOn(worker, queue)) return [];
  const pools = worker.pools.filter(({ queues }) => queues.includes(queue));
  const own = (jobs: readonly RunningJobInfo[]) => jobs.filter((job) => job.queue === queue);
  return [{ ...worker, pools: pools.map((pool) => ({ ...pool, jobs: own(pool.jobs) })) }];
}

function toPoolInfo({ jobs, ...rest }: PoolRecord): WorkerPoolInfo {
  return { ...rest, jobs: jobs.map(toJobInfo) };
}

function toJobInfo({ since, ...rest }: RunningJob): RunningJobInfo {
  return { ...rest, since: new Date(since) };
}

/** Compares by host, then by process id. */
function byPlace(a: WorkerInfo, b: WorkerInfo): number {
  return compare(a.host, b.host) || a.pid - b.pid || compare(a.id, b.id);
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
