import { Log } from '../contract/log.js';
import type { EventType, QueueEventBatch, RawEvent } from '../contract/engine.js';
import { messageOf, stackOf } from '../errors/thrown.js';
import { toQueueEvent, type QueueEvent } from './queue-event.js';

const logger = new Log('QueueEvents');

/** A listener for the events of one queue. */
export interface Listener {
  /** Only events of this job. */
  readonly jobId?: string;
  /** Only events with these types. */
  readonly types?: ReadonlySet<EventType>;
  /** Only events with this name. */
  readonly name?: string;
  /** The number of the last event that this listener must not get, because it was delivered or is older than the subscription. */
  from: number;
  next(event: QueueEvent): void;
}

/**
 * How far one queue has been read, and its listeners. Most listeners are up to date and get each batch as it arrives. A listener
 * with an older `since` gets older events first, which are read for it alone, until it has caught up. One loop does both kinds of
 * reads, so no event is skipped and none is delivered twice.
 */
export class EventCursor {
  /** Number of the last event delivered to listeners that are up to date. Undefined until the store has answered. */
  position: number | undefined;
  /** Settles when `cursor` is known; rejects if all listeners have left before. */
  readonly ready: Promise<void>;
  private settleReady!: { resolve: () => void; reject: (error: unknown) => void };

  private readonly everyJob = new Set<Listener>();
  /** Listeners by job id, so that a thousand listeners for one job each do not cost a thousand comparisons per event. */
  private readonly oneJob = new Map<string, Set<Listener>>();
  private readonly behind = new Set<Listener>();

  private lastAt = 0;
  private skipBefore = 0;

  constructor(readonly queue: string) {
    this.ready = new Promise((resolve, reject) => (this.settleReady = { resolve, reject }));
    this.ready.catch(() => {}); // a rejection matters only to callers that await `ready`
  }

  get empty(): boolean {
    return this.everyJob.size === 0 && this.oneJob.size === 0 && this.behind.size === 0;
  }

  /** `since`: start after this event instead of now. */
  add(listener: Listener, since?: number): void {
    listener.from = since ?? 0;
    if (since !== undefined && (this.position === undefined || since < this.position))
      this.behind.add(listener);
    else this.join(listener, since ?? this.position ?? 0);
  }

  /** Returns false if it was not a listener. */
  remove(listener: Listener): boolean {
    const found = this.behind.delete(listener) || this.everyJob.delete(listener);
    if (found || listener.jobId === undefined) return found;
    const watchers = this.oneJob.get(listener.jobId);
    if (!watchers?.delete(listener)) return false;
    if (watchers.size === 0) this.oneJob.delete(listener.jobId);
    return true;
  }

  /** Called with the first answer of the store. Every later event will be delivered. */
  begin(last: number): void {
    this.position = last;
    for (const listener of this.behind) {
      if (listener.from > last) listener.from = 0;
      if (listener.from >= last) this.join(listener, listener.from);
    }
    this.settleReady.resolve();
  }

  /**
   * Called if the listener's `since` is from before the store started its numbers again. Then every stored event is new to it.
   */
  restartFor(listener: Listener): void {
    if (this.remove(listener)) this.add(listener, 0);
  }

  /**
   * Called when the store has started its numbers again. All its events are delivered, except those older than the last delivered
   * one.
   */
  restart(): void {
    this.position = 0;
    this.skipBefore = this.lastAt;
    for (const listener of this.everyJob) listener.from = 0;
    for (const watchers of this.oneJob.values()) for (const listener of watchers) listener.from = 0;
    for (const listener of this.behind) this.join(listener, 0);
  }

  /** The lowest number after which some listener still needs older events; undefined if all listeners are up to date. */
  oldestNeeded(): number | undefined {
    if (this.position === undefined || this.behind.size === 0) return undefined;
    let oldest = this.position;
    for (const listener of this.behind) oldest = Math.min(oldest, listener.from);
    return oldest;
  }

