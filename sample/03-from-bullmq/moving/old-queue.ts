/**
 * The part of BullMQ's `Queue` and `Job` that is used, as versions 5 and 6 have it. So the program that moves jobs can be
 * compiled and tested without BullMQ.
 */
export interface OldQueue {
  readonly name: string;
  isPaused(): Promise<boolean>;
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Jobs from `start` to `end`, both included; index 0 is the next job. An entry is missing if a job has lost its body. */
  getJobs(
    types: OldState[],
    start: number,
    end: number,
    ascending: boolean,
  ): Promise<(OldJob | null | undefined)[]>;
  getJobCounts(...types: (OldState | 'active' | 'waiting-children')[]): Promise<Record<string, number>>;
}

/** The lists that jobs are taken from. BullMQ keeps jobs with a priority in a separate list. */
export type OldState = 'waiting' | 'prioritized' | 'delayed' | 'failed';

export interface OldJob {
  readonly id?: string | undefined;
  readonly name: string;
  readonly data: unknown;
  readonly opts: OldOptions;
  /** When the job was added, ms since 1970. */
  readonly timestamp: number;
  /** When its last run began. */
  readonly processedOn?: number | undefined;
  /** Delay of the job, from when it was added or from the end of its last run. */
  readonly delay: number;
  readonly attemptsMade: number;
  /** Whether the job is a child in a flow. */
  readonly parentKey?: string | undefined;
  /** Whether a job scheduler added the job. */
  readonly repeatJobKey?: string | undefined;
  remove(): Promise<void>;
}

export interface OldOptions {
  readonly attempts?: number | undefined;
  readonly backoff?: number | OldBackoff | undefined;
  readonly priority?: number | undefined;
  readonly removeOnComplete?: unknown;
}

export interface OldBackoff {
  readonly type: string;
  readonly delay?: number | undefined;
  readonly jitter?: number | undefined;
}
