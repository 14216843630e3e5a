import type { QueueEngine } from '../contract/engine.js';
import { DueTimer } from './due-timer.js';
import { RULES } from '../job/rules.js';

const PROMOTE_AGAIN_MS = 1000;

/** A pool as its delayed jobs see it. */
export interface DueSide {
  readonly queue: string;
  readonly exchanger: { kick(): void };
  /** How many jobs may be claimed now. */
  want(): number;
}

/** Sees to it that delayed jobs of one queue get into its line when they are due, whether or not this worker has a slot for them. */
export class DueJobs {
  private readonly timer = new DueTimer(() => this.due());
  private stopped = false;

  constructor(
    private readonly engine: QueueEngine,
    private readonly side: DueSide,
  ) {}

  /** As the store has just said: the first is due in so many ms, or there is none. */
  plan(inMs: number | null): void {
    if (!this.stopped) this.timer.set(inMs);
  }

  stop(): void {
    this.stopped = true;
    this.timer.clear();
  }

  /** An exchange moves them too, and takes some. Where there is no slot, the bell wakes another worker for what is moved. */
  private due(): void {
    if (this.side.want() > 0) return this.side.exchanger.kick();
    this.engine.promote(this.side.queue, RULES.promoteMax).then(
      ({ dueInMs }) => this.plan(dueInMs),
      // The link tells; whoever is there again first moves what is due.
      () => this.plan(PROMOTE_AGAIN_MS),
    );
  }
}
