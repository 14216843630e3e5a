import type { ScopeOptions } from '@nestjs/common';
import { INJECTABLE_WATERMARK, SCOPE_OPTIONS_METADATA } from '@nestjs/common/constants.js';
import type { AnyDefinition } from '../job/define-job.js';
import type { ProcessorOptions } from '../options/worker-options.js';
import { markProcessor } from './metadata.js';

/** One queue of a processor: its name, or any job defined for it. */
export type ProcessorQueue = string | AnyDefinition;

/** One queue, a list of queues in strict order, or queues with weights. */
export type ProcessorQueues = ProcessorQueue | readonly ProcessorQueue[] | Readonly<Record<string, number>>;

/**
 * Makes a provider a processor: a class whose `@Handle` methods run the jobs of one queue, or of several that share its slots. It
 * implies `@Injectable()`. Several processors of the same queues form one pool with one concurrency. Mistakes in its arguments are
 * reported at bootstrap in a `BootstrapError`, together with all others.
 *
 * @param queues Name of a registered queue, or a job defined for it. With a list, a job of a later queue starts only if no
 *   earlier queue has a job waiting (short jobs are claimed some milliseconds ahead). Names with weights, integers from 1 to
 *   1,000, share the slots by weight, so that none starves; slots that one queue does not use go to the others.
 * @param options `concurrency`: jobs this process runs at once, for all these queues together (default 10). `scope` and `durable` are
 *   those of `@Injectable`: with `Scope.REQUEST` an instance is created for each job, with `durable` one for each tenant.
 *
 * @example
 * ;@Processor('email', { concurrency: 50 })
 * export class EmailProcessor {
 *   constructor(private readonly mailer: Mailer) {}
 *
 *   ;@Handle('welcome')
 *   async welcome(job: Job<{ to: string }>) {
 *     await this.mailer.send(job.data.to, { signal: job.signal });
 *   }
 * }
 *
 * @example
 * ;@Processor(['critical', 'default', 'low']) // or { critical: 6, default: 3, low: 1 }
 * export class Work {
 *   ;@Handle() // of each of the three
 *   async run(job: Job) {}
 * }
 */
export function Processor(
  queues: ProcessorQueues,
  options: ProcessorOptions & ScopeOptions = {},
): ClassDecorator {
  return (target) => {
    // Not `Injectable()(target)`: without a scope, that would remove the scope of an `@Injectable({ scope })` on the same class.
    Reflect.defineMetadata(INJECTABLE_WATERMARK, true, target);
    const scope = scopeOf(options);
    if (scope) Reflect.defineMetadata(SCOPE_OPTIONS_METADATA, scope, target);
    markProcessor(target, { queues, options });
  };
}

/** The options that Nest reads; undefined if there are none. */
function scopeOf(options: ScopeOptions | null): ScopeOptions | undefined {
  try {
    const { scope, durable } = options as ScopeOptions;
    if (scope === undefined && durable === undefined) return undefined;
    return { ...(scope !== undefined && { scope }), ...(durable !== undefined && { durable }) };
  } catch {
    // Null, or an object that throws when it is read: reported at bootstrap.
    return undefined;
  }
}
