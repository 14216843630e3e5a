import type { Logger } from '@nestjs/common';
import { validatePayload } from '../job/define-job.js';
import { encodeResult } from '../job/payload.js';
import type { ResolvedQueueOptions } from '../options/module-options.js';
import { jobText } from './job-text.js';
import type { HandlerEntry } from './handler.js';
import type { Run } from './run.js';
import { verdictOf } from './verdict.js';

/** What RxJS gives, known by its shape: this room runs without RxJS. */
interface ObservableLike {
  subscribe(observer: {
    next: (value: unknown) => void;
    error: (error: unknown) => void;
    complete: () => void;
  }): { unsubscribe(): void };
}

/**
 * One run from start to outcome: time limit → schema → handler → what it returned or threw → outcome → `ended`, exactly once.
 * A handler that has overrun its time, or lost its job, may still speak: it is not heard, and that is said in the log.
 */
export class Executor {
  constructor(
    private readonly queue: ResolvedQueueOptions,
    private readonly ended: (run: Run) => void,
    private readonly logger: Logger,
  ) {}

  start(run: Run, handler: HandlerEntry): void {
    if (run.policy.timeoutMs !== undefined) this.limit(run, run.policy.timeoutMs, handler);
    let returned: unknown;
    try {
      const { definition } = handler;
      if (definition?.schema) {
        const checked = validatePayload(definition, run.data);
        if (isThenable(checked)) {
          checked.then(
            (data) => this.call(run, handler, data),
            (error: unknown) => this.failed(run, error, handler),
          );
          return;
        }
        run.data = checked;
      }
      returned = handler.run(run);
    } catch (error) {
      this.failed(run, error, handler);
      return;
    }
    this.follow(run, returned, handler);
  }

  private call(run: Run, handler: HandlerEntry, data: unknown): void {
    if (run.closed) return;
    run.data = data;
    let returned: unknown;
    try {
      returned = handler.run(run);
    } catch (error) {
      this.failed(run, error, handler);
      return;
    }
    this.follow(run, returned, handler);
  }

  private follow(run: Run, returned: unknown, handler: HandlerEntry): void {
    if (isThenable(returned)) {
      returned.then(
        (value) =>
          isObservable(value) ? this.watch(run, value, handler) : this.returned(run, value, handler),
        (error: unknown) => this.failed(run, error, handler),
      );
    } else if (isObservable(returned)) {
      this.watch(run, returned, handler);
    } else {
      this.returned(run, returned, handler);
    }
  }

  /** Each value is progress, the last is the result. Aborting the run ends the subscription. */
  private watch(run: Run, source: ObservableLike, handler: HandlerEntry): void {
    let last: unknown;
    try {
      const subscription = source.subscribe({
        next: (value) => {
          if (last !== undefined && !run.closed) run.progress(last).catch(() => undefined);
          last = value;
        },
        error: (error) => this.failed(run, error, handler),
        complete: () => this.returned(run, last, handler),
      });
      run.signal.addEventListener('abort', () => subscription.unsubscribe(), { once: true });
    } catch (error) {
      this.failed(run, error, handler);
    }
  }

  private returned(run: Run, value: unknown, handler: HandlerEntry): void {
    if (run.closed) return this.tooLate(run, 'returned', handler);
    const forMs = run.policy.retentionMs;
    run.outcome =
      forMs > 0
        ? { kind: 'completed', keep: { forMs, result: this.encode(run, value, handler) } }
        : COMPLETED;
    this.close(run);
  }

  private failed(run: Run, error: unknown, handler: HandlerEntry): void {
    if (run.closed) return this.tooLate(run, 'failed', handler);
    run.outcome = verdictOf(run, error);
    this.close(run);
  }

  /** The work is done, and doing it twice because its result cannot be kept would be worse than not keeping it. */
  private encode(run: Run, value: unknown, handler: HandlerEntry): string | undefined {
    try {
      return encodeResult(value, this.queue.maxPayloadBytes);
    } catch (error) {
      this.logger.warn(
        `${jobText(run.queue, run.id)}: ${handler.label} completed, but its result is not kept: ${(error as Error).message}`,
      );
      return undefined;
    }
  }

  private limit(run: Run, timeoutMs: number, handler: HandlerEntry): void {
    run.timer = setTimeout(() => {
      if (run.closed) return;
      this.failed(run, run.abort('timeout', `it took longer than ${timeoutMs} ms`), handler);
    }, timeoutMs);
  }

  private close(run: Run): void {
    run.closed = true;
    if (run.timer) clearTimeout(run.timer);
    run.durationUs = Math.round((performance.now() - run.startedAt) * 1000);
    this.ended(run);
  }

  private tooLate(run: Run, how: string, handler: HandlerEntry): void {
    const what = `${handler.label}, attempt ${run.attempt}, ${how} after its run was over`;
    this.logger.warn(`${jobText(run.queue, run.id)}: ${what}; that is not counted`);
  }
}

const COMPLETED = { kind: 'completed' } as const;

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as PromiseLike<unknown> | null | undefined)?.then === 'function';
}

function isObservable(value: unknown): value is ObservableLike {
  const source = value as (ObservableLike & { pipe?: unknown }) | null | undefined;
  return typeof source?.subscribe === 'function' && typeof source.pipe === 'function';
}
