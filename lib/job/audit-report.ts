import type { JobCounts } from './job-state.js';

/** Every way in which a queue can be broken; none of them happens unless somebody or something wrote into its keys. */
export type ViolationKind =
  /** An id stands in a place, its body is gone. */
  | 'no-body'
  /** A body is there, its id stands in no place: the job would never run. */
  | 'no-place'
  /** An id stands in two places, or is held by two workers. */
  | 'two-places'
  /** An id stands twice in one line. */
  | 'repeated'
  /** Something is kept of a job that is gone, or is in a state that has no such thing. */
  | 'stray'
  /** A number that is kept of a job cannot be read; until it is mended it counts as 0. */
  | 'unreadable'
  /** A worker holds jobs without a lease: nobody would ever take them back. */
  | 'no-lease'
  /** A worker holds jobs under a lease that is not over, but is unknown: it cannot settle them. */
  | 'no-record'
  /** A lease lies further ahead than one lease can. */
  | 'lease-ahead';

/** One way in which the queue is broken. */
export interface Violation {
  /** Which. */
  readonly kind: ViolationKind;
  /** The job; null where it is about a worker. */
  readonly id: string | null;
  /** The worker; null where it is about a job. */
  readonly worker: string | null;
  /** The keys in question, such as `wait`, `attempts`, or `active:<worker>`. */
  readonly where: readonly string[];
  /** The same as a sentence. */
  readonly text: string;
}

/** What `audit` found. */
export interface AuditReport {
  /** Empty where each job is in exactly one place, with its body, and each running one under a lease. */
  readonly violations: readonly Violation[];
  /** How many different ids were looked at. */
  readonly checked: number;
  /** How many jobs stand in each place; completed ones also while they wait to be removed. */
  readonly counts: JobCounts;
}

/** What `repair` does about a violation. */
export type RepairAct =
  /** The job is dead as `corrupt`: there is nothing to run. */
  | 'buried'
  /** Its body stays lost; the job stays where it ended. */
  | 'emptied'
  /** The job is back in line. */
  | 'lined-up'
  /** The job had ended, and is kept as such again. */
  | 'kept-ended'
  /** The job stands in one place only now. */
  | 'kept-one'
  /** What did not belong to the job is removed. */
  | 'swept'
  /** A number of the job that could not be read begins anew. */
  | 'reset'
  /** The worker has a lease of the right length again. */
  | 'leased'
  /** The jobs of the worker are back in line, each with a stall counted. */
  | 'recovered';

/** One thing that was mended. */
export interface Repair {
  /** What was done. */
  readonly did: RepairAct;
  /** The job; null where it is about a worker. */
  readonly id: string | null;
  /** The worker; null where it is about a job. */
  readonly worker: string | null;
  /** The same as a sentence. */
  readonly text: string;
}

/** What `repair` did; empty where nothing was broken. */
export interface RepairReport {
  /** In the order in which they were made. */
  readonly repairs: readonly Repair[];
  /** How many different ids were looked at. */
  readonly checked: number;
}
