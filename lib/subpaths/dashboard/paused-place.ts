import type { WorkerInfo } from '../../inspect/queue-inspector.js';

/**
 * Where a queue is paused although nobody paused it as a whole: `all 2 processes that work on it`. Null if a process claims its
 * jobs, or if there is none.
 */
export function pausedPlace(queue: string, processes: readonly WorkerInfo[]): string | null {
  const pools = processes.map(({ state, pools: all }) => ({
    isStopping: state === 'draining',
    own: all.filter(({ queues }) => queues.includes(queue)),
  }));
  const live = pools.filter(({ isStopping, own }) => !isStopping && own.length > 0);
  const isPaused = live.every(({ own }) => own.every(({ paused }) => paused.includes(queue)));
  if (live.length === 0 || !isPaused) return null;
  return live.length === 1
    ? 'the only process that works on it'
    : `all ${live.length} processes that work on it`;
}
