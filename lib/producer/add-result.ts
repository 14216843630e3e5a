import type { MadeJob } from './job-maker.js';

/** What became of an `add`. */
export interface AddResult {
  /** Id of the job. */
  readonly id: string;
  /** Name of its queue. */
  readonly queue: string;
  /** Name of the job. */
  readonly name: string;
  /** True where a job with this id was already in the queue, in whatever state; that one was left as it is. */
  readonly duplicate: boolean;
}

export function addResult(queue: string, { id, name }: MadeJob, duplicate: boolean): AddResult {
  return { id, queue, name, duplicate };
}
