import type { PoolRecord, ProcessRecord, RunningJob } from '../contract/process-verbs.js';

/** A worker process, as it last told of itself; times are those of Redis' clock. */
export interface WorkerInfo {
  /** Random; another one after each start of the workers. */
  readonly id: string;
  /** Name of the machine. */
  readonly host: string;
  /** Process id. */
  readonly pid: number;
  /** What it runs. */
  readonly versions: {
    /** Of this library. */
    readonly godwit: string;
    /** Of Node.js. */
    readonly node: string;
    /** As `Redis 7.0.15`; null where it has not met one, `memory` where there is none. */
    readonly server: string | null;
  };
  /** Since when its workers run. */
  readonly startedAt: Date;
  /** As `forRoot` says it. */
  readonly role: 'worker' | 'both';
  /** `paused`: all its pools are, in this process. `draining`: it stops, and claims nothing more. */
  readonly state: 'running' | 'paused' | 'draining';
  /** One for each set of queues that share a concurrency. */
  readonly pools: readonly WorkerPoolInfo[];
  /** Pools that are not shown: there are too many. */
  readonly morePools: number;
}

/** The slots that share one concurrency. */
export interface WorkerPoolInfo {
  /** In the order in which they were given. */
  readonly queues: readonly string[];
  /** Those of its queues that this process has paused. */
  readonly paused: readonly string[];
  /** Jobs it runs at once. */
  readonly concurrency: number;
  /** The names under which it holds leases, as logs, `audit()` and `Queue.get` say them. */
  readonly workers: readonly string[];
  /** How many jobs run. */
  readonly running: number;
  /** Those of them that run longest, at most 50. */
  readonly jobs: readonly RunningJobInfo[];
}

/** A job that runs; never its data. */
export interface RunningJobInfo {
  /** Name of its queue. */
  readonly queue: string;
  /** Id of the job. */
  readonly id: string;
  /** Name of the job. */
  readonly name: string;
  /** From 1. */
  readonly attempt: number;
  /** When its run began. */
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
