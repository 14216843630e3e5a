import type { QueueEngine } from '../contract/engine.js';
import type { QueueLimits } from '../contract/queue-limits.js';
import type { QueueModuleOptions } from '../options/module-options.js';
import type { EndWait } from '../producer/queue.js';

/**
 * What takes the place of the store, for a whole application and without a change to it: provided under `SUBSTITUTE` by any
 * global module.
 */
export interface Substitute {
  /** The options of `forRoot`, where there is one, as they hold now. */
  options(given: QueueModuleOptions | undefined): QueueModuleOptions;
  /** The same of `forRoot` with a key. */
  namedOptions(given: unknown): unknown;
  createEngine(limitsOf: (queue: string) => QueueLimits): QueueEngine;
  /** Waits for the end of a job that is about to be added; null: as ever, for a worker that runs it. */
  waitFor(queue: string, id: string): EndWait | null;
}
