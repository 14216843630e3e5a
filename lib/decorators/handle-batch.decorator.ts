import { isDefinition, type JobDefinition } from '../job/define-job.js';
import type { Job } from '../job/job.js';
import type { HandlerPolicy } from '../options/job-options.js';
import type { BatchOptions } from '../options/worker-options.js';
import type { JobBatch } from '../worker/batches.js';
import { handlerMarks, refuseOtherThanMethod, showHandle, type HandlerMark } from './metadata.js';

/** A decorator for methods that take the jobs of a batch, and a `JobBatch`. Other methods do not compile. */
export type HandleBatchDecorator<Data> = <
  Method extends (jobs: Job<Data, any>[], batch: JobBatch<Data>) => unknown,
>(
  target: object,
  key: string,
  descriptor: TypedPropertyDescriptor<Method>,
) => void;

/**
 * Makes a method of a `@Processor` class the handler of the jobs with this name, with up to `size` of them in each call. Each job keeps its own
 * attempts, time limit, events and outcome, and takes one slot of `concurrency`.
 *
 * - The method returns nothing: all its jobs are completed. It throws: all fail, each with its own backoff.
 * - `batch.fail(job, error)` fails one job, `batch.complete(job, result)` completes one.
 * - It returns an outcome for each job: a list in the order of the jobs, as of `Promise.allSettled`, or a `Map` with jobs or ids as keys. An
 *   `Error` is a failure, anything else a result.
 * - If it completes single jobs or returns a `Map`, a job without an outcome has failed.
 *
 * @param jobName a name, or a pattern, as in `@Handle`.
 * @param options `size`, `minSize` and `timeout` of the batches.
 * @param policy defaults for the jobs of this handler, as in `@Handle`.
 * @example
 * ;@HandleBatch('index', { size: 100 })
 * async index(jobs: Job<{ id: string }>[], batch: JobBatch) {
 *   const failed = await this.search.index(jobs.map((job) => job.data));
 *   for (const { place, reason } of failed) batch.fail(jobs[place]!, new Error(reason));
 * }
 *
 * @example
 * ;@HandleBatch('push', { size: 10 })
 * sendAll(jobs: Job<{ to: string }>[]) {
 *   return Promise.allSettled(jobs.map((job) => this.mailer.send(job.data.to)));
 * }
 */
export function HandleBatch(
  jobName: string,
  options: BatchOptions,
  policy?: HandlerPolicy,
): HandleBatchDecorator<any>;
/**
 * Like `@HandleBatch(name)`, with typed data. If the definition has a schema, each job is validated separately, and a job with
 * wrong data is left out of the batch.
 *
 * @example
 * export const index = defineJob('search', 'index', z.object({ id: z.string() }));
 *
 * ;@Processor(index)
 * export class SearchProcessor {
 *   ;@HandleBatch(index, { size: 100, timeout: '1s' })
 *   async index(jobs: JobOf<typeof index>[]) {}
 * }
 */
export function HandleBatch<Input, Output, Result>(
  definition: JobDefinition<Input, Output, Result>,
  options: BatchOptions,
  policy?: HandlerPolicy,
): HandleBatchDecorator<Output>;
export function HandleBatch(
  of: unknown,
  options: BatchOptions,
  policy?: HandlerPolicy,
): HandleBatchDecorator<any> {
  const mark: HandlerMark = {
    ...(isDefinition(of) ? { jobName: of.name, definition: of } : { jobName: of === null ? undefined : of }),
    // A missing argument is reported at bootstrap, like all other mistakes.
    batch: options ?? {},
    ...(policy !== undefined && { policy }),
  };
  return (target, key, descriptor) => {
    refuseOtherThanMethod(showHandle(mark), target, key, descriptor);
    handlerMarks.add(descriptor.value as object, mark);
  };
}
