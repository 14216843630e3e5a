import { show } from '../errors.js';
import { backoffDelay } from '../job/backoff.js';
import type { DeadReason, FailureRecord, Outcome } from '../job/outcome.js';
import { Snooze } from '../job/snooze.js';
import type { Run } from './run.js';

const MAX_MESSAGE = 4096;
const MAX_STACK = 16_384;

/** Errors of the author that no other attempt can mend. By code, so that a second copy of the library is understood too. */
const FINAL = new Set(['GODWIT_UNRECOVERABLE', 'GODWIT_SCHEMA_VIOLATION']);

/** Back to the head of the line, as if it had not been claimed. */
export const RELEASED = { kind: 'released' } as const satisfies Outcome;

/** What a thrown value means for the job: later, again, dead, or as if nothing had been. */
export function verdictOf(run: Run, thrown: unknown): Outcome {
  if (codeOf(thrown) === 'GODWIT_SNOOZE') {
    const delayMs = (thrown as Snooze).delayMs;
    return { kind: 'retried', delayMs, failure: null, priority: run.priority, counted: false };
  }
  const failure = failureOf(run, thrown);
  if (FINAL.has(codeOf(thrown))) return dead('unrecoverable', failure);
  // Told to stop at once, it did: that the application ends is no fault of the job.
  if (run.abortReason === 'shutdown') return RELEASED;
  if (run.attempt >= run.attempts) return dead('retries-exhausted', failure);
  return { kind: 'retried', delayMs: delayOf(run, thrown), failure, priority: run.priority, counted: true };
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

/** The backoff may be a function of the author; if it throws or answers nonsense, the job must not pay for it. */
function delayOf(run: Run, thrown: unknown): number {
  try {
    return backoffDelay(run.policy.backoff, run.attempt, thrown);
  } catch {
    return 1000 * 2 ** Math.min(run.attempt - 1, 12);
  }
}

/** Anything can be thrown; what a person reads later is its name, its message and where it came from. */
function failureOf(run: Run, thrown: unknown): FailureRecord {
  const { attempt } = run;
  if (thrown instanceof Error || hasMessage(thrown)) {
    const { name, stack } = thrown;
    return {
      name: text(name, 'Error').slice(0, 255),
      message: text(thrown.message, '').slice(0, MAX_MESSAGE),
      ...(typeof stack === 'string' && { stack: stack.slice(0, MAX_STACK) }),
      attempt,
    };
  }
  return { name: 'NonError', message: `the handler threw ${show(thrown)}`.slice(0, MAX_MESSAGE), attempt };
}

function hasMessage(thrown: unknown): thrown is Error {
  return typeof thrown === 'object' && thrown !== null && typeof (thrown as Error).message === 'string';
}

function text(value: unknown, otherwise: string): string {
  return typeof value === 'string' && value !== '' ? value : otherwise;
}

function codeOf(thrown: unknown): string {
  return typeof thrown === 'object' && thrown !== null ? String((thrown as { code?: unknown }).code) : '';
}