  /** Delivers a batch to the listeners that are up to date. Returns how many events before it can no longer be read. */
  deliver(batch: QueueEventBatch): number {
    if (this.position === undefined) return 0; // the batch was read for an earlier cursor of this queue
    const missed = missedBetween(this.position, batch);
    for (const raw of batch.events) {
      if (raw.number <= this.position) continue;
      // Set before the delivery: a subscription made inside a listener starts after this event.
      this.position = raw.number;
      if (batch.at >= this.skipBefore) this.deliverToCurrent(batch, raw);
    }
    this.position = Math.max(this.position, batch.last);
    this.lastAt = Math.max(this.lastAt, batch.at);
    return missed;
  }

  /**
   * Delivers batches that were read from `start` on to the listeners that are behind. No batches mean that the store has nothing
   * older. Returns how many events can no longer be read.
   */
  deliverOlder(start: number, batches: readonly QueueEventBatch[]): number {
    if (this.position === undefined) return 0;
    // A listener that was added during the read may need even older events.
    const listeners = [...this.behind].filter((listener) => listener.from >= start);
    let position = start;
    let missed = 0;
    for (const batch of batches) {
      missed += missedBetween(position, batch);
      for (const raw of batch.events) {
        if (raw.number > position) this.deliverToBehind(listeners, batch, raw);
      }
      position = Math.max(position, batch.last);
    }
    if (batches.length === 0) {
      missed = start === 0 ? 0 : this.position - start;
      position = this.position;
    }
    for (const listener of listeners) {
      listener.from = Math.max(listener.from, position);
      if (listener.from >= this.position && this.behind.has(listener)) this.join(listener, listener.from);
    }
    return missed;
  }

  /** Called when there are no listeners left: rejects `ready`. */
  abandon(): void {
    this.settleReady.reject(new Error(`queue '${this.queue}' has no listeners any more`));
  }

  private join(listener: Listener, from: number): void {
    listener.from = from;
    this.behind.delete(listener);
    if (listener.jobId === undefined) {
      this.everyJob.add(listener);
      return;
    }
    const watchers = this.oneJob.get(listener.jobId);
    if (watchers) watchers.add(listener);
    else this.oneJob.set(listener.jobId, new Set([listener]));
  }

  private deliverToCurrent(batch: QueueEventBatch, raw: RawEvent): void {
    let event: Made;
    for (const listener of this.everyJob) event = deliverTo(listener, batch, raw, event);
    const watchers = this.oneJob.get(raw.id);
    if (watchers) for (const listener of watchers) event = deliverTo(listener, batch, raw, event);
  }

  private deliverToBehind(listeners: readonly Listener[], batch: QueueEventBatch, raw: RawEvent): void {
    let event: Made;
    for (const listener of listeners) {
      // A listener may have left during the delivery of the last event.
      if (this.behind.has(listener)) event = deliverTo(listener, batch, raw, event);
    }
  }
}

/**
 * An event, decoded only when a listener wants it, because most events have no listener. Undefined: not decoded yet. Null: this
 * version does not know the type of the event.
 */
type Made = QueueEvent | null | undefined;

function deliverTo(listener: Listener, batch: QueueEventBatch, raw: RawEvent, made: Made): Made {
  if (!wants(listener, raw)) return made;
  const event = made ?? toQueueEvent(batch, raw);
  call(listener, raw, event);
  return event;
}

function wants({ jobId, types, name }: Listener, raw: RawEvent): boolean {
  return (
    (jobId === undefined || jobId === raw.id) &&
    (types === undefined || types.has(raw.type)) &&
    (name === undefined || name === raw.name)
  );
}

/**
 * How many events between a number and a batch are gone. Numbers inside a batch may have gaps, so only its first number counts.
 * Number 0 means that the listener starts at the first stored event, so it misses nothing.
 */
function missedBetween(cursor: number, batch: QueueEventBatch): number {
  return cursor === 0 ? 0 : Math.max(0, batch.first - cursor - 1);
}

function call(listener: Listener, raw: RawEvent, event: QueueEvent | null): void {
  if (event === null || raw.number <= listener.from) return;
  try {
    listener.next(event);
  } catch (error) {
    // The event must reach the other listeners, and the loop must continue.
    logger.error('a listener for job events threw', stackOf(error) ?? messageOf(error));
  }
}
