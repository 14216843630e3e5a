import { GodwitError } from './base.js';

/**
 * An interceptor ended the run before it began. The attempt failed like any other.
 *
 * @example
 * if (error instanceof HandlerNotCalledError) console.error(`an interceptor of ${error.handler} ended early`);
 */
export class HandlerNotCalledError extends GodwitError {
  readonly code = 'GODWIT_HANDLER_NOT_CALLED';

  constructor(
    /** `Class.method` of the handler. */
    readonly handler: string,
  ) {
    super(
      `an interceptor of ${handler} ended without a value and without calling the handler; ` +
        `return next.handle(), or a value that is the result of the job: of(value)`,
    );
  }
}
