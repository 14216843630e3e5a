/** The worker processes of a prefix: which of them live, and what each does. Nothing here is on the way of a job. */
export interface ProcessVerbs {
  /** Name and version of the server, as far as one has been met. */
  readonly server: string | null;
  /** Says for one lease what this process does. To be said again before that is over. */
  register(record: ProcessRecord, leaseMs: number): Promise<void>;
  /** The process has stopped. */
  unregister(process: string): Promise<void>;
  /** What living processes say of themselves, in no order. */
  list(): Promise<ProcessList>;
  /** The process that has, or some minutes ago had, this worker; null where that is not known. */
  ofWorker(worker: string): Promise<ProcessRecord | null>;
}

export interface ProcessList {
  readonly records: readonly ProcessRecord[];
  /** Entries that cannot be read: others wrote them, or a version to come. */
  readonly unreadable: readonly { readonly process: string; readonly why: string }[];
}

/** What a worker process says of itself. Never the data of a job. Times are ms since 1970 on the store's clock. */
export interface ProcessRecord {
  /** Random; a new one at each start of the workers. */
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  readonly versions: { readonly godwit: string; readonly node: string; readonly server: string | null };
  readonly startedAt: number;
  readonly role: 'worker' | 'both';
  readonly state: ProcessState;
  readonly pools: readonly PoolRecord[];
  /** Pools for which there was no room. */
  readonly morePools: number;
}

export type ProcessState = 'running' | 'paused' | 'draining';

export interface PoolRecord {
  readonly queues: readonly string[];
  /** Those of its queues that this process has paused. */
  readonly paused: readonly string[];
  readonly concurrency: number;
  /** Under which names it holds leases. */
  readonly workers: readonly string[];
  readonly running: number;
  /** Those that run longest. */
  readonly jobs: readonly RunningJob[];
}

export interface RunningJob {
  readonly queue: string;
  readonly id: string;
  readonly name: string;
  readonly attempt: number;
  readonly since: number;
}
