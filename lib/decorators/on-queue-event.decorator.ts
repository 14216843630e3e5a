import type { EventType } from '../contract/engine.js';
import type { EventOf, QueueEvent } from '../events/queue-event.js';
import { markListener, showListener } from './metadata.js';
import { refuseOtherThanMethod } from './placement.js';

/** What `@OnQueueEvent` says beside the types. */
export interface OnQueueEventOptions {
  /** Name of the queue, or of several. @default all registered queues */
  readonly queue?: string | readonly string[];
  /**
   * Calls of an asynchronous listener that may be under way at once, 1 to 1,000. With 1 it has dealt with an event before it
   * hears the next. @default 1
   */
  readonly concurrency?: number;
}

/** A decorator for methods that may be called with this event alone; others do not compile. */
export type OnQueueEventDecorator<Event> = <Method extends (event: Event) => unknown>(
  target: object,
  key: string,
  descriptor: TypedPropertyDescriptor<Method>,
) => void;

/** Calls the method for every event of all registered queues. */
export function OnQueueEvent(): OnQueueEventDecorator<QueueEvent>;
/**
 * Calls the method for events of every type.
 *
 * @example
 * @OnQueueEvent({ queue: 'email' })
 * trace(event: QueueEvent) {}
 */
export function OnQueueEvent(options: OnQueueEventOptions): OnQueueEventDecorator<QueueEvent>;
/**
 * Calls a method of a provider or a controller for events of the queues, from whatever process, while the application runs:
 * from its bootstrap, before the workers start, until they have drained. Every process that has the listener hears every
 * event, and misses what happens while it is not there; work that must be done once belongs into a handler.
 *
 * It may return anything. One that throws, rejects, or returns an Observable that errors is logged with class, method and event,
 * and hears the next event all the same. While a promise or an Observable of it has not ended, further events wait, in order:
 * at most 10,000, then the oldest are left out and the log tells how many; one that takes longer than a minute is not
 * waited for any longer. Repeat the decorator for other types of other queues. The class must be a singleton; what is wrong is said
 * at bootstrap in the `BootstrapError`, together with all other faults, and for anything but an instance method with a plain
 * name when the class is read.
 *
 * @param types one type of event, or several.
 * @example
 * @OnQueueEvent('dead', { queue: 'billing' })
 * async page(event: EventOf<'dead'>) {
 *   await this.pager.alert(`${event.jobId}: ${event.reason}`);
 * }
 */
export function OnQueueEvent<Type extends EventType>(
  types: Type | readonly Type[],
  options?: OnQueueEventOptions,
): OnQueueEventDecorator<EventOf<Type>>;
export function OnQueueEvent(...given: readonly unknown[]): OnQueueEventDecorator<any> {
  return (target, key, descriptor) => {
    const mark = { given };
    refuseOtherThanMethod(showListener(mark), target, key, descriptor);
    markListener(descriptor.value as object, mark);
  };
}
