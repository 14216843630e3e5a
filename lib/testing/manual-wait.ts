import { JobFailedError, ResultNotKeptError, WaitTimeoutError, type GodwitError } from '../errors.js';
import { deathOf, NO_RETENTION, resultOf } from '../events/job-wait.js';
import type { EndWait } from '../producer/queue.js';
import { QueueTestingError } from './errors.js';
import type { Hands } from './hands.js';
import type { TestBench } from './test-bench.js';
import type { JobRun } from './records.js';
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
    let ran: JobRun | undefined;
    for (;;) {
      // oxlint-disable-next-line no-await-in-loop -- one step after the other
      const job = await bench.engine.admin.get(queue, id);
      if (!job) throw await this.gone(ran);
      if (job.state === 'completed') {
        const result = resultOf(queue, job);
        if ('error' in result) throw result.error;
        return result.value;
      }
      if (job.state === 'dead') throw deathOf(queue, id, job.failure?.reason ?? 'unknown', job.failure);
      if (job.state === 'active') ran = await this.running();
      else if (job.state === 'waiting')
        ran = await hands.runNext(queue, 'addAndWait()', (one) => one.id === id);
      else await this.delayed(job.dueAt ?? untilMs, untilMs, waitMs);
    }
  }

  private async running(): Promise<JobRun> {
    const run = this.hands.running(this.queue, this.id);
    if (run) return run;
    throw new QueueTestingError(`addAndWait(): job '${this.id}' of queue '${this.queue}' runs elsewhere`);
  }

  private async delayed(dueAt: number, untilMs: number, waitMs: number): Promise<void> {
    await this.walk.to(Math.min(dueAt, untilMs));
    if (dueAt > untilMs) throw new WaitTimeoutError(this.queue, this.id, waitMs);
  }

  private async gone(ran: JobRun | undefined): Promise<GodwitError> {
    if (ran?.outcome === 'completed') return new ResultNotKeptError(this.queue, this.id, NO_RETENTION);
    const cancelled = await this.bench.engine.admin.cancelled(this.queue, this.id);
    const [reason, message] = cancelled
      ? ['cancelled', cancelled.reason]
      : ['removed', 'it was removed before it had ended'];
    return new JobFailedError(this.queue, this.id, reason!, message!);
  }
}
