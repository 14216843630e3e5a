import type { ScopeOptions } from '@nestjs/common';
import { INJECTABLE_WATERMARK, SCOPE_OPTIONS_METADATA } from '@nestjs/common/constants.js';
import { isDefinition, type JobDefinition } from '../job/define-job.js';
import type { ProcessorOptions } from '../options/module-options.js';
import { markProcessor } from './metadata.js';

/** The queue of a processor: its name, or any job defined for it. */
export type ProcessorQueue = string | JobDefinition<any, any>;

/**
 * Marks a provider as a processor: a class whose `@Handle` methods run the jobs of one queue. It implies
 * `@Injectable()`. Several processors may share a queue; they form one pool with one concurrency. What is wrong with
 * its arguments is said at bootstrap in a `BootstrapError`, together with all other faults.
 *
 * @param queue Name of a registered queue, or a job defined for it.
 * @param options `concurrency`: jobs this process runs at once for the queue (default 10).
 *
 * @example
 * @Processor('email', { concurrency: 50 })
 * export class EmailProcessor {
 *   constructor(private readonly mailer: Mailer) {}
 *
 *   @Handle('welcome')
 *   async welcome(job: Job<{ to: string }>) {
 *     await this.mailer.send(job.data.to, { signal: job.signal });
 *   }
 * }
 */
export function Processor(
  queue: ProcessorQueue,
  options: ProcessorOptions & ScopeOptions = {},
): ClassDecorator {
  const { scope, durable, ...processorOptions } = options;
  return (target) => {
    // Not `Injectable()(target)`: without a scope it would wipe out the one of an `@Injectable({ scope })` below.
    Reflect.defineMetadata(INJECTABLE_WATERMARK, true, target);
    if (scope !== undefined || durable !== undefined) {
      Reflect.defineMetadata(SCOPE_OPTIONS_METADATA, { scope, durable }, target);
    }
    markProcessor(target, {
      queue: isDefinition(queue) ? queue.queue : queue,
      options: processorOptions,
    });
  };
}
