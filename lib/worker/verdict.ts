import { types } from 'node:util';
import { show } from '../errors.js';
import { read } from '../errors/thrown.js';
import { backoffDelay } from '../job/backoff.js';
import { readDuration } from '../job/duration.js';
import type { DeadReason, FailureRecord, Outcome } from '../job/outcome.js';
import type { Run } from './run.js';

const MAX_MESSAGE = 4096;
const MAX_STACK = 16_384;
/** How long an asynchronous backoff function may take. */
const MAX_BACKOFF_MS = 10_000;

/** Errors of the author that no other attempt can mend. By code, so that a second copy of the library is understood too. */
const FINAL = new Set(['GODWIT_UNRECOVERABLE', 'GODWIT_SCHEMA_VIOLATION']);

/** Back to the head of the line without a counted attempt; a cancelled job ends instead. */
export const RELEASED = { kind: 'released', started: true } as const satisfies Outcome;

/** The same for a job whose handler was not called: it may still expire. */
export const UNSTARTED = { kind: 'released' } as const satisfies Outcome;

/** Told where the author's backoff function fails: the job goes on without it, but a person should know. */
export type OnBadBackoff = (error: unknown, delayMs: number) => void;

/**
 * What a thrown value means for the job: later, again, dead, or as if nothing had been. A promise only if the author's backoff
 * function returns one. Never throws or rejects, whatever was thrown.
 */
export function verdictOf(run: Run, thrown: unknown, onBadBackoff: OnBadBackoff): Outcome | Promise<Outcome> {
  // Whatever it says: the store ends a job that was cancelled, and nobody else knows that for sure.
  if (run.aborted?.reason === 'cancelled') return RELEASED;
  const code = read(thrown, 'code');
  const snoozeMs = code === 'GODWIT_SNOOZE' ? readDuration(read(thrown, 'delayMs')) : undefined;
  if (snoozeMs !== undefined) {
    return { kind: 'retried', delayMs: snoozeMs, failure: null, priority: run.priority, counted: false };
  }
  const failure = failureOf(run, thrown);
  if (isFinal(code)) return dead('unrecoverable', failure);
  // Told to stop at once, it did: that the application ends is no fault of the job.
  if (run.aborted?.reason === 'shutdown') return RELEASED;
  if (run.attempt >= run.attempts) return dead('retries-exhausted', failure);
  const retried = (delayMs: number): Outcome => {
    return { kind: 'retried', delayMs, failure, priority: run.priority, counted: true };
  };
  const delayMs = delayOf(run, thrown, onBadBackoff);
  return typeof delayMs === 'number' ? retried(delayMs) : delayMs.then(retried);
}

/** A job that cannot be run at all: no handler has seen it, so no attempt is counted. */
export function unrunnable(reason: DeadReason, message: string, attempt: number): Outcome {
  return {
    kind: 'dead',
    reason,
    counted: false,
    failure: { name: 'UnrunnableJob', message, attempt, reason },
  };
}

function dead(reason: DeadReason, failure: FailureRecord): Outcome {
  return { kind: 'dead', reason, failure: { ...failure, reason }, counted: true };
}

/** Whether a handler says by this code that no other attempt can help. */
function isFinal(code: unknown): boolean {
  return typeof code === 'string' && FINAL.has(code);
}

/** The backoff may be a function of the author; if it throws or answers nonsense, the job must not pay for it. */
function delayOf(run: Run, thrown: unknown, onBadBackoff: OnBadBackoff): number | Promise<number> {
  const withoutIt = (error: unknown) => {
    const delayMs = 1000 * 2 ** Math.min(run.attempt - 1, 12);
    onBadBackoff(error, delayMs);
    return delayMs;
  };
  try {
    const delayMs = backoffDelay(run.policy.backoff, run.attempt, thrown);
    return typeof delayMs === 'number' ? delayMs : inTime(delayMs).catch(withoutIt);
  } catch (error) {
    return withoutIt(error);
  }
}

async function inTime(delayMs: Promise<number>): Promise<number> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`it did not answer within ${MAX_BACKOFF_MS} ms`)),
      MAX_BACKOFF_MS,
    );
  });
  try {
    return await Promise.race([delayMs, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Anything can be thrown; what a person reads later is its name, its message and where it came from. */
function failureOf({ attempt }: Run, thrown: unknown): FailureRecord {
  const message = read(thrown, 'message');
  if (typeof message !== 'string' && !types.isNativeError(thrown)) {
    return { name: 'NonError', message: `the handler threw ${show(thrown)}`.slice(0, MAX_MESSAGE), attempt };
  }
  const stack = read(thrown, 'stack');
  return {
    name: text(read(thrown, 'name'), 'Error').slice(0, 255),
    message: text(message, '').slice(0, MAX_MESSAGE),
    ...(typeof stack === 'string' && { stack: stack.slice(0, MAX_STACK) }),
    attempt,
  };
}

function text(value: unknown, otherwise: string): string {
  return typeof value === 'string' && value !== '' ? value : otherwise;
}
