import { outside } from '../contract/outside.js';
import type { EventType, LinkEvent, QueueEngine, QueueEventBatch } from '../contract/engine.js';
import { isWrongType } from '../contract/retry.js';
import { EventCursor, type Listener } from './event-cursor.js';
import { StatusReporter, type EventsStatus } from './event-status.js';
import type { Observable } from 'rxjs';
import type { QueueEvent } from './queue-event.js';

/** The part of the engine that events need. */
export type EventEngine = Pick<
  QueueEngine,
  'openEvents' | 'closeEvents' | 'lastEvent' | 'readEvents' | 'interruptEvents' | 'onLink'
>;

export interface ListenOptions {
  /** Only events of this job. */
  readonly jobId?: string;
  /** Only events with these types. */
  readonly types?: ReadonlySet<EventType>;
  /** Only events with this name. */
  readonly name?: string;
  /** Start after the event with this number instead of now. */
  readonly since?: number;
}

/** How long a read waits for events. A queue that is added meanwhile interrupts it. */
const BLOCK_MS = 1_000;
/** For a read that should not block. Redis takes 0 as "no limit". */
const GLANCE_MS = 1;
/** How long the connection stays open without listeners, so that listeners that come and go do not cost a connection each. */
const KEEP_OPEN_MS = 1_000;
/** How often one queue is checked for numbers that started again. A read does not show that. */
const COMPARE_MS = 5_000;
const BACKOFF_MS = { first: 100, most: 1_000, jitter: 0.3 };

/**
 * Reads the events of all queues that have listeners, in one loop over the one events connection. The loop runs from the first listener
 * until a second after the last. Listeners get events and never errors of Redis: the loop tries again and continues where it was, and
 * `status` reports the state.
 */
export class StoreEventReader {
  readonly status = new StatusReporter();

  private readonly cursors = new Map<string, EventCursor>();
  /** Fires when a queue can be read now, or there are no listeners left. */
  private readonly changed = new Signal();
  /** Fires when a connection came up or the reader stops, to end the pause between attempts. */
  private readonly retryNow = new Signal();
  /** Fires after each round of the loop. */
  private readonly stepped = new Signal();
  private running = false;
  private stopped = false;
  /** Whether a read waits for events. */
  private isWaiting = false;
  private opened = false;
  private closing: Promise<void> | null = null;
  /** Whether the store may have started its numbers again. Then they are compared before the next read. */
  private mayHaveRestarted = false;
  private comparedAt = 0;
  private compareNext = 0;

  constructor(private readonly engine: EventEngine) {}

  /** Calls `next` for every event from now on (or after `since`), until the returned function is called. */
  listen(queue: string, options: ListenOptions, next: Listener['next']): () => void {
    if (this.stopped) return () => {};
    const cursor = this.cursors.get(queue) ?? this.addCursor(queue);
    const { jobId, types, name } = options;
    const listener: Listener = { jobId, types, name, from: 0, next };
    cursor.add(listener, options.since);
    if (options.since !== undefined && cursor.position !== undefined && options.since > cursor.position) {
      void this.doubtSince(cursor, listener, options.since);
    }
    if (cursor.oldestNeeded() !== undefined) this.interrupt();
    void this.run();
    return () => this.leave(cursor, listener);
  }

  /** Settles when no later event of the queue will be missed. Undefined if it has no listeners. */
  ready(queue: string): Promise<void> | undefined {
    return this.cursors.get(queue)?.ready;
  }

  /**
   * Resolves when all events so far have been delivered to the listeners of the queue, or at once if it has none. Rejects if the
   * store does not answer.
   */
  async caughtUp(queue: string): Promise<void> {
    const cursor = this.cursors.get(queue);
    if (!cursor) return;
    const last = await this.engine.lastEvent(queue);
    while (this.cursors.get(queue) === cursor && (cursor.position ?? 0) < last) await this.stepped.wait();
  }

  /** Queues that have listeners. */
  queues(): string[] {
    return [...this.cursors.keys()];
  }

  /** Removes all listeners and closes the connection permanently. Never rejects. May be called twice. */
  async close(): Promise<void> {
    if (!this.stopped) {
      this.stopped = true;
      for (const cursor of this.cursors.values()) cursor.abandon();
      this.cursors.clear();
      this.changed.fire();
      this.stepped.fire();
      this.retryNow.fire();
    }
    await this.shut();
    this.status.end();
  }

  private addCursor(queue: string): EventCursor {
    const cursor = new EventCursor(queue);
    this.cursors.set(queue, cursor);
    void this.begin(cursor);
    return cursor;
  }

  private leave(cursor: EventCursor, listener: Listener): void {
    cursor.remove(listener);
    if (!cursor.empty || this.cursors.get(cursor.queue) !== cursor) return;
    this.cursors.delete(cursor.queue);
    cursor.abandon();
    this.changed.fire();
    this.stepped.fire();
    if (this.cursors.size === 0) this.retryNow.fire();
  }

