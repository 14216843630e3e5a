import { type Observable, filter, type OperatorFunction } from 'rxjs';
import { type EventType, EVENT_TYPES } from '../contract/engine.js';
import { InvalidJobIdError, InvalidOptionError, NotRunningError, WrongStateError } from '../errors.js';
import { show } from '../errors/show.js';
import { type EventEngine, type ListenOptions, EventReaders } from './event-reader.js';
import { DrainedWatch, MAY_DRAIN, type DrainedEngine, type DrainedEvent } from './drained.js';
import type { EventsStatus } from './event-status.js';
import { field, refuse, rule, shape } from '../options/check.js';
import { GuardedObservable } from './guarded-observable.js';
import { adviceForQueues } from './event-advice.js';
import { isEnd, numberOfEvent, type EventOf, type QueueEvent } from './queue-event.js';

/** Where to start reading. */
export interface SinceOption {
  /**
   * `eventId` of the last event that you saw: stored events after it come first, then new ones. `'0'`: all stored events first.
   * @default new events only
   */
  readonly since?: string;
}

/**
 * Events of the queues, of all processes, as hot, shared observables.
 *
 * The first subscriber opens one connection for all queues; it is closed a second or two after the last one has left. If Redis goes away, the observables do not end
 * or fail: they continue when it is back, and `status$` reports the state. After a long absence the oldest events may have been
 * trimmed (`status$` reports a `gap`), so draw no conclusion from a missing event. All observables complete when the application
 * stops.
 *
 * If a subscriber throws, or an `async` one rejects, the error is logged and it stays subscribed; other subscribers are not affected.
 * This holds for the observables of this class and those made from them with `pipe`. Inside `merge`, `combineLatest` and the
 * like with other observables, RxJS throws as usual, so catch errors there.
 *
 * @example
 * events.of('email').pipe(ofType('dead')).subscribe((event) => pager.alert(event.jobId, event.reason));
 */
export class QueueEvents {
  /** @internal */
  readonly reader: EventReaders;
  /** `connecting`, `live`, `lost`, `gap` or `closed`, beginning with the current state. Opens no connection. */
  readonly status$: Observable<EventsStatus>;

  /** @internal */
  constructor(
    private readonly sourceOf: (queue: string) => EventEngine & DrainedEngine,
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
   * ;@Controller()
   * export class LiveController {
   *   constructor(private readonly events: QueueEvents) {}
   *
   *   ;@Sse('live')
   *   live(@Headers('last-event-id') since?: string) {
   *     return this.events.of('email', { since }).pipe(map((event) => ({ id: event.eventId, data: event })));
   *   }
   * }
   */
  of(queue: string, options: SinceOption = {}): Observable<QueueEvent> {
    this.checkQueue(queue);
    return this.stream([queue], readSince(options, 'of()'));
  }

  /** All events of every queue that is registered at the time of the subscription. */
  all(): Observable<QueueEvent> {
    return this.stream(this.queues, {});
  }

  /**
   * The events of one queue with these types. Other events are not decoded, so it costs less than the operator of the same name.
   *
   * @throws UnknownQueueError, InvalidOptionError
   */
  ofType<Type extends EventType>(queue: string, ...types: Type[]): Observable<EventOf<Type>> {
    this.checkQueue(queue);
    return this.stream([queue], { types: setOfTypes(types) }) as Observable<EventOf<Type>>;
  }

  /**
   * The events of one job. Completes after the one that ends it: `completed`, `dead`, `cancelled` or `removed`. It emits nothing for a
   * job that has ended already; if that is possible, call `Queue.get(id)` too, after `ready(queue)` has resolved.
   *
   * @throws UnknownQueueError, InvalidJobIdError, InvalidOptionError
   */
  forJob(queue: string, jobId: string, options: SinceOption = {}): Observable<QueueEvent> {
    this.checkQueue(queue);
    if (typeof jobId !== 'string' || jobId === '') throw new InvalidJobIdError(jobId, 'is not a text');
    return this.stream([queue], { jobId, ...readSince(options, 'forJob()') });
  }

  /**
   * Emits when jobs have run and the queue has no more work: no job waits, runs or is due. Jobs delayed until later do not count.
   * The queue is checked when its jobs end or are delayed, at most four times a second. So the event may come a quarter of a second
   * late, and a short pause between two jobs may not be seen. No event is stored in Redis for it.
   *
   * @throws UnknownQueueError
   * @example
   * events.drained('import').subscribe(({ queue, at }) => console.log(`${queue} was done at ${at.toISOString()}`));
   */
  drained(queue: string): Observable<DrainedEvent> {
    this.checkQueue(queue);
    return new GuardedObservable<DrainedEvent>((subscriber) => {
      const watch = new DrainedWatch(this.sourceOf(queue), queue, (event) => subscriber.next(event));
      subscriber.add(() => watch.stop());
      subscriber.add(this.reader.onClose(() => subscriber.complete()));
      const types = new Set<EventType>(MAY_DRAIN);
      subscriber.add(this.reader.listen(queue, { types }, (event) => watch.hear(event)));
    });
  }

  /**
   * Resolves when the subscriptions to this queue will miss no event from then on. Without a name it waits for all queues.
   *
   * @throws WrongStateError if there is no subscriber
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
      // All subscribers have left, or the reader was closed: reported below.
    }
    if (this.reader.closed) throw new NotRunningError('events.ready');
    throw new WrongStateError(queue, 'the event stream', 'not subscribed', 'subscribe to it before ready()');
  }

  /** @internal Resolves when the subscriptions to this queue have got all events so far. */
  caughtUp(queue: string): Promise<void> {
    return this.reader.caughtUp(queue);
  }

  /** Completes all observables and closes the connection. Never rejects. May be called twice. */
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

const sinceOption = shape({ since: field('since', rule(checkSince)) });

function readSince(options: unknown, path: string): { readonly since?: number } {
  return sinceOption(options, path, refuse)!;
}

function checkSince(since: unknown, path: string): number {
  const number = numberOfEvent(since);
  if (number !== undefined) return number;
  throw new InvalidOptionError(path, "the id of an event, or '0' for all that are stored", since);
}

/**
 * RxJS operator that passes only events of these types, and narrows to them.
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
function setOfTypes(types: readonly EventType[]): ReadonlySet<EventType> {
  const wanted = new Set(types);
  for (const type of wanted) {
    if (!EVENT_TYPES.includes(type)) {
      const expected = `one of ${EVENT_TYPES.join(', ')}`;
      const message = `ofType() must be ${expected}, got ${show(type)}${adviceForQueues([type])}`;
      throw new InvalidOptionError('ofType()', expected, type, message);
    }
  }
  return wanted;
}
