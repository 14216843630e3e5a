// By name, since tests put clocks of their own in the place of the global timers: those must not stop a store that has a clock too.
import { setImmediate } from 'node:timers';
import { NotRunningError } from '../errors.js';
import type { QueueLimits } from '../contract/engine.js';
import type { MemoryQueue } from './memory-queue.js';
import type { MemoryStore } from './memory-store.js';

/** What an engine in memory needs to know of the module's and the queues' options. */
export interface MemorySettings {
  readonly leaseMs: number;
  readonly limitsOf: (queue: string) => QueueLimits;
}

/** A worker's record outlives its lease: until then a late call of it is recognised. */
const RECORD_MS = 600_000;

/** How the verbs of one engine are done: all at once, answered in the next turn, and no more once it is closed. */
export class Verbs {
  readonly leaseMs: number;
  readonly recordMs: number;
  private closed = false;

  constructor(
    readonly store: MemoryStore,
    private readonly settings: MemorySettings,
  ) {
    this.leaseMs = settings.leaseMs;
    this.recordMs = Math.max(RECORD_MS, settings.leaseMs * 4);
  }

  get isClosed(): boolean {
    return this.closed;
  }

  /** One step on one queue. */
  on<A>(verb: string, queue: string, act: (queue: MemoryQueue, limits: QueueLimits) => A): Promise<A> {
    return this.run(verb, () => act(this.store.at(queue), this.limitsOf(queue)));
  }

  /** One step on what is not one queue's. */
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
 * The next turn of the event loop. Answers come no sooner, as they would from a server: else a worker with a long line would
 * never let timers and sockets have their turn.
 */
export function nextTurn(): Promise<void> {
  return (coming ??= new Promise((resolve) => {
    setImmediate(() => {
      coming = null;
      resolve();
    });
  }));
}
