import { PartialBulkError, type AddResult, type BulkJob, type QueueProducer } from '#lib/index.js';
import { MAX_ATOMIC_JOBS, MAX_CALL_JOBS } from '#lib/producer/enqueuer.js';
import type { LedgerWriter } from '../ledger/writer.js';
import { jobPlan, letterOf, ownId, type JobPlan } from '../load.js';
import { QUEUE, type ChildPlan } from '../plan.js';

/** How many jobs of a large call the library sends in one call to Redis, all or none. */
const chunkOf = (count: number) => (count <= MAX_ATOMIC_JOBS ? MAX_ATOMIC_JOBS : MAX_CALL_JOBS);

/** Adds jobs with nonces of its own, and writes each call and its answer to the ledger. */
export class Adder {
  accepted = 0;
  private next: number;
  private readonly stride: number;

  constructor(
    private readonly producer: QueueProducer,
    private readonly ledger: LedgerWriter,
    private readonly plan: ChildPlan,
  ) {
    this.next = plan.produce!.first;
    this.stride = plan.produce!.stride;
  }

  /**
   * Adds one job, of the kind given by the seed unless `special` is set. Returns whether it was accepted; never rejects.
   */
  async add(special?: JobPlan): Promise<boolean> {
    const n = this.take(1);
    const { name, data, options } = this.jobOf(n, special);
    this.ledger.write(`I ${n} 1${special ? ` ${letterOf(special.kind)}` : ''}\n`);
    try {
      this.isIn([await this.producer.add(QUEUE, name, data, options)], n);
      return true;
    } catch (error) {
      await this.failed(error, n, 1, 1);
      return false;
    }
  }

  /** Adds many jobs in one call of the library. Never rejects. */
  async addBulk(count: number): Promise<void> {
    const first = this.take(count);
    const jobs: BulkJob[] = [];
    for (let i = 0; i < count; i++) jobs.push(this.jobOf(first + i * this.stride));
    const chunk = chunkOf(count);
    this.ledger.write(this.chunks('I', first, count, chunk));
    try {
      this.isIn(await this.producer.addBulk(QUEUE, jobs), first);
    } catch (error) {
      if (!(error instanceof PartialBulkError)) return this.failed(error, first, count, chunk);
      const done = error.results.length;
      this.isIn(error.results as AddResult[], first);
      await this.failed(error.cause, first + done * this.stride, count - done, chunk);
    }
  }

  private take(count: number): number {
    const first = this.next;
    this.next += count * this.stride;
    return first;
  }

  private jobOf(n: number, special?: JobPlan): BulkJob {
    const { kind, ms, delay, priority } = special ?? jobPlan(n, this.plan.seed, this.plan.leaseMs);
    const options = {
      ...(this.plan.produce!.generatedIds ? {} : { id: ownId(n) }),
      ...(delay > 0 && { delay }),
      ...(priority > 0 && { priority }),
      ...(kind === 'flaky' && { backoff: 200 }),
      ...(kind === 'hopeless' && { attempts: 2, backoff: 200 }),
    };
    return { name: kind, data: { n, k: letterOf(kind), ms }, options };
  }

  private isIn(results: readonly AddResult[], first: number): void {
    this.accepted += results.length;
    let lines = this.chunks('A', first, results.length, MAX_ATOMIC_JOBS);
    results.forEach(({ duplicate }, i) => {
      if (duplicate) lines += `Q ${first + i * this.stride}\n`;
    });
    this.ledger.write(lines);
  }

  /** The failed chunk may have been applied, as its error says; later chunks were never sent. */
  private async failed(error: unknown, first: number, count: number, chunk: number): Promise<void> {
    const { applied } = error as { applied?: 'no' | 'unknown' };
    if (applied === undefined) throw error;
    const sent = applied === 'unknown' ? Math.min(chunk, count) : 0;
    this.ledger.write(this.chunks('R', first + sent * this.stride, count - sent, chunk));
    // The producer goes on after an error; not at once, because most errors pass.
    await new Promise((resolve) => setTimeout(resolve, 50));
  }

  private chunks(letter: 'I' | 'A' | 'R', first: number, count: number, chunk: number): string {
    let lines = '';
    for (let i = 0; i < count; i += chunk) {
      lines += `${letter} ${first + i * this.stride} ${Math.min(chunk, count - i)}\n`;
    }
    return lines;
  }
}
