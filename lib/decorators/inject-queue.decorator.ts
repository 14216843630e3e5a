import { Inject } from '@nestjs/common';
import type { AnyDefinition } from '../job/define-job.js';
import { getQueueToken, getDispatcherToken } from './metadata.js';

/**
 * Injects the `Queue` handle of one queue. The module that injects it must import `QueueModule.registerQueue` for that
 * queue, or a module that exports it. Every module gets the same handle.
 *
 * @example
 * constructor(@InjectQueue('email') private readonly emails: Queue) {}
 */
export function InjectQueue(queue: string | AnyDefinition): ParameterDecorator & PropertyDecorator {
  return Inject(getQueueToken(queue));
}

/**
 * Injects the `Dispatcher` with this name; a dispatcher without a name has its `delayedKey` as name. The module that injects it must
 * import `QueueModule.registerDispatcher`, or a module that exports it.
 *
 * @example
 * constructor(@InjectDispatcher('mails') private readonly mails: Dispatcher) {}
 */
export function InjectDispatcher(name: string): ParameterDecorator & PropertyDecorator {
  return Inject(getDispatcherToken(name));
}
