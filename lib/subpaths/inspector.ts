import { QueueInspector } from '../inspect/queue-inspector.js';
import type { Queue } from '../producer/queue.js';
import { Producer, type ProducerOptions } from './standalone.js';

/** Options of `createInspector`: those of `createProducer`. */
export interface InspectorOptions extends ProducerOptions {}

/**
 * Creates a `QueueInspector` for programs without Nest, such as scripts, exporters and your own dashboards. It sees all queues
 * and workers of a prefix. `queue(name)` returns the handle of a queue, with the same methods as in an application. It has one
 * connection, which opens at the first call, and no thread; neither Nest nor RxJS is loaded.
 *
 * @throws {InvalidOptionError | InvalidQueueNameError}
 * @example
 * await using inspector = createInspector({ connection: process.env.REDIS_URL!, prefix: 'shop' });
 * for (const { name, counts } of await inspector.queues()) console.log(name, counts);
 * await inspector.queue('email').pause();
 */
export function createInspector(options: InspectorOptions = {}): Inspector {
  return new Inspector(options);
}

/**
 * The result of `createInspector`.
 *
 * @example
 * const inspector = createInspector({ connection: process.env.REDIS_URL!, prefix: 'shop' });
 * console.log(await inspector.workers());
 * await inspector.close();
 */
export class Inspector extends QueueInspector implements AsyncDisposable {
  /** @internal */
  readonly producer: Producer;

  /** @internal */
  constructor(options: InspectorOptions) {
    const producer = new Producer(options, 'createInspector()');
    super(producer.engine, () => []);
    this.producer = producer;
  }

  /**
   * Returns the handle of a queue, the same object at every call.
   *
   * @throws {InvalidQueueNameError}
   */
  queue<Jobs = any>(name: string): Queue<Jobs> {
    return this.producer.queue<Jobs>(name);
  }

  /** Ends the connection. Never rejects; may be called twice. */
  close(): Promise<void> {
    return this.producer.close();
  }

  /** Like `close`, for `await using`. Never rejects. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
