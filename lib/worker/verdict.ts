import { types } from 'node:util';
import { show } from '../errors/show.js';
import { MAX_MESSAGE, read } from '../errors/thrown.js';
import { backoffDelay } from '../job/backoff.js';
import { readDuration } from '../job/duration.js';
import type { ClaimedJob } from '../contract/engine.js';
import type { LimitCharge } from '../contract/limit-verbs.js';
import { inTime } from '../contract/retry.js';
import { MAX_PUT_OFF_MS, MIN_SNOOZE_MS } from '../job/job.js';
import type { DecodedBody } from '../job/job-record.js';
import type { DeadReason, FailureRecord, Outcome } from '../job/outcome.js';
import type { JobPolicy } from '../options/job-options.js';
import type { UnknownJobRule } from '../options/module-options.js';
import type { Run } from './run.js';

const MAX_STACK = 16_384;
/** Longest time for an asynchronous backoff function. */
const MAX_BACKOFF_MS = 10_000;

/**
 * Codes of errors that another attempt cannot fix. They are compared by code, so errors of a second copy of the library count
 * too.
 */
const UNRECOVERABLE = 'GODWIT_UNRECOVERABLE';
const FINAL = new Set([UNRECOVERABLE, 'GODWIT_SCHEMA_VIOLATION']);
/** How many causes of an error are checked. */
const MAX_CAUSES = 10;

/** The job goes back to the head of the line, and the attempt is not counted. A cancelled job ends instead. */
export const RELEASED = { kind: 'released', started: true } as const satisfies Outcome;

/** Like `RELEASED`, for a job whose handler was not called. Such a job may still expire. */
export const UNSTARTED = { kind: 'released' } as const satisfies Outcome;

/** If the error is a `RateLimited`: which jobs must not start, and for how long. Undefined for a cancelled job, which just ends. */
export function heldBack(
  { aborted, name, group }: Run,
  thrown: unknown,
  uses: readonly string[] = [],
): LimitCharge | undefined {
  if (read(thrown, 'code') !== 'GODWIT_RATE_LIMITED' || aborted?.reason === 'cancelled') return undefined;
  const holdMs = readDuration(read(thrown, 'delayMs'));
  if (holdMs === undefined) return undefined;
  const scope = read(thrown, 'scope');
  const limit = read(thrown, 'limit');
  let field = 'q';
  if (uses.some((one) => one === limit)) field = `s:${String(limit)}`;
  // A job of a group waits in the line of its group, where no limit of its name applies.
  else if (scope === 'name' && group === null) field = `n:${name}`;
  else if (scope === 'group' && group !== null) field = `g:${group}`;
  return { field, holdMs: Math.max(holdMs, MIN_SNOOZE_MS), count: 0 };
}

/** Called if a backoff function throws. The job continues with a default delay, and the error is logged. */
type OnBadBackoff = (error: unknown, delayMs: number) => void;

/**
 * The outcome of the job for a thrown value: snoozed, retried, dead, or released. Returns a promise only if the backoff
 * function returns one. Never throws or rejects, whatever was thrown.
 */
export function verdictOf(run: Run, thrown: unknown, onBadBackoff: OnBadBackoff): Outcome | Promise<Outcome> {
  // The thrown value does not matter: only the store knows for sure that the job was cancelled, and ends it.
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
  // The handler stopped because its signal was aborted. A shutdown is not a failure of the job.
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
 * Makes the job dead if its next attempt would come at or after its deadline, or later than its `retryFor` allows. Otherwise
 * returns the outcome unchanged.
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

/** The outcome of a job that cannot run. No handler was called, so no attempt is counted. */
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

/** Whether the error, or one of its causes, says that another attempt cannot help. Causes may be circular. */
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

/** The delay before the next attempt. A backoff function may throw or return nonsense; then a default delay is used. */
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
    const late = () => new Error(`it did not answer within ${MAX_BACKOFF_MS} ms`);
    return delayMs instanceof Promise ? inTime(MAX_BACKOFF_MS, delayMs, late).catch(withoutIt) : delayMs;
  } catch (error) {
    return withoutIt(error);
  }
}

/** The name, message and stack of what was thrown. Anything can be thrown, not only errors. */
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

const RETRY_DELAY_MS = 1_000;
/** The delay of a job: `MIN_DELAY_MS` if it is new, up to `AGED_DELAY_MS` later, and up to `MAX_PUT_OFF_MS` if no live process handles its name. */
const MIN_DELAY_MS = 200;
const AGED_DELAY_MS = 1_000;
/** How recent the answer must be before a job is made dead. A process with a handler may have started since an older one. */
const FRESH_MS = 5_000;
/** Most job names that are remembered. Beyond it, the oldest name is forgotten. */
const MAX_NAMES = 1_000;

/** The answer of the store about a job name without a handler in this process. */
interface UnknownName {
  unhandledMs: number;
  at: number;
  isAsked: boolean;
}

/**
 * Decides what happens to a job whose name has no handler in this process. In a rolling deploy another process has one, so by
 * default the job waits until a process with a handler claims it. It is delayed for a fifth of a second at first, and for longer
 * later. It is dead only if no live process has handled its name for `unknownJobTimeout`. The store counts that time, so a
 * restart does not reset it.
 */
export class UnknownJobs {
  private readonly names = new Map<string, UnknownName>();

  constructor(
    private readonly rule: UnknownJobRule,
    private readonly timeoutMs: number,
    /** How long no live process has had a handler for this job name. */
    private readonly unhandledMs: (name: string) => Promise<number>,
  ) {}

  outcomeOf(job: ClaimedJob, body: DecodedBody, policy: JobPolicy, why: string, now: number): Outcome {
    if (this.rule === 'dead') return unrunnable('no-handler', why, job.failed);
    if (this.rule === 'retry') return this.retry(job, body, policy, why);
    return this.wait(job, body, why, now - body.createdAt);
  }

  private wait(job: ClaimedJob, body: DecodedBody, why: string, jobAgeMs: number): Outcome {
    const known = this.names.get(body.name) ?? this.meet(body.name);
    const { unhandledMs } = known;
    const isLate = unhandledMs >= this.timeoutMs;
    const age = performance.now() - known.at;
    if (isLate && age < FRESH_MS) return unrunnable('no-handler', why, job.failed);
    if (age > Math.min(FRESH_MS, this.timeoutMs / 4)) this.ask(body.name, known);
    // An old and a new release both claim these jobs. Short delays at first give the process with the handler more chances.
    const agedMs = Math.min(Math.max(jobAgeMs / 4, MIN_DELAY_MS), AGED_DELAY_MS);
    const fullMs = isLate ? AGED_DELAY_MS : Math.min(Math.max(unhandledMs / 4, agedMs), MAX_PUT_OFF_MS);
    // The delays are random, so that the same process does not claim the same jobs each time.
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
        // The job waits anyway, and the next claim of such a job asks again.
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
    // A backoff function decides by the error of a handler, and there is none here.
    const delayMs =
      typeof backoff === 'function'
        ? RETRY_DELAY_MS * 2 ** Math.min(job.failed, 12)
        : (backoffDelay(backoff, attempt, undefined) as number);
    return { kind: 'retried', delayMs, failure, priority: body.options.priority ?? 0, counted: true };
  }
}
