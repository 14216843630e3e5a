import type { EventType, QueueEventBatch, RawEvent } from '../contract/engine.js';

/** An event without its number; fields that are not given have defaults. */
export type Saying = Pick<RawEvent, 'type' | 'id'> & Partial<Omit<RawEvent, 'number' | 'type' | 'id'>>;

/** Entries per read; an entry holds the events of one call. */
const ENTRIES = 100;
/** Size in bytes from which a progress value counts as large. */
const LARGE = 1_024;

/**
 * The numbered events of one queue. The latest are kept for readers that resume. A call may skip numbers for moves that did not
 * happen.
 */
export class EventLog {
  /** Entries; the oldest is at `from`. */
  private entries: QueueEventBatch[] = [];
  private from = 0;
  private number = 0;
  /** Kept events with large values, with their sizes. */
  private large: { readonly number: number; readonly bytes: number }[] = [];
  private largeBytes = 0;

  constructor(private readonly queue: string) {}

  /** The number of the last event. */
  get last(): number {
    return this.number;
  }

  /** Time of the oldest entry. */
  get oldestAt(): number | null {
    return this.entries[this.from]?.at ?? null;
  }

  /**
   * Writes one entry; `null` among the sayings is a number left out.
   *
   * @param max how many events are kept.
   * @param maxBytes about how many bytes those with large values may take.
   */
  say(at: number, sayings: readonly (Saying | null)[], max: number, maxBytes: number): void {
    const first = this.number + 1;
    const events: RawEvent[] = [];
    for (const saying of sayings) {
      this.number += 1;
      if (saying) events.push(eventOf(this.number, saying));
    }
    this.entries.push({ queue: this.queue, first, last: this.number, at, events });
    while (this.entries[this.from]!.last < this.number - max) this.drop();
    for (const { type, progress } of events)
      if (type === 'progress') this.addLarge(Buffer.byteLength(progress ?? ''), maxBytes);
  }

  /** Removes entries up to this time. Returns how many. */
  trim(youngAt: number): number {
    let dropped = 0;
    for (; this.from < this.entries.length && this.entries[this.from]!.at <= youngAt; dropped++) this.drop();
    return dropped;
  }

  /** Entries with events after this number. */
  after(number: number): readonly QueueEventBatch[] {
    let low = this.from;
    let high = this.entries.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.entries[middle]!.last > number) high = middle;
      else low = middle + 1;
    }
    return this.entries.slice(low, low + ENTRIES);
  }

  /** Removes all entries. The number of the last event stays, so that readers continue after it. */
  clear(): void {
    this.entries = [];
    this.from = 0;
    this.large = [];
    this.largeBytes = 0;
  }

  private addLarge(bytes: number, maxBytes: number): void {
    if (bytes <= LARGE) return;
    this.large.push({ number: this.number, bytes });
    this.largeBytes += bytes;
    while (this.large[0] && this.largeBytes - this.large[0].bytes >= maxBytes) this.drop();
  }

  private drop(): void {
    const { last } = this.entries[this.from]!;
    while (this.large[0] && this.large[0].number <= last) this.largeBytes -= this.large.shift()!.bytes;
    this.from += 1;
    if (this.from < 1_024 || this.from * 2 < this.entries.length) return;
    this.entries = this.entries.slice(this.from);
    this.from = 0;
  }
}

function eventOf(number: number, saying: Saying): RawEvent {
  const { type, id, name = '', attempt = 1, durationUs = 0, delayMs = 0, reason = '' } = saying;
  const { error = null, progress = null } = saying;
  return { number, type, id, name, attempt, durationUs, delayMs, reason, error, progress };
}

/** Adds the same event for several jobs. */
export function sayAll(
  type: EventType,
  jobs: Iterable<{ readonly id: string; readonly name: string }>,
  more: Partial<Saying> = {},
): Saying[] {
  return Array.from(jobs, ({ id, name }) => ({ ...more, type, id, name }));
}

/** A job was claimed. */
export function activated({
  id,
  name,
  failed,
}: {
  readonly id: string;
  readonly name: string;
  readonly failed: number;
}): Saying {
  return { type: 'active', id, name, attempt: failed + 1 };
}
