import { checkActor, recorded, type RecordedMethod, type RecordedMethods } from '../contract/actions.js';
import { ProcessOrders } from '../inspect/process-orders.js';
import { QueueInspector } from '../inspect/queue-inspector.js';
import type { Queue } from '../producer/queue.js';
import { Producer, type ProducerOptions } from './standalone.js';

/** Options of `createInspector`: those of `createProducer`, and who acts. */
export interface InspectorOptions extends ProducerOptions {
  /**
   * Name of the person or program, 1 to 256 bytes. Changes through the handles of `queue(name)` and through `processes` are then
   * recorded: see `Queue.as` and `actions`.
   *
   * @default nothing is recorded
   */
  readonly actor?: string;
}

const PLACE = 'createInspector()';

const order = (action: string): RecordedMethod => ({
  action,
  target: ([{ process, host }]) => process ?? host,
  queue: ([{ queue }]) => queue,
  count: (ordered: readonly unknown[]) => ordered.length,
});
const ORDERS: RecordedMethods = {
  pause: order('process.pause'),
  resume: order('process.resume'),
  quiet: order('process.quiet'),
};

function ordersOf({ engine }: Producer, actor: string | undefined): ProcessOrders {
  const orders = new ProcessOrders(engine.processes, actor);
  return actor === undefined
    ? orders
    : recorded(orders, ORDERS, { actions: engine.actions, actor, queue: null });
}

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
  /** @internal Its handles record nothing. */
  readonly producer: Producer;
  private readonly actor: string | undefined;
  private readonly handles = new Map<string, Queue>();

  /** @internal */
  constructor(options: InspectorOptions) {
    const producer = new Producer(options, PLACE, ['actor']);
    const given = producer.others['actor'];
    const actor = given === undefined ? undefined : checkActor(given, `${PLACE}.actor`);
    super(producer.engine, () => [], ordersOf(producer, actor));
    this.producer = producer;
    this.actor = actor;
  }

  /**
   * Returns the handle of a queue, the same object at every call.
   *
   * @throws {InvalidQueueNameError}
   */
  queue<Jobs = any>(name: string): Queue<Jobs> {
    const base = this.producer.queue(name);
    if (this.actor === undefined) return base;
    let handle = this.handles.get(name);
    if (handle === undefined) this.handles.set(name, (handle = base.as(this.actor)));
    return handle;
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
