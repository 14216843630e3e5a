import { Logger } from '@nestjs/common';
import type { QueueEngine } from '../contract/engine.js';
import { UnknownQueueError } from '../errors.js';
import type { JobCounts } from '../job/job-state.js';
import { quoted } from '../job/text.js';
import { byPlace, toWorkerInfo, type WorkerInfo } from './worker-info.js';

/** A queue as it stood when it was asked for. */
export interface QueueInfo {
  /** Name of the queue. */
  readonly name: string;
  /** How many jobs are in each state. */
  readonly counts: JobCounts;
  /** Whether `Queue.pause` is in force, for every process. */
  readonly paused: boolean;
  /**
   * For how many ms the job at the head of the line has waited, counted from when it could first run; null where nothing waits
   * but jobs that have run before or that a person has retried: they were added long before they came to the line.
   */
  readonly oldestWaitingMs: number | null;
}

/** Queues that are asked about at once. */
const AT_ONCE = 50;
/** Entries that are remembered as told of. */
const MAX_TOLD = 1000;

/**
 * Who works, on what, and what waits: for dashboards, health checks and people. Inject it by its class; it works in every
 * process, also where nothing but adding is done.
 *
 * @example
 * constructor(private readonly inspector: QueueInspector) {}
 * @Get('workers') workers() { return this.inspector.workers(); }
 */
export class QueueInspector {
  private readonly logger = new Logger('QueueInspector');
  private readonly told = new Set<string>();

  /** @internal */
  constructor(
    private readonly engine: Pick<QueueEngine, 'admin' | 'processes'>,
    private readonly names: () => readonly string[],
  ) {}

  /**
   * The worker processes of this prefix that are alive, sorted by host and process id. One that stops is gone at once, one that
   * crashes within the lease (`forRoot().lease.duration`). What they tell is at most a quarter of the lease old, but for one whose
   * handler blocks its event loop: it stays as it was.
   *
   * @throws {RedisUnavailableError}
   */
  async workers(): Promise<WorkerInfo[]> {
    const { records, unreadable } = await this.engine.processes.list();
    for (const { process, why } of unreadable) this.tell(process, why);
    return records.map(toWorkerInfo).toSorted(byPlace);
  }

  /**
   * The queues that are registered in this application, in that order, with what is in them; or only those named.
   *
   * @throws {UnknownQueueError}
   * @throws {RedisUnavailableError}
   */
  async queues(only?: readonly string[]): Promise<QueueInfo[]> {
    const known = this.names();
    const unknown = only?.find((name) => !known.includes(name));
    if (unknown !== undefined) throw new UnknownQueueError(unknown, known);
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
