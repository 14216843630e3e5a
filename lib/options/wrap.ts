import { InvalidOptionError } from '../errors.js';
import type { Job } from '../job/job.js';
import { readable } from './check.js';

/**
 * A hook that wraps every job run in this process: guards, interceptors, pipes and the handler. The data has been validated before.
 * `next()` calls the rest in the same tick and returns a promise of the handler's result; for an Observable, its last value. `job`
 * is the object that the handler receives.
 *
 * A hook cannot change the result: return values and caught errors are ignored. If a hook throws, the attempt fails with that error. If
 * it does not call `next()` exactly once, the attempt fails with `WrapHookError`. A run ends when its handler and all hooks have.
 *
 * @example
 * const requests = new AsyncLocalStorage<{ jobId: string }>();
 * const withRequest: WrapHook = (job, next) => requests.run({ jobId: job.id }, next);
 *
 * QueueModule.forRoot({ wrap: withRequest });
 */
export type WrapHook = (job: Job<any>, next: () => Promise<unknown>) => unknown;

/** One hook or a list of hooks; the first is outermost. */
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
