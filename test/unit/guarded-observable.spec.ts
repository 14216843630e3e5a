import assert from 'node:assert/strict';
import { Logger } from '@nestjs/common';
import {
  catchError,
  concatMap,
  EMPTY,
  firstValueFrom,
  map,
  of,
  share,
  Subject,
  takeUntil,
  timer,
} from 'rxjs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { GuardedObservable } from '#lib/events/guarded-observable.js';

describe('GuardedObservable', () => {
  const source = new Subject<number>();
  const guarded = new GuardedObservable<number>((subscriber) => source.subscribe(subscriber));
  const log = vi.spyOn(Logger.prototype, 'error');

  beforeEach(() => {
    vi.useFakeTimers();
    log.mockReset().mockImplementation(() => {});
  });

  // RxJS would throw from a timer. Running all timers shows that there was nothing to throw.
  afterEach(() => {
    vi.runAllTimers();
    vi.useRealTimers();
    assert.equal(source.observed, false);
  });

  it('keeps a subscriber that throws, logs it, and delivers to the others', () => {
    const seen: string[] = [];
    const bad = guarded.subscribe((value) => {
      seen.push(`bad ${value}`);
      throw new Error('mine');
    });
    const good = guarded.subscribe({ next: (value) => void seen.push(`good ${value}`) });
    source.next(1);
    source.next(2);
    bad.unsubscribe();
    good.unsubscribe();
    expect(seen).toEqual(['bad 1', 'good 1', 'bad 2', 'good 2']);
    expect(log).toHaveBeenCalledTimes(2);
    expect(log.mock.calls[0]?.[0]).toBe('a subscriber to events threw; it stays subscribed: mine');
  });

  it('keeps one that throws a value that cannot be converted to text', () => {
    const subscription = guarded.subscribe(() => {
      throw Object.create(null);
    });
    source.next(1);
    expect(subscription.closed).toBe(false);
    subscription.unsubscribe();
    expect(log.mock.calls[0]?.[0]).toBe('a subscriber to events threw; it stays subscribed: {} (object)');
  });

  it('also guards results of pipe, through any number of operators', () => {
    const piped = guarded.pipe(
      map((value) => value * 2),
      share(),
      concatMap((value) => of(value)),
    );
    const seen: number[] = [];
    const subscription = piped.subscribe((value) => {
      seen.push(value);
      throw new Error('mine');
    });
    source.next(1);
    source.next(2);
    subscription.unsubscribe();
    expect(seen).toEqual([2, 4]);
    expect(log).toHaveBeenCalledTimes(2);
  });

  it('logs an unhandled error of an operator; that subscription has ended', () => {
    const subscription = guarded
      .pipe(
        map(() => {
          throw new Error('in map');
        }),
      )
      .subscribe(() => {});
    source.next(1);
    expect(subscription.closed).toBe(true);
    expect(log.mock.calls[0]?.[0]).toBe('a subscription to events has ended with an error: in map');
  });

  it('passes an error to subscribers that handle it', () => {
    const failing = guarded.pipe(
      map(() => {
        throw new Error('in map');
      }),
    );
    const seen: unknown[] = [];
    failing.subscribe({ error: (error: Error) => void seen.push(error.message) });
    failing.pipe(catchError(() => EMPTY)).subscribe({ complete: () => void seen.push('caught') });
    source.next(1);
    expect(seen).toEqual(['in map', 'caught']);
    expect(log).not.toHaveBeenCalled();
  });

  it('logs error and complete handlers that throw', () => {
    const end = new Subject<void>();
    guarded.pipe(takeUntil(end)).subscribe({
      complete: () => {
        throw new Error('mine');
      },
    });
    end.next();
    new GuardedObservable<number>((subscriber) => subscriber.error(new Error('first'))).subscribe({
      error: () => {
        throw new Error('second');
      },
    });
    expect(log.mock.calls.map(([text]) => String(text))).toEqual([
      'the complete handler of a subscriber to events threw: mine',
      'the error handler of a subscriber to events threw: second',
    ]);
  });

  it('logs an async subscriber that rejects', async () => {
    // oxlint-disable-next-line typescript/no-misused-promises -- the mistake this is about
    const subscription = guarded.subscribe(async (value) => {
      await Promise.resolve();
      throw new Error(`async ${value}`);
    });
    source.next(1);
    await vi.waitFor(() => expect(log).toHaveBeenCalledOnce());
    subscription.unsubscribe();
    expect(log.mock.calls[0]?.[0]).toContain('async 1');
  });

  it('accepts the deprecated three functions, and none', () => {
    const seen: unknown[] = [];
    new GuardedObservable<number>((subscriber) => {
      subscriber.next(1);
      subscriber.complete();
    }).subscribe(
      (value) => void seen.push(value),
      null,
      () => void seen.push('complete'),
    );
    guarded.subscribe().unsubscribe();
    expect(seen).toEqual([1, 'complete']);
  });

  it('unsubscribes through operators and from within next', async () => {
    const first = firstValueFrom(guarded);
    source.next(7);
    expect(await first).toBe(7);
    expect(source.observed).toBe(false);

    const subscription = guarded.pipe(takeUntil(timer(10))).subscribe();
    expect(source.observed).toBe(true);
    vi.advanceTimersByTime(10);
    expect(subscription.closed).toBe(true);
  });
});
