import { AsyncResource } from 'node:async_hooks';
import type { Observable } from 'rxjs';
import type { QueueEvent } from './queue-event.js';
import { EventReader, type EventEngine, type ListenOptions } from './event-reader.js';
import { StatusTeller, type EventsStatus } from './event-status.js';

/** Of several readers the status of this one is told. */
const WORST_FIRST = ['lost', 'connecting', 'live', 'closed'] as const;

/** A reader for each store, so that one that is away does not keep the events of the others. */
export class EventReaders {
  readonly status$: Observable<EventsStatus>;
  private readonly status = new StatusTeller();
  private readonly readers = new Map<EventEngine, EventReader>();
  private readonly states = new Map<EventReader, EventsStatus>();
  private readonly closers = new Set<() => void>();
  /** Where all are told. The loop that reads would else run with what the first of them keeps by AsyncLocalStorage. */
  private readonly scope = new AsyncResource('GodwitEvents');
  private stopped = false;

  constructor(private readonly sourceOf: (queue: string) => EventEngine) {
    this.status$ = this.status.status$;
  }

  get closed(): boolean {
    return this.stopped;
  }

  /** Tells `next` every event from now on (or after `since`) until the function it returns is called. */
  listen(queue: string, options: ListenOptions, next: (event: QueueEvent) => void): () => void {
    if (this.stopped) return () => {};
    return this.scope.runInAsyncScope(() => this.readerOf(queue).listen(queue, options, next));
  }

  /** Settles once nothing that happens in the queue from then on is missed; undefined when nobody listens to it. */
  ready(queue: string): Promise<void> | undefined {
    return this.stopped ? undefined : this.readers.get(this.sourceOf(queue))?.ready(queue);
  }

  /** Resolves once those who listen to the queue have been told all that has happened in it by now; at once where nobody does. */
  async caughtUp(queue: string): Promise<void> {
    if (!this.stopped) await this.readers.get(this.sourceOf(queue))?.caughtUp(queue);
  }

  /** Queues somebody listens to. */
  queues(): string[] {
    return [...this.readers.values()].flatMap((reader) => reader.queues());
  }

  /** Calls `act` when they close (at once when they have), unless the function it returns was called before. */
  onClose(act: () => void): () => void {
    if (this.stopped) act();
    else this.closers.add(act);
    return () => this.closers.delete(act);
  }

  /** Ends all listening for good and closes the connections. Never rejects; safe twice. */
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
