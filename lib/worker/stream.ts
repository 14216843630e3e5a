import { read } from '../errors/thrown.js';
import type { HandledJob } from './handler.js';

/** What RxJS gives, known by its shape: this room runs without RxJS. */
export interface ObservableLike {
  subscribe(observer: {
    next: (value: unknown) => void;
    error: (error: unknown) => void;
    complete: () => void;
  }): { unsubscribe(): void };
}

/** Looking at a field can throw, as of a lazy relation or a revoked proxy; such a value is only a value. */
export function isObservable(value: unknown): value is ObservableLike {
  return typeof read(value, 'subscribe') === 'function' && typeof read(value, 'pipe') === 'function';
}

/**
 * Each value is progress, the last is the result. A value is told as progress once it is known not to be the last, or when
 * the end does not follow at once: so nobody hears late of a slow stream, and a single value is only the result. A run that should
 * end fails with why, and nothing more is taken from the stream.
 */
export function followStream(
  job: HandledJob,
  source: ObservableLike,
  returned: (last: unknown) => void,
  failed: (error: unknown) => void,
): void {
  let last: unknown;
  let untold = false;
  let isOver = false;
  const tell = () => {
    if (untold && !job.closed) job.progress(last).catch(() => undefined);
    untold = false;
  };
  const wait = () => {
    if (untold) setImmediate(tell);
  };
  let subscription: { unsubscribe(): void };
  try {
    subscription = source.subscribe({
      next: (value) => {
        tell();
        last = value;
        untold = value !== undefined;
        // The end of most follows at once: to be woken for nothing would cost more than the rest.
        if (untold) queueMicrotask(wait);
      },
      error: (error) => {
        isOver = true;
        tell();
        failed(error);
      },
      complete: () => {
        isOver = true;
        untold = false;
        returned(last);
      },
    });
  } catch (error) {
    return failed(error);
  }
  if (isOver || job.closed) return;
  const { signal } = job;
  const end = () => {
    // Inside interceptors the method is at work on a promise: it hears its signal, and its end is left to it as without them.
    if (isOver || job.stage === 'running') return;
    isOver = true;
    subscription.unsubscribe();
    failed(job.aborted ?? signal.reason);
  };
  if (signal.aborted) end();
  else signal.addEventListener('abort', end, { once: true });
}
