import { isObservable, Observable, type Subscriber } from 'rxjs';
import { HandlerNotCalledError } from '../errors.js';
import type { HandledJob } from '../worker/handler.js';

/** One call of a method inside its interceptors, which may delay it, repeat it, or return a value without it. */
export class Interception {
  private subscriber: Subscriber<unknown> | undefined;

  constructor(
    private readonly job: HandledJob,
    /** `Class.method`, for messages. */
    private readonly handler: string,
    private readonly method: () => Promise<unknown>,
  ) {}

  /** The innermost step; an interceptor that retries calls it again. */
  call(): Promise<unknown> {
    const { job } = this;
    if (job.aborted) return this.end(job.aborted);
    job.stage = 'running';
    return this.method().then(this.returned, this.failed);
  }

  private readonly returned = (value: unknown): unknown => {
    const { job } = this;
    job.stage = 'after';
    return job.aborted && isObservable(value) ? this.end(job.aborted) : value;
  };

  private readonly failed = (error: unknown): never => {
    this.job.stage = 'after';
    throw error;
  };

  /** @param values the Observable of the outermost interceptor. */
  watch(values: Observable<unknown>): Observable<unknown> {
    return new Observable((subscriber) => {
      this.subscriber = subscriber;
      let said = false;
      return values.subscribe({
        next: (value) => {
          said = true;
          subscriber.next(value);
        },
        error: (error) => {
          const isSilent = !said && this.job.stage === 'before' && isNoStream(error);
          subscriber.error(isSilent ? this.returnedNothing(error) : error);
        },
        complete: () => {
          // Otherwise the job would be completed although its handler was never called.
          if (!said && this.job.stage === 'before') subscriber.error(new HandlerNotCalledError(this.handler));
          else subscriber.complete();
        },
      });
    });
  }

  private returnedNothing(cause: unknown): HandlerNotCalledError {
    return new HandlerNotCalledError(this.handler, 'returned no Observable', { cause });
  }

  /** Bypasses the interceptors: one that retries forever would retry on this error too. */
  private end(error: Error): Promise<never> {
    this.subscriber?.error(error);
    return new Promise(() => {});
  }
}

/** The error of RxJS for an interceptor that forgot to return; it names no class. */
function isNoStream(error: unknown): boolean {
  return error instanceof TypeError && error.message.includes('where a stream was expected');
}
