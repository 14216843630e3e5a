import type { Duplicate } from '../contract/engine.js';
import type { JobState } from '../job/job-state.js';
import type { MadeJob } from './job-maker.js';

/** The result of `add`. */
export interface AddResult {
  /** Id of the job. If `duplicate` is true, the id of the other job, which holds the id or the key. */
  readonly id: string;
  /** Name of its queue. */
  readonly queue: string;
  /** Name of the job. */
  readonly name: string;
  /** True if another job holds this id, or the key of `unique`, `debounce` or `throttle`; no job was added. */
  readonly duplicate: boolean;
  /**
   * The state of the other job before this call. Set only if `duplicate` is true; absent if the other job is gone but its key is
   * still taken.
   */
  readonly state?: JobState;
  /** True if the other job now has the new data; absent otherwise. */
  readonly replaced?: true;
  /** Only for `aggregate`: the job that collects the data. */
  readonly aggregated?: {
    /** How many items the job has, with this one. */
    readonly size: number;
    /**
     * Whether the job has `maxSize` items: it runs now and takes no more. A job that has reached `maxBytes` is not full: it runs when
     * the next item does not fit, or when its time is over.
     */
    readonly full: boolean;
  };
  /**
   * True if the job was dropped because the queue is full: `maxWaiting.onFull` is `dropNew`, or it is `dropOldest` and no other job may
   * be removed, or the call adds more jobs than may wait. Absent otherwise.
   */
  readonly dropped?: true;
}

/** Why a job was not added, and which job holds its id or key. */
export type Other = Omit<Duplicate, 'id'>;

/** The queue is full. */
export function dropped(queue: string, { id, name }: MadeJob): AddResult {
  return { id, queue, name, duplicate: false, dropped: true };
}

/** @param other the job that holds the id or the key, if there is one. */
export function addResult(queue: string, job: MadeJob, other: Other | undefined): AddResult {
  const { id, name, unique } = job;
  if (unique?.on === 'aggregate' && !other?.dropped) {
    const { holder = id, size = 1 } = other ?? {};
    return { id: holder, queue, name, duplicate: false, aggregated: { size, full: size >= unique.most! } };
  }
  if (other === undefined || other.parked) return { id, queue, name, duplicate: false };
  if (other.dropped) return dropped(queue, job);
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
