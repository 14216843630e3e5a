import { Logger } from '@nestjs/common';
import type { EventType, QueueEventBatch, RawEvent } from '../contract/engine.js';
import { messageOf, stackOf } from '../errors/thrown.js';
import { toQueueEvent, type QueueEvent } from './queue-event.js';

const logger = new Logger('QueueEvents');

/** Somebody who is told the events of one queue. */
export interface Listener {
  /** Only events of this job. */
  readonly jobId?: string;
  /** Only events with these types. */
  readonly types?: ReadonlySet<EventType>;
  /** Number of the last event that is none of its business: told already, or from before it came. */
  from: number;
  next(event: QueueEvent): void;
}

/**
 * One queue as the reader follows it: how far it has been read, and who listens. Most listeners are up to date and are
 * told each batch as it comes. Those with a `since` start behind and are told older events, read for them alone, until they
 * have reached the others. Since one loop does both kinds of reading, no event falls between them and none comes twice.
 */
export class EventLane {
  /** Number of the last event told to those who are up to date; undefined until the store was asked for it. */
  cursor: number | undefined;
  /** Settles when `cursor` is known; rejects when everybody has left before. */
  readonly ready: Promise<void>;
  private settleReady!: { resolve: () => void; reject: (error: unknown) => void };

  private readonly everyJob = new Set<Listener>();
  /** By job id, so that a thousand people who watch one job each do not cost a thousand comparisons per event. */
  private readonly oneJob = new Map<string, Set<Listener>>();
  private readonly behind = new Set<Listener>();

  private lastAt = 0;
  private skipBefore = 0;

  constructor(readonly queue: string) {
    this.ready = new Promise((resolve, reject) => (this.settleReady = { resolve, reject }));
    this.ready.catch(() => {}); // only those who asked for it need to hear of a rejection
  }

  get empty(): boolean {
    return this.everyJob.size === 0 && this.oneJob.size === 0 && this.behind.size === 0;
  }

  /** `since`: start after this event instead of now. */
  add(listener: Listener, since?: number): void {
    listener.from = since ?? 0;
    if (since !== undefined && (this.cursor === undefined || since < this.cursor)) this.behind.add(listener);
    else this.join(listener, since ?? this.cursor ?? 0);
  }

  /** False when it was not there. */
  remove(listener: Listener): boolean {
    const found = this.behind.delete(listener) || this.everyJob.delete(listener);
    if (found || listener.jobId === undefined) return found;
    const watchers = this.oneJob.get(listener.jobId);
    if (!watchers?.delete(listener)) return false;
    if (watchers.size === 0) this.oneJob.delete(listener.jobId);
    return true;
  }

  /** The first answer of the store: from here on everything will be told. */
  begin(last: number): void {
    this.cursor = last;
    for (const listener of this.behind) {
      if (listener.from > last) listener.from = 0;
      if (listener.from >= last) this.join(listener, listener.from);
    }
    this.settleReady.resolve();
  }

  /** The listener's `since` is from before the store started over: everything the store holds is new to it. */
  restartFor(listener: Listener): void {
    if (this.remove(listener)) this.add(listener, 0);
  }

  /** The store has started over with its numbers. What it holds is told from its beginning, but nothing older than the last told. */
  restart(): void {
    this.cursor = 0;
    this.skipBefore = this.lastAt;
    for (const listener of this.everyJob) listener.from = 0;
    for (const watchers of this.oneJob.values()) for (const listener of watchers) listener.from = 0;
    for (const listener of this.behind) this.join(listener, 0);
  }

  /** From where on somebody still needs older events; undefined when all are up to date. */
  oldestNeeded(): number | undefined {
    if (this.cursor === undefined || this.behind.size === 0) return undefined;
    let oldest = this.cursor;
    for (const listener of this.behind) oldest = Math.min(oldest, listener.from);
    return oldest;
  }

  /** Tells a batch to those who are up to date. Answers how many events before it can no longer be read. */
  tellNew(batch: QueueEventBatch): number {
    if (this.cursor === undefined) return 0; // of a lane that was here before this one
    const missed = missedBetween(this.cursor, batch);
    for (const raw of batch.events) {
      if (raw.number <= this.cursor) continue;
      // Before the telling: whoever subscribes inside a handler starts after this event.
      this.cursor = raw.number;
      if (batch.at >= this.skipBefore) this.tellOne(batch, raw);
    }
    this.cursor = Math.max(this.cursor, batch.last);
    this.lastAt = Math.max(this.lastAt, batch.at);
    return missed;
  }

  /**
   * Tells batches that were read from `start` on to those who are behind; none means that the store holds nothing older.
   * Answers as `tellNew`.
   */
  tellOld(start: number, batches: readonly QueueEventBatch[]): number {
    if (this.cursor === undefined) return 0;
    // Who came while the reading was under way may need still older ones.
    const listeners = [...this.behind].filter((listener) => listener.from >= start);
    let position = start;
    let missed = 0;
    for (const batch of batches) {
      missed += missedBetween(position, batch);
      for (const raw of batch.events) {
        if (raw.number > position) this.tellThese(listeners, batch, raw);
      }
      position = Math.max(position, batch.last);
    }
    if (batches.length === 0) {
      missed = start === 0 ? 0 : this.cursor - start;
      position = this.cursor;
    }
    for (const listener of listeners) {
      listener.from = Math.max(listener.from, position);
      if (listener.from >= this.cursor && this.behind.has(listener)) this.join(listener, listener.from);
    }
    return missed;
  }

  /** Nobody listens any more: whoever waits for `ready` waits in vain. */
  abandon(): void {
    this.settleReady.reject(new Error(`nobody listens to queue '${this.queue}' any more`));
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

  private tellOne(batch: QueueEventBatch, raw: RawEvent): void {
    let event: Made;
    for (const listener of this.everyJob) event = tell(listener, batch, raw, event);
    const watchers = this.oneJob.get(raw.id);
    if (watchers) for (const listener of watchers) event = tell(listener, batch, raw, event);
  }

  private tellThese(listeners: readonly Listener[], batch: QueueEventBatch, raw: RawEvent): void {
    let event: Made;
    for (const listener of listeners) {
      // Others have left while they were told the one before.
      if (this.behind.has(listener)) event = tell(listener, batch, raw, event);
    }
  }
}

/** Made for the first who wants it, since most are of types that nobody hears; null for a type that is not known here. */
type Made = QueueEvent | null | undefined;

function tell(listener: Listener, batch: QueueEventBatch, raw: RawEvent, made: Made): Made {
  if (!wants(listener, raw)) return made;
  const event = made ?? toQueueEvent(batch, raw);
  say(listener, raw, event);
  return event;
}

function wants({ jobId, types }: Listener, raw: RawEvent): boolean {
  return (jobId === undefined || jobId === raw.id) && (types === undefined || types.has(raw.type));
}

/**
 * Events that stood between a place and a batch and are gone. Numbers inside a batch may leave some out, so only its first
 * counts. Place 0 is "from the beginning of what is held": nothing was promised before it, so nothing is missed.
 */
function missedBetween(cursor: number, batch: QueueEventBatch): number {
  return cursor === 0 ? 0 : Math.max(0, batch.first - cursor - 1);
}

function say(listener: Listener, raw: RawEvent, event: QueueEvent | null): void {
  if (event === null || raw.number <= listener.from) return;
  try {
    listener.next(event);
  } catch (error) {
    // It must not keep the event from the others, nor end the reading.
    logger.error('a listener to job events threw', stackOf(error) ?? messageOf(error));
  }
}
