import type { Payload } from '../contender.js';

/** How many jobs a run has, and what each of them does. */
interface Counted {
  /** Those whose end starts the clock. */
  readonly warmUp: number;
  /** Those that are measured. */
  readonly jobs: number;
  /** Those that wait behind them; some of them may run before everything stops. @default none */
  readonly behind?: number;
  /** How often job `n` runs, all runs but the last one failing. @default once */
  readonly runs?: (n: number) => number;
}

/**
 * Counts the runs of jobs, with the clock going from the end of the last job of the warm-up to that of the very last one.
 * A job that runs more often than it should fails the measurement: nothing here goes wrong that would excuse it.
 */
export class Tally {
  readonly finished: Promise<void>;
  /** Takes a run of a job that runs once. */
  readonly handle = (data: Payload): void => void this.ran(data.n);

  /** Jobs so far, those of the warm-up and those after the last measured one too. */
  handled = 0;

  private readonly seen: Uint8Array;
  private readonly all: number;
  private readonly reportEvery: number;
  private startedAt = 0;
  private startedCpu: NodeJS.CpuUsage | undefined;
  private endedAt = Number.NaN;
  private cpuUs = 0;
  private fault: Error | undefined;
  private resolve!: () => void;
  private reject!: (error: Error) => void;

  constructor(
    private readonly counted: Counted,
    private readonly progress: (done: number, total: number) => void,
  ) {
    this.all = counted.warmUp + counted.jobs;
    this.seen = new Uint8Array(this.all + (counted.behind ?? 0));
    this.reportEvery = Math.max(1, Math.floor(this.all / 20));
    this.finished = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }

  get perSecond(): number {
    return this.counted.jobs / ((this.endedAt - this.startedAt) / 1000);
  }

  /** CPU time of this process, all threads, per measured job. */
  get cpuUsPerJob(): number {
    return this.cpuUs / this.counted.jobs;
  }

  /** When the last run of the last job ended, by `performance.now()`. */
  get lastAt(): number {
    return this.endedAt;
  }

  /** Takes a run of job `n`; whether it was the last one, or else has to fail. */
  ran(n: number): boolean {
    const runs = this.seen[n];
    const due = this.counted.runs?.(n) ?? 1;
    if (runs === undefined || runs >= due) {
      this.fail(
        runs === undefined ? `job ${n} was never added` : `job ${n} ran ${runs + 1} times, not ${due}`,
      );
      return true;
    }
    this.seen[n] = runs + 1;
    if (runs + 1 < due) return false;
    this.handled += 1;
    if (this.handled === this.counted.warmUp) this.start();
    if (this.handled === this.all) this.stop();
    if (this.handled % this.reportEvery === 0) this.progress(this.handled, this.all);
    return true;
  }

  /** The measurement is worth nothing. */
  fail(message: string): void {
    this.fault ??= new Error(message);
    this.reject(this.fault);
  }

  /** Throws what went wrong since `finished`: a job may run once more while the last ones are acknowledged. */
  verify(): void {
    if (this.fault) throw this.fault;
  }

  private start(): void {
    this.startedCpu = process.cpuUsage();
    this.startedAt = performance.now();
  }

  private stop(): void {
    this.endedAt = performance.now();
    const { user, system } = process.cpuUsage(this.startedCpu);
    this.cpuUs = user + system;
    this.resolve();
  }
}
