import type { JobOptions } from 'godwit';
import type { OldJob, OldState } from './old-queue.js';

/** Longest wait that Godwit takes. */
const TEN_YEARS = 315_576_000_000;

/**
 * The options with which an old job goes on here as it would have gone on there: at its time, with the attempts it has left. A
 * failed one starts anew.
 *
 * @param keep ms that it stays known after it has completed, so that moving it once more adds nothing.
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
 * A retry waits from the end of a run, which BullMQ does not tell; its start comes near it. A delay that was changed later
 * (`changeDelay`) is counted from when the job was added, so such a job may come early.
 */
function dueAt({ timestamp, processedOn, delay }: OldJob): number {
  return Math.max(timestamp, processedOn ?? 0) + delay;
}

/** The waits still to come. A strategy of one's own is not stored with the job: there the backoff of the new queue holds. */
function backoffOf({ opts: { attempts = 1, backoff } }: OldJob, begun: number): Pick<JobOptions, 'backoff'> {
  // Without one BullMQ retries at once.
  if (backoff === undefined || backoff === 0) return { backoff: 0 };
  if (typeof backoff === 'number') return { backoff };
  const { type, delay = 0, jitter } = backoff;
  const more = jitter === undefined ? {} : { jitter };
  if (type === 'fixed') return { backoff: { type, delay, ...more } };
  if (type !== 'exponential') return {};
  const after = (runs: number) => Math.min(TEN_YEARS, Math.round(delay * 2 ** runs));
  // BullMQ's waits have no upper bound; here there is one of an hour unless told otherwise.
  return { backoff: { type, delay: after(begun), max: after(Math.max(attempts, begun + 1)), ...more } };
}

/** `removeOnComplete: { age }` is in seconds; by number alone, or for ever, nothing is kept here beyond what moving needs. */
function keptFor(removeOnComplete: unknown): number {
  const { age } = Object(removeOnComplete) as { age?: unknown };
  return typeof age === 'number' && age > 0 ? Math.min(TEN_YEARS, age * 1_000) : 0;
}
