import type { QueueEventBatch } from '../contract/engine.js';
import { boundedWait, type BoundedWait } from './bounded-wait.js';
import { MemoryBells } from './memory-bells.js';
import { MemoryQueue } from './memory-queue.js';
import { ProcessBook } from './process-book.js';

/** Where the time comes from, ms since 1970. */
export interface Clock {
  now(): number;
}

interface Reader {
  readonly owner: object;
  readonly after: ReadonlyMap<string, number>;
  readonly wait: BoundedWait<void>;
}

/** All queues, for the engines that share them. Nothing of it outlives the process. */
export class MemoryStore {
  readonly bells = new MemoryBells();
  readonly processes = new ProcessBook();
  private readonly queues = new Map<string, MemoryQueue>();
  private readonly readers = new Set<Reader>();
  private readonly janitors = new Map<string, number>();

  /** @param clock decides everything: due times, leases, retention. */
  constructor(readonly clock: Clock = Date) {}

  /** The queue at the time of now: to be asked for once in each verb. */
  at(name: string): MemoryQueue {
    let queue = this.queues.get(name);
    if (!queue) {
      queue = new MemoryQueue(name, {
        ring: () => this.bells.ring(name),
        ringSooner: () => this.bells.ringSooner(name),
        clearBells: () => this.bells.clear(name),
        said: () => this.wakeReaders((reader) => reader.after.has(name)),
      });
      this.queues.set(name, queue);
    }
    queue.now = Math.floor(this.clock.now());
    return queue;
  }

  get names(): readonly string[] {
    return [...this.queues.keys()];
  }

  /** Whoever asks first of these queues may look after them, and nobody else for this time. */
  claimUpkeep(queues: readonly string[], forMs: number): boolean {
    const now = this.clock.now();
    const group = queues.toSorted().join('\n');
    if ((this.janitors.get(group) ?? -Infinity) > now) return false;
    this.janitors.set(group, now + forMs);
    return true;
  }

  /** Events after the given numbers; where there are none, the first to come within the time. */
  async readEvents(
    owner: object,
    after: ReadonlyMap<string, number>,
    blockMs: number,
  ): Promise<readonly QueueEventBatch[]> {
    const there = this.eventsAfter(after);
    if (there.length > 0) return there;
    const wait = boundedWait<void>(blockMs, undefined);
    const reader: Reader = { owner, after, wait };
    this.readers.add(reader);
    await wait.promise;
    this.readers.delete(reader);
    return this.eventsAfter(after);
  }

  /** Ends the reads of an engine. */
  endReads(owner: object): void {
    this.wakeReaders((reader) => reader.owner === owner);
  }

  private eventsAfter(after: ReadonlyMap<string, number>): QueueEventBatch[] {
    return [...after].flatMap(([name, number]) => this.queues.get(name)?.events.after(number) ?? []);
  }

  private wakeReaders(which: (reader: Reader) => boolean): void {
    for (const reader of this.readers) if (which(reader)) reader.wait.done();
  }
}
