import type { CheckedBackoff } from '../job/backoff.js';
import { refuse, shape, type Report, type Rule } from './check.js';
import { POLICY_FIELDS, type JobDefaults } from './job-options.js';

/** `JobDefaults` after checking: milliseconds, only the fields that were given. Options of one job fit too. */
export interface CheckedDefaults {
  readonly attempts?: number;
  readonly backoff?: CheckedBackoff;
  readonly timeoutMs?: number;
  readonly retentionMs?: number;
  readonly expiresInMs?: number;
}

/** The policy of one job, with all defaults. */
export interface JobPolicy {
  readonly attempts: number;
  readonly backoff: CheckedBackoff;
  /** `undefined`: no limit. */
  readonly timeoutMs: number | undefined;
  readonly retentionMs: number;
  /** `undefined`: never. */
  readonly expiresInMs: number | undefined;
}

/** The defaults of Godwit. */
export const DEFAULTS: JobPolicy = Object.freeze({
  attempts: 3,
  backoff: Object.freeze({ type: 'exponential', delay: 1_000, max: 3_600_000, jitter: 0.2 } as const),
  timeoutMs: undefined,
  retentionMs: 0,
  expiresInMs: undefined,
});

/** The rule behind `checkDefaults`, for use inside other rules. */
export const readDefaults: Rule<CheckedDefaults> = shape(POLICY_FIELDS);

/**
 * Checks the defaults of a queue or of the module.
 *
 * @param path how errors call them: `forRoot().defaults`.
 * @throws {InvalidOptionError} unless `report` collects.
 */
export function checkDefaults(
  defaults: JobDefaults | undefined,
  path: string,
  report: Report = refuse,
): CheckedDefaults {
  return (defaults === undefined ? undefined : readDefaults(defaults, path, report)) ?? {};
}

/** A value of the job wins over its queue's, which wins over the module's. */
export function mergeJobPolicy(
  job: CheckedDefaults,
  queue: CheckedDefaults,
  module: CheckedDefaults,
): JobPolicy {
  return {
    attempts: job.attempts ?? queue.attempts ?? module.attempts ?? DEFAULTS.attempts,
    backoff: job.backoff ?? queue.backoff ?? module.backoff ?? DEFAULTS.backoff,
    timeoutMs: job.timeoutMs ?? queue.timeoutMs ?? module.timeoutMs,
    retentionMs: job.retentionMs ?? queue.retentionMs ?? module.retentionMs ?? DEFAULTS.retentionMs,
    expiresInMs: job.expiresInMs ?? queue.expiresInMs ?? module.expiresInMs,
  };
}
