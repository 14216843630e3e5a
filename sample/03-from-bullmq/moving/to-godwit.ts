import type { JobOptions } from 'godwit';
import type { OldJob, OldState } from './old-queue.js';

/** Longest delay that Godwit accepts. */
const TEN_YEARS = 315_576_000_000;

/**
 * The options with which an old job continues in Godwit: at its due time, with its remaining attempts. A failed job starts again
 * from its first attempt.
 *
 * @param keep how long the job holds its id after it has completed, in ms, so that moving it again adds nothing.
 */
export function toGodwit(job: OldJob, state: OldState, keep: number): JobOptions {
  const { attempts = 1, priority = 0 } = job.opts;
  const begun = state === 'failed' ? 0 : job.attemptsMade;
  return {
    id: job.id!,
    // BullMQ's default is one attempt; that of Godwit is three.
    attempts: Math.max(1, attempts - begun),
    ...backoffOf(job, begun),
    ...(priority > 0 && { priority }),
    ...(state === 'delayed' && { runAt: dueAt(job) }),
    retention: Math.max(keep, keptFor(job.opts.removeOnComplete)),
    idHeldBy: ['completed', 'dead'],
  };
}

/**
 * A retry is delayed from the end of a run. BullMQ does not store that end, so the start of the run is used instead. A delay that
 * was changed later (`changeDelay`) is counted from when the job was added, so such a job may come early.
 */
function dueAt({ timestamp, processedOn, delay }: OldJob): number {
  return Math.max(timestamp, processedOn ?? 0) + delay;
}

/** The remaining waits. A custom strategy is not stored with the job; then the backoff of the new queue applies. */
function backoffOf({ opts: { attempts = 1, backoff } }: OldJob, begun: number): Pick<JobOptions, 'backoff'> {
  // Without a backoff, BullMQ retries at once.
  if (backoff === undefined || backoff === 0) return { backoff: 0 };
  if (typeof backoff === 'number') return { backoff };
  const { type, delay = 0, jitter } = backoff;
  const more = jitter === undefined ? {} : { jitter };
  if (type === 'fixed') return { backoff: { type, delay, ...more } };
  if (type !== 'exponential') return {};
  const after = (runs: number) => Math.min(TEN_YEARS, Math.round(delay * 2 ** runs));
  // BullMQ's waits have no upper limit; in Godwit the default limit is one hour.
  return { backoff: { type, delay: after(begun), max: after(Math.max(attempts, begun + 1)), ...more } };
}

/**
 * `removeOnComplete: { age }` is in seconds. If BullMQ keeps jobs by number or for ever, Godwit keeps them only as long as moving
 * needs.
 */
function keptFor(removeOnComplete: unknown): number {
  const { age } = Object(removeOnComplete) as { age?: unknown };
  return typeof age === 'number' && age > 0 ? Math.min(TEN_YEARS, age * 1_000) : 0;
}
