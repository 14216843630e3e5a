import type { Payload } from '../contender.js';

/**
 * Counts handled jobs, with the clock running from the last job of the warm-up to the very last one.
 * A job that is handled twice fails the measurement: nothing here goes wrong that would excuse it.
 */
export class Tally {
  readonly finished: Promise<void>;
  readonly handle = (data: Payload): void => this.count(data.n);

  /** Jobs so far, those of the warm-up and those after the last measured one too. */
  handled = 0;

  private readonly seen: Uint8Array;
  private readonly reportEvery: number;
  private startedAt = 0;
  private startedCpu: NodeJS.CpuUsage | undefined;
  private elapsedMs = 0;
  private cpuUs = 0;
  private resolve!: () => void;
  private reject!: (error: Error) => void;

  constructor(
    private readonly warmUp: number,
    private readonly jobs: number,
    private readonly progress: (done: number, total: number) => void,
    /** Jobs there are, where some wait behind the measured ones. */
    all = warmUp + jobs,
  ) {
    this.seen = new Uint8Array(all);
    this.reportEvery = Math.max(1, Math.floor((warmUp + jobs) / 20));
    this.finished = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }

  get perSecond(): number {
    return this.jobs / (this.elapsedMs / 1000);
  }

  /** CPU time of this process, all threads, per measured job. */
  get cpuUsPerJob(): number {
    return this.cpuUs / this.jobs;
  }

  private count(n: number): void {
    if (this.seen[n] !== 0) {
      this.reject(new Error(this.seen[n] === 1 ? `job ${n} was handled twice` : `job ${n} was never added`));
      return;
    }
    this.seen[n] = 1;
    this.handled += 1;
    if (this.handled === this.warmUp) this.start();
    if (this.handled === this.warmUp + this.jobs) this.stop();
    if (this.handled % this.reportEvery === 0) this.progress(this.handled, this.warmUp + this.jobs);
  }

  private start(): void {
    this.startedCpu = process.cpuUsage();
    this.startedAt = performance.now();
  }

  private stop(): void {
    this.elapsedMs = performance.now() - this.startedAt;
    const { user, system } = process.cpuUsage(this.startedCpu);
    this.cpuUs = user + system;
    this.resolve();
  }
}
