import type { JobEventOf, JobEventType } from '../worker/job-listeners.js';
import { jobListenerMarks, refuseOtherThanMethod, showJobListener } from './metadata.js';

/** Options of `@OnJob`. */
export interface OnJobOptions {
  /** Names of jobs, or patterns as in `@Handle`. @default all jobs of the queues of the processor */
  readonly name?: string | readonly string[];
}

/** A decorator for methods that can be called with this event as their only argument; others do not compile. */
export type OnJobDecorator<Event> = <Method extends (event: Event) => unknown>(
  target: object,
  key: string,
  descriptor: TypedPropertyDescriptor<Method>,
) => void;

/**
 * Calls a method of a `@Processor` class for events of jobs of its queues that this process has run, even if another class
 * handles them. Each event is reported once, in this process only. For events of all processes use `@OnQueueEvent`.
 *
 * - `active`: a handler is about to be called. The handler does not wait for the listener.
 * - `completed`, with the result; `failed`, for each failed attempt, with the error; `dead`, with the error and the reason, after `failed`
 *   if an attempt failed. They come once Redis has confirmed it, so never for a job that this worker has lost.
 * - `stalled`: another worker went silent, and this process has taken its job back. If the job is dead then, `dead` follows.
 *
 * Returned promises are awaited before the application stops, within `shutdown.timeout`. If the method throws or rejects, the error
 * is logged, and the outcome of the job does not change. Guards, interceptors, pipes and filters do not apply. The class must be a
 * singleton. Mistakes are reported at bootstrap in the `BootstrapError`.
 *
 * @param types one type, or several.
 * @example
 * ;@OnJob('dead', { name: 'invoice.*' })
 * async report({ job, error }: JobEventOf<'dead'>) {
 *   await this.tickets.open(`${job.name} ${job.id}: ${error.message}`);
 * }
 */
export function OnJob<Type extends JobEventType>(
  types: Type | readonly Type[],
  options?: OnJobOptions,
): OnJobDecorator<JobEventOf<Type>>;
export function OnJob(...given: readonly unknown[]): OnJobDecorator<any> {
  return (target, key, descriptor) => {
    const mark = { given };
    refuseOtherThanMethod(showJobListener(mark), target, key, descriptor);
    jobListenerMarks.add(descriptor.value as object, mark);
  };
}
