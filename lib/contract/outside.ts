import { AsyncResource } from 'node:async_hooks';

const loaded = new AsyncResource('Godwit', { requireManualDestroy: true });
// The resource still carries its context, but Jest with `--detectOpenHandles` no longer reports it as open.
loaded.emitDestroy();

/**
 * Runs a function in the async context in which this package was loaded. Loops, timers and sockets keep the context in which they
 * began. Without this function, a worker that is started inside a request or a span would belong to it until the process ends.
 */
export function outside<T>(work: () => T): T {
  return loaded.runInAsyncScope(work);
}
