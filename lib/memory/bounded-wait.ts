import { clearTimeout, setTimeout } from 'node:timers';
import { MAX_TIMER_MS } from '../job/duration.js';

/** Something waited for, for a bounded time on the real clock. Its timer does not keep the process alive. */
export interface BoundedWait<T> {
  readonly promise: Promise<T>;
  /** What was waited for, or `otherwise`; the first word counts. */
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
