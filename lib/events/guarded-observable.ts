import { Log } from '../contract/log.js';
import { Observable, type Observer, type Operator, type Subscription } from 'rxjs';
import { messageOf, stackOf } from '../errors/thrown.js';
import { isThenable } from '../job/thenable.js';

const logger = new Log('QueueEvents');

/**
 * An Observable whose subscribers cannot end the process.
 *
 * If a `next` handler throws, RxJS throws the error again from a timer, where nobody can catch it: an `uncaughtException`. Here the error
 * is logged instead, and the subscriber stays subscribed. The same holds for an `async` handler that rejects, and for an error of
 * an operator if `subscribe` has no error handler (that subscription has then ended; use `catchError` or `retry` in the pipe).
 *
 * This holds for `subscribe` on the observable itself and on the results of `pipe`. It does not hold if the observable is part of another
 * one (`merge(events.of('a'), other$)`, a `Subject`, inner observables of `groupBy`): there the rules of RxJS apply.
 */
export class GuardedObservable<T> extends Observable<T> {
  // `pipe` builds each step with `lift`; without this the guard would end at the first operator.
  override lift<R>(operator?: Operator<T, R>): Observable<R> {
    const lifted = new GuardedObservable<R>();
    lifted.source = this;
    lifted.operator = operator;
    return lifted;
  }

  override subscribe(
    observerOrNext?: Partial<Observer<T>> | ((value: T) => void) | null,
    error?: ((error: unknown) => void) | null,
    complete?: (() => void) | null,
  ): Subscription {
    if (isSubscriber(observerOrNext)) return super.subscribe(observerOrNext);
    if (typeof observerOrNext === 'object' && observerOrNext !== null) {
      return super.subscribe(guard(observerOrNext));
    }
    return super.subscribe(
      guard({
        next: observerOrNext ?? undefined,
        error: error ?? undefined,
        complete: complete ?? undefined,
      }),
    );
  }
}

/** The inner end of an operator, of this copy of RxJS or of another: wrapping it would cut its unsubscription from ours. */
function isSubscriber(value: unknown): value is Observer<any> {
  const candidate = value as Partial<Subscription> | null | undefined;
  return typeof candidate?.add === 'function' && typeof candidate.unsubscribe === 'function';
}

function guard<T>(observer: Partial<Observer<T>>): Observer<T> {
  return {
    next(value) {
      try {
        const returned: unknown = observer.next?.(value);
        if (isThenable(returned)) returned.then(undefined, reportThrown);
      } catch (error) {
        reportThrown(error);
      }
    },
    error(error: unknown) {
      if (!observer.error) return report('a subscription to events has ended with an error', error);
      try {
        observer.error(error);
      } catch (thrown) {
        report('the error handler of a subscriber to events threw', thrown);
      }
    },
    complete() {
      try {
        observer.complete?.();
      } catch (thrown) {
        report('the complete handler of a subscriber to events threw', thrown);
      }
    },
  };
}

function reportThrown(error: unknown): void {
  report('a subscriber to events threw; it stays subscribed', error);
}

function report(what: string, error: unknown): void {
  logger.error(`${what}: ${messageOf(error)}`, stackOf(error));
}
