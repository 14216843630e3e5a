import type { AttemptRecord, DeadReason, FailureRecord, SettledRun } from '../job/outcome.js';
import type { JobState } from '../job/job-state.js';
import type { QueueRef } from './queue-ref.js';

/**
 * Dead letters, cleaning and retention. Each verb works in small atomic steps that block the store only briefly. A job that
 * changes between two steps is neither skipped nor visited twice.
 */
export interface UpkeepVerbs {
  /**
   * Puts dead jobs back into the line with no attempts counted: the named ones, or the first to die of those that match. A job
   * with `unique` stays dead while another job that has not ended has its key.
   */
  retryDead(queue: QueueRef, which: RetryChoice): Promise<RetryAnswer>;
  removeDead(queue: QueueRef, which: DeadChoice): Promise<{ removed: readonly string[] }>;
  /** Removes jobs of one state that are old enough, the oldest first. */
  clean(queue: QueueRef, call: CleanCall): Promise<{ removed: readonly string[] }>;

  /**
   * Reports that a live process has handlers for these names. `''` stands for all other names. `PATTERN_MARK` precedes a pattern,
   * and is also given alone if there are patterns. Stored for `keepMs`, but only after a process has asked for a name.
   */
  handles(queue: QueueRef, names: readonly string[], keepMs: number): Promise<void>;
  /** How long no live process has reported a handler for this name. If none ever has, the time counts from the first question. */
  unhandledMs(queue: QueueRef, name: string, keepMs: number): Promise<number>;

  /**
   * Frees the keys with these digests whose jobs have ended. A job that waits for that goes to the line. Returns how many were
   * freed.
   */
  freeKeys(queue: QueueRef, digests: readonly string[]): Promise<number>;

  /** Whether the caller may trim these queues for this time. */
  claimUpkeep(queues: readonly QueueRef[], forMs: number): Promise<boolean>;
  /** Which of the queues have jobs or events beyond their number or age, or keys that may have to be freed. */
  overgrown(queues: readonly QueueRef[]): Promise<readonly string[]>;
  /** Removes a limited part of them and frees keys. Returns how many. */
  trim(queue: QueueRef): Promise<number>;
}

/** Which dead jobs. An absent field matches any. Ages are counted from the death. */
export interface DeadMatch {
  /** A name, or several of which the job has one. */
  readonly name?: string | readonly string[] | undefined;
  readonly reason?: DeadReason | undefined;
  readonly olderThanMs?: number | undefined;
  readonly newerThanMs?: number | undefined;
}

/** A place in an order. It stays valid if the job at that place is removed. */
export interface Place {
  /** A score as Redis writes it. */
  readonly at: string;
  readonly id: string;
}

/** `data`: JSON of their new data. */
export type RetryChoice = DeadChoice | (NamedDead & { readonly data?: string });

export interface RetryAnswer {
  readonly retried: readonly string[];
  /** The jobs that stay dead, each with the job that has its key. Absent if there are none. */
  readonly refused?: readonly KeptOut[];
}

/** A job that does not run again, and the job that has its key. */
export interface KeptOut {
  readonly id: string;
  readonly holder: string;
}

/** Named jobs. `until`: a job that died later has run since it was listed, and does not change. */
interface NamedDead {
  readonly ids: readonly string[];
  readonly until?: number | undefined;
}

export type DeadChoice =
  NamedDead | (DeadMatch & { readonly limit: number; readonly signal?: AbortSignal | undefined });

export interface CleanCall {
  readonly state: Exclude<JobState, 'active'>;
  /** Age since it ended (completed, dead) or was added (waiting, delayed). */
  readonly olderThanMs: number;
  readonly limit: number;
  /** The call ends after the current step. */
  readonly signal?: AbortSignal | undefined;
}

/** The record of a dead job. It ends with the reason, so that scripts can match the reason without parsing JSON. */
export function deadRecord({ reason: _, ...failure }: FailureRecord, reason: DeadReason): string {
  return JSON.stringify({ ...failure, reason });
}

const ENTRY = { message: 500, calls: 4, call: 200 } as const;

/** The part of a failed attempt that is kept after the next one has failed. Undefined if no handler failed. */
export function attemptOf(
  { attempt, durationUs, outcome }: SettledRun,
  worker: string,
): Omit<AttemptRecord, 'at'> | undefined {
  if (!('failure' in outcome) || outcome.failure === null || !outcome.counted) return undefined;
  const { name, message, stack } = outcome.failure;
  const calls = stack?.match(/^ *at .+$/gm)?.slice(0, ENTRY.calls);
  return {
    attempt,
    durationUs,
    worker,
    name,
    message: message.slice(0, ENTRY.message),
    ...(calls && { stack: calls.map((call) => call.trim().slice(0, ENTRY.call)).join('\n') }),
  };
}

/* The failures of jobs that the store itself declares dead. */

/** The record of a job whose body was deleted or evicted. */
export const CORRUPT = deadRecord(
  { name: 'CorruptJob', message: 'the body of this job is missing', attempt: 0 },
  'corrupt',
);

/** The record of a job whose id no client can name, because it contains a line break or is not UTF-8. */
export const UNREADABLE = deadRecord(
  { name: 'CorruptJob', message: 'the id of this job could not be read', attempt: 0 },
  'corrupt',
);

/** The record of a job that exceeded `maxStalls`. */
export const STALLED = deadRecord(
  { name: 'StalledJob', message: 'its worker died or went silent too many times', attempt: 0 },
  'stalled',
);
