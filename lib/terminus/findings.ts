import type { QueueInfo } from '../inspect/queue-inspector.js';
import type { CheckedHealthOptions, CheckedLimits } from './health-options.js';

/** A sentence for each thing that is not as it should be. */
export interface Findings {
  readonly down: readonly string[];
  readonly degraded: readonly string[];
}

/** What the workers of this process do for a queue. */
export interface QueueWorkers {
  readonly queue: string;
  readonly state: string;
}

/** Workers of this process that do not run. */
export function idleWorkers(workers: readonly QueueWorkers[]): string[] {
  return workers
    .filter(({ state }) => state !== 'running')
    .map(
      ({ queue, state }) => `the workers of queue '${queue}' are ${state === 'new' ? 'not started' : state}`,
    );
}

/** Queues that are beyond a limit; each limit is said once, as down or as degraded. */
export function beyondLimits(queues: readonly QueueInfo[], options: CheckedHealthOptions): Findings {
  const down = queues.flatMap((info) => beyond(info, options.down));
  const lower = (info: QueueInfo): CheckedLimits => ({
    maxWaiting: isBeyond(info.counts.waiting, options.down.maxWaiting)
      ? undefined
      : options.degraded.maxWaiting,
    maxOldestMs: isBeyond(info.oldestWaitingMs, options.down.maxOldestMs)
      ? undefined
      : options.degraded.maxOldestMs,
  });
  return { down, degraded: queues.flatMap((info) => beyond(info, lower(info))) };
}

function beyond(
  { name, counts, oldestWaitingMs }: QueueInfo,
  { maxWaiting, maxOldestMs }: CheckedLimits,
): string[] {
  const found: string[] = [];
  if (isBeyond(counts.waiting, maxWaiting))
    found.push(`${counts.waiting} jobs wait in queue '${name}', more than ${maxWaiting}`);
  if (isBeyond(oldestWaitingMs, maxOldestMs))
    found.push(
      `a job of queue '${name}' has waited for ${oldestWaitingMs} ms, longer than ${maxOldestMs} ms`,
    );
  return found;
}

function isBeyond(value: number | null, limit: number | undefined): boolean {
  return value !== null && limit !== undefined && value > limit;
}
