import { GodwitError } from '../errors.js';

/**
 * A test asked for something that cannot be: a run where nothing waits, an end of what never ends. The message says what there is
 * instead.
 *
 * @example
 * await expect(testing.queue('email').runNext()).rejects.toThrow('nothing waits');
 */
export class QueueTestingError extends GodwitError {
  readonly code = 'GODWIT_TESTING';
}
