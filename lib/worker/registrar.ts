import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { Log } from '../contract/log.js';
import type { QueueEngine } from '../contract/engine.js';
import type {
  PoolRecord,
  ProcessOrder,
  ProcessRecord,
  ProcessState,
  RunningJob,
} from '../contract/process-verbs.js';
import { FAREWELL_MS, within } from '../contract/retry.js';
import { quoted } from '../job/text.js';
import type { LeaseKeeper } from './lease-keeper.js';
import { LoopWatch } from './loop-watch.js';
import type { Run } from './run.js';
import type { WorkerPool } from './worker-pool.js';

/** Most running jobs in the record of a pool. */
const MAX_JOBS = 50;
/** The clock of the store is known to within a round trip. A start time is not changed for less than this. */
const CLOCK_ERROR_MS = 1000;

/** The part of a pool that the record of its process shows. Pools that share slots are shown as one pool. */
export type ShownPool = Pick<
  WorkerPool,
  'queue' | 'worker' | 'concurrency' | 'isPaused' | 'isQuiet' | 'slots'
> & {
  /** The oldest first. */
  readonly runs: Iterable<ShownRun> & { readonly size: number };
};

/** `begunAt` by `performance.now()`. */
export type ShownRun = Pick<Run, 'queue' | 'id' | 'name' | 'attempt' | 'begunAt'>;

/**
 * Writes the record of this process for operators: who it is and what it does. The record is updated at every heartbeat if it has
 * changed. The heartbeat thread writes it, so the process does not disappear while a handler blocks the event loop.
 */
export class Registrar {
  private readonly logger = new Log('QueueWorker');
  private readonly id = randomBytes(9).toString('base64url');
  readonly begunAt = performance.now();
  private readonly groups = new Map<object, ShownPool[]>();
  /** When a run or this process began, by the clock of the store, as it was last written. */
  private readonly times = new WeakMap<object, number>();
  private state: ProcessState = 'running';
  private timer: NodeJS.Timeout | undefined;
  /** Ids of the orders that were obeyed: each order comes several times. */
  private readonly obeyed = new Set<string>();
  private lastObeyed = '';
  private hasStopped = false;

  constructor(
    private readonly engine: Pick<QueueEngine, 'now' | 'processes'>,
    private readonly leases: Pick<LeaseKeeper, 'show'>,
    private readonly role: 'producer' | 'worker' | 'both',
    private readonly leaseMs: number,
    private readonly act: (order: ProcessOrder) => void,
    private readonly loop: Pick<LoopWatch, 'start' | 'stop' | 'blockedMs'> = new LoopWatch(),
  ) {}

  add(pool: ShownPool): void {
    const group = this.groups.get(pool.slots);
    if (group) group.push(pool);
    else this.groups.set(pool.slots, [pool]);
  }

  /** Removes the pool of a queue, and the pools that share its slots. */
  remove(queue: string): void {
    for (const [slots, group] of this.groups)
      if (group.some((pool) => pool.queue === queue)) this.groups.delete(slots);
  }

  /** Writes the record now, and from then on whenever it has changed. */
  say(state: ProcessState): void {
    this.state = state;
    if (!this.timer) this.loop.start();
    const show = () => void this.logger.guard('writing the record of this process', () => this.show());
    this.timer ??= setInterval(show, this.leaseMs / 4).unref();
    show();
  }

  /** Carries out new orders. The record then names the last one, so that Redis deletes the orders up to it. */
  obey(orders: readonly ProcessOrder[]): void {
    // An answer may come while the process stops. Showing the record would start its renewal again.
    if (this.hasStopped) return;
    const fresh = orders.filter(({ id }) => !this.obeyed.has(id));
    for (const order of fresh) {
      this.obeyed.add(order.id);
      this.lastObeyed = order.id;
      const { kind, queue, by } = order;
      const what = queue === null ? 'all queues' : `queue '${queue}'`;
      this.logger.log(`order${by === '' ? '' : ` of ${quoted(by)}`} to this process: ${kind} ${what}`);
      this.logger.guard(`the order to ${kind} ${what}`, () => this.act(order));
    }
    if (fresh.length > 0) this.show();
  }

  /** Stops updating the record. */
  stop(): void {
    this.hasStopped = true;
    clearInterval(this.timer);
    this.loop.stop();
  }

  /** Deletes the record, after its renewal has stopped. If that fails, the record ends with its lease. Never rejects. */
  async leave(): Promise<void> {
    if (this.timer) await within(FAREWELL_MS, this.engine.processes.unregister(this.id));
  }

  private show(): void {
    const { id, state } = this;
    const queues = [...this.groups.values()].flatMap((group) => group.map(({ queue }) => queue));
    this.engine.processes.worksOn(queues).catch(() => undefined);
    this.leases.show({
      id,
      host: hostname(),
      pid: process.pid,
      versions: { godwit: VERSION, node: process.versions.node, server: this.engine.processes.server },
      startedAt: this.timeOf(this),
      role: this.role === 'worker' ? 'worker' : 'both',
      state,
      pools: [...this.groups.values()].map((group) => this.recordOf(group)),
      morePools: 0,
      blockedMs: this.loop.blockedMs(),
      obeyed: this.lastObeyed,
    } satisfies ProcessRecord);
  }

  private recordOf(group: readonly ShownPool[]): PoolRecord {
    const longest = group.flatMap(({ runs }) => [...runs].slice(0, MAX_JOBS));
    longest.sort((a, b) => a.begunAt - b.begunAt);
    return {
      queues: group.map(({ queue }) => queue),
      paused: group.filter(({ isPaused }) => isPaused).map(({ queue }) => queue),
      quiet: group.filter(({ isQuiet }) => isQuiet).map(({ queue }) => queue),
      concurrency: group[0]!.concurrency,
      workers: group.map(({ worker }) => worker),
      running: group.reduce((sum, { runs }) => sum + runs.size, 0),
      jobs: longest.slice(0, MAX_JOBS).map((run) => this.jobOf(run)),
    };
  }

  private jobOf(run: ShownRun): RunningJob {
    const { queue, id, name, attempt } = run;
    return { queue, id, name, attempt, since: this.timeOf(run) };
  }

  private timeOf(one: { readonly begunAt: number }): number {
    const time = Math.round(this.engine.now() - (performance.now() - one.begunAt));
    const before = this.times.get(one);
    if (before !== undefined && Math.abs(time - before) < CLOCK_ERROR_MS) return before;
    this.times.set(one, time);
    return time;
  }
}

/** The version of this package. */
export const VERSION = (require('../../package.json') as { version: string }).version;
