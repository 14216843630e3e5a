import { JobWait, type PreparedWait, type WaitVerbs } from './job-wait.js';
import type { QueueEvents } from './queue-events.js';

/** How long the subscription to a queue outlives the last wait: often another request waits soon. */
const LINGER_MS = 10_000;

/** The subscription shared by all waits for jobs of one queue. */
interface Hold {
  waits: number;
  readonly leave: () => void;
  timer?: NodeJS.Timeout;
}

/**
 * Waits for jobs to end. Call `prepare` before the job is added, so that no event can come too early:
 *
 * @example
 * const wait = waiter.prepare('thumbnails', id);
 * await wait.ready;
 * const added = await producer.add(job, data, { id });
 * return await wait.outcome(5_000, { duplicate: added.duplicate });
 */
export class JobWaiter {
  private readonly holds = new Map<string, Hold>();

  constructor(
    private readonly engine: WaitVerbs,
    private readonly events: QueueEvents,
  ) {
    events.reader.onClose(() => {
      for (const hold of this.holds.values()) clearTimeout(hold.timer);
      this.holds.clear();
    });
  }

  /** Starts listening for this job. `outcome` or `cancel` must follow. */
  prepare(queue: string, id: string): PreparedWait {
    const release = this.hold(queue);
    return new JobWait(this.engine, this.events, queue, id, release);
  }

  private hold(queue: string): () => void {
    if (this.events.reader.closed) return () => {};
    const hold = this.holds.get(queue) ?? { waits: 0, leave: this.listen(queue) };
    this.holds.set(queue, hold);
    hold.waits += 1;
    clearTimeout(hold.timer);
    return () => {
      hold.waits -= 1;
      if (hold.waits > 0 || this.holds.get(queue) !== hold) return;
      hold.timer = setTimeout(() => {
        this.holds.delete(queue);
        hold.leave();
      }, LINGER_MS).unref();
    };
  }

  /** For a job id that none has, so that no event is delivered. */
  private listen(queue: string): () => void {
    return this.events.reader.listen(queue, { jobId: '' }, () => {});
  }
}

/**
 * Waits until a job that is in the queue already has ended.
 *
 * @returns what its handler returned
 * @throws JobFailedError, ResultNotKeptError, WaitTimeoutError, JobNotFoundError
 */
export async function waitForJob(
  waiter: JobWaiter,
  queue: string,
  id: string,
  timeoutMs: number,
): Promise<unknown> {
  const wait = waiter.prepare(queue, id);
  await wait.ready;
  return wait.outcome(timeoutMs, { duplicate: true });
}
