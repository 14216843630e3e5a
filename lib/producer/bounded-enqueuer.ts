import type { QueueEngine } from '../contract/engine.js';
import { pause } from '../contract/retry.js';
import { QueueFullError } from '../errors.js';
import type { ResolvedQueueOptions } from '../options/module-options.js';
import type { ResolvedMaxWaiting } from '../options/max-waiting.js';
import { dropped, type AddResult, type Other } from './add-result.js';
import { Enqueuer, type AddLimits } from './enqueuer.js';
import type { MadeJob } from './job-maker.js';

/**
 * The first wait for room, and the longest. A random part of up to a half is subtracted, so that producers do not all retry at
 * once.
 */
const FIRST_MS = 25;
const LONGEST_MS = 1_000;

/** Creates the enqueuer of one queue; the options decide which. */
export function enqueuerOf(engine: QueueEngine, options: ResolvedQueueOptions, limits: AddLimits): Enqueuer {
  const { name, maxWaiting } = options;
  return maxWaiting
    ? new BoundedEnqueuer(engine, name, limits, maxWaiting)
    : new Enqueuer(engine, name, limits);
}

/** Adds to a queue with `maxWaiting`. The store checks for room in the call that adds, so the limit is exact. */
class BoundedEnqueuer extends Enqueuer {
  constructor(
    engine: QueueEngine,
    queue: string,
    limits: AddLimits,
    private readonly bound: ResolvedMaxWaiting,
  ) {
    super(engine, queue, {
      ...limits,
      maxWaiting: { limit: bound.limit, dropOldest: bound.onFull === 'dropOldest' },
    });
  }

  override add(job: MadeJob): Promise<AddResult> {
    return this.within(
      [job],
      () => super.add(job),
      () => dropped(this.queue, job),
    );
  }

  override addAll(jobs: readonly MadeJob[]): Promise<ReadonlyMap<string, Other>> {
    const none = () => new Map(jobs.map((job) => [job.id, { dropped: true } as const]));
    return this.within(jobs, () => super.addAll(jobs), none);
  }

  /** @param none the result if the jobs are dropped. */
  private async within<T>(jobs: readonly MadeJob[], add: () => Promise<T>, none: () => T): Promise<T> {
    const { limit, onFull, timeoutMs } = this.bound;
    const signals = jobs.flatMap(({ signal }) => signal ?? []);
    const until = performance.now() + timeoutMs;
    for (let tries = 0; ; tries++) {
      try {
        // oxlint-disable-next-line no-await-in-loop -- each try follows the wait for room
        return await add();
      } catch (error) {
        if (!(error instanceof QueueFullError)) throw error;
        if (onFull === 'dropNew') return none();
        const ms = Math.min(FIRST_MS * 2 ** Math.min(tries, 10), LONGEST_MS) * (0.5 + Math.random() / 2);
        // A bulk larger than the limit would wait in vain.
        if (onFull !== 'wait' || jobs.length > limit || performance.now() + ms > until) throw error;
        // oxlint-disable-next-line no-await-in-loop
        await pause(ms, AbortSignal.any(signals));
        for (const signal of signals) signal.throwIfAborted();
      }
    }
  }
}
