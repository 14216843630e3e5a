import { worksOn } from '../contract/process-verbs.js';
import type { WorkerInfo } from './queue-inspector.js';

/** How many processes work on a queue, and in how many of these an order has paused it. */
export interface Serving {
  readonly processes: number;
  readonly paused: number;
}

export function servingOf(processes: readonly WorkerInfo[], queue: string): Serving {
  const own = processes.filter((process) => worksOn(process, queue));
  return { processes: own.length, paused: own.filter((process) => hasPaused(process, queue)).length };
}

/** Whether the process claims no jobs of a queue that it works on. Its record may leave out the pool. */
function hasPaused({ pools, state }: WorkerInfo, queue: string): boolean {
  const own = pools.filter(({ queues }) => queues.includes(queue));
  if (own.length === 0) return state === 'paused' || state === 'quiet';
  return own.every(({ paused }) => paused.includes(queue));
}

/** Whether no process claims jobs of the queue because every process that works on it has paused it. */
export function isPausedByAll({ processes, paused }: Serving): boolean {
  return processes > 0 && paused === processes;
}

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

/** The methods of a queue that `waitReasons` calls. */
interface WaitQueue {
  readonly name: string;
  readonly limits: { holding(job: WaitingJob): Promise<readonly { readonly text: string }[]> };
  isPaused(): Promise<boolean>;
}

/** The name is empty if the job cannot be read. */
interface WaitingJob {
  readonly name: string;
  readonly group: string | null;
}

/** Why a waiting job does not start: a pause of the queue, no process that claims its jobs, or limits. */
export async function waitReasons(
  queue: WaitQueue,
  { name, group }: WaitingJob,
  processes: readonly WorkerInfo[],
): Promise<string[]> {
  const place = pausedPlace(queue.name, processes);
  const [isPaused, held] = await Promise.all([
    queue.isPaused(),
    name === '' ? [] : queue.limits.holding({ name, group }),
  ]);
  return [
    ...(isPaused ? ['the queue is paused'] : []),
    ...(place === null ? [] : [`the queue is paused in ${place}`]),
    ...(processes.length === 0 ? ['no process works on the queue'] : []),
    ...held.map(({ text }) => text),
  ];
}
