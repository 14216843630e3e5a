import { type Observable, filter, type OperatorFunction } from 'rxjs';
import { type EventType, EVENT_TYPES } from '../contract/engine.js';
import { InvalidJobIdError, InvalidOptionError, NotRunningError, WrongStateError } from '../errors.js';
import type { EventEngine, ListenOptions } from './event-reader.js';
import { EventReaders } from './event-readers.js';
import type { EventsStatus } from './event-status.js';
import { GuardedObservable } from './guarded-observable.js';
import { isEnd, type EventOf, type QueueEvent } from './queue-event.js';

/** From where on to be told. */
export interface SinceOption {
  /**
   * `id` of the last event that was seen: those after it come first, as far as Redis still holds them, then what
   * happens. `'0'`: everything Redis still holds. @default what happens from now on
   */
  readonly since?: string;
}

/**
 * What happens in the queues, in whatever process, as hot, shared observables.
 *
 * The first subscriber of any queue opens one connection for all of them, the last one closes it. Streams never end and
 * never fail because Redis went away: they go on where they were once it is back, and `status$` tells meanwhile. Events are
 * for watching: after a long absence the oldest may have been trimmed (`status$` says `gap`), so decide nothing by their
 * absence. All streams complete when the application stops.
 *
 * A subscriber that throws, or an `async` one that rejects, is logged and stays subscribed; the process and other
 * subscribers do not notice. This holds for the observables of this class and what `pipe` makes of them; inside `merge`,
 * `combineLatest` and the like with other observables, RxJS throws as it always does, so catch errors there.
 *
 * @example
 * events.of('email').pipe(ofType('dead')).subscribe((event) => pager.alert(event.jobId, event.reason));
 */
export class QueueEvents {
  /** @internal */
  readonly reader: EventReaders;
  /** `connecting`, `live`, `lost`, `gap` or `closed`; whoever subscribes is told the present one first. Opens no connection. */
  readonly status$: Observable<EventsStatus>;

  /** @internal */
  constructor(
    sourceOf: (queue: string) => EventEngine,
    private readonly queues: () => readonly string[],
    /** Throws `UnknownQueueError`. */
    private readonly checkQueue: (queue: string) => void,
  ) {
    this.reader = new EventReaders(sourceOf);
    this.status$ = this.reader.status$;
  }

  /**
   * All events of one queue.
   *
   * @throws UnknownQueueError, InvalidOptionError
   * @example
   * @Controller()
   * export class LiveController {
   *   constructor(private readonly events: QueueEvents) {}
   *
   *   @Sse('live')
   *   live(@Headers('last-event-id') since?: string) {
   *     return this.events.of('email', { since }).pipe(map((event) => ({ id: event.id, type: event.type, data: event })));
   *   }
   * }
   */
  of(queue: string, options: SinceOption = {}): Observable<QueueEvent> {
    this.checkQueue(queue);
    return this.stream([queue], { since: checkSince('of().since', options.since) });
  }

  /** All events of every queue that is registered when somebody subscribes. */
  all(): Observable<QueueEvent> {
    return this.stream(this.queues, {});
  }

  /**
   * The events of one queue with these types. The others are not even made, so it costs less than the operator of that name.
   *
   * @throws UnknownQueueError, InvalidOptionError
   */
  ofType<Type extends EventType>(queue: string, ...types: Type[]): Observable<EventOf<Type>> {
    this.checkQueue(queue);
    return this.stream([queue], { types: setOfTypes(types) }) as Observable<EventOf<Type>>;
  }

  /**
   * The events of one job. Completes after the one that ends it: `completed`, `dead` or `removed`. A job that ended
   * before is not heard of: where that can be, ask `Queue.get(id)` too, once `ready(queue)` has resolved.
   *
   * @throws UnknownQueueError, InvalidJobIdError, InvalidOptionError
   */
  forJob(queue: string, jobId: string, options: SinceOption = {}): Observable<QueueEvent> {
    this.checkQueue(queue);
    if (typeof jobId !== 'string' || jobId === '') throw new InvalidJobIdError(jobId, 'is not such a text');
    return this.stream([queue], { jobId, since: checkSince('forJob().since', options.since) });
  }

  /**
   * Resolves once the subscriptions to this queue (without a name: to all queues) miss nothing that happens from then on.
   *
   * @throws WrongStateError when nobody is subscribed, or nobody any more
   * @throws NotRunningError when the application stops
   */
  async ready(queue?: string): Promise<void> {
    if (queue === undefined) {
      await Promise.all(this.reader.queues().map((one) => this.ready(one)));
      return;
    }
    this.checkQueue(queue);
    try {
      const ready = this.reader.ready(queue);
      if (ready) return await ready;
    } catch {
      // Everybody has left, or the reader was closed: told below.
    }
    if (this.reader.closed) throw new NotRunningError('events.ready');
    throw new WrongStateError(queue, 'the event stream', 'not subscribed', 'subscribe to it before ready()');
  }

  /** @internal Resolves once the subscriptions to this queue have been told all that has happened in it by now. */
  caughtUp(queue: string): Promise<void> {
    return this.reader.caughtUp(queue);
  }

  /** Completes all streams and closes the connection, for good. Never rejects; safe twice. */
  close(): Promise<void> {
    return this.reader.close();
  }

  private stream(
    queues: readonly string[] | (() => readonly string[]),
    options: ListenOptions,
  ): Observable<QueueEvent> {
    return new GuardedObservable<QueueEvent>((subscriber) => {
      const next = (event: QueueEvent) => {
        subscriber.next(event);
        if (options.jobId !== undefined && isEnd(event)) subscriber.complete();
      };
      const names = typeof queues === 'function' ? queues() : queues;
      subscriber.add(this.reader.onClose(() => subscriber.complete()));
      for (const queue of names) subscriber.add(this.reader.listen(queue, options, next));
    });
  }
}

function checkSince(path: string, since: string | undefined): number | undefined {
  if (since === undefined) return undefined;
  const number = typeof since === 'string' && /^\d{1,16}$/.test(since) ? Number(since) : Number.NaN;
  if (Number.isSafeInteger(number)) return number;
  throw new InvalidOptionError(path, 'the id of an event: a whole number in decimal, as a string', since);
}

/**
 * RxJS operator that lets only events of these types through, and narrows to them.
 *
 * @throws InvalidOptionError for a type that does not exist.
 * @example
 * events.all().pipe(ofType('dead')).subscribe((event) => pager.alert(event.queue, event.reason));
 */
export function ofType<Type extends EventType>(
  ...types: Type[]
): OperatorFunction<QueueEvent, EventOf<Type>> {
  const wanted = setOfTypes(types);
  return filter((event: QueueEvent): event is EventOf<Type> => wanted.has(event.type));
}

/** @throws InvalidOptionError for a type that does not exist. */
export function setOfTypes(types: readonly EventType[]): ReadonlySet<EventType> {
  const wanted = new Set(types);
  for (const type of wanted) {
    if (!EVENT_TYPES.includes(type)) {
      throw new InvalidOptionError('ofType()', `one of ${EVENT_TYPES.join(', ')}`, type);
    }
  }
  return wanted;
}
