import { Log } from '../contract/log.js';
import type { QueueEngine } from '../contract/engine.js';
import { InvalidOptionError, UnknownQueueError } from '../errors.js';
import type { JobCounts } from '../job/job-state.js';
import { checkQueueName } from '../job/job-id.js';
import { quoted } from '../job/text.js';
import { readable } from '../options/check.js';
import { byPlace, toWorkerInfo, type WorkerInfo } from './worker-info.js';

/** The state of a queue at the time of the call. */
export interface QueueInfo {
  /** Name of the queue. */
  readonly name: string;
  /** How many jobs are in each state. */
  readonly counts: JobCounts;
  /** Whether the queue is paused, for every process. */
  readonly paused: boolean;
  /**
   * For how many ms the oldest waiting job has waited since it could first run; null if nothing waits but jobs that have run before
   * or were retried.
   */
  readonly oldestWaitingMs: number | null;
}

/** How many queues are queried at once. */
const AT_ONCE = 50;
/** How many unreadable entries are remembered, so that each is logged once. */
const MAX_TOLD = 1000;

/**
 * Worker processes with the jobs they run, and queues with their counts: for dashboards and health checks. Inject it by its class; it
 * works in every process, also in one that only adds jobs.
 *
 * @example
 * constructor(private readonly inspector: QueueInspector) {}
 * @Get('workers') workers() { return this.inspector.workers(); }
 */
export class QueueInspector {
  private readonly logger = new Log('QueueInspector');
  private readonly told = new Set<string>();

  /** @internal */
  constructor(
    private readonly engine: Pick<QueueEngine, 'admin' | 'processes'>,
    private readonly names: () => readonly string[],
  ) {}

  /**
   * The live worker processes of this prefix, sorted by host and process id. A process that stops disappears at once, one that crashes
   * within the lease (`forRoot().lease.duration`). The information is at most a quarter of the lease old, unless a handler blocks the
   * event loop of its process.
   *
   * @throws {RedisUnavailableError}
   */
  async workers(): Promise<WorkerInfo[]> {
    const { records, unreadable } = await this.engine.processes.list();
    for (const { process, why } of unreadable) this.tell(process, why);
    return records.map(toWorkerInfo).toSorted(byPlace);
  }

  /**
   * The queues of this application with their counts, in the order in which they were registered; or only the named ones.
   *
   * @throws {InvalidOptionError}
   * @throws {UnknownQueueError}
   * @throws {RedisUnavailableError}
   */
  async queues(only?: readonly string[]): Promise<QueueInfo[]> {
    const known = this.names();
    if (only !== undefined && !readable(only, 'queues()', () => Array.isArray(only)))
      throw new InvalidOptionError('queues()', 'a list of names of queues, or nothing for all', only);
    const unknown = only?.find((name) => !known.includes(name));
    if (unknown !== undefined) throw new UnknownQueueError(checkQueueName(unknown), known);
    const names = only ?? known;
    const found: QueueInfo[] = [];
    for (let at = 0; at < names.length; at += AT_ONCE) {
      found.push(...(await Promise.all(names.slice(at, at + AT_ONCE).map((name) => this.look(name)))));
    }
    return found;
  }

  private async look(name: string): Promise<QueueInfo> {
    const { admin } = this.engine;
    const [{ paused, ...counts }, oldestWaitingMs] = await Promise.all([
      admin.counts(name),
      admin.oldestWaitingMs(name),
    ]);
    return { name, counts, paused, oldestWaitingMs };
  }

  private tell(process: string, why: string): void {
    if (this.told.has(process)) return;
    if (this.told.size >= MAX_TOLD) this.told.clear();
    this.told.add(process);
    this.logger.debug(`an entry of the registry cannot be read: ${quoted(process)} says ${quoted(why)}`);
  }
}
