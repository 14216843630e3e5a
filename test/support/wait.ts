import { setTimeout as pause } from 'node:timers/promises';
import type { Observable } from 'rxjs';
import { atEnd } from './cleanup.js';

export interface WaitOptions {
  /** Milliseconds until the wait fails. @default 5000 */
  readonly timeout?: number;
  /** What the test waits for, for the error message: "the job is completed". A function is called at the end. */
  readonly what?: string | (() => string);
}

/** Thrown when a wait takes too long. */
export class WaitError extends Error {
  override name = 'WaitError';
}

/**
 * Calls `predicate` every few milliseconds and resolves with its first truthy answer. Only for things without a signal:
 * a promise or an event is better. If the predicate throws, it is called again, and the last error becomes the cause.
 */
export async function until<T>(
  predicate: () => T | Promise<T>,
  options: WaitOptions = {},
): Promise<Truthy<T>> {
  const deadline = performance.now() + (options.timeout ?? 5_000);
  for (let interval = 1; ; interval = Math.min(interval * 2, 20)) {
    // An answer that came late, because the machine stood still, says nothing about the present.
    const isLast = performance.now() >= deadline;
    let cause: unknown;
    try {
      const answer = await predicate();
      if (answer) return answer as Truthy<T>;
    } catch (error) {
      cause = error;
    }
    if (isLast) throw timedOut(options, predicate.toString(), cause);
    await pause(interval);
  }
}

type Truthy<T> = Exclude<T, false | null | undefined | 0 | ''>;

/** The same promise with a time limit; the error names what the test waited for. */
export async function within<T>(promise: Promise<T>, options: WaitOptions = {}): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(timedOut(options, 'a promise', undefined)), options.timeout ?? 5_000);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

function timedOut({ timeout = 5_000, what }: WaitOptions, fallback: string, cause: unknown): WaitError {
  const text = (typeof what === 'function' ? what() : what) ?? fallback;
  return new WaitError(`waited ${timeout} ms in vain: ${text}`, cause === undefined ? undefined : { cause });
}

/** A gate that opens once: calls before that wait, later ones pass. */
export interface Latch<T = void> {
  readonly promise: Promise<T>;
  readonly isOpen: boolean;
  open(value: T): void;
  /** `promise` with a time limit. */
  wait(options?: WaitOptions): Promise<T>;
}

export function latch<T = void>(name = 'a latch'): Latch<T> {
  let isOpen = false;
  let resolve!: (value: T) => void;
  const promise = new Promise<T>((done) => (resolve = done));
  return {
    promise,
    get isOpen() {
      return isOpen;
    },
    open(value) {
      isOpen = true;
      resolve(value);
    },
    wait: (options) => within(promise, { what: `${name} is opened`, ...options }),
  };
}

/** Collects all values of an observable from now on; unsubscribes at the end of the test. */
export interface Collected<T> {
  readonly values: readonly T[];
  readonly error: unknown;
  /** Whether the observable has completed or failed. */
  readonly ended: boolean;
  /** Resolves with the first value that matches, past or future. */
  first(match?: (value: T) => boolean, options?: WaitOptions): Promise<T>;
  /** Resolves with the first `n` values that match, past or future. */
  take(n: number, match?: (value: T) => boolean, options?: WaitOptions): Promise<T[]>;
  stop(): void;
}

export function collect<T>(source: Observable<T>): Collected<T> {
  const values: T[] = [];
  const checks = new Set<() => void>();
  let error: unknown;
  let ended = false;
  const checkAll = () => checks.forEach((check) => check());
  const end = (reason?: unknown) => {
    error = reason;
    ended = true;
    checkAll();
  };
  const subscription = source.subscribe({
    next: (value) => {
      values.push(value);
      checkAll();
    },
    error: end,
    complete: () => end(),
  });
  const stop = () => subscription.unsubscribe();
  atEnd(stop);

  async function takeMatching(n: number, match: (value: T) => boolean, options?: WaitOptions): Promise<T[]> {
    const found: T[] = [];
    let seen = 0;
    const enough = new Promise<void>((resolve, reject) => {
      // Looks at each value once: some tests wait for a thousand ends at the same time.
      const check = () => {
        while (found.length < n && seen < values.length) {
          const value = values[seen++]!;
          if (match(value)) found.push(value);
        }
        if (found.length < n && !ended) return;
        checks.delete(check);
        if (found.length >= n) resolve();
        else reject(new WaitError(`it ended after ${found.length} of ${n} values`, { cause: error }));
      };
      checks.add(check);
      check();
    });
    await within(enough, {
      what: () => `${n} matching values, got ${found.length} of ${values.length}`,
      ...options,
    });
    return found;
  }

  return {
    values,
    get error() {
      return error;
    },
    get ended() {
      return ended;
    },
    take: (n, match = () => true, options) => takeMatching(n, match, options),
    first: async (match = () => true, options) => (await takeMatching(1, match, options))[0]!,
    stop,
  };
}

/**
 * Resolves with the next value of an observable that matches. Rejects if it completes before, or after the time limit.
 */
export async function nextEvent<T>(
  source: Observable<T>,
  match?: (value: T) => boolean,
  options?: WaitOptions,
): Promise<T> {
  const collected = collect(source);
  try {
    return await collected.first(match, { what: 'the next event', ...options });
  } finally {
    collected.stop();
  }
}

/** Resolves in the next turn of the event loop. */
export function endOfTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
