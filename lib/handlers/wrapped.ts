import { WrapHookError } from '../errors.js';
import { isThenable } from '../job/thenable.js';
import type { WrapHook } from '../options/worker-options.js';
import type { HandledJob, Handler } from '../worker/handler.js';
import { followStream, isObservable } from '../worker/observable.js';

type Run = (job: HandledJob) => Promise<unknown>;

/**
 * Wraps a handler in its hooks, the outermost first. It is composed once, so a job costs only the calls. Without hooks,
 * returns the handler.
 */
export function wrappedHandler(hooks: readonly WrapHook[], handler: Handler): Handler {
  if (hooks.length === 0) return handler;
  return hooks.reduceRight<Run>(
    (inner, hook, i) => around(hook, nameOf(hook, i), inner),
    (job) => outcomeOf(job, handler),
  );
}

function around(hook: WrapHook, name: string, inner: Run): Run {
  return async (job) => {
    let outcome: Promise<unknown> | undefined;
    let isTwice = false;
    let isOver = false;
    const next = () => {
      if (outcome !== undefined) isTwice = true;
      else if (!isOver) return (outcome = handled(inner(job)));
      return handled(refusal(name, outcome));
    };
    try {
      await hook(job, next);
    } catch (error) {
      // While the handler runs, the job must not run again.
      await outcome?.catch(() => undefined);
      throw error;
    } finally {
      isOver = true;
    }
    if (outcome === undefined) throw new WrapHookError(name, 'next-not-called');
    // Errors that the hook caught and values that it returned do not change the outcome of the handler.
    const result = await outcome;
    if (isTwice) throw new WrapHookError(name, 'next-called-twice');
    return result;
  };
}

/** Handles rejections of `next()` that a hook ignores. */
function handled(promise: Promise<unknown>): Promise<unknown> {
  promise.catch(() => undefined);
  return promise;
}

/** The result of a `next()` call that does not count. If the handler failed, its error is kept. */
async function refusal(name: string, outcome: Promise<unknown> | undefined): Promise<never> {
  if (outcome === undefined) throw new WrapHookError(name, 'next-called-late');
  const failure = await outcome.then(
    () => undefined,
    (cause: unknown) => ({ cause }),
  );
  throw new WrapHookError(name, 'next-called-twice', failure);
}

/** A promise of the handler's result, also for an Observable. The handler starts before this function returns. */
function outcomeOf(job: HandledJob, handler: Handler): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const follow = (value: unknown) => {
      // Subscribed here, so that the Observable runs in the context that the hooks have set up.
      if (isObservable(value)) followStream(job, value, resolve, reject);
      else resolve(value);
    };
    const returned = handler(job);
    if (isThenable(returned)) Promise.resolve(returned).then(follow, reject);
    else follow(returned);
  });
}

function nameOf(hook: WrapHook, i: number): string {
  return `forRoot().wrap[${i}]${hook.name ? ` (${hook.name})` : ''}`;
}
