import { randomBytes } from 'node:crypto';
import { Log } from '../contract/log.js';
import { NotRunningError } from '../errors.js';
import type { QueueEventBatch } from '../contract/engine.js';
import { readEntry } from './codec/event-codec.js';
import { privateBell } from './keys.js';
import { ReadPerQueue } from './read-per-queue.js';
import type { QueueLinks } from './wire/connections.js';
import type { RedisStore } from './redis-store.js';
import type { Value } from './script.js';
import { BLOCK_MARGIN_MS, CLEANUP_MS, isWrongType, within } from '../contract/retry.js';

/** Entries per stream and read, at first and at most. An entry holds the events of one script call. */
const ENTRIES = { first: 20, most: 100 };
/** How many characters one read may bring. The number of entries is estimated from the previous read. */
const READ_CHARS = 1024 * 1024;
/** The private stream expires this long after the last interrupt. */
const OWN_MS = 10_000;
/** How long a key that is not a stream is left out, because it would fail the read of all streams. */
const LEFT_OUT_MS = 1_000;

/** Reads the event streams of all subscribed queues. Its connections exist only while there are subscribers. */
export class EventStreams {
  private links: QueueLinks | null = null;
  private each: ReadPerQueue | null = null;
  private entries = ENTRIES.first;
  /** A stream to which only this process writes. Adding an entry to it ends a blocking read early. */
  private readonly own: string;
  private interrupts = 0;
  /**
   * By queue: the last entry whose id is not `<number>-0`, because it was written by hand, and the number it was read as. A read
   * after that number would return the entry again and again.
   */
  private readonly oddIds = new Map<string, { readonly number: number; readonly id: string }>();
  /** Queues whose key of events is not a stream, each with the time until which it is not read. */
  private readonly leftOut = new Map<string, number>();
  private readonly logger = new Log('QueueEvents');
  /** The deletion of the private stream. Only `end` waits for it. */
  private tidied: Promise<void> = Promise.resolve();

  constructor(
    prefix: string,
    private readonly store: RedisStore,
    private readonly makeLinks: () => QueueLinks,
  ) {
    this.own = privateBell(prefix, randomBytes(6).toString('hex'));
  }

  async open(): Promise<void> {
    if (this.links) return;
    const links = this.makeLinks();
    this.links = links;
    if (!links.perQueue) {
      await links.of('').send('openEvents', 'ping', [], this.store.callMs);
      return;
    }
    // Each queue gets its connection when it is first read.
    this.each = new ReadPerQueue((queue, from, blockMs) => this.xread(new Map([[queue, from]]), blockMs));
    await this.store.command('openEvents', 'ping', []);
  }

  /** Closes permanently. */
  async end(): Promise<void> {
    await Promise.all([this.close(), this.tidied]);
  }

  async close(): Promise<void> {
    const { links } = this;
    this.links = null;
    this.each = null;
    const { commands } = this.store;
    if (links && this.interrupts > 0 && commands.isUp)
      this.tidied = within(CLEANUP_MS, commands.send('close', 'unlink', [this.own], this.store.callMs));
    await links?.close();
  }

  async last(queue: string): Promise<number> {
    const { meta } = this.store.keysOf(queue).fixed;
    const last = (await this.store.command('lastEvent', 'hget', [meta, 'events'])) as string | null;
    return Number(last ?? 0);
  }

  read(after: ReadonlyMap<string, number>, blockMs: number): Promise<readonly QueueEventBatch[]> {
    return this.each ? this.each.read(after, blockMs) : this.readAll(after, blockMs);
  }

  interrupt(): void {
    if (this.each) return this.each.interrupt();
    const { commands, callMs } = this.store;
    // A read starts after the interrupts before it. So an interrupt that reaches Redis first still ends the read.
    const id = `${++this.interrupts}-0`;
    // Both calls may fail if Redis is unreachable. Then the read has ended too.
    commands
      .write('interruptEvents', 'xadd', [this.own, 'MAXLEN', 1, id, 'up', ''], callMs)
      .catch(() => undefined);
    commands.write('interruptEvents', 'pexpire', [this.own, OWN_MS], callMs).catch(() => undefined);
  }

  /** Reads the streams of all queues in one call. */
  private async readAll(
    after: ReadonlyMap<string, number>,
    blockMs: number,
  ): Promise<readonly QueueEventBatch[]> {
    const now = performance.now();
    const sound = new Map([...after].filter(([queue]) => !(this.leftOut.get(queue)! > now)));
    try {
      // If no key is a stream, the error is that of Redis.
      const batches = await this.xread(sound.size > 0 ? sound : after, blockMs);
      for (const queue of sound.keys()) this.leftOut.delete(queue);
      return batches;
    } catch (error) {
      if (sound.size < 2 || !isWrongType(error)) throw error;
      await Promise.all([...sound.keys()].map((queue) => this.checkStream(queue)));
      return [];
    }
  }

  /** Leaves the queue out of the next reads if its key is not a stream. */
  private async checkStream(queue: string): Promise<void> {
    const { events } = this.store.keysOf(queue).fixed;
    try {
      await this.store.command('readEvents', 'xread', ['COUNT', 1, 'STREAMS', events, '$']);
    } catch (error) {
      if (!isWrongType(error)) throw error;
      if (!this.leftOut.has(queue))
        this.logger.error(
          `queue '${queue}': its events cannot be read, those of other queues are: the key ${events} is not a stream`,
        );
      this.leftOut.set(queue, performance.now() + LEFT_OUT_MS);
    }
  }

  private async xread(after: ReadonlyMap<string, number>, blockMs: number): Promise<QueueEventBatch[]> {
    const { links } = this;
    if (!links) throw new NotRunningError('readEvents');
    const queues = [...after.keys()];
    const keys = queues.map((queue) => this.store.keysOf(queue).fixed.events);
    const own = this.each ? [] : [this.own];
    const args: Value[] = ['COUNT', this.entries, 'BLOCK', Math.max(1, blockMs), 'STREAMS', ...keys, ...own];
    // The id of an entry is `<number of its last event>-0`, so all later entries are above `n-0`.
    for (const queue of queues) {
      const number = after.get(queue)!;
      const odd = this.oddIds.get(queue);
      args.push(odd?.number === number ? odd.id : `${number}-0`);
    }
    if (own.length > 0) args.push(`${this.interrupts}-0`);
    const link = links.of(queues[0]!);
    let reply: [string, [string, string[]][]][] | null;
    try {
      reply = await link.send('readEvents', 'xread', args, blockMs + BLOCK_MARGIN_MS);
    } catch (error) {
      // The reply may have been too large. The next read asks for one entry.
      this.entries = 1;
      throw error;
    }
    const batches: QueueEventBatch[] = [];
    let chars = 0;
    for (const [key, entries] of reply ?? []) {
      const queue = queues[keys.indexOf(key)];
      if (queue === undefined) continue;
      for (const [entryId, fields] of entries) {
        for (const field of fields) chars += field.length;
        const batch = readEntry(queue, entryId, fields);
        batches.push(batch);
        if (entryId !== `${batch.last}-0`) this.oddIds.set(queue, { number: batch.last, id: entryId });
      }
    }
    if (batches.length > 0) {
      const fitting = Math.floor((READ_CHARS * batches.length) / Math.max(1, chars) / queues.length);
      this.entries = Math.max(1, Math.min(ENTRIES.most, this.entries * 4, fitting));
    }
    return batches;
  }
}
