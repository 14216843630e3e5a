import type { QueueLinks } from '../wire/queue-links.js';
import type { RedisStore } from '../redis-store.js';
import { BLOCK_MARGIN_MS, pause, repeatDelay } from '../../contract/retry.js';

interface Listener {
  readonly queues: ReadonlySet<string>;
  readonly done: (queue: string | null) => void;
}

/**
 * On Redis Cluster the bells of different queues cannot be waited for in one call, so each listened queue has a blocking call
 * of its own. It outlives the listener that began it and serves the next; a bell it brings when nobody listens for that
 * queue any more is rung again at once, for others.
 */
export class BellPerQueue {
  private readonly calls = new Set<string>();
  private readonly failures = new Map<string, number>();
  private readonly listeners = new Set<Listener>();
  private closed = false;

  constructor(
    private readonly store: RedisStore,
    private readonly links: QueueLinks,
    private readonly ring: (queue: string) => Promise<void>,
  ) {}

  await(queues: readonly string[], maxMs: number): Promise<string | null> {
    return new Promise((resolve) => {
      const listener: Listener = {
        queues: new Set(queues),
        done: (queue) => {
          clearTimeout(timer);
          this.listeners.delete(listener);
          resolve(queue);
        },
      };
      const timer = setTimeout(() => listener.done(null), maxMs);
      this.listeners.add(listener);
      for (const queue of queues) if (!this.calls.has(queue)) void this.call(queue, maxMs);
    });
  }

  interrupt(): void {
    for (const { done } of this.listeners) done(null);
  }

  async close(): Promise<void> {
    this.closed = true;
    this.interrupt();
  }

  private async call(queue: string, maxMs: number): Promise<void> {
    this.calls.add(queue);
    const heard = await this.block(queue, maxMs);
    this.calls.delete(queue);
    const listener = [...this.listeners].find(({ queues }) => queues.has(queue));
    if (heard === 'nothing') {
      if (listener) void this.call(queue, maxMs);
    } else if (listener) {
      // Where nothing can be heard, the lists themselves have to be asked.
      listener.done(queue);
    } else if (heard === 'bell') {
      // Where it cannot be rung, whoever listens next looks at the lists after a while.
      await this.ring(queue).catch(() => undefined);
    }
  }

  private async block(queue: string, maxMs: number): Promise<'bell' | 'nothing' | 'deaf'> {
    const { doorbell } = this.store.keysOf(queue).fixed;
    const seconds = Math.max(0.001, maxMs / 1000);
    try {
      const link = this.links.of(queue);
      const rung = await link.send('awaitBell', 'bzpopmin', [doorbell, seconds], maxMs + BLOCK_MARGIN_MS);
      this.failures.delete(queue);
      return rung === null ? 'nothing' : 'bell';
    } catch (error) {
      if (this.closed) return 'nothing';
      const failures = (this.failures.get(queue) ?? 0) + 1;
      this.failures.set(queue, failures);
      await pause(repeatDelay(error, failures));
      return 'deaf';
    }
  }
}
