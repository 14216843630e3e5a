import { MAX_TIMER_MS } from '../job/duration.js';

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
