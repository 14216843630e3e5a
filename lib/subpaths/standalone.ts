import { limitsOf } from '../contract/limits.js';
import { CALL_MS } from '../contract/retry.js';
import { RedisEngine } from '../engine/redis-engine.js';
import { InvalidOptionError } from '../errors.js';
import type { JobWaiter } from '../events/job-wait.js';
import { checkQueueName } from '../job/job-id.js';
import { copyFields, refuse } from '../options/check.js';
import { isMemory } from '../options/connection.js';
import { unknownField } from '../job/fields.js';
import {
  resolveModuleOptions,
  resolveQueueOptions,
  type QueueModuleOptions,
  type QueueOptions,
  type ResolvedModuleOptions,
  type ResolvedQueueOptions,
} from '../options/module-options.js';
import type { EndWait } from '../producer/add-and-wait.js';
import type { Queue } from '../producer/queue.js';
import { QueueProducer } from '../producer/queue-producer.js';
import { createQueue } from '../producer/traced-queue.js';

/** Options of `createProducer`. */
export interface ProducerOptions extends Pick<
  QueueModuleOptions,
  | 'connection'
  | 'prefix'
  | 'defaults'
  | 'backoffs'
  | 'maxPayloadBytes'
  | 'payloads'
  | 'events'
  | 'durability'
  | 'headers'
  | 'telemetry'
  | 'enqueueTimeout'
  | 'enqueueBuffer'
  | 'limits'
> {
  /**
   * Options of single queues, as in `registerQueue`. Queues that are not listed can be used too, with the options above.
   *
   * @default none
   */
  readonly queues?: readonly QueueOptions[];
}

const NAMES: readonly (keyof ProducerOptions)[] = [
  'connection',
  'prefix',
  'defaults',
  'backoffs',
  'maxPayloadBytes',
  'payloads',
  'events',
  'durability',
  'headers',
  'telemetry',
  'enqueueTimeout',
  'enqueueBuffer',
  'limits',
  'queues',
];
const PLACE = 'createProducer()';

/**
 * Creates a producer for programs without Nest, such as scripts and serverless functions. It adds jobs that the workers of a Nest
 * application run. It has one connection, which opens at the first call, and no thread. Neither Nest nor RxJS is loaded;
 * `addAndWait` loads RxJS and opens a second connection. The process can exit by itself once `close` has resolved.
 *
 * Pass the options that the application passes to `forRoot` and `registerQueue`, especially `connection`, `prefix`, `events` and
 * `backoffs`.
 *
 * @throws {InvalidOptionError | InvalidQueueNameError}
 * @example
 * await using producer = createProducer({ connection: process.env.REDIS_URL!, prefix: 'shop' });
 * await producer.add('email', 'welcome', { to: 'ada@example.com' });
 */
export function createProducer(options: ProducerOptions = {}): Producer {
  return new Producer(options);
}

/**
 * The result of `createProducer`.
 *
 * @example
 * const producer = createProducer({ connection: process.env.REDIS_URL!, prefix: 'shop' });
 * const emails = producer.queue('email');
 * await emails.add('welcome', { to: 'ada@example.com' });
 * await producer.close();
 */
export class Producer extends QueueProducer implements AsyncDisposable {
  /** @internal */
  readonly engine: RedisEngine;
  /** @internal Values of the options that the caller reads itself. */
  readonly others: Record<string, unknown> = {};
  private readonly settings: ResolvedModuleOptions;
  private readonly options = new Map<string, ResolvedQueueOptions>();
  private readonly handles = new Map<string, Queue>();
  private waiter: Promise<{ readonly waiter: JobWaiter; close(): Promise<void> }> | undefined;
  private closing: Promise<void> | undefined;

  /** @internal */
  constructor(options: ProducerOptions, place = PLACE, others: readonly string[] = []) {
    super(
      (name) => this.queue(name),
      () => {},
    );
    const known = [...NAMES, ...others];
    const given = copyFields(options, place, known);
    for (const name of Object.keys(given)) if (!known.includes(name)) throw unknownField(place, name, known);
    for (const name of others) {
      this.others[name] = given[name];
      delete given[name];
    }
    const { queues = [], ...rest } = given as ProducerOptions;
    this.settings = resolveModuleOptions(rest, refuse, place);
    const { connection, prefix, telemetry } = this.settings;
    if (isMemory(connection)) {
      const why =
        'the URL or options of a Redis: no other process could see jobs in the memory of this process';
      throw new InvalidOptionError(`${place}.connection`, why, given['connection']);
    }
    if (!Array.isArray(queues))
      throw new InvalidOptionError(`${place}.queues`, 'a list of { name, …options of the queue }', queues);
    for (const [i, one] of queues.entries()) {
      const resolved = resolveQueueOptions(one, this.settings, refuse, `${place}.queues[${i}]`);
      this.options.set(resolved.name, resolved);
    }
    this.engine = new RedisEngine({
      connection,
      prefix,
      callMs: CALL_MS,
      limitsOf: (queue) => limitsOf(this.optionsOf(queue)),
      ...(telemetry && { internal: (work) => telemetry.internal(work) }),
      queues: () => [...this.handles.keys()],
    });
  }

  /**
   * Returns the handle of a queue, the same object at every call.
   *
   * @throws {InvalidQueueNameError}
   */
  override queue<Jobs = any>(name: string): Queue<Jobs> {
    let handle = this.handles.get(name);
    if (handle === undefined) {
      const { enqueue, telemetry } = this.settings;
      handle = createQueue(telemetry, this.engine, this.optionsOf(name), { enqueue }, (queue, id) =>
        this.wait(queue, id),
      );
      this.handles.set(name, handle);
    }
    return handle;
  }

  /** Ends the connection. Adds that have not resolved by then reject. Never rejects; may be called twice. */
  close(): Promise<void> {
    this.closing ??= this.closeOnce();
    return this.closing;
  }

  /** Like `close`, for `await using`. Never rejects. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  private async closeOnce(): Promise<void> {
    const waiting = await this.waiter?.catch(() => undefined);
    await waiting?.close();
    await this.engine.close();
  }

  private optionsOf(name: string): ResolvedQueueOptions {
    let options = this.options.get(name);
    if (options === undefined) {
      options = resolveQueueOptions({ name: checkQueueName(name) }, this.settings);
      this.options.set(name, options);
    }
    return options;
  }

  /** Waits for the end of a job. The reader of events is loaded at the first call. */
  private wait(queue: string, id: string): EndWait {
    this.waiter ??= this.loadWaiter();
    const wait = this.waiter.then(({ waiter }) => waiter.prepare(queue, id));
    return {
      ready: wait.then(({ ready }) => ready),
      outcome: async (...args) => (await wait).outcome(...args),
      cancel: () => void wait.then((one) => one.cancel()).catch(() => undefined),
    };
  }

  private async loadWaiter() {
    const { QueueEvents } = await import('../events/queue-events.js');
    const { JobWaiter: Waiter } = await import('../events/job-wait.js');
    const check = (queue: string) => void this.optionsOf(queue);
    const events = new QueueEvents(
      () => this.engine,
      () => [...this.handles.keys()],
      check,
    );
    return { waiter: new Waiter(this.engine.admin, events), close: () => events.close() };
  }
}

export type { AddResult } from '../producer/add-result.js';
