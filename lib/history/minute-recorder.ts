import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import type { QueueEngine } from '../contract/engine.js';
import {
  ADDED,
  classOf,
  COMPLETED,
  DEAD,
  emptyRow,
  FAILED,
  FINE_RUN_CLASSES,
  FINE_WAIT_CLASSES,
  fineClassOf,
  hostRowOf,
  HOUR_MS,
  MINUTE_MS,
  RUN_BOUNDS_MS,
  RUN_CLASSES,
  RUN_SUM,
  WAIT_BOUNDS_MS,
  WAIT_CLASSES,
  WAIT_SUM,
  type CountedBy,
  type CounterRow,
  type MinuteRow,
  type MinutesCall,
} from '../contract/history.js';
import { Log } from '../contract/log.js';
import type { ObservedRun, WorkObserver } from '../contract/observer.js';
import { isOutOfMemory, isPassing } from '../contract/retry.js';
import { countedName } from '../contract/stats.js';
import { messageOf } from '../errors/thrown.js';

/** How often counters are written. A crash loses at most this much of a chart. */
const WRITE_MS = 10_000;
/** How many minutes are kept while the store is unreachable; older ones are dropped. */
const MAX_MINUTES = 60;

interface Minute {
  /** By job name. */
  readonly rows: Map<string, CounterRow>;
  /** How many of the dead jobs ran elsewhere: their workers were lost. */
  deadElsewhere: number;
}

/** Counters of one queue that this process has not written yet. */
interface QueueCounts {
  readonly names: Set<string>;
  readonly minutes: Map<number, Minute>;
  /** A call whose reply was lost. It is repeated before another call is made. */
  pending: MinutesCall[];
}

/**
 * Counts what this process does, by minute, queue and job name, and adds it to the counters in the store every 10 s, for each queue that has
 * anything new with one call, and with a second one for the counters by host if jobs ran. Nothing is written, and no timer runs, while nothing
 * happens.
 */
export class MinuteRecorder implements WorkObserver {
  private readonly logger = new Log('QueueHistory');
  private readonly lane = randomBytes(6).toString('base64url');
  private readonly queues = new Map<string, QueueCounts>();
  private seq = 0;
  private timer: NodeJS.Timeout | undefined;
  private writing = Promise.resolve();

  constructor(private readonly engine: Pick<QueueEngine, 'now' | 'admin'>) {}

  ended(queue: string, name: string, run: ObservedRun, now: number): void {
    const { outcome, durationUs, firstRunnableAt } = run;
    if (!outcome || outcome.kind === 'released') return;
    const row = this.rowOf(queue, name, now);
    if (outcome.kind === 'completed') row[COMPLETED]! += 1;
    else if (outcome.counted) row[FAILED]! += 1;
    if (outcome.kind === 'dead') row[DEAD]! += 1;
    const ran = outcome.kind === 'completed' || outcome.counted;
    if (!ran) return;
    const runMs = durationUs / 1000;
    row[RUN_SUM]! += runMs;
    row[RUN_CLASSES + classOf(runMs, RUN_BOUNDS_MS)]! += 1;
    row[FINE_RUN_CLASSES + fineClassOf(runMs)]! += 1;
    if (firstRunnableAt === undefined) return;
    const waitMs = Math.max(0, now - runMs - firstRunnableAt);
    row[WAIT_SUM]! += waitMs;
    row[WAIT_CLASSES + classOf(waitMs, WAIT_BOUNDS_MS)]! += 1;
    row[FINE_WAIT_CLASSES + fineClassOf(waitMs)]! += 1;
  }

  /** The names of these jobs are unknown here. */
  stalled(queue: string, _count: number, dead: number): void {
    if (dead === 0) return;
    const now = this.engine.now();
    this.rowOf(queue, '', now)[DEAD]! += dead;
    this.queues.get(queue)!.minutes.get(minuteOf(now))!.deadElsewhere += dead;
  }

  added(queue: string, names: readonly string[]): void {
    const now = this.engine.now();
    for (const name of names) this.rowOf(queue, name, now)[ADDED]! += 1;
  }

  /** Writes what has been counted. Never rejects. */
  write(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.writing = this.writing.then(async () => {
      await this.writeAll();
      if (this.queues.size > 0) this.plan();
    });
    return this.writing;
  }

  /** Stops the timer, so that nothing more is written automatically. */
  stop(): void {
    clearTimeout(this.timer);
  }

  private plan(): void {
    this.timer ??= setTimeout(() => void this.write(), WRITE_MS).unref();
  }

  private rowOf(queue: string, name: string, now: number): CounterRow {
    let counts = this.queues.get(queue);
    if (!counts) {
      this.queues.set(queue, (counts = { names: new Set(), minutes: new Map(), pending: [] }));
      this.plan();
    }
    const minute = minuteOf(now);
    let found = counts.minutes.get(minute);
    if (!found) counts.minutes.set(minute, (found = { rows: new Map(), deadElsewhere: 0 }));
    const { rows } = found;
    const known = rows.get(name);
    if (known) return known;
    const counted = countedName(name, counts.names);
    counts.names.add(counted);
    let row = rows.get(counted);
    if (!row) rows.set(counted, (row = emptyRow()));
    return row;
  }

  private async writeAll(): Promise<void> {
    await Promise.all(Array.from(this.queues, ([queue, counts]) => this.writeOf(queue, counts)));
  }

  private async writeOf(queue: string, counts: QueueCounts): Promise<void> {
    if (counts.pending.length === 0) counts.pending = this.callsOf(counts);
    for (let call = counts.pending[0]; call; call = counts.pending[0]) {
      try {
        // oxlint-disable-next-line no-await-in-loop -- the calls have rising numbers, and there are at most four
        await this.engine.admin.countMinutes(queue, call);
      } catch (error) {
        // At maxmemory they are written later: the workers drain the queues meanwhile.
        if (isPassing(error) || isOutOfMemory(error)) return;
        this.logger.debug(`queue '${queue}': counters of minutes not written: ${messageOf(error)}`);
      }
      counts.pending.shift();
    }
    if (counts.minutes.size === 0) this.queues.delete(queue);
  }

  /** Takes the counters and prepares the calls: for each hour one by name, and one by host if jobs ran. */
  private callsOf(counts: QueueCounts): MinutesCall[] {
    const minutes = [...counts.minutes].slice(-MAX_MINUTES);
    counts.minutes.clear();
    const host = hostname();
    const hours = new Map<number, Record<CountedBy, MinuteRow[]>>();
    for (const [minute, { rows, deadElsewhere }] of minutes) {
      const hour = minute - (minute % HOUR_MS);
      const lists = hours.get(hour) ?? { name: [], host: [] };
      hours.set(hour, lists);
      for (const [name, row] of rows) lists.name.push({ minute, name, row });
      const row = hostRowOf(rows.values());
      row[DEAD]! -= deadElsewhere;
      if (row.some((count) => count > 0)) lists.host.push({ minute, name: host, row });
    }
    return [...hours].flatMap(([hour, lists]) =>
      (['name', 'host'] as const)
        .filter((by) => lists[by].length > 0)
        .map((by) => ({ by, lane: this.lane, seq: ++this.seq, hour, rows: lists[by] })),
    );
  }
}

function minuteOf(now: number): number {
  return now - (now % MINUTE_MS);
}
