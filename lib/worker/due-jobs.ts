import type { QueueEngine } from '../contract/engine.js';
import { Log } from '../contract/log.js';
import { MAX_TIMER_MS } from '../job/duration.js';
import { RULES } from '../job/rules.js';
import type { Claimer } from './claimer.js';

/** What a later word may add to an earlier one: it took longer to come, and the earlier one is the better. */
const SAME_MS = 50;

/** Tells when the next delayed job is due, and never before: who asks too early has to ask again. */
export class DueTimer {
  private at = Infinity;
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly due: () => void) {}

  /** As the store has just said: the first is due in so many ms, or there is none. */
  set(inMs: number | null): void {
    if (inMs === null) return this.clear();
    const at = performance.now() + inMs;
    if (this.timer && at > this.at - 1 && at < this.at + SAME_MS) return;
    this.clear();
    this.at = at;
    this.wait(inMs);
  }

  clear(): void {
    if (this.timer) clearTimeout(this.timer);
    this.timer = undefined;
    this.at = Infinity;
  }

  private wait(ms: number): void {
    this.timer = setTimeout(() => this.ring(), Math.min(ms, MAX_TIMER_MS));
  }

  private ring(): void {
    // Node counts from the beginning of the turn in which a timer is set, and so comes too early.
    const leftMs = this.at - performance.now();
    if (leftMs > 0) return this.wait(Math.ceil(leftMs));
    this.clear();
    this.due();
  }
}

const PROMOTE_AGAIN_MS = 1000;

/** Sees to it that delayed jobs of one queue get into its line when they are due, whether or not this worker has a slot for them. */
export class DueJobs {
  private readonly logger = new Log('QueueWorker');
  private readonly timer = new DueTimer(() => {
    if (!this.logger.guard(`queue '${this.claimer.queue}': moving due jobs`, () => this.due()))
      this.plan(PROMOTE_AGAIN_MS);
  });
  private stopped = false;

  constructor(
    private readonly engine: QueueEngine,
    private readonly claimer: Claimer,
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
    if (this.claimer.want() > 0) return this.claimer.exchangeSoon();
    this.engine.promote(this.claimer.queue, RULES.promoteMax).then(
      ({ dueInMs }) => this.plan(dueInMs),
      // The link tells; whoever is there again first moves what is due.
      () => this.plan(PROMOTE_AGAIN_MS),
    );
  }
}
