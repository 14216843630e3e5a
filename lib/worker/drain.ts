import type { QueueEngine } from '../engine/engine.js';
import type { DrainLimits, DrainReport } from './pool.js';
import type { WorkerPool } from './worker-pool.js';

/** How long the last words may take to reach the store; after that the lease tells the others. */
const FAREWELL_MS = 3000;

/**
 * Ends a pool: nothing new, what has not started goes back, runs may finish until the deadline, then their signals abort,
 * and what still runs after the grace goes back without a counted attempt. Never rejects.
 */
export async function drainPool(
  pool: WorkerPool,
  engine: QueueEngine,
  limits: DrainLimits,
): Promise<DrainReport> {
  pool.stopClaiming();
  const before = pool.running;
  await finished(pool, limits.timeoutMs);
  const late = [...pool.runs];
  for (const run of late) run.abort('shutdown', 'the application stops');
  await finished(pool, limits.graceMs);
  for (const run of pool.runs) pool.giveUp(run);
  // Also those that failed because they were told to stop.
  const released = late.filter((run) => run.outcome?.kind === 'released').map((run) => run.id);
  if (released.length > 0) {
    const ids = released
      .slice(0, 20)
      .map((id) => JSON.stringify(id))
      .join(', ');
    pool.logger.warn(
      `queue '${pool.queue}': ${released.length} jobs still ran at the deadline and are given back: ${ids}`,
    );
  }
  await within(FAREWELL_MS, pool.exchanger.idle());
  pool.exchanger.stop();
  const leave = engine.release(pool.queue, { worker: pool.worker, ids: [], leave: true });
  await within(
    FAREWELL_MS,
    leave.then(
      () => undefined,
      () => undefined,
    ),
  );
  return { finished: before - released.length, released };
}

async function finished(pool: WorkerPool, ms: number): Promise<void> {
  const deadline = performance.now() + ms;
  while (pool.running > 0) {
    const left = deadline - performance.now();
    if (left <= 0) return;
    await within(left, pool.nextEnd());
  }
}

function within(ms: number, promise: Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    void promise.finally(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
