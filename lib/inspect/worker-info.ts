import type { PoolRecord, ProcessRecord, RunningJob } from '../contract/process-verbs.js';

/** A worker process, as it last reported; times are those of the clock of Redis. */
export interface WorkerInfo {
  /** Random; a new one at each start of the workers. */
  readonly id: string;
  /** Name of the machine. */
  readonly host: string;
  /** Process id. */
  readonly pid: number;
  /** Versions of what it runs. */
  readonly versions: {
    /** Of this library. */
    readonly godwit: string;
    /** Of Node.js. */
    readonly node: string;
    /** Such as `Redis 7.0.15`; null if it has not connected yet, `memory` for the in-memory engine. */
    readonly server: string | null;
  };
  /** When its workers started. */
  readonly startedAt: Date;
  /** The `role` of `forRoot`. */
  readonly role: 'worker' | 'both';
  /** `paused`: all pools of this process are. `draining`: it is stopping and claims no more jobs. */
  readonly state: 'running' | 'paused' | 'draining';
  /** One for each queue or set of queues that share a concurrency. */
  readonly pools: readonly WorkerPoolInfo[];
  /** How many further pools there are. */
  readonly morePools: number;
}

/** The slots that share one concurrency. */
export interface WorkerPoolInfo {
  /** In the order of `@Processor`. */
  readonly queues: readonly string[];
  /** Those of its queues that this process has paused. */
  readonly paused: readonly string[];
  /** Jobs it runs at once. */
  readonly concurrency: number;
  /** The names under which it holds leases, as in logs, `audit()` and `Queue.get`. */
  readonly workers: readonly string[];
  /** How many jobs run. */
  readonly running: number;
  /** The longest running of them, at most 50. */
  readonly jobs: readonly RunningJobInfo[];
}

/** A running job, without its data. */
export interface RunningJobInfo {
  /** Name of its queue. */
  readonly queue: string;
  /** Id of the job. */
  readonly id: string;
  /** Name of the job. */
  readonly name: string;
  /** From 1. */
  readonly attempt: number;
  /** When the run began. */
  readonly since: Date;
}

export function toWorkerInfo({ pools, startedAt, ...rest }: ProcessRecord): WorkerInfo {
  return { ...rest, startedAt: new Date(startedAt), pools: pools.map(toPoolInfo) };
}

function toPoolInfo({ jobs, ...rest }: PoolRecord): WorkerPoolInfo {
  return { ...rest, jobs: jobs.map(toJobInfo) };
}

function toJobInfo({ since, ...rest }: RunningJob): RunningJobInfo {
  return { ...rest, since: new Date(since) };
}

/** By host, then by process id. */
export function byPlace(a: WorkerInfo, b: WorkerInfo): number {
  return compare(a.host, b.host) || a.pid - b.pid || compare(a.id, b.id);
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
