import type { Routes } from '../routes.js';
import { pause, repeatDelay } from '../../contract/retry.js';

interface Listener {
  readonly queues: ReadonlySet<string>;
  readonly done: (queue: string | null) => void;
}

/**
 * Listens for the bells of several stores at once: a blocking call in each. A call outlives the listener that a bell of another
 * store has woken, and serves the next, so that a store that is away keeps nobody waiting.
 */
export class RoutedBells {
  private listener: Listener | null = null;
  /** The queues each running call listens for. */
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
    // It ends without a bell, and whoever listens then begins it again, with the queues of then.
    else if (running !== queues.join()) this.routes.byKey(key).interruptBell();
  }

  private async call(key: string, queues: readonly string[], maxMs: number): Promise<void> {
    this.calls.set(key, queues.join());
    const { bell, deaf } = await this.block(key, queues, maxMs);
    this.calls.delete(key);
    const { listener } = this;
    const wanted = queues.find((queue) => listener?.queues.has(queue));
    if (bell !== null && listener?.queues.has(bell)) listener.done(bell);
    // Where it cannot be rung, whoever listens next looks at the lists after a while.
    else if (bell !== null)
      await this.routes
        .of(bell)
        .ring(bell)
        .catch(() => undefined);
    // Where nothing can be heard, the lists themselves have to be asked.
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
