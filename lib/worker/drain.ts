import type { QueueEngine } from '../contract/engine.js';
import { LAST_WORDS_MS, within } from '../contract/retry.js';
import { counted, quoted } from '../job/text.js';
import type { Exchanger } from './exchanger.js';
import type { Run } from './run.js';
import type { Log } from '../contract/log.js';

/** The running side of one queue in this process, as the runtime sees it. */
export interface Pool {
  readonly queue: string;
  /** Begins to claim. Safe twice. */
  start(): void;
  /** Claims nothing more; what runs goes on. */
  pause(): void;
  resume(): void;
  /**
   * Stops claiming, gives back what has not started, lets runs finish for `timeoutMs`, then aborts their signals, waits
   * `graceMs`, gives the rest back. Never rejects; a second call answers the same promise.
   */
  drain(limits: DrainLimits): Promise<DrainReport>;
}

export interface DrainLimits {
  readonly timeoutMs: number;
  readonly graceMs: number;
}

/** How a drain ended. */
export interface DrainReport {
  readonly finished: number;
  /** Given back unfinished after the deadline, by id. */
  readonly released: readonly string[];
}

/** How long the last words may take to reach the store, within the time of the stop; after that the lease tells the others. */
const FAREWELL_MS = 3000;

/** What a pool shows to its drain. */
export interface Drainable {
  readonly queue: string;
  readonly worker: string;
  readonly runs: Iterable<Run> & { readonly size: number };
  readonly exchanger: Exchanger;
  readonly logger: Log;
  /** Claims nothing more and gives back what has not started. */
  stopClaiming(): void;
  /** Gives back a job whose handler still runs; what that says later is not heard. */
  giveUp(run: Run): void;
  /** Resolves at the next end of a run. */
  nextEnd(): Promise<void>;
}

/**
 * Ends a pool: nothing new, what has not started goes back, runs may finish until the deadline, then their signals abort,
 * and what still runs after the grace goes back without a counted attempt. Never rejects.
 */
export async function drainPool(
  pool: Drainable,
  engine: QueueEngine,
  limits: DrainLimits,
): Promise<DrainReport> {
  const end = performance.now() + limits.timeoutMs + limits.graceMs + LAST_WORDS_MS;
  pool.stopClaiming();
  const before = pool.runs.size;
  await finished(pool, limits.timeoutMs);
  const late = [...pool.runs];
  for (const run of late) run.abort('shutdown', 'the application stops');
  await finished(pool, limits.graceMs);
  for (const run of pool.runs) pool.giveUp(run);
  // Also those that failed because they were told to stop.
  const released = late
    .filter((run) => run.outcome?.kind === 'released' && run.aborted?.reason !== 'cancelled')
    .map((run) => run.id);
  if (released.length > 0) {
    const ids = released.slice(0, 20).map(quoted).join(', ');
    pool.logger.warn(
      `queue '${pool.queue}': ${counted(released.length, 'job')} still running at the deadline, given back: ${ids}`,
    );
  }
  const leave = async () => {
    await pool.exchanger.idle();
    await engine.release(pool.queue, { worker: pool.worker, ids: [], leave: true });
  };
  await within(Math.min(FAREWELL_MS, end - performance.now()), leave());
  const unsettled = pool.exchanger.unconfirmed();
  if (unsettled > 0) {
    pool.logger.warn(
      `queue '${pool.queue}': Redis did not confirm what became of ${counted(unsettled, 'job')}; ` +
        'where it has not heard, another worker runs them again once the lease is over',
    );
  }
  pool.exchanger.stop();
  return { finished: before - released.length, released };
}

async function finished(pool: Drainable, ms: number): Promise<void> {
  const deadline = performance.now() + ms;
  while (pool.runs.size > 0) {
    const left = deadline - performance.now();
    if (left <= 0) return;
    await within(left, pool.nextEnd());
  }
}
