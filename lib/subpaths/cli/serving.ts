import type { WorkerInfo } from '../../inspect/queue-inspector.js';
import type { Cell } from './table.js';

/** How many worker processes work on a queue, and how many of these have paused it for themselves. */
export interface Serving {
  readonly processes: number;
  readonly paused: number;
}

export function servingOf(workers: readonly Pick<WorkerInfo, 'pools'>[], queue: string): Serving {
  const of = workers
    .map(({ pools }) => pools.filter(({ queues }) => queues.includes(queue)))
    .filter((pools) => pools.length > 0);
  const isPaused = (pools: WorkerInfo['pools']) => pools.every(({ paused }) => paused.includes(queue));
  return { processes: of.length, paused: of.filter(isPaused).length };
}

/** Whether jobs wait although processes work on the queue, because all of them have paused it. */
export function isPausedByAll({ processes, paused }: Serving): boolean {
  return processes > 0 && paused === processes;
}

/** The state of a process, with the queues that it has paused if it works on others. */
export function stateOfProcess({ state, pools }: WorkerInfo): Cell {
  const quiet = [...new Set(pools.flatMap((pool) => pool.quiet))];
  const paused = [...new Set(pools.flatMap((pool) => pool.paused))].filter((name) => !quiet.includes(name));
  if (state !== 'running') return { text: state, style: 'yellow' };
  const parts = [
    ...(paused.length > 0 ? [`paused: ${paused.join(' ')}`] : []),
    ...(quiet.length > 0 ? [`quiet: ${quiet.join(' ')}`] : []),
  ];
  return parts.length === 0 ? state : { text: parts.join(', '), style: 'yellow' };
}
