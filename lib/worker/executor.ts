import type { Log } from '../contract/log.js';
import { messageOf, read } from '../errors/thrown.js';
import { MAX_TIMER_MS } from '../job/duration.js';
import type { KeptResult, Outcome } from '../job/outcome.js';
import { encodeResult } from '../job/payload.js';
import { isThenable } from '../job/thenable.js';
import { validatePayload } from '../job/define-job.js';
import type { ResolvedQueueOptions } from '../options/module-options.js';
import { jobText } from '../job/text.js';
import { obeys, type HandlerEntry, type HandledJob } from './handler.js';
import type { Run } from './run.js';
import { RELEASED, verdictOf } from './verdict.js';

/**
 * One run from start to outcome: time limit → schema → handler → what it returned or threw → outcome → `ended`, exactly once.
 * A handler that has overrun its time, or lost its job, may still speak: it is not heard, and that is said in the log.
 */
export class Executor {
  constructor(
    private readonly queue: ResolvedQueueOptions,
    private readonly ended: (run: Run) => void,
    private readonly logger: Log,
  ) {}

  start(run: Run, handler: HandlerEntry): void {
    if (run.policy.timeoutMs !== undefined) this.limit(run, run.policy.timeoutMs, handler);
    const { definition } = handler;
    if (!definition?.schema) return this.call(run, handler);
    let checked: unknown;
    let later: PromiseLike<unknown> | undefined;
    try {
      checked = validatePayload(definition, run.data, 'handler');
      if (isThenable(checked)) later = checked;
    } catch (error) {
      return this.failed(run, error, handler);
    }
    const use = (data: unknown) => {
      run.data = data;
      this.call(run, handler);
    };
    if (!later) return use(checked);
    later.then(use, (error: unknown) => this.failed(run, error, handler));
  }

  private call(run: Run, handler: HandlerEntry): void {
    if (run.closed) return;
    // It was told to stop while its data was checked.
    if (run.aborted) return this.failed(run, run.aborted, handler);
    let returned: unknown;
    let promise: Promise<unknown> | undefined;
    try {
      returned = handler.run(run);
      // A foreign thenable may call back twice, or with another thenable; a promise of our own makes one end of it.
      if (isThenable(returned)) promise = Promise.resolve(returned);
    } catch (error) {
      return this.failed(run, error, handler);
    }
    if (!promise) return this.follow(run, returned, handler);
    promise.then(
      (value) => this.follow(run, value, handler),
      (error: unknown) => this.failed(run, error, handler),
    );
  }

  private follow(run: Run, value: unknown, handler: HandlerEntry): void {
    if (run.closed) return this.tooLate(run, 'returned', handler);
    if (isObservable(value)) {
      followStream(
        run,
        value,
        (last) => this.returned(run, last, handler),
        (error) => this.failed(run, error, handler),
      );
    } else this.returned(run, value, handler);
  }

  protected returned(run: Run, value: unknown, handler: HandlerEntry): void {
    if (run.closed) return this.tooLate(run, 'returned', handler);
    const forMs = run.policy.retentionMs;
    run.outcome =
      forMs > 0 ? { kind: 'completed', keep: { forMs, ...this.encode(run, value, handler) } } : COMPLETED;
    this.close(run);
  }

  protected failed(run: Run, error: unknown, handler: HandlerEntry): void {
    if (run.closed) {
      if (!obeys(run, error)) this.tooLate(run, 'failed', handler);
      return;
    }
    const verdict = verdictOf(run, error, (why, delayMs) => this.badBackoff(run, why, delayMs));
    if (!(verdict instanceof Promise)) return this.end(run, verdict);
    run.stopTimer();
    void verdict.then((outcome) => {
      // It may have lost its job meanwhile, or been cancelled.
      if (!run.closed) this.end(run, run.aborted?.reason === 'cancelled' ? RELEASED : outcome);
    });
  }

  private end(run: Run, outcome: Outcome): void {
    run.outcome = outcome;
    this.close(run);
  }

  /** The work is done, and doing it twice because its result cannot be kept would be worse than not keeping it. */
  private encode(run: Run, value: unknown, handler: HandlerEntry): KeptResult {
    try {
      return { result: encodeResult(value, this.queue.maxPayloadBytes) };
    } catch (error) {
      const resultFault = messageOf(error);
      this.logger.warn(
        `${jobText(run.queue, run.id)}: ${handler.label} completed, but its result is not kept: ${resultFault}`,
      );
      return { result: undefined, resultFault };
    }
  }

  private limit(run: Run, timeoutMs: number, handler: HandlerEntry): void {
    run.timer = setTimeout(
      () => {
        if (run.closed) return;
        const error = run.abort('timeout', `it took longer than ${timeoutMs} ms${notCalled(run, handler)}`);
        this.failed(run, error, handler);
      },
      Math.min(timeoutMs, MAX_TIMER_MS),
    );
  }

  private close(run: Run): void {
    run.close();
    run.durationUs = Math.round((performance.now() - run.startedAt) * 1000);
    this.ended(run);
  }

  private badBackoff(run: Run, error: unknown, delayMs: number): void {
    this.logger.warn(
      `${jobText(run.queue, run.id)}: its backoff function failed, trying again in ${delayMs} ms: ${messageOf(error)}`,
    );
  }

  private tooLate(run: Run, how: string, handler: HandlerEntry): void {
    const what = `${handler.label}, attempt ${run.attempt}, ${how} after its run was over`;
    this.logger.warn(`${jobText(run.queue, run.id)}: ${what}; that is not counted`);
  }
}

const COMPLETED = { kind: 'completed' } as const;

/** Where the time was used up before the method was called. */
function notCalled({ stage }: Run, { label }: HandlerEntry): string {
  if (stage !== 'before') return '';
  const what = 'what stands before it, such as its guards and interceptors, had not let the job through';
  return `; ${label} was not called by then: ${what}`;
}

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
