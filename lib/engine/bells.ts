import { randomBytes } from 'node:crypto';
import { privateBell } from './keys.js';
import type { Link } from './link.js';
import type { RedisStore } from './redis-store.js';

/** What a block may take beyond its time before its connection counts as silent. */
const MARGIN_MS = 2000;
/** A private bell that nobody hears any more goes by itself. */
const PRIVATE_BELL_MS = 10_000;

/**
 * Waking: one blocking connection for all idle queues of the process. A bell is a hint, never the truth: whoever wakes asks
 * the lists themselves, and so does whoever has not been woken for a while (`anyWork`).
 */
export class Bells {
  private readonly own: string;

  constructor(
    prefix: string,
    private readonly store: RedisStore,
    private readonly blocking: Link,
  ) {
    this.own = privateBell(prefix, randomBytes(6).toString('hex'));
  }

  async await(queues: readonly string[], maxMs: number): Promise<string | null> {
    const bells = queues.map((queue) => this.store.keysOf(queue).fixed.doorbell);
    const seconds = Math.max(0.001, maxMs / 1000);
    const rung = (await this.blocking.send(
      'awaitBell',
      'bzpopmin',
      [...bells, this.own, seconds],
      maxMs + MARGIN_MS,
    )) as [string, string, string] | null;
    return rung === null || rung[0] === this.own ? null : (queues[bells.indexOf(rung[0])] ?? null);
  }

  interrupt(): void {
    const { commands, callMs } = this.store;
    const deadline = performance.now() + callMs;
    // Both may fail where Redis is away; then the block has ended too.
    commands.write('interruptBell', 'zadd', [this.own, 0, 'up'], deadline).catch(() => undefined);
    commands.write('interruptBell', 'pexpire', [this.own, PRIVATE_BELL_MS], deadline).catch(() => undefined);
  }

  async ring(queue: string): Promise<void> {
    await this.store.command('ring', 'zadd', [this.store.keysOf(queue).fixed.doorbell, 0, 'work']);
  }

  async anyWork(queues: readonly string[]): Promise<readonly string[]> {
    if (queues.length === 0) return [];
    const keys = queues.map((queue) => {
      const { wait, suspects, prioritized, delayed, workers } = this.store.keysOf(queue).fixed;
      return [wait, suspects, prioritized, delayed, workers];
    });
    // One command tells that everything is quiet, however many queues there are.
    if ((await this.exists(keys.flat())) === 0) return [];
    if (queues.length === 1) return queues;
    const found = await Promise.all(keys.map((group) => this.exists(group)));
    return queues.filter((_, i) => found[i]! > 0);
  }

  async close(): Promise<void> {
    if (this.store.commands.isUp)
      await this.store.command('close', 'unlink', [this.own]).catch(() => undefined);
    await this.blocking.close();
  }

  private exists(keys: string[]): Promise<number> {
    return this.store.command('anyWork', 'exists', keys) as Promise<number>;
  }
}
