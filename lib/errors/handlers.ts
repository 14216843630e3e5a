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
    /** What the interceptor did, as a phrase. */
    how = 'ended without a value and without calling the handler',
    options?: { cause?: unknown },
  ) {
    super(
      `an interceptor of ${handler} ${how}; ` +
        `return next.handle(), or a value that is the result of the job: of(value)`,
      options,
    );
  }
}
