import { NotRunningError } from '../errors.js';
import type { QueueEventBatch } from './engine.js';
import { readEntry } from './event-codec.js';
import type { Link } from './link.js';
import type { RedisStore } from './redis-store.js';
import type { Value } from './script.js';

const MARGIN_MS = 2000;
/** Entries of one stream per read; an entry holds the events of one script call. */
const ENTRIES = 100;

/** Reads the event streams of all subscribed queues over one connection, which exists only while somebody subscribes. */
export class EventStreams {
  private link: Link | null = null;

  constructor(
    private readonly store: RedisStore,
    private readonly makeLink: () => Link,
  ) {}

  async open(): Promise<void> {
    if (this.link) return;
    this.link = this.makeLink();
    await this.link.send('openEvents', 'ping', [], this.store.callMs);
  }

  async close(): Promise<void> {
    const { link } = this;
    this.link = null;
    await link?.close();
  }

  async last(queue: string): Promise<number> {
    const { meta } = this.store.keysOf(queue).fixed;
    const last = (await this.store.command('lastEvent', 'hget', [meta, 'events'])) as string | null;
    return Number(last ?? 0);
  }

  async read(after: ReadonlyMap<string, number>, blockMs: number): Promise<readonly QueueEventBatch[]> {
    const { link } = this;
    if (!link) throw new NotRunningError('readEvents');
    const queues = [...after.keys()];
    const keys = queues.map((queue) => this.store.keysOf(queue).fixed.events);
    const args: Value[] = ['COUNT', ENTRIES, 'BLOCK', Math.max(1, blockMs), 'STREAMS', ...keys];
    // Entry ids are `<number of the last event>-0`: everything after `n` lies above `n-0`.
    for (const queue of queues) args.push(`${after.get(queue)!}-0`);
    const reply = (await link.send('readEvents', 'xread', args, blockMs + MARGIN_MS)) as
      [string, [string, string[]][]][] | null;
    const batches: QueueEventBatch[] = [];
    for (const [key, entries] of reply ?? []) {
      const queue = queues[keys.indexOf(key)]!;
      for (const [entryId, fields] of entries) batches.push(readEntry(queue, entryId, fields));
    }
    return batches;
  }
}
