import { Log } from '../contract/log.js';
import { messageOf, read } from '../errors/thrown.js';
import { jobText } from '../job/text.js';
import type { HandledJob } from './handler.js';

/** An Observable of RxJS, recognised by its shape: workers run without RxJS. */
interface ObservableLike {
  subscribe(observer: {
    next: (value: unknown) => void;
    error: (error: unknown) => void;
    complete: () => void;
  }): { unsubscribe(): void };
}

/** Returns false if reading a field throws, as a lazy relation or a revoked proxy may. */
export function isObservable(value: unknown): value is ObservableLike {
  return typeof read(value, 'subscribe') === 'function' && typeof read(value, 'pipe') === 'function';
}

/**
 * Follows an Observable: each value is reported as progress, and the last value is the result. A value is reported when the next
 * one arrives, or if the end does not follow at once. So progress of a slow stream is reported in time, and a single value
 * is only the result. A value that cannot be stored is not reported, with one warning per run. If the run is aborted, it fails with the
 * reason, and the Observable is unsubscribed.
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
  let isWarned = false;
  const warn = (what: string) => new Log('QueueWorker').warn(`${jobText(job.queue, job.id)}: ${what}`);
  const refused = (error: unknown) => {
    if (!isWarned) warn(`a value of its Observable is not reported as progress: ${messageOf(error)}`);
    isWarned = true;
  };
  const report = () => {
    if (isPending && !job.closed) job.progress(last).catch(refused);
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
        // Most streams end right after their last value. A microtask avoids an immediate that would do nothing.
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
    // Inside interceptors, a method that works on a promise watches its signal itself, and ends on its own as it does without
    // interceptors.
    if (isOver || job.stage === 'running') return;
    isOver = true;
    // RxJS throws errors of the handler's teardown here. An error in the listener of a signal would end the process.
    try {
      subscription.unsubscribe();
    } catch (error) {
      warn(`the teardown of its Observable threw: ${messageOf(error)}`);
    }
    failed(job.aborted ?? signal.reason);
  };
  if (signal.aborted) end();
  else signal.addEventListener('abort', end, { once: true });
}
