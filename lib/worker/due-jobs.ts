import type { QueueEngine } from '../contract/engine.js';
import { Log } from '../contract/log.js';
import { MAX_TIMER_MS } from '../job/duration.js';
import { RULES } from '../job/rules.js';
import type { Claimer } from './claimer.js';

/**
 * A later answer keeps the timer if its time differs by less than this: it took longer to arrive, so the earlier answer is more
 * exact.
 */
const SAME_MS = 50;

/** A timer for the next delayed job. It never fires early: a call before the job is due finds nothing. */
class DueTimer {
  private at = Infinity;
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly due: () => void) {}

  /** Sets the timer to `inMs` from now. Null: there is no delayed job. */
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
    // Node counts from the start of the event-loop turn in which a timer is set, so a timer can fire early.
    const leftMs = this.at - performance.now();
    if (leftMs > 0) return this.wait(Math.ceil(leftMs));
    this.clear();
    this.due();
  }
}

const PROMOTE_AGAIN_MS = 1000;

/** Moves delayed jobs of one queue to the line when they are due, even if this worker has no free slot for them. */
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

  /** Called with the answer of the store: the first delayed job is due in `inMs`. Null: there is none. */
  plan(inMs: number | null): void {
    if (!this.stopped) this.timer.set(inMs);
  }

  stop(): void {
    this.stopped = true;
    this.timer.clear();
  }

  /**
   * With a free slot, an exchange moves the jobs and claims some. Without one, they are only moved, and the doorbell wakes
   * another worker. If a claim of another queue has all slots, this queue gets its turn after that claim, because it no longer
   * counts as empty.
   */
  private due(): void {
    this.claimer.mayHaveJobs();
    if (this.claimer.want() > 0) return this.claimer.exchangeSoon();
    this.engine.promote(this.claimer.queue, RULES.promoteMax).then(
      ({ dueInMs }) => this.plan(dueInMs),
      // The connection logs the failure. The first worker that reaches Redis again moves the due jobs.
      () => this.plan(PROMOTE_AGAIN_MS),
    );
  }
}
