// Imported, because tests replace the global timers. Fake timers must not stop this store.
import { setImmediate } from 'node:timers';
import { NotRunningError } from '../errors.js';
import type { QueueLimits } from '../contract/engine.js';
import type { MemoryQueue } from './memory-queue.js';
import type { MemoryStore } from './memory-store.js';

/** Options of the module and of queues that the memory engine uses. */
export interface MemorySettings {
  readonly limitsOf: (queue: string) => QueueLimits;
}

/**
 * Runs the verbs of one engine. A verb runs at once, its answer comes in the next turn of the event loop, and after `close` it
 * rejects.
 */
export class Verbs {
  private closed = false;

  constructor(
    readonly store: MemoryStore,
    private readonly settings: MemorySettings,
  ) {}

  get isClosed(): boolean {
    return this.closed;
  }

  /** One step on one queue. */
  on<A>(verb: string, queue: string, act: (queue: MemoryQueue, limits: QueueLimits) => A): Promise<A> {
    return this.run(verb, () => act(this.store.at(queue), this.limitsOf(queue)));
  }

  /** One step that does not concern a single queue. */
  async run<A>(verb: string, act: () => A): Promise<A> {
    if (this.closed) throw new NotRunningError(verb);
    const answer = act();
    await nextTurn();
    return answer;
  }

  limitsOf(queue: string): QueueLimits {
    return this.settings.limitsOf(queue);
  }

  close(): void {
    this.closed = true;
  }
}

let coming: Promise<void> | null = null;

/**
 * Resolves in the next turn of the event loop. If answers came sooner, a worker with a long line would starve timers and sockets.
 */
export function nextTurn(): Promise<void> {
  return (coming ??= new Promise((resolve) => {
    setImmediate(() => {
      coming = null;
      resolve();
    });
  }));
}
