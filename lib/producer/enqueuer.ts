import type { QueueEngine } from '../contract/engine.js';
import { EnqueueBufferFullError, RedisUnavailableError } from '../errors.js';
import { isSame, strictest, type Replication } from '../options/job-options.js';
import { addResult, type AddResult } from './add-result.js';
import type { MadeJob } from './job-maker.js';
import { Lane, type AddTime } from './lane.js';

/** Maximum number of jobs that are stored atomically; a script must not hold Redis for long. */
export const MAX_ATOMIC_JOBS = 1000;
/** Maximum number of jobs in other calls: as delayed jobs, they take Redis about 2 ms. */
export const MAX_CALL_JOBS = 500;
/** Maximum size of jobs that are stored atomically, well below the limit of Redis for one client. */
export const MAX_ATOMIC_BYTES = 32 * 1024 * 1024;
/** Maximum size of one call of a larger bulk: each answer shows that the connection is alive. */
export const MAX_BULK_BYTES = 4 * 1024 * 1024;
/** Maximum size of one call of single adds, so that none waits long for the bytes of others. */
const MAX_CALL_BYTES = 1024 * 1024;
/** How many calls are on their way at once: while Redis works on one, the next is written. */
const LANES = 2;
/**
 * This many adds of one tick are sent before its end: while Redis works on them, the next are created and written. This also holds while a
 * call with a single job is on its way; otherwise two groups of callers would take turns in waiting for each other.
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
 * Sends added jobs to the store. Adds of one tick are sent together, many of them in two calls; an add after a single one is sent at
 * once. Each call has the next number of its lane and is repeated under it until it is answered or its time is over, so a lost reply
 * never adds a second job.
 */
export class Enqueuer {
  private readonly local: Batcher;
  /** Separate, so that adds without `durability` never wait for replicas. */
  private readonly replicated: Batcher;

  constructor(engine: QueueEngine, queue: string, limits: AddLimits) {
    this.local = new Batcher(engine, queue, limits);
    this.replicated = new Batcher(engine, queue, limits);
  }

  add(job: MadeJob): Promise<AddResult> {
    return this.batcherFor(job.replication).add(job);
  }

  /** At most one call, all or none; resolves to the ids that were already there. */
  addAll(jobs: readonly MadeJob[]): Promise<ReadonlySet<string>> {
    let replication: Replication | null = null;
    for (const job of jobs) replication = strictest(replication, job.replication);
    return this.batcherFor(replication).addAll(jobs, replication);
  }

  private batcherFor(replication: Replication | null): Batcher {
    return replication === null ? this.local : this.replicated;
  }
}

/** Groups adds into calls, and sends one call per lane at a time. */
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
  /** The buffer is full. Adds of one tick are never refused, because no answer can arrive within it. */
  private isFull = false;
  /** Rejects adds that have waited too long while every lane is busy. */
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

  /** Whether the call is sent without waiting for further adds of this tick. */
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

  /** Adds that waited here until their time was over have never been sent, so they are certainly not stored. */
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
   * The jobs for the next call: as many as fit, with the same replication. A second job with an id waits until the call with the first
   * one has ended; on the other lane it could overtake a repetition of that call.
   */
  private take(): Waiting[] {
    const { replication } = this.buffer[0]!.job;
    let bytes = 0;
    let count = 0;
    for (const { job } of this.buffer) {
      bytes += job.body.length;
      const isFull = count === MAX_CALL_JOBS || (count > 0 && bytes > MAX_CALL_BYTES);
      if (isFull || !isSame(job.replication, replication)) break;
      // Generated ids never collide.
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
