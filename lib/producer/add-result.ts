import type { JobState } from '../job/job-state.js';
import type { MadeJob } from './job-maker.js';

/** What `add` resolves to. */
export interface AddResult {
  /** Id of the job. */
  readonly id: string;
  /** Name of its queue. */
  readonly queue: string;
  /** Name of the job. */
  readonly name: string;
  /** True if another job holds this id; it was not changed, and nothing was added. */
  readonly duplicate: boolean;
  /** The state of that other job; only if `duplicate` is true. */
  readonly state?: JobState;
}

/** @param state of the job that holds the id, if there is one. */
export function addResult(queue: string, { id, name }: MadeJob, state: JobState | undefined): AddResult {
  return state === undefined
    ? { id, queue, name, duplicate: false }
    : { id, queue, name, duplicate: true, state };
}
