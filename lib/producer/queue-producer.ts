import {
  checkDefinition,
  isDefinition,
  type AnyDefinition,
  type InputOf,
  type ResultOf,
} from '../job/define-job.js';
import type { JobOptions } from '../options/job-options.js';
import type { AddResult, BulkItem, BulkJob, Queue, WaitOptions } from './queue.js';

/**
 * Puts jobs into any registered queue. Inject it by its class.
 *
 * @example
 * export const welcome = defineJob('email', 'welcome', z.object({ to: z.email() }));
 *
 * @Injectable()
 * export class Signup {
 *   constructor(private readonly producer: QueueProducer) {}
 *
 *   async done(to: string) {
 *     await this.producer.add(welcome, { to }, { delay: '10m', id: `welcome-${to}` });
 *     await this.producer.add('email', 'digest', { week: 7 }); // by the names of queue and job
 *   }
 * }
 */
export class QueueProducer {
  /** @internal */
  constructor(private readonly queueOf: (name: string) => Queue) {}

  /**
   * Adds one job, by definition or by the names of queue and job.
   *
   * @throws {UnknownQueueError} and everything `Queue.add` throws
   */
  add<Definition extends AnyDefinition>(
    job: Definition,
    data: InputOf<Definition>,
    options?: JobOptions,
  ): Promise<AddResult>;
  add(queue: string, name: string, data: unknown, options?: JobOptions): Promise<AddResult>;
  add(job: string | AnyDefinition, ...rest: unknown[]): Promise<AddResult> {
    try {
      const { queue, args } = this.read<JobOptions>(job, rest);
      return queue.add(...args);
    } catch (error) {
      return Promise.reject(error as Error);
    }
  }

  /**
   * Adds many jobs, all or none up to 1,000: see `Queue.addBulk`.
   *
   * @throws {UnknownQueueError} and everything `Queue.addBulk` throws
   */
  addBulk<Definition extends AnyDefinition>(
    job: Definition,
    items: readonly BulkItem<InputOf<Definition>>[],
  ): Promise<AddResult[]>;
  addBulk(queue: string, jobs: readonly BulkJob[]): Promise<AddResult[]>;
  async addBulk(
    job: string | AnyDefinition,
    items: readonly (BulkJob | BulkItem<unknown>)[],
  ): Promise<AddResult[]> {
    if (!isDefinition(job)) return this.queueOf(job).addBulk(items as readonly BulkJob[]);
    const definition = checkDefinition(job, 'addBulk()');
    return this.queueOf(definition.queue).addBulk(definition, items);
  }

  /**
   * Adds one job and waits for its end: see `Queue.addAndWait`.
   *
   * @typeParam Result what a handler returns of which no definition says it
   * @throws {UnknownQueueError} and everything `Queue.addAndWait` throws
   */
  addAndWait<Definition extends AnyDefinition>(
    job: Definition,
    data: InputOf<Definition>,
    options?: WaitOptions,
  ): Promise<ResultOf<Definition>>;
  addAndWait<Result = unknown>(
    queue: string,
    name: string,
    data: unknown,
    options?: WaitOptions,
  ): Promise<Result>;
  async addAndWait(job: string | AnyDefinition, ...rest: unknown[]): Promise<unknown> {
    const { queue, args } = this.read<WaitOptions>(job, rest);
    return queue.addAndWait(...args);
  }

  /** The queue, and what its own method takes. */
  private read<Options>(job: string | AnyDefinition, rest: unknown[]) {
    const definition = isDefinition(job) ? checkDefinition(job, 'add()') : undefined;
    const queue = this.queueOf(definition?.queue ?? (job as string));
    const args = definition ? [definition, ...rest] : rest;
    return { queue, args: args as [any, unknown, Options?] };
  }
}
