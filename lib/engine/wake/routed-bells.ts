import type { Routes } from '../routes.js';
import { pause, repeatDelay } from '../../contract/retry.js';
import type { Listener } from './bells.js';

/**
 * Waits for the doorbells of several stores at once, with a blocking call to each. If one store rings, the other calls continue
 * and serve the next listener. So a store that does not answer delays no other queue.
 */
export class RoutedBells {
  private listener: Listener | null = null;
  /** The queues of each call in flight. */
  private readonly calls = new Map<string, string>();
  private readonly failures = new Map<string, number>();

  constructor(private readonly routes: Routes) {}

  await(queues: readonly string[], maxMs: number): Promise<string | null> {
    return new Promise((resolve) => {
      const listener: Listener = {
        queues: new Set(queues),
        done: (queue) => {
          clearTimeout(timer);
          if (this.listener === listener) this.listener = null;
          resolve(queue);
        },
      };
      const timer = setTimeout(() => listener.done(null), maxMs);
      this.listener = listener;
      for (const [key, some] of this.routes.group(queues)) this.listen(key, some, maxMs);
    });
  }

  interrupt(): void {
    this.listener?.done(null);
    for (const key of this.calls.keys()) this.routes.byKey(key).interruptBell();
  }

  private listen(key: string, queues: readonly string[], maxMs: number): void {
    const running = this.calls.get(key);
    if (running === undefined) void this.call(key, queues, maxMs);
    // The call ends without a ring. Then it is started again with the new queues.
    else if (running !== queues.join()) this.routes.byKey(key).interruptBell();
  }

  private async call(key: string, queues: readonly string[], maxMs: number): Promise<void> {
    this.calls.set(key, queues.join());
    const { bell, deaf } = await this.block(key, queues, maxMs);
    this.calls.delete(key);
    const { listener } = this;
    const wanted = queues.find((queue) => listener?.queues.has(queue));
    if (bell !== null && listener?.queues.has(bell)) listener.done(bell);
    // If this fails, the next listener checks the queue after a while.
    else if (bell !== null)
      await this.routes
        .of(bell)
        .ring(bell)
        .catch(() => undefined);
    // If the doorbell cannot be read, the listener must check the queue itself.
    else if (deaf && wanted !== undefined) listener!.done(wanted);
    else if (listener) {
      const mine = this.routes.group([...listener.queues]).find(([other]) => other === key);
      if (mine) this.listen(key, mine[1], maxMs);
    }
  }

  private async block(key: string, queues: readonly string[], maxMs: number) {
    try {
      const bell = await this.routes.byKey(key).awaitBell(queues, maxMs);
      this.failures.delete(key);
      return { bell, deaf: false };
    } catch (error) {
      const failures = (this.failures.get(key) ?? 0) + 1;
      this.failures.set(key, failures);
      await pause(repeatDelay(error, failures));
      return { bell: null, deaf: true };
    }
  }
}
