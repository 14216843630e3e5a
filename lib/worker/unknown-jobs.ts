import type { ClaimedJob } from '../contract/engine.js';
import { backoffDelay } from '../job/backoff.js';
import type { DecodedBody } from '../job/job-record.js';
import type { Outcome } from '../job/outcome.js';
import type { JobPolicy } from '../options/job-options.js';
import type { UnknownJobRule } from '../options/module-options.js';
import { unrunnable } from './verdict.js';

const MIN_DELAY_MS = 1_000;
const MAX_DELAY_MS = 30_000;
/** Jobs whose first return is remembered; of more the one that came back longest ago is forgotten. */
const MAX_JOBS = 10_000;

/**
 * What becomes of a job whose name has no handler in this process. In a rolling deploy another process has one, so by default the job
 * waits for it: it is given back after a second, later more rarely, until a process with a handler claims it.
 */
export class UnknownJobs {
  /** When this process first gave a job back. */
  private readonly since = new Map<string, number>();

  constructor(
    private readonly rule: UnknownJobRule,
    private readonly timeoutMs: number,
  ) {}

  outcomeOf(job: ClaimedJob, body: DecodedBody, policy: JobPolicy, why: string, now: number): Outcome {
    if (this.rule === 'dead') return unrunnable('no-handler', why, job.failed);
    return this.rule === 'retry' ? this.retry(job, body, policy, why) : this.wait(job, body, why, now);
  }

  private wait(job: ClaimedJob, body: DecodedBody, why: string, now: number): Outcome {
    const since = this.since.get(job.id) ?? now;
    this.since.delete(job.id);
    const waitedMs = now - since;
    if (waitedMs >= this.timeoutMs) return unrunnable('no-handler', why, job.failed);
    this.since.set(job.id, since);
    if (this.since.size > MAX_JOBS) this.since.delete(this.since.keys().next().value!);
    // Spread, so that the same process does not meet the same jobs each time.
    const delayMs = Math.min(Math.max(waitedMs / 4, MIN_DELAY_MS), MAX_DELAY_MS) * (0.5 + Math.random() / 2);
    const priority = body.options.priority ?? 0;
    return { kind: 'retried', delayMs, failure: null, priority, counted: false, started: false };
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
