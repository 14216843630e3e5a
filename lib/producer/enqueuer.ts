import type { QueueEngine } from '../contract/engine.js';
import { EnqueueBufferFullError, RedisUnavailableError } from '../errors.js';
import { isSame, strictest, type Replication } from '../options/durability.js';
import { addResult, type AddResult } from './add-result.js';
import type { MadeJob } from './job-maker.js';
import { Lane, type AddTime } from './lane.js';

/** Jobs that go in together or not at all where a caller asks for that; a script must not hold Redis for long. */
export const MAX_ATOMIC_JOBS = 1000;
/** Jobs in one call where nobody asks for more: with a time each, so many take Redis some 2 ms. */
export const MAX_CALL_JOBS = 500;
/** Bytes of jobs that go in together or not at all, well below what Redis takes from one client. */
export const MAX_ATOMIC_BYTES = 32 * 1024 * 1024;
/** Bytes in one call of a bulk that is larger: each call that is answered shows that the line is alive. */
export const MAX_BULK_BYTES = 4 * 1024 * 1024;
/** Bytes in one call of single adds, so that no add waits for long behind the bytes of others. */
const MAX_CALL_BYTES = 1024 * 1024;
/** Calls on their way at once: while Redis works on one, the next is written. */
const LANES = 2;
/**
 * So many adds of one tick do not wait for its end: while Redis works on these, the next are made and written. It is so behind a
 * single job too: else all others would go on waiting for the one call, and that one for the other.
 */
const EARLY_JOBS = 50;
const NOW = Promise.resolve();

export interface AddLimits extends AddTime {
  /** Single adds that may wait here from one turn of the event loop to the next. */
  readonly maxBuffered: number;
}

interface Waiting {
  readonly job: MadeJob;
  readonly deadline: number;
  readonly resolve: (result: AddResult) => void;
  readonly reject: (error: Error) => void;
}

/**
 * The way of added jobs to the store. Adds of one tick travel together, many of them in two calls; one that comes behind a single one
 * goes at once. Each call has the next number of its lane and is repeated with it until it is answered or its time is over, so that a
 * lost reply never makes a second job.
 */
export class Enqueuer {
  private readonly local: Batcher;
  /** Apart, so that no add that need not waits for replicas. */
  private readonly replicated: Batcher;

  constructor(engine: QueueEngine, queue: string, limits: AddLimits) {
    this.local = new Batcher(engine, queue, limits);
    this.replicated = new Batcher(engine, queue, limits);
  }

  add(job: MadeJob): Promise<AddResult> {
    return this.batcherFor(job.replication).add(job);
  }

  /** At most one call's worth, all or none; answers the ids that were already there. */
  addAll(jobs: readonly MadeJob[]): Promise<ReadonlySet<string>> {
    let replication: Replication | null = null;
    for (const job of jobs) replication = strictest(replication, job.replication);
    return this.batcherFor(replication).addAll(jobs, replication);
  }

  private batcherFor(replication: Replication | null): Batcher {
    return replication === null ? this.local : this.replicated;
  }
}

/** Makes calls of what is added, and sends as many at a time as there are lanes. */
class Batcher {
  private readonly free: Lane[];
  private buffer: Waiting[] = [];
  private flushing = false;
  /** Jobs in calls on their way. */
  private underWay = 0;
  /** The ids of those whose callers gave them. */
  private readonly idsUnderWay = new Set<string>();
  /** The last call was of one job, as likely the next. */
  private isSingle = false;
  /** Of the adds of this tick. */
  private deadline = 0;
  /** More wait than may. Adds of one tick are never refused: while it lasts, no answer can be heard. */
  private isFull = false;
  /** Refuses what waits for too long while every lane is busy. */
  private timer: NodeJS.Timeout | null = null;

  constructor(
    private readonly engine: QueueEngine,
    private readonly queue: string,
    private readonly limits: AddLimits,
  ) {
    this.free = Array.from({ length: LANES }, () => new Lane(engine, queue, limits));
  }

  add(job: MadeJob): Promise<AddResult> {
    const { maxBuffered, timeoutMs } = this.limits;
    if (this.isFull) return Promise.reject(new EnqueueBufferFullError(this.queue, maxBuffered));
    // Within a tick time does not matter.
    if (!this.flushing) this.deadline = performance.now() + timeoutMs;
    return new Promise((resolve, reject) => {
      this.buffer.push({ job, deadline: this.deadline, resolve, reject });
      if (this.buffer.length === maxBuffered) setImmediate(() => this.lookIfFull());
      if (this.isEarly()) this.flush();
      else this.schedule();
    });
  }

