import { clearTimeout, setTimeout } from 'node:timers';
import { MAX_TIMER_MS } from '../job/duration.js';

type Bell = 'work' | 'due';

interface Listener {
  /** The engine that waits. */
  readonly owner: object;
  readonly queues: readonly string[];
  readonly done: (queue: string | null) => void;
}

/** The doorbells of all queues. A ring wakes the listener that has waited longest, or the next one that waits. */
export class MemoryBells {
  private readonly rung = new Map<string, Set<Bell>>();
  private readonly listeners = new Set<Listener>();
  /** Owners whose next wait must end at once. */
  private readonly interrupted = new WeakSet<object>();

  /** There may be work. */
  ring(queue: string): void {
    this.give(queue, 'work');
  }

  /** A job is due before all others. Wakes two workers, because one of them may die. */
  ringSooner(queue: string): void {
    this.give(queue, 'due');
    this.give(queue, 'work');
  }

  /** Removes rings that have woken no worker. */
  clear(queue: string): void {
    this.rung.delete(queue);
  }

  /** Rings that have woken no worker. */
  of(queue: string): ReadonlySet<Bell> {
    return this.rung.get(queue) ?? new Set();
  }

  async await(owner: object, queues: readonly string[], maxMs: number): Promise<string | null> {
    if (this.interrupted.delete(owner)) return null;
    const rung = queues.find((queue) => this.take(queue));
    if (rung !== undefined) return rung;
    const { promise, done } = boundedWait<string | null>(maxMs, null);
    const listener: Listener = { owner, queues, done };
    this.listeners.add(listener);
    try {
      return await promise;
    } finally {
      this.listeners.delete(listener);
    }
  }

  interrupt(owner: object): void {
    if (!this.hush(owner)) this.interrupted.add(owner);
  }

  /** Ends the waits of an engine. Returns whether there were any. */
  hush(owner: object): boolean {
    const own = [...this.listeners].filter((listener) => listener.owner === owner);
    for (const listener of own) this.end(listener, null);
    return own.length > 0;
  }

  /** Takes a ring, as a woken worker does. */
  take(queue: string): boolean {
    const bells = this.rung.get(queue);
    if (!bells) return false;
    bells.delete(bells.has('due') ? 'due' : 'work');
    if (bells.size === 0) this.rung.delete(queue);
    return true;
  }

  private give(queue: string, bell: Bell): void {
    for (const listener of this.listeners) {
      if (!listener.queues.includes(queue)) continue;
      this.end(listener, queue);
      return;
    }
    const bells = this.rung.get(queue);
    if (bells) bells.add(bell);
    else this.rung.set(queue, new Set([bell]));
  }

  private end(listener: Listener, queue: string | null): void {
    this.listeners.delete(listener);
    listener.done(queue);
  }
}

/** A wait with a time limit on the real clock. Its timer does not keep the process alive. */
export interface BoundedWait<T> {
  readonly promise: Promise<T>;
  /** Resolves the promise. Only the first call counts. */
  readonly done: (value: T) => void;
}

export function boundedWait<T>(maxMs: number, otherwise: T): BoundedWait<T> {
  let done!: (value: T) => void;
  const promise = new Promise<T>((resolve) => {
    const timer = setTimeout(() => resolve(otherwise), Math.min(Math.max(1, maxMs), MAX_TIMER_MS));
    timer.unref();
    done = (value) => {
      clearTimeout(timer);
      resolve(value);
    };
  });
  return { promise, done };
}
