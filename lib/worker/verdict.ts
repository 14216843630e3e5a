import { types } from 'node:util';
import { show } from '../errors.js';
import { read } from '../errors/thrown.js';
import { backoffDelay } from '../job/backoff.js';
import { readDuration } from '../job/duration.js';
import type { ClaimedJob } from '../contract/engine.js';
import type { LimitCharge } from '../contract/limit-verbs.js';
import { MIN_SNOOZE_MS } from '../job/job.js';
import type { DecodedBody } from '../job/job-record.js';
import type { DeadReason, FailureRecord, Outcome } from '../job/outcome.js';
import type { JobPolicy } from '../options/job-options.js';
import type { UnknownJobRule } from '../options/module-options.js';
import type { Run } from './run.js';

const MAX_MESSAGE = 4096;
const MAX_STACK = 16_384;
/** How long an asynchronous backoff function may take. */
const MAX_BACKOFF_MS = 10_000;

/** Errors of the author that no other attempt can mend. By code, so that a second copy of the library is understood too. */
const UNRECOVERABLE = 'GODWIT_UNRECOVERABLE';
const FINAL = new Set([UNRECOVERABLE, 'GODWIT_SCHEMA_VIOLATION']);
/** How many causes of an error are looked at. */
const MAX_CAUSES = 10;

/** Back to the head of the line without a counted attempt; a cancelled job ends instead. */
export const RELEASED = { kind: 'released', started: true } as const satisfies Outcome;

/** The same for a job whose handler was not called: it may still expire. */
export const UNSTARTED = { kind: 'released' } as const satisfies Outcome;

/** What a handler holds back by its error, from now on; undefined if it does not. A cancelled job just ends. */
export function heldBack({ aborted, name, group }: Run, thrown: unknown): LimitCharge | undefined {
  if (read(thrown, 'code') !== 'GODWIT_RATE_LIMITED' || aborted?.reason === 'cancelled') return undefined;
  const holdMs = readDuration(read(thrown, 'delayMs'));
  if (holdMs === undefined) return undefined;
  const scope = read(thrown, 'scope');
  const field = scope === 'name' ? `n:${name}` : scope === 'group' && group !== null ? `g:${group}` : 'q';
  return { field, holdMs: Math.max(holdMs, MIN_SNOOZE_MS), count: 0 };
}

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
    const delayMs = Math.max(snoozeMs, MIN_SNOOZE_MS);
    return { kind: 'retried', delayMs, failure: null, priority: run.priority, counted: false };
  }
  const failure = failureOf(run, thrown);
  if (run.aborted?.reason === 'deadline') return dead('expired', failure);
  if (isFinal(thrown)) return dead('unrecoverable', failure);
  // Told to stop at once, it did: that the application ends is no fault of the job.
  if (run.aborted?.reason === 'shutdown') return RELEASED;
  if (run.attempt >= run.attempts) return dead('retries-exhausted', failure);
  const retried = (delayMs: number | null): Outcome => {
    if (delayMs === null) return dead('retries-exhausted', failure);
    return { kind: 'retried', delayMs, failure, priority: run.priority, counted: true };
  };
  const delayMs = delayOf(run, thrown, onBadBackoff);
  return delayMs instanceof Promise ? delayMs.then(retried) : retried(delayMs);
}

/**
 * The outcome, or that the job is dead: its next attempt would come at or after its deadline, or later than its `retryFor` allows.
 *
 * @param now by the clock of the store.
 */
export function withinLimits(
  { deadline, attempt, runnableAt, policy }: Run,
  outcome: Outcome,
  now: number,
): Outcome {
  if (outcome.kind !== 'retried') return outcome;
  const { failure, counted, delayMs } = outcome;
  if (deadline !== undefined && now + delayMs >= deadline)
    return failure
      ? { ...dead('expired', failure), counted }
      : unrunnable('expired', 'it asked to run again after its deadline', attempt);
  const { retryForMs } = policy;
  const isLate = retryForMs !== undefined && counted && now + delayMs > runnableAt + retryForMs;
  return isLate ? dead('retries-exhausted', failure!) : outcome;
}

/** For a job that cannot run at all: no handler was called, so no attempt is counted. */
export function unrunnable(reason: DeadReason, message: string, attempt: number): Outcome {
  return {
    kind: 'dead',
    reason,
    counted: false,
    failure: { name: 'UnrunnableJob', message, attempt, reason },
  };
}

function dead(reason: DeadReason, failure: FailureRecord): Extract<Outcome, { kind: 'dead' }> {
  return { kind: 'dead', reason, failure: { ...failure, reason }, counted: true };
}

