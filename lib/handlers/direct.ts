import type { Handler } from '../worker/handler.js';
import { QueueExecutionContext } from './queue-context.js';

/** Calls the method and nothing else. It is looked up at each call, so that a test may replace it on the instance. */
export function directHandler(instance: Record<string, any>, method: string): Handler {
  return (job) => instance[method](job);
}

/** The same for a method that takes the context too. */
export function directHandlerWithContext(
  instance: Record<string, any>,
  method: string,
  label: string,
): Handler {
  return (job) => instance[method](job, new QueueExecutionContext(job, label));
}
