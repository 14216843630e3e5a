import { Inject } from '@nestjs/common';
import { getDispatcherToken } from './metadata.js';

/**
 * Injects the `Dispatcher` of this name, or of this `delayedKey` where it was given none. The module that asks for it imports
 * `QueueModule.registerDispatcher` for it, or a module that exports it.
 *
 * @example
 * constructor(@InjectDispatcher('mails') private readonly mails: Dispatcher) {}
 */
export function InjectDispatcher(name: string): ParameterDecorator & PropertyDecorator {
  return Inject(getDispatcherToken(name));
}
