import type { BeatAnswer, QueueEngine } from '../engine/engine.js';

/** A worker whose lease is to be kept while it holds jobs. */
export interface Holder {
  readonly queue: string;
  readonly worker: string;
  holdsAny(): boolean;
  /** What the store said to the beat of `worker`. */
  beaten(worker: string, answer: BeatAnswer): void;
}

/**
 * Keeps the leases of this process: one sign of life per queue and beat, however many jobs run, and none where nothing is
 * held. An exchange is a sign of life too, but only the beat comes when nothing ends.
 */
export class LeaseKeeper {
  private readonly holders = new Set<Holder>();
  private timer: NodeJS.Timeout | null = null;

  constructor(
    private readonly engine: QueueEngine,
    private readonly leaseMs: number,
  ) {}

  add(holder: Holder): void {
    this.holders.add(holder);
    this.timer ??= setInterval(() => this.beat(), this.leaseMs / 4);
  }

  remove(holder: Holder): void {
    this.holders.delete(holder);
    if (this.holders.size === 0) this.stop();
  }

  stop(): void {
    this.holders.clear();
    if (this.timer) clearInterval(this.timer);
    this.timer = null;
  }

  private beat(): void {
    for (const holder of this.holders) {
      if (!holder.holdsAny()) continue;
      const { worker } = holder;
      this.engine.beat(holder.queue, worker, this.leaseMs).then(
        (answer) => holder.beaten(worker, answer),
        // The link tells; the next beat is soon, and the lease is longer than several of them.
        () => undefined,
      );
    }
  }
}
