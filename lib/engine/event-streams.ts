import { NotRunningError } from '../errors.js';
import type { QueueEventBatch } from '../contract/engine.js';
import { readEntry } from './codec/event-codec.js';
import { ReadPerQueue } from './read-per-queue.js';
import type { QueueLinks } from './wire/queue-links.js';
import type { RedisStore } from './redis-store.js';
import type { Value } from './script.js';
import { BLOCK_MARGIN_MS } from '../contract/retry.js';

/** Entries of one stream per read; an entry holds the events of one script call. */
const ENTRIES = 100;

/** Reads the event streams of all subscribed queues, over connections that exist only while somebody subscribes. */
export class EventStreams {
  private links: QueueLinks | null = null;
  private each: ReadPerQueue | null = null;

  constructor(
    private readonly store: RedisStore,
    private readonly makeLinks: () => QueueLinks,
  ) {}

  async open(): Promise<void> {
    if (this.links) return;
    const links = this.makeLinks();
    this.links = links;
    if (!links.perQueue) {
      await links.of('').send('openEvents', 'ping', [], this.store.callMs);
      return;
    }
    // There is no connection before a queue is read.
    this.each = new ReadPerQueue((queue, from, blockMs) => this.xread(new Map([[queue, from]]), blockMs));
    await this.store.command('openEvents', 'ping', []);
  }

  async close(): Promise<void> {
    const { links } = this;
    this.links = null;
    this.each = null;
    await links?.close();
  }

  async last(queue: string): Promise<number> {
    const { meta } = this.store.keysOf(queue).fixed;
    const last = (await this.store.command('lastEvent', 'hget', [meta, 'events'])) as string | null;
    return Number(last ?? 0);
  }

  read(after: ReadonlyMap<string, number>, blockMs: number): Promise<readonly QueueEventBatch[]> {
    return this.each ? this.each.read(after, blockMs) : this.xread(after, blockMs);
  }

  private async xread(after: ReadonlyMap<string, number>, blockMs: number): Promise<QueueEventBatch[]> {
    const { links } = this;
    if (!links) throw new NotRunningError('readEvents');
    const queues = [...after.keys()];
    const keys = queues.map((queue) => this.store.keysOf(queue).fixed.events);
    const args: Value[] = ['COUNT', ENTRIES, 'BLOCK', Math.max(1, blockMs), 'STREAMS', ...keys];
    // Entry ids are `<number of the last event>-0`: everything after `n` lies above `n-0`.
    for (const queue of queues) args.push(`${after.get(queue)!}-0`);
    const link = links.of(queues[0]!);
    const reply = (await link.send('readEvents', 'xread', args, blockMs + BLOCK_MARGIN_MS)) as
      [string, [string, string[]][]][] | null;
    const batches: QueueEventBatch[] = [];
    for (const [key, entries] of reply ?? []) {
      const queue = queues[keys.indexOf(key)]!;
      for (const [entryId, fields] of entries) batches.push(readEntry(queue, entryId, fields));
    }
    return batches;
  }
}
