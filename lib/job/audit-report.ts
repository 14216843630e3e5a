import type { JobCounts } from './job-state.js';

/** Every kind of damage to a queue. None happens unless another program wrote to or deleted its keys. */
export type ViolationKind =
  /** An id is in a list or set, but its body is gone. */
  | 'no-body'
  /** There is a body, but its id is nowhere: the job would never run. */
  | 'no-place'
  /** An id is in two places, or is held by two workers. */
  | 'two-places'
  /** An id is in one list twice. */
  | 'repeated'
  /** There is data of a job that is gone, or data that a job in this state does not have. */
  | 'stray'
  /**
   * A stored number of a job cannot be read (it counts as 0 until `repair` resets it), its body is in the wrong hash, or its id is not
   * UTF-8, is empty or has a line break.
   */
  | 'unreadable'
  /** A worker holds jobs without a lease: they would never be recovered. */
  | 'no-lease'
  /** A worker with a valid lease holds jobs, but its record is gone: it cannot settle them. */
  | 'no-record'
  /** A lease ends later than the longest lease would. */
  | 'lease-ahead';

/** One damage. */
export interface Violation {
  /** Which. */
  readonly kind: ViolationKind;
  /**
   * The job; null if the violation is about a worker. An id that is not UTF-8 is written as a line break and its bytes in hex.
   */
  readonly id: string | null;
  /** The worker; null if the violation is about a job. */
  readonly worker: string | null;
  /** The keys in question, such as `wait`, `attempts`, or `active:<worker>`. */
  readonly where: readonly string[];
  /** The same as a sentence. */
  readonly text: string;
}

/** What `audit` found. */
export interface AuditReport {
  /** Empty if each job has its body and is in exactly one place, and each active job has a lease. */
  readonly violations: readonly Violation[];
  /** How many different ids were checked. */
  readonly checked: number;
  /** How many jobs are in each place, including completed ones that wait to be removed. */
  readonly counts: JobCounts;
}

/** How `repair` fixes a violation. */
export type RepairAct =
  /** The job is dead as `corrupt`, because its data is gone or its id is not valid. */
  | 'buried'
  /** The job stays where it ended; its body is lost. */
  | 'emptied'
  /** The job is queued again. */
  | 'lined-up'
  /** The job had ended and is kept as ended again. */
  | 'kept-ended'
  /** The job was removed from all places but one. */
  | 'kept-one'
  /** Data that belonged to no job was removed. */
  | 'swept'
  /** A number of the job that could not be read starts at 0 again. */
  | 'reset'
  /** The worker has a lease of the right length again. */
  | 'leased'
  /** The jobs of the worker are queued again, each with a stall counted. */
  | 'recovered';

/** One fix. */
export interface Repair {
  /** What was done. */
  readonly did: RepairAct;
  /** The job; null if the repair is about a worker. */
  readonly id: string | null;
  /** The worker; null if the repair is about a job. */
  readonly worker: string | null;
  /** The same as a sentence. */
  readonly text: string;
}

/** What `repair` did. */
export interface RepairReport {
  /** The repairs, in the order in which they were made. */
  readonly repairs: readonly Repair[];
  /** How many different ids were checked. */
  readonly checked: number;
}
