import { isDefinition, type InputOf, type JobDefinition } from '../job/define-job.js';
import type { JobOptions } from '../options/job-options.js';
import { checkEntries, namingEntry } from './bulk.js';
import { checkSchema } from './job-maker.js';
import type { AddResult, BulkJob, Queue, WaitOptions } from './queue.js';

/** One entry of `addBulk` with a definition. */
export interface BulkItem<Input> {
  readonly data: Input;
  readonly options?: JobOptions;
}

/**
 * Puts jobs into any registered queue. Inject it by its class.
 *
 * @example
 * constructor(private readonly producer: QueueProducer) {}
 * await this.producer.add(welcome, { to: dto.email }, { delay: '10m', id: `welcome-${dto.email}` });
 * await this.producer.add('email', 'welcome', { to: dto.email });
 */
export class QueueProducer {
  /** @internal */
  constructor(private readonly queueOf: (name: string) => Queue) {}

  /**
   * Adds one job, by definition or by the names of queue and job.
   *
   * @throws {UnknownQueueError | SchemaViolationError} and everything `Queue.add` throws
   */
  add<D extends JobDefinition<any, any>>(job: D, data: InputOf<D>, options?: JobOptions): Promise<AddResult>;
  add(queue: string, name: string, data: unknown, options?: JobOptions): Promise<AddResult>;
  async add(job: string | JobDefinition, ...rest: unknown[]): Promise<AddResult> {
    const { queue, name, data, options } = await this.read<JobOptions>(job, rest);
    return queue.add(name, data, options);
  }

  /** Adds many jobs, all or none up to 1,000: see `Queue.addBulk`. */
  addBulk<D extends JobDefinition<any, any>>(
    job: D,
    items: readonly BulkItem<InputOf<D>>[],
  ): Promise<AddResult[]>;
  addBulk(queue: string, jobs: readonly BulkJob[]): Promise<AddResult[]>;
  async addBulk(
    job: string | JobDefinition,
    items: readonly (BulkJob | BulkItem<unknown>)[],
  ): Promise<AddResult[]> {
    if (!isDefinition(job)) return this.queueOf(job).addBulk(items as readonly BulkJob[]);
    const queue = this.queueOf(job.queue);
    await Promise.all(
      checkEntries(items).map((item, i) => namingEntry(i, () => checkSchema(job, item.data))),
    );
    return queue.addBulk(
      items.map(({ data, options }) => ({ name: job.name, data, ...(options && { options }) })),
    );
  }

  /** Adds one job and waits for its end: see `Queue.addAndWait`. */
  addAndWait<Result = unknown, D extends JobDefinition<any, any> = JobDefinition<any, any>>(
    job: D,
    data: InputOf<D>,
    options?: WaitOptions,
  ): Promise<Result>;
  addAndWait<Result = unknown>(
    queue: string,
    name: string,
    data: unknown,
    options?: WaitOptions,
  ): Promise<Result>;
  async addAndWait<Result>(job: string | JobDefinition, ...rest: unknown[]): Promise<Result> {
    const { queue, name, data, options } = await this.read<WaitOptions>(job, rest);
    return queue.addAndWait<Result>(name, data, options);
  }

  private async read<Options>(job: string | JobDefinition, rest: unknown[]) {
    if (!isDefinition(job)) {
      const [name, data, options] = rest as [string, unknown, Options | undefined];
      return { queue: this.queueOf(job), name, data, options };
    }
    const [data, options] = rest as [unknown, Options | undefined];
    const queue = this.queueOf(job.queue);
    await checkSchema(job, data);
    return { queue, name: job.name, data, options };
  }
}
