import type { Payload } from '../contender.js';
import { now } from './clock.js';

/**
 * When each job reached the handler, on a clock that processes share. A job that runs twice fails the measurement,
 * because no fault excuses it here.
 */
export class Arrivals {
  /** By number of the job; 0 for jobs that ran elsewhere. */
  readonly at: Float64Array<ArrayBuffer>;
  readonly handle = (data: Payload): void => this.note(data.n);
  private arrived = 0;
  private fault: Error | undefined;
  private wait: { readonly count: number; readonly end: () => void } | undefined;
  private readonly reportEvery: number;

  /** For jobs 0 to `total - 1`. */
  constructor(
    total: number,
    private readonly progress: (done: number, total: number) => void = () => {},
  ) {
    this.at = new Float64Array(total);
    this.reportEvery = Math.max(1, Math.floor(total / 20));
  }

  get count(): number {
    return this.arrived;
  }

  /** Resolves when this many jobs have arrived, or after this time; one wait at a time. */
  async reached(count: number, withinMs = Number.POSITIVE_INFINITY): Promise<void> {
    if (this.arrived < count) {
      await new Promise<void>((end) => {
        this.wait = { count, end };
        if (Number.isFinite(withinMs)) setTimeout(end, withinMs).unref();
      });
    }
    this.wait = undefined;
    this.check();
  }

  /** Throws if an unexpected job arrived. */
  check(): void {
    if (this.fault) throw this.fault;
  }

  private note(n: number): void {
    if (this.at[n] !== 0) {
      this.fault = new Error(this.at[n] ? `job ${n} was handled twice` : `job ${n} was never added`);
      this.wait?.end();
      return;
    }
    this.at[n] = now();
    this.arrived += 1;
    if (this.arrived === this.wait?.count) this.wait.end();
    if (this.arrived % this.reportEvery === 0) this.progress(this.arrived, this.at.length);
  }
}
