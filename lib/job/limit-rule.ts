/** How often jobs may start. */
export interface RateRule {
  /** Maximum number of starts, or total cost. */
  readonly max: number;
  /** The time in which `max` applies, in ms. */
  readonly per: number;
  readonly window: 'sliding' | 'fixed' | 'bucket';
  /** For a bucket: how many jobs may start at once after an idle time. For a sliding window: how many at once; all of `max` if it is not below that. */
  readonly burst: number;
}

/**
 * Limits of the jobs of a queue, one name or a group. `false` removes the limit of the rule that this one overrides: the rule
 * from the code, or the rule of all groups.
 */
export interface LimitRule {
  readonly rate?: RateRule | false;
  /** Maximum number of jobs that run at the same time, across all processes. */
  readonly concurrency?: number | false;
  /** For a queue: how jobs with a priority move up. */
  readonly aging?: AgingRule;
  /** For a queue or a name. */
  readonly breaker?: BreakerRule | false;
  /** For a queue or a name. */
  readonly retryBudget?: RetryBudgetRule | false;
  /** For groups: maximum number of waiting jobs. */
  readonly maxSize?: number | false;
  /** For groups: whether none of its jobs may start. */
  readonly paused?: boolean;
  /** For groups: how many jobs start for each job of a group with weight 1. */
  readonly weight?: number;
  /** For groups. `strict`: jobs run one at a time; a retried job blocks the next one. */
  readonly order?: 'fair' | 'strict';
  /** For all groups: which one is served next. */
  readonly fairness?: 'turns' | 'in-flight';
  /** For all groups, in strict order: whether the next job starts after one has died. The rule of one group does not change it. */
  readonly onDead?: 'continue' | 'block';
}

/** A circuit breaker: no job starts while too many runs fail. */
export interface BreakerRule {
  /** Number of failed runs that opens it. */
  readonly failures: number;
  /** Minimum share of failed runs, 0 to 1. */
  readonly ratio: number;
  /** Both count runs that ended within this time, in ms. */
  readonly window: number;
  /** Time in ms until probes may start. */
  readonly openFor: number;
  /** Number of jobs that start then. */
  readonly probes: number;
}

/** How often failed jobs may be retried. */
export interface RetryBudgetRule {
  readonly max: number;
  /** In this time, in ms. */
  readonly per: number;
  /** Further retries, in percent of the first attempts. */
  readonly percent?: number;
}

/** A waiting job moves up by `by` priorities every `everyMs`. */
export interface AgingRule {
  readonly every: number;
  readonly by: number;
}

/** `q`: the queue. `g`: all groups. `g:<group>`: one group. `n:<name>`: the jobs of one name. `s:<name>`: a limit that queues share. */
export type LimitField = string;
