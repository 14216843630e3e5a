import { AsyncResource } from 'node:async_hooks';

const loaded = new AsyncResource('Godwit');

/**
 * Runs work of ours in the async context in which this library was loaded. Loops, timers and sockets keep the context in which they began for
 * ever: without this, a worker that is started inside a request or a span would belong to it as long as the process lives.
 */
export function outside<T>(work: () => T): T {
  return loaded.runInAsyncScope(work);
}
