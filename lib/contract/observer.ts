import type { AbortReason } from '../errors.js';
import type { Outcome } from '../job/outcome.js';
import type { RunTrace, TracedEnd } from '../options/telemetry.js';

/** A run that is over, or a job that could not run. */
export interface ObservedRun {
  readonly durationUs: number;
  /** Undefined if the worker has lost the job. */
  readonly outcome: Outcome | undefined;
  /** When the job could first have run, ms since 1970; only if this was its first run. */
  readonly firstRunnableAt?: number | undefined;
  /** Its trace, if there is telemetry. */
  readonly trace?: Pick<RunTrace, 'traceId'> | undefined;
  /** Why its signal was aborted, if it was. */
  readonly aborted?: { readonly reason: AbortReason } | undefined;
}

/** Why a job was not stored. `duplicate`: another one holds its id. */
export type NotAdded = 'duplicate' | 'full' | 'dropped' | 'failed';

/**
 * Observes the work of this process. Workers call it when a run is over, before the store confirms the outcome. Producers call it
 * when the store has answered. It is called once per job, so it must be quick, and must not throw.
 */
export interface WorkObserver {
  /** @param name `''` if no handler names it. @param now by the clock of the store. */
  ended(queue: string, name: string, run: ObservedRun, now: number): void;
  /** @param names one for each job that was stored. */
  added(queue: string, names: readonly string[]): void;
  /** Jobs that were not stored. `full`: the queue or their group is full. `dropped`: so is the queue, and the call resolved. */
  notAdded?(queue: string, names: readonly string[], why: NotAdded): void;
  /** Adds of this process removed `count` other jobs, because the queue was full. */
  madeRoom?(queue: string, count: number): void;
  /** This process has recovered `count` jobs from a worker that went silent; `dead` of them stalled too often. */
  stalled?(queue: string, count: number, dead: number): void;
  /** An exchange was answered, or a claim after the doorbell rang. Its duration is not known, so `ms` is null. */
  exchanged?(ms: number | null, settled: number, claimed: number): void;
}

/** Whether a handler was called and returned or threw by itself. */
export function hasRun(outcome: Outcome): boolean {
  return outcome.kind === 'completed' || (outcome.kind !== 'released' && outcome.counted);
}

/** How a run ended, in one word for people. */
export function endOf({ outcome, aborted }: Pick<ObservedRun, 'outcome' | 'aborted'>): TracedEnd['outcome'] {
  if (!outcome) return 'lost';
  switch (outcome.kind) {
    case 'retried':
      if (outcome.counted) return 'retrying';
      return outcome.started === false ? 'released' : 'snoozed';
    case 'released':
      return aborted?.reason === 'cancelled' ? 'cancelled' : 'released';
    default:
      return outcome.kind;
  }
}

/** The end of a run as telemetry sees it. */
export function tracedEnd(run: ObservedRun): TracedEnd {
  const { outcome } = run;
  const failure = outcome && 'failure' in outcome ? outcome.failure : null;
  return {
    outcome: endOf(run),
    hasRun: outcome !== undefined && hasRun(outcome),
    durationUs: run.durationUs,
    reason: outcome?.kind === 'dead' ? outcome.reason : null,
    failure,
  };
}
