import { AsyncResource } from 'node:async_hooks';
import type { Observable } from 'rxjs';
import type { QueueEvent } from './queue-event.js';
import { EventReader, type EventEngine, type ListenOptions } from './event-reader.js';
import { StatusTeller, type EventsStatus } from './event-status.js';

/** Chooses the status of several readers that is reported. */
const WORST_FIRST = ['lost', 'connecting', 'live', 'closed'] as const;

/** One reader per store, so that a store that is away does not hold up the events of the others. */
export class EventReaders {
  readonly status$: Observable<EventsStatus>;
  private readonly status = new StatusTeller();
  private readonly readers = new Map<EventEngine, EventReader>();
  private readonly states = new Map<EventReader, EventsStatus>();
  private readonly closers = new Set<() => void>();
  /** Context for all listeners. Without it the loop would run in the AsyncLocalStorage context of the first one. */
  private readonly scope = new AsyncResource('GodwitEvents');
  private stopped = false;

  constructor(private readonly sourceOf: (queue: string) => EventEngine) {
    this.status$ = this.status.status$;
  }

  get closed(): boolean {
    return this.stopped;
  }

  /** Calls `next` for every event from now on (or after `since`), until the returned function is called. */
  listen(queue: string, options: ListenOptions, next: (event: QueueEvent) => void): () => void {
    if (this.stopped) return () => {};
    return this.scope.runInAsyncScope(() => this.readerOf(queue).listen(queue, options, next));
  }

  /** Settles when no later event of the queue will be missed; undefined if it has no listeners. */
  ready(queue: string): Promise<void> | undefined {
    return this.stopped ? undefined : this.readers.get(this.sourceOf(queue))?.ready(queue);
  }

  /** Resolves when all events so far have been delivered to the listeners of the queue; at once if it has none. */
  async caughtUp(queue: string): Promise<void> {
    if (!this.stopped) await this.readers.get(this.sourceOf(queue))?.caughtUp(queue);
  }

  /** Queues that have listeners. */
  queues(): string[] {
    return [...this.readers.values()].flatMap((reader) => reader.queues());
  }

  /** Calls `act` when they close (at once if they have), unless the returned function was called before. */
  onClose(act: () => void): () => void {
    if (this.stopped) act();
    else this.closers.add(act);
    return () => this.closers.delete(act);
  }

  /** Removes all listeners and closes the connections, for good. Never rejects; may be called twice. */
  async close(): Promise<void> {
    this.stopped = true;
    for (const act of this.closers) act();
    this.closers.clear();
    await Promise.all([...this.readers.values()].map((reader) => reader.close()));
    this.status.end();
  }

  private readerOf(queue: string): EventReader {
    const source = this.sourceOf(queue);
    let reader = this.readers.get(source);
    if (reader === undefined) {
      const made = new EventReader(source);
      reader = made;
      this.readers.set(source, made);
      made.status.status$.subscribe((status) => this.hear(made, status));
    }
    return reader;
  }

  private hear(reader: EventReader, status: EventsStatus): void {
    this.states.set(reader, status);
    if (status.state === 'gap') return this.status.gap(status.queue, status.missed);
    const all = [...this.states.values()];
    const worst = WORST_FIRST.map((state) => all.find((one) => one.state === state)).find((one) => one);
    if (worst?.state === 'lost') this.status.lost(worst.error);
    else if (worst && worst.state !== 'gap') this.status.set(worst.state);
  }
}
