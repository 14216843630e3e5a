import { WrapHookError } from '../errors.js';
import { isThenable } from '../job/thenable.js';
import type { WrapHook } from '../options/wrap.js';
import type { HandledJob, Handler } from '../worker/handler.js';
import { followStream, isObservable } from '../worker/stream.js';

type Run = (job: HandledJob) => Promise<unknown>;

/** A handler inside the hooks, the outermost first: put together once, so that a job costs its calls. Without hooks it is itself. */
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
      // While the handler is at work the job is not free to be run again.
      await outcome?.catch(() => undefined);
      throw error;
    } finally {
      isOver = true;
    }
    if (outcome === undefined) throw new WrapHookError(name, 'next-not-called');
    // What the hook has caught, or made of the result, does not change what the handler said.
    const result = await outcome;
    if (isTwice) throw new WrapHookError(name, 'next-called-twice');
    return result;
  };
}

/** A hook need not look at what `next` answers: it is looked at here. */
function handled(promise: Promise<unknown>): Promise<unknown> {
  promise.catch(() => undefined);
  return promise;
}

/** What a call of `next` that does not count answers. Why the one that did failed is not lost with it. */
async function refusal(name: string, outcome: Promise<unknown> | undefined): Promise<never> {
  if (outcome === undefined) throw new WrapHookError(name, 'next-called-late');
  const failure = await outcome.then(
    () => undefined,
    (cause: unknown) => ({ cause }),
  );
  throw new WrapHookError(name, 'next-called-twice', failure);
}

/** A promise of what the handler makes of the job, also of one that streams. The handler begins before this returns. */
function outcomeOf(job: HandledJob, handler: Handler): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const follow = (value: unknown) => {
      // Subscribed here, so that what the stream does sees what the hooks have set up.
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
