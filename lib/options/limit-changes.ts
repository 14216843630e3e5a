import type { BreakerRule, LimitRule, RetryBudgetRule } from '../job/limit-rule.js';
import { boolean, field, integer, type Rule } from './check.js';
import {
  breakerOf,
  fractionUpTo,
  MANY,
  MOST_RUNNING,
  readBreakerChange,
  readRate,
  readRetryBudget,
  shapeWithAny,
  type BreakerOptions,
  type RateOptions,
  type RetryBudgetOptions,
} from './limit-options.js';

/** A limit of one group, one name or the queue, set at run time. `null` removes the limit that the code sets. */
export interface LimitChange {
  /** How often jobs may start. @default the value in the code */
  readonly rate?: RateOptions | null;
  /** How many jobs may run at the same time. @default the value in the code */
  readonly concurrency?: number | null;
}

/** A limit that several queues share, set at run time. */
export interface SharedLimitChange extends LimitChange {
  /**
   * The numbers of the circuit breaker. Refused if the code of the workers has no breaker.
   *
   * @default the value in the code
   */
  readonly breaker?: Omit<BreakerOptions, 'isFailure'> | null;
}

/** Limits of a queue or a job name, set at run time. */
export interface QueueLimitChange extends SharedLimitChange {
  /** The retry budget. Refused if the code of the workers does not set it, or its `percent`. @default the value in the code */
  readonly retryBudget?: RetryBudgetOptions | null;
}

/** Limits of one group, set at run time. */
export interface GroupChange extends LimitChange {
  /** How many jobs of the group may wait. @default the value in the code */
  readonly maxSize?: number | null;
  /** How many jobs of the group start for each job of a group with weight 1: 0.01 to 1,000. @default 1 */
  readonly weight?: number;
  /** Whether the group is paused: none of its jobs starts. @default false */
  readonly paused?: boolean;
}

/** `null` removes the limit that the code sets; the store writes this as false. */
function orNull<T>(read: Rule<T>): Rule<T | false> {
  return (value, path, report) => (value === null ? false : read(value, path, report));
}

const CHANGE_FIELDS = {
  rate: field('rate', orNull(readRate)),
  concurrency: field('concurrency', orNull(integer(1, MOST_RUNNING))),
} as const;

const SHARED_CHANGE_FIELDS = {
  ...CHANGE_FIELDS,
  breaker: field('breaker', orNull<BreakerRule>(breakerOf(readBreakerChange))),
} as const;

export const readSharedLimitChange: Rule<LimitRule> = shapeWithAny(SHARED_CHANGE_FIELDS);

export const readQueueLimitChange: Rule<LimitRule> = shapeWithAny({
  ...SHARED_CHANGE_FIELDS,
  retryBudget: field('retryBudget', orNull<RetryBudgetRule>(readRetryBudget)),
});

export const readGroupChange: Rule<LimitRule> = shapeWithAny({
  ...CHANGE_FIELDS,
  maxSize: field('maxSize', orNull(integer(1, MANY))),
  weight: field('weight', fractionUpTo(1_000)),
  paused: field('paused', boolean),
});
