import { JobFailedError, WaitTimeoutError } from '../errors.js';
import { deathOf } from '../events/job-wait.js';
import type { EndWait } from '../producer/queue.js';
import { QueueTestingError } from './errors.js';
import type { Hands } from './hands.js';
import type { TestBench } from './test-bench.js';
import type { TimeWalk } from './time-walk.js';

/**
 * Waits for the end of a job where no worker runs by itself: it runs the job, and where that is delayed the clock moves on to its time, as
 * it would for whoever waits.
 */
export class ManualWait implements EndWait {
  readonly ready = Promise.resolve();

  constructor(
    private readonly queue: string,
    private readonly id: string,
    private readonly bench: TestBench,
    private readonly hands: Hands,
    private readonly walk: TimeWalk,
  ) {}

  cancel(): void {
    // Nothing listens.
  }

  /** By the clock of the test, which has stood still until now. */
  async outcome(_: number, { waitMs }: { readonly waitMs: number }): Promise<unknown> {
    const { queue, id, bench, hands } = this;
    const untilMs = bench.clock.now() + waitMs;
    for (;;) {
      // oxlint-disable-next-line no-await-in-loop -- one step after the other
      const job = await bench.engine.admin.get(queue, id);
      if (!job) throw await this.gone();
      if (job.state === 'completed') return job.result === null ? undefined : JSON.parse(job.result);
      if (job.state === 'dead') throw deathOf(queue, id, job.failure?.reason ?? 'unknown', job.failure);
      if (job.state === 'active') await this.running();
      else if (job.state === 'waiting') await hands.runNext(queue, 'addAndWait()', (one) => one.id === id);
      else await this.delayed(job.dueAt ?? untilMs, untilMs, waitMs);
    }
  }

  private async running(): Promise<void> {
    const run = this.hands.running(this.queue, this.id);
    if (run) return void (await run);
    throw new QueueTestingError(`addAndWait(): job '${this.id}' of queue '${this.queue}' runs elsewhere`);
  }

  private async delayed(dueAt: number, untilMs: number, waitMs: number): Promise<void> {
    await this.walk.to(Math.min(dueAt, untilMs));
    if (dueAt > untilMs) throw new WaitTimeoutError(this.queue, this.id, waitMs);
  }

  private async gone(): Promise<JobFailedError> {
    const cancelled = await this.bench.engine.admin.cancelled(this.queue, this.id);
    const [reason, message] = cancelled
      ? ['cancelled', cancelled.reason]
      : ['removed', 'it was removed before it had ended'];
    return new JobFailedError(this.queue, this.id, reason!, message!);
  }
}
