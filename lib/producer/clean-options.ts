import type { CleanCall } from '../contract/upkeep-verbs.js';
import { InvalidOptionError } from '../errors.js';
import type { Duration } from '../job/duration.js';
import { duration, field, integer, oneOf, refuse, shape } from '../options/check.js';

/** What `Queue.clean` takes. */
export interface CleanOptions {
  /**
   * `completed` and `dead` jobs grow old from their end on, `waiting` and `delayed` ones from when they were added. The line of
   * waiting jobs is looked at from its head, until 200 in a row are too young: since it is first in, first out, only jobs that came
   * back to it, or to it late, may be older behind them.
   */
  readonly state: 'completed' | 'dead' | 'waiting' | 'delayed';
  /** Only those that are older. @default 0: of any age */
  readonly olderThan?: Duration;
  /** At most so many jobs, 1 to 1,000. @default 1000 */
  readonly limit?: number;
}

const MOST = 1000;

const readClean = shape({
  state: field('state', oneOf('completed', 'dead', 'waiting', 'delayed')),
  olderThan: field('olderThanMs', duration()),
  limit: field('limit', integer(1, MOST)),
});

/** @throws {InvalidOptionError} */
export function checkClean(options: CleanOptions): CleanCall {
  const { state, olderThanMs = 0, limit = MOST } = readClean(options, 'clean()', refuse)!;
  if (state === undefined)
    throw new InvalidOptionError('clean().state', `one of 'completed', 'dead', 'waiting', 'delayed'`, state);
  return { state, olderThanMs, limit };
}
