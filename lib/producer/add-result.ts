import type { Duplicate } from '../contract/engine.js';
import type { JobState } from '../job/job-state.js';
import type { MadeJob } from './job-maker.js';

/** What `add` resolves to. */
export interface AddResult {
  /** Id of the job; if `duplicate` is true, of the job that holds the id or the key. */
  readonly id: string;
  /** Name of its queue. */
  readonly queue: string;
  /** Name of the job. */
  readonly name: string;
  /** True if another job holds this id, or the key of `unique`, `debounce` or `throttle`; no job was added. */
  readonly duplicate: boolean;
  /** The state of that other job before; only if `duplicate` is true, and absent if it is gone and its key still counts. */
  readonly state?: JobState;
  /** True if that other job has the new data now; absent otherwise. */
  readonly replaced?: true;
  /** True if nothing was added because the queue is full, and its `maxWaiting` says `dropNew`; absent otherwise. */
  readonly dropped?: true;
}

/** What became of a job that was not added. */
export interface Other extends Omit<Duplicate, 'id'> {
  /** The queue was full. */
  readonly dropped?: true;
}

/** The queue is full, and its option `maxWaiting` says that the job is dropped. */
export function dropped(queue: string, { id, name }: MadeJob): AddResult {
  return { id, queue, name, duplicate: false, dropped: true };
}

/** @param other the job that holds the id or the key, if there is one. */
export function addResult(queue: string, { id, name }: MadeJob, other: Other | undefined): AddResult {
  if (other === undefined) return { id, queue, name, duplicate: false };
  if (other.dropped) return dropped(queue, { id, name } as MadeJob);
  const { state, holder = id, replaced } = other;
  return {
    id: holder,
    queue,
    name,
    duplicate: true,
    ...(state !== undefined && { state }),
    ...(replaced && { replaced }),
  };
}
