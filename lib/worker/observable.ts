import { read } from '../errors/thrown.js';
import type { HandledJob } from './handler.js';

/** An Observable of RxJS, recognised by its shape: workers run without RxJS. */
export interface ObservableLike {
  subscribe(observer: {
    next: (value: unknown) => void;
    error: (error: unknown) => void;
    complete: () => void;
  }): { unsubscribe(): void };
}

/** Reading a field can throw (a lazy relation, a revoked proxy); such a value is not an Observable. */
export function isObservable(value: unknown): value is ObservableLike {
  return typeof read(value, 'subscribe') === 'function' && typeof read(value, 'pipe') === 'function';
}

/**
 * Each value is progress, the last one is the result. A value is reported as progress once it is known not to be the last, or if the
 * end does not follow at once: so progress of a slow stream is not late, and a single value is only the result. When the run is
 * aborted, it fails with the reason, and the stream is unsubscribed.
 */
export function followStream(
  job: HandledJob,
  source: ObservableLike,
  returned: (last: unknown) => void,
  failed: (error: unknown) => void,
): void {
  let last: unknown;
  let isPending = false;
  let isOver = false;
  const report = () => {
    if (isPending && !job.closed) job.progress(last).catch(() => undefined);
    isPending = false;
  };
  const reportLater = () => {
    if (isPending) setImmediate(report);
  };
  let subscription: { unsubscribe(): void };
  try {
    subscription = source.subscribe({
      next: (value) => {
        report();
        last = value;
        isPending = value !== undefined;
        // Most streams end at once; an immediate for nothing would cost more than the rest.
        if (isPending) queueMicrotask(reportLater);
      },
      error: (error) => {
        isOver = true;
        report();
        failed(error);
      },
      complete: () => {
        isOver = true;
        isPending = false;
        returned(last);
      },
    });
  } catch (error) {
    return failed(error);
  }
  if (isOver || job.closed) return;
  const { signal } = job;
  const end = () => {
    // Inside interceptors the method works on a promise and sees its signal itself; its end is left to it, as without interceptors.
    if (isOver || job.stage === 'running') return;
    isOver = true;
    subscription.unsubscribe();
    failed(job.aborted ?? signal.reason);
  };
  if (signal.aborted) end();
  else signal.addEventListener('abort', end, { once: true });
}
