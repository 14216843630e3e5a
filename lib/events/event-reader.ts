import type { EventType, LinkEvent, QueueEngine, QueueEventBatch } from '../contract/engine.js';
import { EventLane, type Listener } from './event-lane.js';
import { StatusTeller } from './event-status.js';

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
  /** Start after the event with this number instead of now. */
  readonly since?: number;
}

/** A read waits this long for news; a queue that joins while others are read ends it. */
const BLOCK_MS = 1_000;
/** For a read that should not block. Not 0, which means "without a limit" to Redis. */
const GLANCE_MS = 1;
/** How often one queue is checked for whether the store has started over with its numbers, which no read shows. */
const COMPARE_MS = 5_000;
const BACKOFF_MS = { first: 100, most: 1_000, jitter: 0.3 };

/**
 * Reads the events of all queues that have listeners, in one loop over the one events connection. The loop runs from the first listener
 * to the last; the connection is closed when the last read has ended, so listeners that come and go do not cost a connection
 * each. Listeners get events and never errors of Redis: the loop tries again and continues where it was, and `status` reports the
 * state.
 */
export class EventReader {
  readonly status = new StatusTeller();

  private readonly lanes = new Map<string, EventLane>();
  /** A queue can be read now, or there are no listeners any more. */
  private readonly changed = new Signal();
  /** A connection came up, or the reader stops: ends the wait between attempts. */
  private readonly retryNow = new Signal();
  /** A round of the loop is over. */
  private readonly stepped = new Signal();
  private readonly closers = new Set<() => void>();
  private running = false;
  private stopped = false;
  /** A read waits for news. */
  private isWaiting = false;
  private opened = false;
  private closing: Promise<void> | null = null;
  /** The store may have started over with its numbers: compare before the next read. */
  private doubtful = false;
  private comparedAt = 0;
  private compareNext = 0;

  constructor(private readonly engine: EventEngine) {}

  get closed(): boolean {
    return this.stopped;
  }

  /** Calls `next` for every event from now on (or after `since`), until the returned function is called. */
  listen(queue: string, options: ListenOptions, next: Listener['next']): () => void {
    if (this.stopped) return () => {};
    const lane = this.lanes.get(queue) ?? this.addLane(queue);
    const { jobId, types } = options;
    const listener: Listener = { jobId, types, from: 0, next };
    lane.add(listener, options.since);
    if (options.since !== undefined && lane.cursor !== undefined && options.since > lane.cursor) {
      void this.doubtSince(lane, listener, options.since);
    }
    if (lane.oldestNeeded() !== undefined) this.interrupt();
    void this.run();
    return () => this.leave(lane, listener);
  }

  /** Settles when no later event of the queue will be missed; undefined if it has no listeners. */
  ready(queue: string): Promise<void> | undefined {
    return this.lanes.get(queue)?.ready;
  }

  /**
   * Resolves when all events so far have been delivered to the listeners of the queue; at once if it has none. Rejects if the store does
   * not answer.
   */
  async caughtUp(queue: string): Promise<void> {
    const lane = this.lanes.get(queue);
    if (!lane) return;
    const last = await this.engine.lastEvent(queue);
    while (this.lanes.get(queue) === lane && (lane.cursor ?? 0) < last) await this.stepped.wait();
  }

  /** Queues that have listeners. */
  queues(): string[] {
    return [...this.lanes.keys()];
  }

  /** Calls `act` when the reader closes (at once if it has), unless the returned function was called before. */
  onClose(act: () => void): () => void {
    if (this.stopped) act();
    else this.closers.add(act);
    return () => this.closers.delete(act);
  }

  /** Removes all listeners and closes the connection, for good. Never rejects; may be called twice. */
  async close(): Promise<void> {
    if (!this.stopped) {
      this.stopped = true;
      for (const lane of this.lanes.values()) lane.abandon();
      this.lanes.clear();
      for (const act of this.closers) act();
      this.closers.clear();
      this.changed.fire();
      this.stepped.fire();
      this.retryNow.fire();
    }
    await this.shut();
    this.status.end();
  }

  private addLane(queue: string): EventLane {
    const lane = new EventLane(queue);
    this.lanes.set(queue, lane);
    void this.begin(lane);
    return lane;
  }

  private leave(lane: EventLane, listener: Listener): void {
    lane.remove(listener);
    if (!lane.empty || this.lanes.get(lane.queue) !== lane) return;
    this.lanes.delete(lane.queue);
    lane.abandon();
    this.changed.fire();
    this.stepped.fire();
    if (this.lanes.size === 0) this.retryNow.fire();
  }

  private async begin(lane: EventLane): Promise<void> {
    const last = await this.askLast(lane);
    if (last === undefined) return;
    lane.begin(last);
    this.changed.fire();
    this.interrupt();
  }

  /** Something else is to be read now. */
  private interrupt(): void {
    if (!this.isWaiting) return;
    this.isWaiting = false;
    this.engine.interruptEvents();
  }

