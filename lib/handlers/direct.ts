import type { Handler } from '../worker/handler.js';

/** Calls the method and nothing else. It is looked up at each call, so that a test may replace it on the instance. */
export function directHandler(instance: Record<string, any>, method: string): Handler {
  return (job) => instance[method](job);
}
