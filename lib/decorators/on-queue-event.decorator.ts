import type { EventType } from '../contract/engine.js';
import type { EventOf, QueueEvent } from '../events/queue-event.js';
import { listenerMarks, showListener, refuseOtherThanMethod } from './metadata.js';

/** Options of `@OnQueueEvent`. */
export interface OnQueueEventOptions {
  /** Name of the queue, or of several. @default all registered queues */
  readonly queue?: string | readonly string[];
  /**
   * How many calls of an asynchronous listener may run at once, 1 to 1,000. With 1 it gets the next event when it has finished
   * with the last.
   *
   * @default 1
   */
  readonly concurrency?: number;
}

/** A decorator for methods that can be called with this event as their only argument; others do not compile. */
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
 * ;@OnQueueEvent({ queue: 'email' })
 * trace(event: QueueEvent) {}
 */
export function OnQueueEvent(options: OnQueueEventOptions): OnQueueEventDecorator<QueueEvent>;
/**
 * Calls a method of a provider or a controller for events of the queues, of all processes, while the application runs: from
 * bootstrap, before the workers start, until they have drained. Every process that has the listener gets every event, and misses
 * events while it is down. Use a handler for work that must be done once.
 *
 * If the listener throws, rejects, or returns an Observable that errors, the error is logged (class, method, event) and it still
 * receives later events. While its promise or Observable has not ended, up to 10,000 further events wait in order. Beyond that
 * the oldest are dropped, and the log says how many. A call that takes longer than a minute is no longer waited for. Repeat the
 * decorator for other types of other queues. The class must be a singleton. Mistakes are reported at bootstrap in the
 * `BootstrapError`; a decorator on anything but an instance method throws when the class is defined.
 *
 * @param types one type of event, or several.
 * @example
 * ;@OnQueueEvent('dead', { queue: 'billing' })
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
    listenerMarks.add(descriptor.value as object, mark);
  };
}
