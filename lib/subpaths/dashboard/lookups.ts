import type { StoredJob } from '../../contract/admin-verbs.js';
import type { QueueEngine } from '../../contract/engine.js';
import type { WorkerInfo } from '../../inspect/queue-inspector.js';
import { checkJobId, scheduleOf } from '../../job/job-id.js';
import { ENDED_STATES } from '../../job/job-state.js';
import { findJobs, readSearch, timeOf } from './job-search.js';

/** Facts about a job or a schedule that are not stored with it. */

export function isJobId(text: string): boolean {
  try {
    return checkJobId(text) === text;
  } catch {
    return false;
  }
}

/** Host and process id of the workers of these processes, by the names of the workers. */
export function placesOf(processes: readonly WorkerInfo[]): Record<string, string> {
  const places = processes.flatMap(({ host, pid, pools }) =>
    pools.flatMap(({ workers }) => workers.map((worker) => [worker, `${host}:${pid}`] as const)),
  );
  return Object.fromEntries(places);
}

const MAX_HISTORY = 10;
/** The search is for an id, which is never hidden. */
const AS_STORED = { text: (same: string) => same, hidesText: false };
const STATES = ['waiting', 'delayed', 'active', ...ENDED_STATES] as const;

export interface JobsOfSchedule {
  /** The latest first, at most ten. */
  readonly jobs: readonly StoredJob[];
  /** Whether a search ended before it had looked at all jobs of a state. */
  readonly isPartial: boolean;
}

/** The jobs of a schedule that still exist. Their ids begin with its id and an @. */
export async function jobsOfSchedule(
  engine: QueueEngine,
  queue: string,
  id: string,
): Promise<JobsOfSchedule> {
  const contains = `${id}@`.slice(0, 200);
  const searches = STATES.map((state) =>
    readSearch({ state, contains, order: 'desc', limit: String(MAX_HISTORY) }),
  );
  const pages = await Promise.all(searches.map((search) => findJobs(engine, queue, search, AS_STORED)));
  const jobs = pages.flatMap((page) => page.jobs).filter((job) => scheduleOf(job.id) === id);
  return {
    jobs: jobs.toSorted((a, b) => (timeOf(b) ?? 0) - (timeOf(a) ?? 0)).slice(0, MAX_HISTORY),
    isPartial: pages.some(({ cursor, jobs: found }) => cursor !== null && found.length < MAX_HISTORY),
  };
}
