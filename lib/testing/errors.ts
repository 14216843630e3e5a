import { GodwitError } from '../errors.js';

/**
 * A test asked for something impossible, such as a run in an empty queue. The message describes the queue's actual state.
 *
 * @example
 * await expect(testing.queue('email').runNext()).rejects.toThrow('nothing waits');
 */
export class QueueTestingError extends GodwitError {
  readonly code = 'GODWIT_TESTING';
}