  private async begin(cursor: EventCursor): Promise<void> {
    const last = await this.askLast(cursor);
    if (last === undefined) return;
    cursor.begin(last);
    this.changed.fire();
    this.interrupt();
  }

  /** Interrupts the waiting read, because something else must be read now. */
  private interrupt(): void {
    if (!this.isWaiting) return;
    this.isWaiting = false;
    this.engine.interruptEvents();
  }

  /**
   * A `since` above the last event read belongs to a newer event, or to one from before the store restarted its numbers. Only the
   * store knows which.
   */
  private async doubtSince(cursor: EventCursor, listener: Listener, since: number): Promise<void> {
    const last = await this.askLast(cursor);
    if (last !== undefined && last < since) cursor.restartFor(listener);
  }

  /** Asks until there is an answer. Undefined if the answer is no longer needed. */
  private async askLast(cursor: EventCursor): Promise<number | undefined> {
    for (let failures = 0; this.cursors.get(cursor.queue) === cursor; failures++) {
      try {
        return await this.engine.lastEvent(cursor.queue);
      } catch (error) {
        this.status.lost(error);
        await this.retryNow.wait(backoff(failures));
      }
    }
    return undefined;
  }

  /** Runs sessions while there are listeners. A session lasts from opening the connection to closing it. */
  private async run(): Promise<void> {
    if (this.running) return;
    this.running = true;
    while (this.cursors.size > 0) await this.session();
    this.running = false;
  }

  private async session(): Promise<void> {
    this.status.set('connecting');
    this.mayHaveRestarted = false;
    this.comparedAt = performance.now();
    const unlink = this.engine.onLink((event) => this.onLink(event));
    let connected = false;
    let failures = 0;
    while (this.cursors.size > 0 || (connected && (await this.isNeededAgain()))) {
      try {
        if (!connected) await this.open();
        connected = true;
        await this.step();
        this.stepped.fire();
        failures = 0;
      } catch (error) {
        if (this.cursors.size === 0) break;
        this.mayHaveRestarted = true;
        this.status.lost(error);
        await this.retryNow.wait(backoff(failures++));
      }
    }
    unlink();
    await this.shut();
    this.status.set('closed');
  }

  /** Whether there is a listener again. */
  private async isNeededAgain(): Promise<boolean> {
    if (!this.stopped) await this.changed.wait(KEEP_OPEN_MS);
    return this.cursors.size > 0;
  }

  private async open(): Promise<void> {
    this.opened = true;
    await this.engine.openEvents();
    this.opened = true; // a `close` that came meanwhile may have set it to false
  }

  /** Closes the connection once. Also after a failed opening, because its client may still be connecting. */
  private shut(): Promise<void> {
    if (this.opened) {
      this.opened = false;
      this.closing = this.engine.closeEvents().catch(() => {});
    }
    return this.closing ?? Promise.resolve();
  }

  private onLink(event: LinkEvent): void {
    if (event.state === 'up') this.retryNow.fire();
    else if (event.role === 'events') {
      this.mayHaveRestarted = true;
      this.status.lost(event.error ?? new Error('the connection that reads events is down'));
    }
  }

  /** One round: compare numbers if that is due, read older events for listeners that are behind, then new events for all. */
  private async step(): Promise<void> {
    const cursors = this.begun();
    if (cursors.length === 0) return this.cursors.size === 0 ? undefined : this.changed.wait();
    await this.compare(cursors);
    if (!this.stopped) await this.catchUp(cursors);
    if (this.stopped) return; // a read after the connection was closed would open it again
    // This includes queues that were added meanwhile.
    const all = this.begun();
    const hurry =
      !this.status.live || this.mayHaveRestarted || all.some((cursor) => cursor.oldestNeeded() !== undefined);
    const after = new Map(all.map((cursor) => [cursor.queue, cursor.position ?? 0]));
    const reading = this.engine.readEvents(after, hurry ? GLANCE_MS : BLOCK_MS);
    this.isWaiting = !hurry;
    const batches = await reading.finally(() => (this.isWaiting = false));
    if (!this.mayHaveRestarted) this.status.set('live');
    for (const batch of batches) this.deliver(batch);
  }

  private begun(): EventCursor[] {
    return [...this.cursors.values()].filter((cursor) => cursor.position !== undefined);
  }

  private deliver(batch: QueueEventBatch): void {
    const missed = this.cursors.get(batch.queue)?.deliver(batch) ?? 0;
    if (missed > 0) this.status.gap(batch.queue, missed);
  }

  /** Reads one chunk of older events for listeners that are behind, so that the others never wait longer than for one chunk. */
  private async catchUp(cursors: readonly EventCursor[]): Promise<void> {
    const after = new Map<string, number>();
    for (const cursor of cursors) {
      const oldest = cursor.oldestNeeded();
      if (oldest !== undefined) after.set(cursor.queue, oldest);
    }
    if (after.size === 0) return;
    const batches = await this.engine.readEvents(after, GLANCE_MS);
    for (const cursor of cursors) {
      const start = after.get(cursor.queue);
      if (start === undefined) continue;
      const missed = cursor.deliverOlder(
        start,
        batches.filter((batch) => batch.queue === cursor.queue),
      );
      if (missed > 0) this.status.gap(cursor.queue, missed);
    }
  }

