/**
 * What is used of BullMQ's own `Queue` and `Job`, in the form that its versions 5 and 6 share, so that what moves the jobs can be
 * compiled and tested without it.
 */
export interface OldQueue {
  readonly name: string;
  isPaused(): Promise<boolean>;
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** From the one that is next, `start` to `end` inclusive; nothing where a job has lost its body. */
  getJobs(
    types: OldState[],
    start: number,
    end: number,
    ascending: boolean,
  ): Promise<(OldJob | null | undefined)[]>;
  getJobCounts(...types: (OldState | 'active' | 'waiting-children')[]): Promise<Record<string, number>>;
}

/** Where jobs are taken from. BullMQ keeps those with a priority apart from the other waiting ones. */
export type OldState = 'waiting' | 'prioritized' | 'delayed' | 'failed';

export interface OldJob {
  readonly id?: string | undefined;
  readonly name: string;
  readonly data: unknown;
  readonly opts: OldOptions;
  /** When it was added, ms since 1970. */
  readonly timestamp: number;
  /** When its last run began. */
  readonly processedOn?: number | undefined;
  /** How long it waits, from its start or from the end of its last run. */
  readonly delay: number;
  readonly attemptsMade: number;
  /** It is a child in a flow. */
  readonly parentKey?: string | undefined;
  /** It was made by a job scheduler. */
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
