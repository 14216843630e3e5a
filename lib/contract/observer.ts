import type { AbortReason } from '../errors.js';
import type { Outcome } from '../job/outcome.js';

/** A run that is over, or a job that could not run. */
export interface ObservedRun {
  readonly attempt: number;
  readonly durationUs: number;
  /** Undefined if the worker has lost the job. */
  readonly outcome: Outcome | undefined;
  /** When the job could first have run, ms since 1970; only if this was its first run. */
  readonly firstRunnableAt?: number | undefined;
  /** Why its signal was aborted, if it was. */
  readonly aborted?: { readonly reason: AbortReason } | undefined;
}

/**
 * Told of the work of this process: by its workers when a run is over, before the store confirms the outcome, and by its producers when
 * the store has answered. It is called once per job, so it must be quick, and must not throw.
 */
export interface WorkObserver {
  /** @param name `''` if no handler names it. @param now by the clock of the store. */
  ended(queue: string, name: string, run: ObservedRun, now: number): void;
  /** @param names one for each job that was stored. */
  added(queue: string, names: readonly string[]): void;
  /** Jobs that were not stored, because another one held their id or because the call failed. */
  notAdded?(queue: string, names: readonly string[], why: 'duplicate' | 'failed'): void;
  /** This process has taken so many jobs back from a worker that went silent. */
  stalled?(queue: string, count: number): void;
  /** An exchange was answered. */
  exchanged?(ms: number, settled: number, claimed: number): void;
}
