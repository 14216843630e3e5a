import { InvalidOptionError } from '../errors.js';
import type { Job } from '../job/job.js';
import { readable } from './check.js';

/**
 * Stands around every run of this process: after the data was validated, before guards, interceptors, pipes and the handler.
 * `next()` calls what is inside, in the same tick, and answers a promise of what the handler makes of the job; of an Observable
 * its last value, while its other values are told as progress. `job` is the object that the handler receives.
 *
 * The outcome is the handler's, whatever the hook returns: a result is not changed, and a failure that is caught stays a failure.
 * A hook that throws fails the run with its own error, and so one may put another in place of the handler's. One that returns
 * without having called `next()`, or calls it twice, fails the run with a `WrapHookError`. A run has not ended before its hooks
 * have.
 *
 * @example
 * const requests = new AsyncLocalStorage<{ jobId: string }>();
 * const withRequest: WrapHook = (job, next) => requests.run({ jobId: job.id }, next);
 *
 * QueueModule.forRoot({ wrap: withRequest });
 */
export type WrapHook = (job: Job<any>, next: () => Promise<unknown>) => unknown;

/** One hook or a list of them, the outermost first. */
export type WrapOption = WrapHook | readonly WrapHook[];

/** @throws {InvalidOptionError} */
export function readWrap(value: unknown, path: string): readonly WrapHook[] {
  const isList = readable(value, path, () => Array.isArray(value));
  const hooks = isList ? readable(value, path, () => [...(value as unknown[])]) : [value];
  for (const [i, hook] of hooks.entries()) {
    if (typeof hook === 'function') continue;
    throw new InvalidOptionError(isList ? `${path}[${i}]` : path, 'a function, (job, next) => next()', hook);
  }
  return hooks as WrapHook[];
}
