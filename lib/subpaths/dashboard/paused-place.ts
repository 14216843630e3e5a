import type { WorkerInfo } from '../../inspect/queue-inspector.js';
import { isPausedByAll, servingOf } from '../../inspect/serving.js';

/**
 * The processes that have paused a queue, if no process claims its jobs for this reason: `all 2 processes that work on it`. Otherwise
 * null. A process that stops does not count.
 */
export function pausedPlace(queue: string, processes: readonly WorkerInfo[]): string | null {
  const serving = servingOf(
    processes.filter(({ state }) => state !== 'draining'),
    queue,
  );
  if (!isPausedByAll(serving)) return null;
  return serving.processes === 1
    ? 'the only process that works on it'
    : `all ${serving.processes} processes that work on it`;
}
