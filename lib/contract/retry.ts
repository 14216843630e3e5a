// Imported by name, because tests replace the global timers.
import { setTimeout as setRealTimeout } from 'node:timers';
import { NotReplicatedError, RedisRefusedError, RedisUnavailableError, type Applied } from '../errors.js';
import { withoutEffect } from '../errors/thrown.js';
import { verbOf } from '../errors/verbs.js';

/** Errors that end by themselves: loading, a script that runs too long, a failover, a slot that migrates, a full disk. */
const PASSING = new Set([
  'LOADING',
  'BUSY',
  'READONLY',
  'MASTERDOWN',
  'CLUSTERDOWN',
  'TRYAGAIN',
  'MOVED',
  'ASK',
  'UNBLOCKED',
  'NOREPLICAS',
  'MISCONF',
]);

/** If a call is not answered within this time, the connection counts as silent and is opened again. */
export const CALL_MS = 2000;

/** How much longer than its timeout a blocking call may take before its connection counts as silent. */
export const BLOCK_MARGIN_MS = 2000;

/**
 * How long a stop still waits for its last calls to the store once its timeout is over. A store that answers needs less time. If
 * the store does not answer, leases and expiry times have the same effect later.
 */
export const LAST_WORDS_MS = 100;

/** How long a stop waits for one last call. If the call fails, leases and expiry times have the same effect later. */
export const FAREWELL_MS = 1000;

/** How long a stop may take once no handler runs any more: all its last calls to the store share this time. */
export const STOP_MS = 1700;

/** How long the process waits, before it closes all connections, for cleanup that is not essential. */
export const CLEANUP_MS = 50;

/** Whether the same call may succeed if it is made again a little later. */
export function isPassing(error: unknown): boolean {
  if (error instanceof RedisUnavailableError || error instanceof NotReplicatedError) return true;
  return error instanceof RedisRefusedError && PASSING.has(error.reply);
}

/**
 * Runs a call that works in steps. Once a step has changed something, the error of a later step has `applied: 'partly'`.
 *
 * @param work calls `changed` with the number of changes after each step
 */
export async function inSteps<T>(work: (changed: (count: number) => void) => Promise<T>): Promise<T> {
  let isChanged = false;
  try {
    return await work((count) => (isChanged ||= count > 0));
  } catch (error) {
    throw isChanged ? partlyDone(error) : error;
  }
}

/** The same error, but of a later step of a call. */
function partlyDone(error: unknown): unknown {
  // A step may have several steps itself.
  if ((error as { applied?: Applied } | null)?.applied === 'partly') return error;
  const options = { cause: error };
  if (error instanceof RedisUnavailableError) {
    const why = withoutEffect(error).slice(error.verb.length + 2);
    return new RedisUnavailableError(verbOf(error.verb), 'partly', why, options);
  }
  if (!(error instanceof RedisRefusedError)) return error;
  const text = error.message.replace(/^.*?: Redis refused, [^:]*: /, '');
  return new RedisRefusedError(verbOf(error.verb), error.reply, text, options, 'partly', '');
}

/** Whether the server does not know the script: it was restarted, or its scripts were flushed. */
export function isForgotten(error: unknown): boolean {
  return error instanceof RedisRefusedError && error.reply === 'NOSCRIPT';
}

/** Whether memory is full. Not passing, because a call that needs memory cannot wait for it. */
export function isOutOfMemory(error: unknown): boolean {
  return error instanceof RedisRefusedError && error.reply === 'OOM';
}

/** Whether a key has another type than expected. */
export function isWrongType(error: unknown): boolean {
  return error instanceof RedisRefusedError && error.reply === 'WRONGTYPE';
}

/** Ms before the nth repetition: 25 ms at first, at most a second, with jitter. */
export function retryDelay(tries: number): number {
  return Math.min(25 * 2 ** Math.min(tries, 6), 1000) * (0.75 + Math.random() / 4);
}

/**
 * Ms before the nth repetition of a failed call. If there was no connection, the call has already waited for one, and the next
 * call will wait too. A long pause would only delay it.
 */
export function repeatDelay(error: unknown, tries: number): number {
  const waited = error instanceof RedisUnavailableError && error.applied === 'no';
  return retryDelay(waited ? 0 : tries);
}

/** The same after any error. If Redis refuses the call, trying again sooner than in a second is useless. */
export function nextTryDelay(error: unknown, tries: number): number {
  return isPassing(error) ? repeatDelay(error, tries) : 1_000;
}

/** Ms until the deadline (by `performance.now()`). At least one, so that a late caller still tries once. */
export function msUntil(deadline: number): number {
  return Math.max(1, deadline - performance.now());
}

/** Resolves after this time, or as soon as the signal is aborted. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    if (signal?.aborted) end();
    else signal?.addEventListener('abort', end);
  });
}

/** Resolves when the promise has settled, or the time is over. Never rejects. */
export async function within(ms: number, promise: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise((resolve) => (timer = setTimeout(resolve, ms)));
  try {
    await Promise.race([promise, late]);
  } catch {
    // Only the end matters, not the result.
  } finally {
    clearTimeout(timer);
  }
}

/** The result of the promise. Rejects with this error if the time is over first. */
export async function inTime<T>(ms: number, promise: Promise<T>, late: () => Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late()), ms);
  });
  try {
    return await Promise.race([promise, over]);
  } finally {
    clearTimeout(timer);
  }
}

/** Waits on a clock that tests do not replace. */
export function realPause(ms: number): Promise<void> {
  return new Promise((resolve) => setRealTimeout(resolve, ms));
}
