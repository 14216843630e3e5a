import type { QueueRef } from './queue-ref.js';

/** The worker processes of a prefix and its queues. No job needs these verbs to run. */
export interface ProcessVerbs {
  /** Name and version of the server; null before the first connection. */
  readonly server: string | null;
  /**
   * Stores the record of this process for one lease. It must be stored again before the lease ends. Returns the orders to this
   * process, the oldest first, without those up to the last one that the record names as obeyed.
   */
  register(record: ProcessRecord, leaseMs: number): Promise<Registration>;
  /** Leaves an order for a process. False if the process is not alive. Can be repeated. */
  order(process: string, order: ProcessOrder): Promise<boolean>;
  /** Deletes the record, because the process has stopped. */
  unregister(process: string): Promise<void>;
  /** The records of living processes, in no particular order. */
  list(): Promise<ProcessList>;
  /** The process of this worker, even some minutes after its end. Null if it is not known. */
  ofWorker(worker: string): Promise<ProcessRecord | null>;
  /** Registers that this process works on these queues. May be called often, because it seldom writes. */
  worksOn(queues: readonly QueueRef[]): Promise<void>;
  /**
   * Names of all queues that jobs or schedules were added to or that a process works on, until they are obliterated. In no particular order.
   */
  queues(): Promise<readonly string[]>;
  /** One process leads at a time, for one lease from each call on. Every process gets the state that the leader stored last. */
  lead(call: LeadCall): Promise<LeadAnswer>;
}

export interface Registration {
  readonly orders: readonly ProcessOrder[];
  /** Whether the store has lost its data: it no longer had the record, which was stored before. */
  readonly hasLostData: boolean;
}

export interface LeadCall {
  /** Random; the caller itself. */
  readonly owner: string;
  /** 0: it gives the lead away. */
  readonly leaseMs: number;
  /** Stored if the caller leads; empty: the state stays. */
  readonly state: string;
}

export interface LeadAnswer {
  readonly isLeader: boolean;
  /** Empty if there is none. */
  readonly state: string;
}

export interface ProcessList {
  readonly records: readonly ProcessRecord[];
  /**
   * Processes whose lease ended in the last ten minutes although they did not stop, and how long ago it ended. Those are left out whose
   * host and process id a living process has now.
   */
  readonly silent: readonly { readonly record: ProcessRecord; readonly silentMs: number }[];
  /** Entries that cannot be read, because another program or a newer version wrote them. */
  readonly unreadable: readonly { readonly process: string; readonly why: string }[];
}

/**
 * The record of a worker process. It never contains job data. Times are ms since 1970 by the clock of the store. Users see most
 * fields in `WorkerInfo`.
 */
export interface ProcessRecord {
  /** A random id, new at each start of the workers. */
  readonly id: string;
  /** Name of the machine. */
  readonly host: string;
  /** Process id. */
  readonly pid: number;
  /** Versions of the software it runs. */
  readonly versions: {
    /** Version of this package. */
    readonly godwit: string;
    /** Version of Node.js. */
    readonly node: string;
    /** The server, such as `Redis 7.0.15`. Null if the process has not connected yet; `memory` for the in-memory engine. */
    readonly server: string | null;
  };
  readonly startedAt: number;
  /** The `role` of `forRoot`. */
  readonly role: 'worker' | 'both';
  /**
   * `paused`: all pools of this process are paused. `quiet`: they are paused until the process ends (`QueueRuntime.quiet`).
   * `draining`: the process is stopping and claims no more jobs. A newer version may report other states.
   */
  readonly state: 'running' | 'paused' | 'quiet' | 'draining';
  readonly pools: readonly PoolRecord[];
  /** Number of pools that are left out, because they did not fit into the record. */
  readonly morePools: number;
  /** Names of their queues. Absent if no pool is left out, if they are too many, and if an older version reports. */
  readonly moreQueues?: readonly string[];
  /** For how long its event loop was blocked at a time in the last minute, at most. Absent in records of older versions. */
  readonly blockedMs?: number;
  /** Id of the last order that it obeyed; empty before the first. Null: an older version, which takes no orders. */
  readonly obeyed: string | null;
}

/** Leaves out silent processes that were replaced: a living process has their host and process id. */
export function notReplaced(
  silent: ProcessList['silent'],
  living: readonly ProcessRecord[],
): ProcessList['silent'] {
  const places = new Set(living.map(({ host, pid }) => `${host}:${pid}`));
  return silent.filter(({ record: { host, pid } }) => !places.has(`${host}:${pid}`));
}

/** A process whose event loop was blocked for this long needs attention. */
const BLOCKED_MS = 500;

/** Whether the event loop of the process was blocked for long in the last minute. */
export function isBlocked({ blockedMs = 0 }: Pick<ProcessRecord, 'blockedMs'>): boolean {
  return blockedMs >= BLOCKED_MS;
}

/** Whether a process works on a queue. True also if it may: its record leaves out pools and does not name their queues. */
export function worksOn(
  {
    pools,
    morePools,
    moreQueues,
  }: Pick<ProcessRecord, 'morePools' | 'moreQueues'> & {
    readonly pools: readonly Pick<PoolRecord, 'queues'>[];
  },
  queue: string,
): boolean {
  if (pools.some(({ queues }) => queues.includes(queue))) return true;
  return moreQueues ? moreQueues.includes(queue) : morePools > 0;
}

export const ORDER_KINDS = ['pause', 'resume', 'quiet'] as const;

/** An order to a process. It is deleted when the process has obeyed or ended. */
export interface ProcessOrder {
  /** Random. */
  readonly id: string;
  readonly kind: (typeof ORDER_KINDS)[number];
  /** Null: all queues of the process. */
  readonly queue: string | null;
  /** Name of the person or program that gave it; may be empty. */
  readonly by: string;
}

export type ProcessState = ProcessRecord['state'];

/** The slots that share one concurrency. */
export interface PoolRecord {
  /** Names of the queues, in the order of `@Processor`. */
  readonly queues: readonly string[];
  /** The queues of the pool that this process has paused. */
  readonly paused: readonly string[];
  /** Those of the paused queues that stay paused until the process ends. Older versions do not write it. */
  readonly quiet: readonly string[];
  /** Jobs it runs at once. */
  readonly concurrency: number;
  /** Names of the workers of this pool, as in logs, `audit()` and `Queue.get`. */
  readonly workers: readonly string[];
  /** Number of running jobs, of all queues of the pool. */
  readonly running: number;
  /** The running jobs, longest first, at most 50. */
  readonly jobs: readonly RunningJob[];
}

/** A running job, without its data. */
export interface RunningJob {
  /** Name of its queue. */
  readonly queue: string;
  /** Id of the job. */
  readonly id: string;
  /** Name of the job. */
  readonly name: string;
  /** From 1. */
  readonly attempt: number;
  readonly since: number;
}
