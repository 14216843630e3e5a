import { Log } from '../contract/log.js';
import { isBeatDue } from '../contract/engine.js';
import type { BeatAnswer, Heartbeat, LeaseTimes, QueueEngine } from '../contract/engine.js';
import { messageOf, stackOf } from '../errors/thrown.js';
import type { ProcessOrder, ProcessRecord } from '../contract/process-verbs.js';

/** A worker whose lease is kept while it holds jobs. */
interface Holder {
  worker: string;
  holdsAny: boolean;
  readonly lease: LeaseTimes;
  /** When the timer last renewed the lease. */
  at: number;
  readonly onBeat: (worker: string, answer: BeatAnswer) => void;
}

/**
 * Renews the leases of this process: one call per queue and heartbeat for any number of running jobs, and none for a queue
 * without running jobs. An exchange renews the lease too, but only heartbeats come while no job ends. They come from a thread, so
 * that a handler that blocks the event loop does not lose its jobs. Without a thread, a timer renews the leases. The record of
 * the process expires with a lease too, and is renewed together with the others.
 */
export class LeaseKeeper {
  private readonly holders = new Map<string, Holder>();
  private readonly logger = new Log('QueueWorker');
  private heartbeat: Heartbeat | null = null;
  /** Whether the log already says that a timer renews the leases. */
  private fellBack = false;
  private timer: NodeJS.Timeout | null = null;
  private open = false;
  /** How many heartbeats were opened. */
  private opened = 0;
  /** Resolves when the previous heartbeats are closed. */
  private retired: Promise<unknown> = Promise.resolve();
  private record: ProcessRecord | null = null;
  /** Called with the orders to this process. They come again until its record names them as obeyed. */
  onOrders: (orders: readonly ProcessOrder[]) => void = () => undefined;
  /** Called when Redis has lost its data, or may have lost that of this queue: on Redis Cluster each queue may be on another node. */
  onDataLost: (queue?: string) => Promise<void> = async () => undefined;

  /**
   * @param own the lease of the record of the process.
   * @param beatMs a quarter of the shortest lease of the queues that are known.
   */
  constructor(
    private readonly engine: QueueEngine,
    private readonly own: LeaseTimes,
    private beatMs: number,
  ) {}

  /** @param onBeat called with the name of the worker and the answer to its beat. */
  add(queue: string, worker: string, lease: LeaseTimes, onBeat: Holder['onBeat']): void {
    this.quicken(lease.leaseMs / 4);
    this.begin();
    this.holders.set(queue, { worker, lease, holdsAny: false, at: -Infinity, onBeat });
    this.heartbeat?.follow(queue, worker, lease);
  }

  /** The worker of this queue has a new name, because Redis does not know it. */
  renamed(queue: string, worker: string): void {
    const holder = this.holders.get(queue);
    if (!holder) return;
    holder.worker = worker;
    this.heartbeat?.follow(queue, worker, holder.lease);
  }

  /** Whether the worker of this queue holds jobs. The thread must know before a handler runs, which may block the event loop. */
  holds(queue: string, any: boolean): void {
    const holder = this.holders.get(queue);
    if (holder) holder.holdsAny = any;
    this.heartbeat?.holds(queue, any);
  }

  remove(queue: string): void {
    if (this.holders.delete(queue)) this.heartbeat?.leave(queue);
  }

  /** Stores this record of the process from now on. */
  show(record: ProcessRecord): void {
    this.begin();
    this.record = record;
    if (this.heartbeat) this.heartbeat.show(record);
    else this.register();
  }

  async stop(): Promise<void> {
    this.open = false;
    this.record = null;
    this.holders.clear();
    this.stopTimer();
    const { heartbeat } = this;
    this.heartbeat = null;
    await Promise.all([this.retired, heartbeat?.close()]);
  }

  /** Begins again with shorter intervals. A module that is loaded lazily may register a queue with a shorter lease. */
  private quicken(beatMs: number): void {
    if (beatMs >= this.beatMs) return;
    this.beatMs = beatMs;
    if (!this.open) return;
    this.open = false;
    this.stopTimer();
    this.retired = Promise.all([this.retired, this.heartbeat?.close()]);
    this.begin();
    for (const [queue, { worker, lease, holdsAny }] of this.holders) {
      this.heartbeat?.follow(queue, worker, lease);
      this.heartbeat?.holds(queue, holdsAny);
    }
    if (this.record) this.heartbeat?.show(this.record);
  }

  private begin(): void {
    if (this.open) return;
    this.open = true;
    this.fellBack = false;
    // A thread takes a while to start, and a lease may be shorter than that. The timer renews leases until the thread is ready.
    this.timer = setInterval(() => this.beatAll(), this.beatMs);
    this.opened += 1;
    const { opened } = this;
    this.heartbeat = this.engine.openHeartbeat({
      onReady: () => {
        // A heartbeat that was replaced may still report.
        if (opened === this.opened) this.stopTimer();
      },
      ...this.own,
      beatMs: this.beatMs,
      onBeat: (queue, worker, answer) => this.beaten(queue, worker, answer),
      onOrders: (orders) => this.onOrders(orders),
      onDataLost: () => void this.onDataLost(),
      onFailure: (error) => this.fallBack(`the heartbeat thread failed (${error.message})`),
    });
    if (!this.heartbeat && !this.fellBack) this.fallBack('the connection cannot be passed to a thread');
  }

  private fallBack(why: string): void {
    if (!this.open) return;
    this.fellBack = true;
    this.heartbeat = null;
    this.logger.warn(
      `${why}: leases are renewed by a timer, so a handler that blocks the event loop for ${this.beatMs * 4} ms loses its jobs`,
    );
    this.timer ??= setInterval(() => this.beatAll(), this.beatMs);
    this.register();
  }

  private stopTimer(): void {
    if (this.timer) clearInterval(this.timer);
    this.timer = null;
  }

  private beatAll(): void {
    const now = performance.now();
    for (const [queue, holder] of this.holders) {
      const { worker, holdsAny, lease, at } = holder;
      if (!holdsAny || !isBeatDue(now - at, lease.leaseMs, this.beatMs)) continue;
      holder.at = now;
      this.engine.beat(queue, worker, lease.leaseMs).then(
        (answer) => this.beaten(queue, worker, answer),
        // The connection logs the failure. The next heartbeat is soon, and a lease is longer than several of them.
        () => undefined,
      );
    }
    if (!this.heartbeat) this.register();
  }

  private beaten(queue: string, worker: string, answer: BeatAnswer): void {
    try {
      this.holders.get(queue)?.onBeat(worker, answer);
    } catch (error) {
      this.logger.error(
        `queue '${queue}': the reply to a heartbeat could not be processed: ${messageOf(error)}`,
        stackOf(error),
      );
    }
  }

  private register(): void {
    const { record } = this;
    if (!record) return;
    this.engine.processes.register(record, this.own.leaseMs).then(
      ({ orders, hasLostData }) => {
        if (hasLostData) void this.onDataLost();
        this.onOrders(orders);
      },
      // The record is missing until the next heartbeat.
      () => undefined,
    );
  }
}
