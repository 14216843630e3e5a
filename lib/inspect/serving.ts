import { worksOn } from '../contract/process-verbs.js';
import type { QueueEngine } from '../contract/engine.js';
import type { JobState } from '../job/job-state.js';
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
  readonly limits: {
    holding(job: Pick<WaitingJob, 'id' | 'name' | 'group'>): Promise<readonly { readonly text: string }[]>;
  };
  isPaused(): Promise<boolean>;
}

/** The name is empty if the job cannot be read. */
interface WaitingJob {
  readonly id: string;
  readonly name: string;
  readonly group: string | null;
  readonly state: JobState;
  /** Null for a delayed job that waits for the end of another one. */
  readonly dueAt: Date | number | null;
  /** Whether it was added without a delay, and no attempt has failed. */
  readonly isFresh: boolean;
}

/**
 * Why a job does not start: a pause of the queue, no process that claims its jobs, limits, no free slot, a job with its unique key, or no
 * handler. Other delayed jobs wait for their time.
 */
export async function waitReasons(
  queue: WaitQueue,
  { state, dueAt, isFresh, ...job }: WaitingJob,
  processes: readonly WorkerInfo[],
): Promise<string[]> {
  if (state === 'delayed' && dueAt === null) return ['another job with its unique key has not ended'];
  if (state === 'delayed' && isFresh)
    return ['no process has a handler for its name (their logs say so), or its handler put it off'];
  if (state !== 'waiting') return [];
  const place = pausedPlace(queue.name, processes);
  const [isPaused, held] = await Promise.all([
    queue.isPaused(),
    job.name === '' ? [] : queue.limits.holding(job),
  ]);
  const reasons = [
    ...(isPaused ? ['the queue is paused'] : []),
    ...(place === null ? [] : [`the queue is paused in ${place}`]),
    ...(processes.length === 0 ? ['no process works on the queue'] : []),
    ...held.map(({ text }) => text),
  ];
  const busy = reasons.length === 0 ? busyText(queue.name, processes) : null;
  return busy === null ? reasons : [busy];
}

/** Whether all slots of the processes that claim jobs of the queue are in use. Null if not, or if it is unknown. */
function busyText(queue: string, processes: readonly WorkerInfo[]): string | null {
  const own = processes.flatMap(({ pools }) =>
    pools.filter(({ queues, paused }) => queues.includes(queue) && !paused.includes(queue)),
  );
  const isWhole = processes.every(({ morePools }) => morePools === 0);
  if (!isWhole || own.length === 0 || own.some(({ running, concurrency }) => running < concurrency))
    return null;
  const slots = own.reduce((sum, { concurrency }) => sum + concurrency, 0);
  return slots === 1 ? 'the only slot is in use' : `all ${slots} slots are in use`;
}

/**
 * The workers of a queue whose lease has ended, and whose jobs nobody has taken back. `overdue` also returns leases that are longer than
 * this process expects, as the queue of another application may have.
 *
 * @param sinceMs how long ago the lease ended, at least.
 */
export async function silentWorkers(
  engine: Pick<QueueEngine, 'overdue'>,
  queue: string,
  sinceMs = 0,
): Promise<string[]> {
  const found = await engine.overdue(queue, 0);
  return found.filter(({ endsInMs }) => endsInMs <= -sinceMs).map(({ worker }) => worker);
}