  async addAll(jobs: readonly MadeJob[], replication: Replication | null): Promise<ReadonlySet<string>> {
    // A lane of its own: the call must not wait behind, or be mixed with, single adds.
    const lane = this.free.pop() ?? new Lane(this.engine, this.queue, this.limits);
    try {
      return new Set(await lane.send(jobs, performance.now() + this.limits.timeoutMs, replication));
    } finally {
      this.giveBack(lane);
    }
  }

  /** Whether the call is not to wait for what else is added in this tick. */
  private isEarly(): boolean {
    const { length } = this.buffer;
    if (length === EARLY_JOBS) return this.underWay <= 1;
    if (length > 1 || !this.isSingle || this.underWay > 0) return false;
    // Beside a wait for replicas a tick is nothing, and those of one call share it.
    return this.buffer[0]!.job.replication === null;
  }

  private schedule(): void {
    if (this.flushing) return;
    if (this.free.length === 0) return this.watch();
    this.flushing = true;
    // Behind the promise jobs already queued: callers woken by the same reply get into the same call. `queueMicrotask` would make
    // an AsyncResource for it, and tell the hooks of that.
    void NOW.then(() => {
      this.flushing = false;
      this.flush();
    });
  }

  private flush(): void {
    this.refuseLate();
    if (this.buffer.length === 0 || this.free.length === 0) return;
    const batch = this.take();
    if (batch.length === 0) return this.watch();
    if (this.isFull) this.lookIfFull();
    const lane = this.free.pop()!;
    this.underWay += batch.length;
    this.isSingle = batch.length === 1;
    void lane
      .send(
        batch.map((waiting) => waiting.job),
        batch[0]!.deadline,
        batch[0]!.job.replication,
      )
      .then(
        (duplicates) => {
          const there = duplicates.length > 0 ? new Set(duplicates) : null;
          for (const { job, resolve } of batch)
            resolve(addResult(this.queue, job, there !== null && there.has(job.id)));
          this.ended(lane, batch);
        },
        (error: Error) => {
          for (const waiting of batch) waiting.reject(error);
          this.ended(lane, batch);
        },
      );
    if (this.buffer.length > 0) this.schedule();
  }

  /** What has waited here until its time was over has never been sent, so it can be said to be nowhere. */
  private refuseLate(): void {
    const now = performance.now();
    // They are in the order in which their time is over.
    if (this.buffer.length === 0 || this.buffer[0]!.deadline > now) return;
    const late = this.buffer.findIndex(({ deadline }) => deadline > now);
    const count = late < 0 ? this.buffer.length : late;
    for (const { reject } of this.buffer.splice(0, count)) {
      reject(
        new RedisUnavailableError('add', 'no', `earlier adds took longer than ${this.limits.timeoutMs} ms`),
      );
    }
    if (this.isFull) this.lookIfFull();
  }

  /** No call ends before the time of the first that waits is over, as far as anybody knows. */
  private watch(): void {
    if (this.timer || this.buffer.length === 0) return;
    this.timer = setTimeout(
      () => {
        this.timer = null;
        this.refuseLate();
        this.watch();
      },
      Math.max(1, this.buffer[0]!.deadline - performance.now()),
    ).unref();
  }

  private lookIfFull(): void {
    this.isFull = this.buffer.length >= this.limits.maxBuffered;
  }

  /**
   * What fits one call and asks for the same replication. A second job with an id waits until the call with the first has ended: on
   * the other lane it could come before where that is made again.
   */
  private take(): Waiting[] {
    const { replication } = this.buffer[0]!.job;
    let bytes = 0;
    let count = 0;
    for (const { job } of this.buffer) {
      bytes += job.body.length;
      const isFull = count === MAX_CALL_JOBS || (count > 0 && bytes > MAX_CALL_BYTES);
      if (isFull || !isSame(job.replication, replication)) break;
      // Ids that were made here are never the same.
      if (job.hasOwnId) {
        if (this.idsUnderWay.has(job.id)) break;
        this.idsUnderWay.add(job.id);
      }
      count += 1;
    }
    if (count < this.buffer.length) return this.buffer.splice(0, count);
    const all = this.buffer;
    this.buffer = [];
    return all;
  }

  private ended(lane: Lane, batch: readonly Waiting[]): void {
    this.underWay -= batch.length;
    if (this.idsUnderWay.size > 0) for (const { job } of batch) this.idsUnderWay.delete(job.id);
    this.giveBack(lane);
  }

  private giveBack(lane: Lane): void {
    if (this.free.length < LANES) this.free.push(lane);
    if (this.buffer.length > 0) this.schedule();
  }
}