  /**
   * Checks whether the store has started its numbers again: all queues after a broken connection, otherwise one queue at each check.
   */
  private async compare(cursors: readonly EventCursor[]): Promise<void> {
    if (this.mayHaveRestarted) {
      this.mayHaveRestarted = false;
      await Promise.all(cursors.map((cursor) => this.compareOne(cursor)));
    } else if (performance.now() - this.comparedAt >= COMPARE_MS) {
      const cursor = cursors[this.compareNext++ % cursors.length]!;
      // FLUSHALL and failovers usually affect all queues.
      if (await this.compareOne(cursor)) this.mayHaveRestarted = true;
    } else return;
    this.comparedAt = performance.now();
  }

  private async compareOne(cursor: EventCursor): Promise<boolean> {
    const known = cursor.position ?? 0;
    const last = await this.engine.lastEvent(cursor.queue).catch((error: unknown) => {
      // Another program uses the key of this queue. The events of the other queues are still read.
      if (isWrongType(error)) return known;
      throw error;
    });
    if (last >= known) return false;
    cursor.restart();
    this.status.gap(cursor.queue, null);
    return true;
  }
}

function backoff(failures: number): number {
  const full = Math.min(BACKOFF_MS.most, BACKOFF_MS.first * 2 ** failures);
  return Math.round(full * (1 - BACKOFF_MS.jitter * Math.random()));
}

/** A timer that can be ended early. It does not keep the process alive. */
class Signal {
  private waiters = new Set<() => void>();

  /** Ends all running waits. */
  fire(): void {
    const waiters = this.waiters;
    this.waiters = new Set();
    for (const wake of waiters) wake();
  }

  /** Resolves with the next `fire`, or after `maxMs`. */
  wait(maxMs?: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        this.waiters.delete(wake);
        resolve();
      };
      const timer = maxMs === undefined ? undefined : setTimeout(wake, maxMs).unref();
      this.waiters.add(wake);
    });
  }
}

/** Chooses the status of several readers that is reported. */
const WORST_FIRST = ['lost', 'connecting', 'live', 'closed'] as const;

/** One reader per store, so that an unreachable store does not delay events of the others. */
export class EventReaders {
  readonly status$: Observable<EventsStatus>;
  private readonly status = new StatusReporter();
  private readonly readers = new Map<EventEngine, StoreEventReader>();
  private readonly states = new Map<StoreEventReader, EventsStatus>();
  private readonly closers = new Set<() => void>();
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
    return outside(() => this.readerOf(queue).listen(queue, options, next));
  }

  /** Settles when no later event of the queue will be missed. Undefined if it has no listeners. */
  ready(queue: string): Promise<void> | undefined {
    return this.stopped ? undefined : this.readers.get(this.sourceOf(queue))?.ready(queue);
  }

  /** Resolves when all events so far have been delivered to the listeners of the queue, or at once if it has none. */
  async caughtUp(queue: string): Promise<void> {
    if (!this.stopped) await this.readers.get(this.sourceOf(queue))?.caughtUp(queue);
  }

  /** Queues that have listeners. */
  queues(): string[] {
    return [...this.readers.values()].flatMap((reader) => reader.queues());
  }

  /** Calls `act` on `close`, or at once if the readers are closed. The returned function cancels that. */
  onClose(act: () => void): () => void {
    if (this.stopped) act();
    else this.closers.add(act);
    return () => this.closers.delete(act);
  }

  /** Removes all listeners and closes the connections permanently. Never rejects. May be called twice. */
  async close(): Promise<void> {
    this.stopped = true;
    for (const act of this.closers) act();
    this.closers.clear();
    await Promise.all([...this.readers.values()].map((reader) => reader.close()));
    this.status.end();
  }

  private readerOf(queue: string): StoreEventReader {
    const source = this.sourceOf(queue);
    let reader = this.readers.get(source);
    if (reader === undefined) {
      const made = new StoreEventReader(source);
      reader = made;
      this.readers.set(source, made);
      made.status.status$.subscribe((status) => this.hear(made, status));
    }
    return reader;
  }

  private hear(reader: StoreEventReader, status: EventsStatus): void {
    this.states.set(reader, status);
    if (status.state === 'gap') return this.status.gap(status.queue, status.missed);
    const all = [...this.states.values()];
    const worst = WORST_FIRST.map((state) => all.find((one) => one.state === state)).find((one) => one);
    if (worst?.state === 'lost') this.status.lost(worst.error);
    else if (worst && worst.state !== 'gap') this.status.set(worst.state);
  }
}
