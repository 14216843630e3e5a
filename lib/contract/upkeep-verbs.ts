import type { DeadReason, FailureRecord } from '../job/outcome.js';
import type { JobState } from '../job/job-state.js';

/**
 * Dead letters, cleaning and retention. Each verb is a walk in small steps, each of which is atomic and holds the store only
 * briefly; what changes between two steps is neither passed over nor met twice.
 */
export interface UpkeepVerbs {
  /** Dead jobs back to the line, attempts starting again: those named, or the ones asked for that died first. */
  retryDead(queue: string, which: DeadChoice): Promise<{ retried: readonly string[] }>;
  removeDead(queue: string, which: DeadChoice): Promise<{ removed: readonly string[] }>;
  /** Removes jobs of one state that are old enough, the oldest first. */
  clean(queue: string, call: CleanCall): Promise<{ removed: readonly string[] }>;

  /** A live process has handlers for these names, `''` for all others; remembered for `keepMs`, once somebody has asked for any. */
  handles(queue: string, names: readonly string[], keepMs: number): Promise<void>;
  /** For how long no live process has said that it handles this name; counted from the first question where none ever has. */
  unhandledMs(queue: string, name: string, keepMs: number): Promise<number>;

  /** Whether the caller is the one who looks after these queues for this time. */
  claimUpkeep(queues: readonly string[], forMs: number): Promise<boolean>;
  /** Those of the queues of which something is beyond its number or age. */
  overgrown(queues: readonly string[]): Promise<readonly string[]>;
  /** Takes away a bounded part of that, and answers how much it was: 0 when all is well. */
  trim(queue: string): Promise<number>;
}

/** Which dead jobs; an absent field means any. Ages are counted from when they died. */
export interface DeadMatch {
  readonly name?: string | undefined;
  readonly reason?: DeadReason | undefined;
  readonly olderThanMs?: number | undefined;
  readonly newerThanMs?: number | undefined;
}

/** A place in an order: what comes behind it is the same whatever happens to the job that stood there. */
export interface Place {
  /** A score as Redis writes it. */
  readonly at: string;
  readonly id: string;
}

export type DeadChoice = { readonly ids: readonly string[] } | (DeadMatch & { readonly limit: number });

export interface CleanCall {
  readonly state: Exclude<JobState, 'active'>;
  /** Since it ended (completed, dead) or was added (waiting, delayed). */
  readonly olderThanMs: number;
  readonly limit: number;
}

/** The record of a dead job: it ends with the reason, by which scripts find those of one reason without reading JSON. */
export function deadRecord({ reason: _, ...failure }: FailureRecord, reason: DeadReason): string {
  return JSON.stringify({ ...failure, reason });
}

/*
 * What is kept as the failure of jobs that the store itself declares dead.
 */

/** Its body was deleted or evicted. */
export const CORRUPT = deadRecord(
  { name: 'CorruptJob', message: 'the body of this job is missing', attempt: 0 },
  'corrupt',
);

/** Its id holds a line break or is not UTF-8, so no client can name it. */
export const UNREADABLE = deadRecord(
  { name: 'CorruptJob', message: 'the id of this job could not be read', attempt: 0 },
  'corrupt',
);

/** Past `maxStalls`. */
export const STALLED = deadRecord(
  { name: 'StalledJob', message: 'its worker died or went silent too many times', attempt: 0 },
  'stalled',
);
