import { worksOn } from '../contract/process-verbs.js';
import type { QueueEngine } from '../contract/engine.js';
import type { StoredSchedule } from '../contract/schedule-verbs.js';
import { MAX_PUT_OFF_MS } from '../job/job.js';
import { decodeBody } from '../job/job-record.js';
import type { JobState } from '../job/job-state.js';
import { counted } from '../job/text.js';
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
    holding(
      job: Pick<WaitingJob, 'id' | 'name' | 'group' | 'cost'>,
    ): Promise<readonly { readonly text: string }[]>;
  };
  isPaused(): Promise<boolean>;
}

/** The name is empty if the job cannot be read. */
interface WaitingJob {
  readonly id: string;
  readonly name: string;
  readonly group: string | null;
  readonly cost: number;
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

/** By then other workers have usually taken back the jobs of a worker whose lease has ended. */
export const LOST_AFTER_MS = 30_000;

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

/** Delayed jobs that are read, and names that are returned, for each queue. */
const MOST_DELAYED = 100;
const MOST_NAMES = 3;

/** Jobs of one name that no process handles. */
export interface UnhandledName {
  readonly name: string;
  readonly count: number;
  /** Whether there may be more, because only the first delayed jobs are read. */
  readonly isLeast: boolean;
}

/** Such as `at least 3 delayed jobs named mail: no process has a handler …`. */
export function unhandledText({ name, count, isLeast }: UnhandledName): string {
  const jobs = `${isLeast ? 'at least ' : ''}${counted(count, 'delayed job')} named ${name}`;
  return `${jobs}: no process has a handler for this name, or the handler put them off`;
}

/**
 * Names of jobs that were added without a delay and are put off before their first attempt, as a process does that has no handler for
 * them; the most frequent first. Only the first delayed jobs are read: these are among them, because they are due soon.
 */
export async function unhandledNames(
  engine: Pick<QueueEngine, 'admin' | 'now'>,
  queue: string,
): Promise<UnhandledName[]> {
  const call = { state: 'delayed', after: null, limit: MOST_DELAYED, brief: true } as const;
  const { jobs, next } = await engine.admin.jobs(queue, call);
  const soon = engine.now() + MAX_PUT_OFF_MS;
  const counts = new Map<string, number>();
  for (const { body, failed, dueAt } of jobs) {
    const read = failed === 0 && dueAt !== null && dueAt <= soon ? decodeBody(body) : null;
    if (read && read.options.runnableAt === undefined)
      counts.set(read.name, (counts.get(read.name) ?? 0) + 1);
  }
  const isLeast = next !== null && (jobs.at(-1)?.dueAt ?? 0) <= soon;
  return [...counts]
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, MOST_NAMES)
    .map(([name, count]) => ({ name, count, isLeast }));
}

/** Schedules that one call reads. */
const SCHEDULE_PAGE = 100;

/** Ids of the paused schedules among the first `limit` schedules of a queue. */
export async function pausedSchedules(
  { schedules }: Pick<QueueEngine, 'schedules'>,
  queue: string,
  limit: number,
): Promise<string[]> {
  const found: StoredSchedule[] = [];
  for (let offset = 0; offset < limit;) {
    const page = { offset, limit: Math.min(SCHEDULE_PAGE, limit - offset) };
    // oxlint-disable-next-line no-await-in-loop -- short calls do not hold up the jobs
    const { total, schedules: next } = await schedules.list(queue, page);
    found.push(...next.filter(({ mode }) => mode === 'paused'));
    offset += next.length;
    if (next.length === 0 || offset >= total) break;
  }
  return found.map(({ id }) => id);
}