  /** A `since` beyond the last event read here is either newer, or from before the store started over: only the store knows. */
  private async doubtSince(lane: EventLane, listener: Listener, since: number): Promise<void> {
    const last = await this.askLast(lane);
    if (last !== undefined && last < since) lane.restartFor(listener);
  }

  /** Asks until there is an answer; undefined if it is no longer needed. */
  private async askLast(lane: EventLane): Promise<number | undefined> {
    for (let failures = 0; this.lanes.get(lane.queue) === lane; failures++) {
      try {
        return await this.engine.lastEvent(lane.queue);
      } catch (error) {
        this.status.lost(error);
        await this.retryNow.wait(backoff(failures));
      }
    }
    return undefined;
  }

  /** Runs sessions, each from opening to closing of the connection, while there are listeners. */
  private async run(): Promise<void> {
    if (this.running) return;
    this.running = true;
    while (this.lanes.size > 0) await this.session();
    this.running = false;
  }

  private async session(): Promise<void> {
    this.status.set('connecting');
    this.doubtful = false;
    this.comparedAt = performance.now();
    const unlink = this.engine.onLink((event) => this.onLink(event));
    let connected = false;
    let failures = 0;
    while (this.lanes.size > 0) {
      try {
        if (!connected) await this.open();
        connected = true;
        await this.step();
        this.stepped.fire();
        failures = 0;
      } catch (error) {
        if (this.lanes.size === 0) break;
        this.doubtful = true;
        this.status.lost(error);
        await this.retryNow.wait(backoff(failures++));
      }
    }
    unlink();
    await this.shut();
    this.status.set('closed');
  }

  private async open(): Promise<void> {
    this.opened = true;
    await this.engine.openEvents();
    this.opened = true; // a `close` that came meanwhile may have found nothing to close yet
  }

  /** Closes the connection once; also after a failed opening, whose client may still be trying. */
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
      this.doubtful = true;
      this.status.lost(event.error ?? new Error('the connection that reads events is down'));
    }
  }

  /** One round: compare numbers if that is due, read older events for listeners that are behind, then new events for all. */
  private async step(): Promise<void> {
    const lanes = this.begun();
    if (lanes.length === 0) return this.lanes.size === 0 ? undefined : this.changed.wait();
    await this.compare(lanes);
    if (!this.stopped) await this.catchUp(lanes);
    if (this.stopped) return; // a read after the closing would bring the connection back
    // Also those that have joined meanwhile.
    const all = this.begun();
    const hurry = !this.status.live || this.doubtful || all.some((lane) => lane.oldestNeeded() !== undefined);
    const after = new Map(all.map((lane) => [lane.queue, lane.cursor ?? 0]));
    const reading = this.engine.readEvents(after, hurry ? GLANCE_MS : BLOCK_MS);
    this.isWaiting = !hurry;
    const batches = await reading.finally(() => (this.isWaiting = false));
    if (!this.doubtful) this.status.set('live');
    for (const batch of batches) this.tell(batch);
  }

  private begun(): EventLane[] {
    return [...this.lanes.values()].filter((lane) => lane.cursor !== undefined);
  }

  private tell(batch: QueueEventBatch): void {
    const missed = this.lanes.get(batch.queue)?.tellNew(batch) ?? 0;
    if (missed > 0) this.status.gap(batch.queue, missed);
  }

  /** Reads one chunk of older events for listeners that are behind, so that the others never wait longer than for one chunk. */
  private async catchUp(lanes: readonly EventLane[]): Promise<void> {
    const after = new Map<string, number>();
    for (const lane of lanes) {
      const oldest = lane.oldestNeeded();
      if (oldest !== undefined) after.set(lane.queue, oldest);
    }
    if (after.size === 0) return;
    const batches = await this.engine.readEvents(after, GLANCE_MS);
    for (const lane of lanes) {
      const start = after.get(lane.queue);
      if (start === undefined) continue;
      const missed = lane.tellOld(
        start,
        batches.filter((batch) => batch.queue === lane.queue),
      );
      if (missed > 0) this.status.gap(lane.queue, missed);
    }
  }

  /** Whether the store has started over with its numbers: for all queues after a broken connection, else for one in turn. */
  private async compare(lanes: readonly EventLane[]): Promise<void> {
    if (this.doubtful) {
      this.doubtful = false;
      await Promise.all(lanes.map((lane) => this.compareOne(lane)));
    } else if (performance.now() - this.comparedAt >= COMPARE_MS) {
      const lane = lanes[this.compareNext++ % lanes.length]!;
      // FLUSHALL and failovers most likely affect all queues.
      if (await this.compareOne(lane)) this.doubtful = true;
    } else return;
    this.comparedAt = performance.now();
  }

  private async compareOne(lane: EventLane): Promise<boolean> {
    const known = lane.cursor ?? 0;
    const last = await this.engine.lastEvent(lane.queue);
    if (last >= known) return false;
    lane.restart();
    this.status.gap(lane.queue, null);
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
