import { randomBytes } from 'node:crypto';
import type { EnqueueJob, QueueEngine } from '../engine/engine.js';
import { RedisRefusedError, RedisUnavailableError, type Applied } from '../errors.js';
import { isPassing, pause, repeatDelay } from '../engine/waiting.js';

/** Jobs in one call: one script must not hold Redis for long. */
export const MAX_CALL_JOBS = 1000;
/** Bytes in one call, well below what Redis takes from one client. */
export const MAX_CALL_BYTES = 32 * 1024 * 1024;
/** Calls on their way at once: while Redis works on one, the next is written. */
const LANES = 2;
/** Jobs of single adds that may wait here while Redis is away; beyond that an add is refused at once. */
const MAX_BUFFERED = 20_000;

interface Waiting {
  readonly job: EnqueueJob;
  readonly deadline: number;
  readonly resolve: (duplicate: boolean) => void;
  readonly reject: (error: Error) => void;
}

/**
 * The way of added jobs to the store. Adds of one tick travel in one call. Each call has the next number of its lane and is
 * repeated with it until it is answered or its time is over, so that a lost reply never makes a second job.
 */
export class Enqueuer {
  private readonly lanes: Lane[];
  private readonly free: Lane[];
  private buffer: Waiting[] = [];
  private flushing = false;

  constructor(
    private readonly engine: QueueEngine,
    private readonly queue: string,
    private readonly timeoutMs: number,
  ) {
    this.lanes = Array.from({ length: LANES }, () => new Lane(engine, queue, timeoutMs));
    this.free = [...this.lanes];
  }

  /** Answers whether the id was already there. */
  add(job: EnqueueJob): Promise<boolean> {
    if (this.buffer.length >= MAX_BUFFERED) {
      return Promise.reject(
        new RedisUnavailableError('add', 'no', `${MAX_BUFFERED} adds already wait for Redis in this process`),
      );
    }
    return new Promise((resolve, reject) => {
      this.buffer.push({ job, deadline: performance.now() + this.timeoutMs, resolve, reject });
      this.schedule();
    });
  }

  /** At most one call's worth, all or none; answers the ids that were already there. */
  async addAll(jobs: readonly EnqueueJob[]): Promise<ReadonlySet<string>> {
    // A lane of its own: the call must not wait behind, or be mixed with, single adds.
    const lane = this.free.pop() ?? new Lane(this.engine, this.queue, this.timeoutMs);
    try {
      return new Set(await lane.send(jobs, performance.now() + this.timeoutMs));
    } finally {
      this.giveBack(lane);
    }
  }

  private schedule(): void {
    if (this.flushing || this.free.length === 0) return;
    this.flushing = true;
    // Behind the promise jobs already queued: callers woken by the same reply get into the same call.
    queueMicrotask(() => {
      this.flushing = false;
      this.flush();
    });
  }

  private flush(): void {
    const lane = this.buffer.length > 0 ? this.free.pop() : undefined;
    if (!lane) return;
    const batch = this.take();
    void lane
      .send(
        batch.map((waiting) => waiting.job),
        batch[0]!.deadline,
      )
      .then(
        (duplicates) => {
          const there = duplicates.length > 0 ? new Set(duplicates) : null;
          for (const waiting of batch) waiting.resolve(there !== null && there.has(waiting.job.id));
        },
        (error: Error) => {
          for (const waiting of batch) waiting.reject(error);
        },
      )
      .then(() => this.giveBack(lane));
    if (this.buffer.length > 0) this.schedule();
  }

  /** What fits one call. A second job with the same id waits for the next, where the store finds the first. */
  private take(): Waiting[] {
    const ids = new Set<string>();
    let bytes = 0;
    let count = 0;
    for (const { job } of this.buffer) {
      bytes += job.body.length;
      if (count === MAX_CALL_JOBS || (count > 0 && bytes > MAX_CALL_BYTES) || ids.has(job.id)) break;
      ids.add(job.id);
      count += 1;
    }
    if (count === this.buffer.length) {
      const all = this.buffer;
      this.buffer = [];
      return all;
    }
    return this.buffer.splice(0, count);
  }

  private giveBack(lane: Lane): void {
    if (this.free.length < LANES) this.free.push(lane);
    if (this.buffer.length > 0) this.schedule();
  }
}

/** Calls one after another under one name with rising numbers, by which the store knows a repetition. */
class Lane {
  private readonly name = randomBytes(6).toString('base64url');
  private seq = 0;

  constructor(
    private readonly engine: QueueEngine,
    private readonly queue: string,
    private readonly timeoutMs: number,
  ) {}

  async send(jobs: readonly EnqueueJob[], deadline: number): Promise<readonly string[]> {
    const call = { lane: this.name, seq: ++this.seq, rememberMs: this.timeoutMs * 2, jobs };
    let applied: Applied = 'no';
    for (let tries = 1; ; tries++) {
      try {
        const withinMs = Math.max(1, deadline - performance.now());
        const answer = await this.engine.enqueue(this.queue, { ...call, withinMs });
        if (answer.kind === 'stored') return answer.duplicates;
        throw new RedisUnavailableError('add', 'unknown', 'a later call overtook it');
      } catch (error) {
        if (error instanceof RedisUnavailableError && error.applied === 'unknown') applied = 'unknown';
        const left = deadline - performance.now();
        if (!isPassing(error) || left <= 0) throw honest(error, applied);
        await pause(Math.min(repeatDelay(error, tries), left));
      }
    }
  }
}

/** One repetition may have been refused after another took effect. */
function honest(error: unknown, applied: Applied): unknown {
  if (applied === 'no' || !(error instanceof RedisUnavailableError || error instanceof RedisRefusedError))
    return error;
  // The words of the last failure would say that nothing was changed.
  return new RedisUnavailableError('add', 'unknown', 'an earlier try was not answered, the last one failed', {
    cause: error,
  });
}
