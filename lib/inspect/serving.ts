import type { WorkerInfo } from './queue-inspector.js';

/** How many processes work on a queue, and in how many of these an order has paused it. */
export interface Serving {
  readonly processes: number;
  readonly paused: number;
}

export function servingOf(processes: readonly Pick<WorkerInfo, 'pools'>[], queue: string): Serving {
  const own = processes
    .map(({ pools }) => pools.filter(({ queues }) => queues.includes(queue)))
    .filter((pools) => pools.length > 0);
  const isPaused = (pools: WorkerInfo['pools']) => pools.every(({ paused }) => paused.includes(queue));
  return { processes: own.length, paused: own.filter(isPaused).length };
}

/** Whether no process claims jobs of the queue because every process that works on it has paused it. */
export function isPausedByAll({ processes, paused }: Serving): boolean {
  return processes > 0 && paused === processes;
}
