import { GodwitError } from '../errors.js';
import { oneLine } from '../errors/show.js';
import { parseDuration, type Duration } from './duration.js';

/**
 * Throw it from a handler to run the job again later. No attempt is counted.
 *
 * @example
 * if (answer.status === 503) throw new Snooze('5m');
 */
export class Snooze extends GodwitError {
  readonly code = 'GODWIT_SNOOZE';
  /** Until it runs again, in ms. */
  readonly delayMs: number;

  /** @throws {InvalidOptionError} where the duration does not parse */
  constructor(delay: Duration) {
    super(`the handler asked to run again in ${oneLine(delay)}`);
    this.delayMs = parseDuration(delay, 'Snooze()');
  }
}
