import { QueueKeys } from '#lib/engine/keys.js';
import type { Fleet } from './fleet.js';
import type { Options } from './options.js';
import { PREFIX, QUEUE } from './plan.js';
import type { Store } from './redis/store.js';

/** The state of the system at a moment. */
export interface Sample {
  /** Seconds since the load began. */
  readonly at: number;
  readonly added: number;
  readonly completed: number;
  readonly waiting: number;
  readonly delayed: number;
  readonly active: number;
  readonly dead: number;
  readonly keys: number;
  readonly redisBytes: number;
  /** Of the largest worker. */
  readonly workerRss: number;
}

const SAMPLE_MS = 250;
const KEEP_MS = 1_000;

/** Looks at the store and the processes from time to time, and pauses the producers while the backlog is too large. */
export class Gauge {
  readonly samples: Sample[] = [];
  private last: Sample | undefined;
  private startedAt = 0;
  private movedAt = 0;
  private keptAt = 0;
  private seen = '';
  private timer: NodeJS.Timeout | undefined;
  private looking = false;
  private lookedAt = 0;

  constructor(
    private readonly store: Store,
    private readonly fleet: Fleet,
    private readonly options: Options,
  ) {}

  start(): void {
    this.startedAt = performance.now();
    this.movedAt = this.startedAt;
    this.timer = setInterval(() => void this.look(), SAMPLE_MS);
  }

  stop(): void {
    clearInterval(this.timer);
  }

  get elapsed(): number {
    return this.startedAt === 0 ? 0 : (performance.now() - this.startedAt) / 1000;
  }

  get now(): Sample | undefined {
    return this.last;
  }

  /** How long nothing in the store has changed. */
  get idleMs(): number {
    return performance.now() - this.movedAt;
  }

  /** The last look is too old. */
  get isBlind(): boolean {
    return performance.now() - this.lookedAt > 4 * SAMPLE_MS;
  }

  get backlog(): number {
    return this.last ? this.last.waiting + this.last.active + this.last.delayed : 0;
  }

  /** No job waits, runs or will run. Checked twice, because the first look may have been before the last add. */
  get isEmpty(): boolean {
    return this.last !== undefined && this.backlog === 0 && this.idleMs > 2 * SAMPLE_MS;
  }

  private async look(): Promise<void> {
    if (this.looking) return;
    this.looking = true;
    try {
      this.last = await this.sample();
      this.lookedAt = performance.now();
      const { added, completed, waiting, delayed, active, dead } = this.last;
      const seen = [added, completed, waiting, delayed, active, dead].join();
      if (seen !== this.seen) this.movedAt = performance.now();
      this.seen = seen;
      const open = this.last.waiting < this.options.backlog;
      for (const producer of this.fleet.all('producer')) producer.tell({ do: 'flow', open });
      if (performance.now() - this.keptAt >= KEEP_MS) {
        this.keptAt = performance.now();
        this.samples.push(this.last);
      }
    } catch {
      // Redis is away or stalled; the next look follows soon.
    }
    this.looking = false;
  }

  private async sample(): Promise<Sample> {
    const { control } = this.store;
    const { fixed } = keys;
    const workers = await control.zrange(fixed.workers, '0', '-1');
    const [wait, suspects, prioritized, delayed, dead, count, ...held] = await Promise.all([
      control.llen(fixed.wait),
      control.llen(fixed.suspects),
      control.zcard(fixed.prioritized),
      control.zcard(fixed.delayed),
      control.zcard(fixed.dead),
      control.dbsize(),
      ...workers.map((worker) => control.scard(keys.active(worker))),
    ]);
    return {
      at: Math.round(this.elapsed * 10) / 10,
      added: this.fleet.sum('producer', 'added'),
      completed: this.fleet.sum('watcher', 'completed'),
      waiting: wait + suspects + prioritized,
      delayed,
      active: held.reduce((sum, size) => sum + size, 0),
      dead,
      keys: count,
      redisBytes: Number(await this.store.info('memory', 'used_memory')),
      workerRss: Math.max(0, ...this.fleet.all('worker').map((child) => child.figures.rss)),
    };
  }
}

const keys = new QueueKeys(PREFIX, QUEUE);
