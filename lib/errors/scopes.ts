import { GodwitError } from './base.js';
import { show } from './show.js';
import { messageOf, stackOf } from './thrown.js';

/**
 * An instance of a request-scoped or durable processor, or something that it injects, could not be made for a job. The attempt has
 * failed as if its handler had thrown; `cause` is what was thrown.
 *
 * @example
 * if (error instanceof ProcessorScopeError) console.error(error.className, error.cause);
 */
export class ProcessorScopeError extends GodwitError {
  readonly code = 'GODWIT_PROCESSOR_SCOPE';

  constructor(
    /** The processor. */
    readonly className: string,
    /** Name of the queue. */
    readonly queue: string,
    /** Id of the job. */
    readonly jobId: string,
    /** What failed, as the beginning of a sentence. */
    what: string,
    cause: unknown,
  ) {
    super(`${what} for job ${show(jobId)} of queue '${queue}': ${messageOf(cause)}`, { cause });
    // Where it was thrown says which class it was; where it was caught says nothing.
    const frames = stackOf(cause)?.match(/^ +at .*$/gm);
    if (frames) this.stack = [`${this.name}: ${this.message}`, ...frames].join('\n');
  }
}
