import { BellPerQueue } from './bell-per-queue.js';
import type { QueueKeyName } from '../keys.js';
import type { QueueLinks } from '../wire/queue-links.js';
import type { RedisStore } from '../redis-store.js';
import type { Arg } from '../wire/fixed-args.js';
import { SharedBell, type RungCall } from './shared-bell.js';

/** How the bells of several queues are listened for at once. */
export interface Listening {
  await(queues: readonly string[], maxMs: number): Promise<string | null>;
  awaitAndCall?(queue: string, call: [name: string, args: Arg[]], maxMs: number): Promise<RungCall> | null;
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

  /** As `await`, with a script call that is made the moment the wait is over. Null where that cannot be done now. */
  awaitAndCall(queue: string, call: [name: string, args: Arg[]], maxMs: number): Promise<RungCall> | null {
    return this.listening().awaitAndCall?.(queue, call, maxMs) ?? null;
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

  /** Those of the queues of which one of these keys exists. */
  async anyOf(queues: readonly string[], names: readonly QueueKeyName[]): Promise<readonly string[]> {
    if (queues.length === 0) return [];
    const keys = queues.map((queue) => names.map((name) => this.store.keysOf(queue).fixed[name]));
    if (!this.links.perQueue) {
      // One command tells that everything is quiet, however many queues there are.
      if ((await this.exists(keys.flat())) === 0) return [];
      if (queues.length === 1) return queues;
    }
    // Of a queue whose master cannot be asked nothing is known, so it is looked at; the others are not kept waiting.
    const found = await Promise.all(
      keys.map((group) => (this.links.perQueue ? this.exists(group).catch(() => 1) : this.exists(group))),
    );
    return queues.filter((_, i) => found[i]! > 0);
  }

  private exists(keys: string[]): Promise<number> {
    return this.store.command('anyOf', 'exists', keys) as Promise<number>;
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