/** Whether a handler says by its error, or by a `cause` of it, that no other attempt can help. Causes may be circular. */
function isFinal(thrown: unknown): boolean {
  const code = read(thrown, 'code');
  if (typeof code === 'string' && FINAL.has(code)) return true;
  let cause = read(thrown, 'cause');
  for (let depth = 0; depth < MAX_CAUSES && cause !== undefined; depth++) {
    if (read(cause, 'code') === UNRECOVERABLE) return true;
    cause = read(cause, 'cause');
  }
  return false;
}

/** The backoff may be a function of the author; if it throws or answers nonsense, the job must not pay for it. */
function delayOf(
  run: Run,
  thrown: unknown,
  onBadBackoff: OnBadBackoff,
): number | null | Promise<number | null> {
  const withoutIt = (error: unknown) => {
    const delayMs = 1000 * 2 ** Math.min(run.attempt - 1, 12);
    onBadBackoff(error, delayMs);
    return delayMs;
  };
  try {
    const delayMs = backoffDelay(run.policy.backoff, run.attempt, thrown, undefined, run);
    return delayMs instanceof Promise ? inTime(delayMs).catch(withoutIt) : delayMs;
  } catch (error) {
    return withoutIt(error);
  }
}

async function inTime<T>(delayMs: Promise<T>): Promise<T> {
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

const MIN_DELAY_MS = 1_000;
const MAX_DELAY_MS = 30_000;
/** Only so new an answer may bury a job: a process that handles it may have come since. */
const FRESH_MS = 5_000;
/** Job names that are remembered; of more the one that was met first is forgotten. */
const MAX_NAMES = 1_000;

/** What the store said of a job name that this process does not handle. */
interface UnknownName {
  unhandledMs: number;
  at: number;
  isAsked: boolean;
}

/**
 * What becomes of a job whose name has no handler in this process. In a rolling deploy another process has one, so by default the job
 * waits for it: it is given back after a second, later more rarely, until a process with a handler claims it. It is dead only once no
 * live process has handled its name for the whole time; the store knows that, so restarts do not begin it anew.
 */
export class UnknownJobs {
  private readonly names = new Map<string, UnknownName>();

  constructor(
    private readonly rule: UnknownJobRule,
    private readonly timeoutMs: number,
    /** For how long no live process has handled this name. */
    private readonly unhandledMs: (name: string) => Promise<number>,
  ) {}

  outcomeOf(job: ClaimedJob, body: DecodedBody, policy: JobPolicy, why: string): Outcome {
    if (this.rule === 'dead') return unrunnable('no-handler', why, job.failed);
    return this.rule === 'retry' ? this.retry(job, body, policy, why) : this.wait(job, body, why);
  }

  private wait(job: ClaimedJob, body: DecodedBody, why: string): Outcome {
    const known = this.names.get(body.name) ?? this.meet(body.name);
    const { unhandledMs } = known;
    const isLate = unhandledMs >= this.timeoutMs;
    const age = performance.now() - known.at;
    if (isLate && age < FRESH_MS) return unrunnable('no-handler', why, job.failed);
    if (age > Math.min(FRESH_MS, this.timeoutMs / 4)) this.ask(body.name, known);
    // Spread, so that the same process does not meet the same jobs each time.
    const fullMs = isLate ? MIN_DELAY_MS : Math.min(Math.max(unhandledMs / 4, MIN_DELAY_MS), MAX_DELAY_MS);
    const delayMs = fullMs * (0.5 + Math.random() / 2);
    const priority = body.options.priority ?? 0;
    return { kind: 'retried', delayMs, failure: null, priority, counted: false, started: false };
  }

  private meet(name: string): UnknownName {
    const known = { unhandledMs: 0, at: -Infinity, isAsked: false };
    this.names.set(name, known);
    if (this.names.size > MAX_NAMES) this.names.delete(this.names.keys().next().value!);
    return known;
  }

  private ask(name: string, known: UnknownName): void {
    if (known.isAsked) return;
    known.isAsked = true;
    this.unhandledMs(name)
      .then(
        (ms) => {
          known.unhandledMs = ms;
          known.at = performance.now();
        },
        // The job waits, and the next claim of such a job asks again.
        () => undefined,
      )
      .finally(() => (known.isAsked = false));
  }

  private retry(job: ClaimedJob, body: DecodedBody, { attempts, backoff }: JobPolicy, why: string): Outcome {
    const attempt = job.failed + 1;
    const failure = { name: 'UnrunnableJob', message: why, attempt };
    if (attempt >= attempts)
      return {
        kind: 'dead',
        reason: 'no-handler',
        counted: true,
        failure: { ...failure, reason: 'no-handler' },
      };
    // A function of the author tells from errors of handlers.
    const delayMs =
      typeof backoff === 'function'
        ? MIN_DELAY_MS * 2 ** Math.min(job.failed, 12)
        : (backoffDelay(backoff, attempt, undefined) as number);
    return { kind: 'retried', delayMs, failure, priority: body.options.priority ?? 0, counted: true };
  }
}
