import type { QueueEngine } from '../contract/engine.js';

/** Finds the engine of a queue. An engine is created when it is first needed. */
export class Routes {
  private readonly engines = new Map<string, QueueEngine>();

  /**
   * @param keys The keys of all configurations in use. `''` is the one without a key.
   * @param keyOf The key of the configuration of a queue.
   */
  constructor(
    private readonly keys: () => readonly string[],
    private readonly keyOf: (queue: string) => string,
    private readonly make: (key: string) => QueueEngine,
  ) {}

  byKey(key: string): QueueEngine {
    let engine = this.engines.get(key);
    if (engine === undefined) this.engines.set(key, (engine = this.make(key)));
    return engine;
  }

  of(queue: string): QueueEngine {
    return this.byKey(this.keyOf(queue));
  }

  /** The engine of the first configuration in use, or of the one without a key. */
  first(): QueueEngine {
    return this.byKey(this.keys()[0] ?? '');
  }

  all(): readonly QueueEngine[] {
    return this.keys().map((key) => this.byKey(key));
  }

  /** Asks all engines at once. Rejects with the first error, after all have ended. */
  async each<T>(ask: (engine: QueueEngine) => Promise<T>): Promise<T[]> {
    const answers = await Promise.allSettled(this.all().map(ask));
    return answers.map((answer) => {
      if (answer.status === 'rejected') throw answer.reason;
      return answer.value;
    });
  }

  listen(to: (engine: QueueEngine, key: string) => () => void): () => void {
    const stops = this.keys().map((key) => to(this.byKey(key), key));
    return () => stops.forEach((stop) => stop());
  }

  /** Groups the queues by their configuration. */
  group(queues: readonly string[]): [key: string, queues: string[]][] {
    const groups = new Map<string, string[]>();
    for (const queue of queues) {
      const key = this.keyOf(queue);
      groups.set(key, [...(groups.get(key) ?? []), queue]);
    }
    return [...groups];
  }

  /** Asks each engine about its queues, and joins the answers. */
  async concat<T>(
    queues: readonly string[],
    ask: (engine: QueueEngine, queues: readonly string[]) => Promise<readonly T[]>,
  ): Promise<T[]> {
    const answers = await Promise.all(this.group(queues).map(([key, some]) => ask(this.byKey(key), some)));
    return answers.flat();
  }
}
