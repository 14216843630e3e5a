import { BellPerQueue } from './bell-per-queue.js';
import type { QueueLinks } from './queue-links.js';
import type { RedisStore } from './redis-store.js';
import { SharedBell } from './shared-bell.js';

/** How the bells of several queues are listened for at once. */
export interface Listening {
  await(queues: readonly string[], maxMs: number): Promise<string | null>;
  interrupt(): void;
  close(): Promise<void>;
}

/**
 * Waking. A bell is a hint, never the truth: whoever wakes asks the lists themselves, and so does whoever has not been woken
 * for a while (`Lookout`).
 */
export class Bells {
  private chosen: Listening | undefined;

  constructor(
    private readonly prefix: string,
    private readonly store: RedisStore,
    private readonly links: QueueLinks,
  ) {}

  await(queues: readonly string[], maxMs: number): Promise<string | null> {
    return this.listening().await(queues, maxMs);
  }

  interrupt(): void {
    this.chosen?.interrupt();
  }

  async ring(queue: string): Promise<void> {
    await this.store.command('ring', 'zadd', [this.store.keysOf(queue).fixed.doorbell, 0, 'work']);
  }

  /** Whether the keys of several queues cannot be asked about in one call. */
  get perQueue(): boolean {
    return this.links.perQueue;
  }

  async close(): Promise<void> {
    await this.chosen?.close();
    await this.links.close();
  }

  private listening(): Listening {
    this.chosen ??= this.links.perQueue
      ? new BellPerQueue(this.store, this.links, (queue) => this.ring(queue))
      : new SharedBell(this.prefix, this.store, this.links);
    return this.chosen;
  }
}
