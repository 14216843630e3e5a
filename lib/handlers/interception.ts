import { isObservable, Observable, type Subscriber } from 'rxjs';
import { HandlerNotCalledError } from '../errors.js';
import type { HandledJob } from '../worker/handler.js';

/** One call of a method inside its interceptors, which may put it off, repeat it, or answer in its place. */
export class Interception {
  private subscriber: Subscriber<unknown> | undefined;

  constructor(
    private readonly job: HandledJob,
    /** `Class.method`, for messages. */
    private readonly handler: string,
    private readonly method: () => Promise<unknown>,
  ) {}

  /** The innermost step. An interceptor that tries again comes here again. */
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

  /** @param values what the outermost interceptor gives. */
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
          // It would be a job that is completed without anybody having looked at it.
          if (!said && this.job.stage === 'before') subscriber.error(new HandlerNotCalledError(this.handler));
          else subscriber.complete();
        },
      });
    });
  }

  private returnedNothing(cause: unknown): HandlerNotCalledError {
    return new HandlerNotCalledError(this.handler, 'returned no Observable', { cause });
  }

  /** Past the interceptors: one that tries again for ever would do so with this error too, and nobody else had a turn. */
  private end(error: Error): Promise<never> {
    this.subscriber?.error(error);
    return new Promise(() => {});
  }
}

/** What RxJS says of an interceptor that forgot to return; it names nobody. */
function isNoStream(error: unknown): boolean {
  return error instanceof TypeError && error.message.includes('where a stream was expected');
}
