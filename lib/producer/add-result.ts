import type { MadeJob } from './job-maker.js';

/** What `add` resolves to. */
export interface AddResult {
  /** Id of the job. */
  readonly id: string;
  /** Name of its queue. */
  readonly queue: string;
  /** Name of the job. */
  readonly name: string;
  /** True if a job with this id was already in the queue, in any state; it was not changed. */
  readonly duplicate: boolean;
}

export function addResult(queue: string, { id, name }: MadeJob, duplicate: boolean): AddResult {
  return { id, queue, name, duplicate };
}
