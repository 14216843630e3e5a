import { GodwitError, type Queue } from 'godwit';
import { handOn, IdTakenError } from './hand-on.js';
import type { OldJob, OldQueue, OldState } from './old-queue.js';

export interface MoveOptions {
  /**
   * States of the jobs to move. Failed jobs would run again, so they are moved only if this list has `failed`. @default all but
   * failed
   */
  readonly states?: readonly OldState[];
  /** Only report the jobs that would be moved. */
  readonly dryRun?: boolean;
  /** How long a moved job holds its id after it has completed, in ms. Until then, moving it again does not run it twice. */
  readonly keep?: number;
}

export interface MoveReport {
  readonly moved: number;
  /** Jobs that stay where they are, and why. */
  readonly left: readonly { readonly id: string; readonly why: string }[];
}

const PAGE = 100;
const SEVEN_DAYS = 604_800_000;
const ALL_BUT_FAILED: readonly OldState[] = ['waiting', 'prioritized', 'delayed'];

/**
 * Moves waiting jobs from a queue of BullMQ to a queue of Godwit, with the same ids. Each job is first added to the new queue and
 * then removed from the old one, while the old queue is paused. If it is interrupted, call it again.
 */
export async function moveJobs(from: OldQueue, to: Queue, options: MoveOptions = {}): Promise<MoveReport> {
  const { states = ALL_BUT_FAILED, dryRun = false, keep = SEVEN_DAYS } = options;
  const report = { moved: 0, left: [] as { id: string; why: string }[] };
  // Between the two steps no worker may take the job. A queue that was paused before stays paused.
  const mayPause = !dryRun && !(await from.isPaused());
  if (mayPause) await from.pause();
  try {
    for (const state of states) {
      // Moved jobs leave the list; jobs that stay must be skipped.
      for (let at = 0; ;) {
        const page = await from.getJobs([state], at, at + PAGE - 1, true);
        if (page.length === 0) break;
        const whys = await Promise.all(page.map((job) => add(job, state)));
        const here = page.filter((_, i) => whys[i] === null);
        if (!dryRun) await Promise.all(here.map((job) => job!.remove()));
        report.moved += here.length;
        for (const [i, why] of whys.entries())
          if (why !== null) report.left.push({ id: page[i]?.id ?? '', why });
        at += dryRun ? page.length : page.length - here.length;
      }
    }
  } finally {
    if (mayPause) await from.resume();
  }
  return report;

  /** Returns null if the job is in the new queue, otherwise the reason why it cannot be moved. */
  async function add(job: OldJob | null | undefined, state: OldState): Promise<string | null> {
    const why = whyItStays(job);
    if (why !== null || dryRun) return why;
    try {
      await handOn(job!, state, to, keep);
      return null;
    } catch (error) {
      // A job that is refused stays in the old queue. If Redis is unreachable, it is better to stop and start again later.
      const isRefused = error instanceof GodwitError && !('applied' in error);
      if (isRefused || error instanceof IdTakenError) return error.message;
      throw error;
    }
  }
}

function whyItStays(job: OldJob | null | undefined): string | null {
  if (!job?.id) return 'it has no body';
  if (job.parentKey !== undefined) return 'it is part of a flow';
  if (job.repeatJobKey !== undefined) return 'it belongs to a job scheduler';
  return null;
}
