import { Inject } from '@nestjs/common';
import type { AnyDefinition } from '../job/define-job.js';
import { getQueueToken } from './metadata.js';

/**
 * Injects the `Queue` handle of one queue. The module that asks for it imports `QueueModule.registerQueue` for that
 * name, or a module that exports it; the handle is the same everywhere.
 *
 * @example
 * constructor(@InjectQueue('email') private readonly emails: Queue) {}
 */
export function InjectQueue(queue: string | AnyDefinition): ParameterDecorator & PropertyDecorator {
  return Inject(getQueueToken(queue));
}
