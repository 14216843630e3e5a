import {
  checkDefinition,
  isDefinition,
  type AnyDefinition,
  type InputOf,
  type ResultOf,
} from '../job/define-job.js';
import type { JobOptions } from '../options/job-options.js';
import type { BulkItem, BulkJob, DetailedWaitOptions, WaitAnswer, WaitOptions } from './add-arguments.js';
import type { AddResult } from './add-result.js';
import type { Queue } from './queue.js';

/**
 * Adds jobs to any registered queue, and returns queues by name. Inject it by its class.
 *
 * @example
 * export const welcome = defineJob('email', 'welcome', z.object({ to: z.email() }));
 *
 * ;@Injectable()
 * export class Signup {
 *   constructor(private readonly producer: QueueProducer) {}
 *
 *   async done(to: string) {
 *     await this.producer.add(welcome, { to }, { delay: '10m' });
 *     await this.producer.add('email', 'digest', { week: 7 }); // by the names of queue and job
 *   }
 * }
 */
export class QueueProducer {
  private readonly queues = new Map<string, Queue>();

  /** @internal */
  constructor(
    private readonly findQueue: (name: string) => Queue,
    private readonly openQueue: (name: string) => void,
  ) {}

  /**
   * Returns the handle of a queue by its name, the same object at every call. A queue that no module registers gets the defaults
   * of `forRoot` and from then on counts as registered in this process. Its handle and its options stay in memory until the
   * process ends.
   *
   * @throws {InvalidQueueNameError}
   * @throws {InvalidOptionError} for a queue that is not registered, if there is only a `forRoot` with a key
   * @example
   * await producer.queue('tenant-42').add('welcome', { to: 'ada@example.com' });
   */
  queue<Jobs = any>(name: string): Queue<Jobs> {
    this.openQueue(name);
    return this.queueOf(name);
  }

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
  // With a definition the second argument is the data, otherwise it is the name. The cases are told apart without allocating an
  // object.
  add(job: string | AnyDefinition, second: unknown, third: unknown, fourth?: JobOptions): Promise<AddResult> {
    try {
      if (!isDefinition(job)) {
        const queue = this.queues.get(job) ?? this.queueOf(job);
        return queue.add(second as string, third, fourth);
      }
      const definition = checkDefinition(job, 'add()');
      return this.queueOf(definition.queue).add(definition, second, third as JobOptions);
    } catch (error) {
      return Promise.reject(error as Error);
    }
  }

  /**
   * Adds many jobs. Up to 1,000 jobs are added all or none: see `Queue.addBulk`.
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
   * @typeParam Result what the handler returns, for a job without a definition
   * @throws {UnknownQueueError} and everything `Queue.addAndWait` throws
   */
  addAndWait<Definition extends AnyDefinition>(
    job: Definition,
    data: InputOf<Definition>,
    options: DetailedWaitOptions,
  ): Promise<WaitAnswer<ResultOf<Definition>>>;
  addAndWait<Result = unknown>(
    queue: string,
    name: string,
    data: unknown,
    options: DetailedWaitOptions,
  ): Promise<WaitAnswer<Result>>;
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
  async addAndWait(
    job: string | AnyDefinition,
    second: unknown,
    third: unknown,
    fourth?: WaitOptions | DetailedWaitOptions,
  ): Promise<any> {
    if (!isDefinition(job))
      return this.queueOf(job).addAndWait(second as string, third, fourth as WaitOptions);
    const definition = checkDefinition(job, 'addAndWait()');
    return this.queueOf(definition.queue).addAndWait(definition, second, third as WaitOptions);
  }

  private queueOf(name: string): Queue {
    const queue = this.findQueue(name);
    this.queues.set(name, queue);
    return queue;
  }
}
