import { randomBytes } from 'node:crypto';
import { privateBell } from './keys.js';
import type { QueueLinks } from './queue-links.js';
import type { RedisStore } from './redis-store.js';
import { BLOCK_MARGIN_MS } from './waiting.js';

/** A private bell that nobody hears any more goes by itself. */
const PRIVATE_BELL_MS = 10_000;

/** One blocking call on one connection for all idle queues of the process, and for a private bell that ends it. */
export class SharedBell {
  private readonly own: string;

  constructor(
    prefix: string,
    private readonly store: RedisStore,
    private readonly links: QueueLinks,
  ) {
    this.own = privateBell(prefix, randomBytes(6).toString('hex'));
  }

  async await(queues: readonly string[], maxMs: number): Promise<string | null> {
    const bells = queues.map((queue) => this.store.keysOf(queue).fixed.doorbell);
    const seconds = Math.max(0.001, maxMs / 1000);
    const rung = (await this.links
      .of(queues[0]!)
      .send('awaitBell', 'bzpopmin', [...bells, this.own, seconds], maxMs + BLOCK_MARGIN_MS)) as
      [string, string, string] | null;
    return rung === null || rung[0] === this.own ? null : (queues[bells.indexOf(rung[0])] ?? null);
  }

  interrupt(): void {
    const { commands, callMs } = this.store;
    const deadline = performance.now() + callMs;
    // Both may fail where Redis is away; then the block has ended too.
    commands.write('interruptBell', 'zadd', [this.own, 0, 'up'], deadline).catch(() => undefined);
    commands.write('interruptBell', 'pexpire', [this.own, PRIVATE_BELL_MS], deadline).catch(() => undefined);
  }

  async close(): Promise<void> {
    if (!this.store.commands.isUp) return;
    await this.store.command('close', 'unlink', [this.own]).catch(() => undefined);
  }
}
