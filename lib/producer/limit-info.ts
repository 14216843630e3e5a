import type { LimitState } from '../contract/limit-verbs.js';
import type { JobState } from '../job/job-state.js';

/** A rate limit. */
export interface RateInfo {
  /** Maximum number of starts, or total cost, in the time `per`. */
  readonly max: number;
  /** The time in ms. */
  readonly perMs: number;
  /** How starts are counted. */
  readonly window: 'sliding' | 'fixed' | 'bucket';
  /** How many jobs may start at once: in a bucket after an idle time, in a sliding window at any time. */
  readonly burst: number;
}

/** A circuit breaker at the time of the call. */
export interface BreakerInfo {
  /** `'open'`: no job starts. `'half-open'`: probes may start, or run. */
  readonly state: 'closed' | 'open' | 'half-open';
  /** Number of failed runs that opens it. */
  readonly failures: number;
  /** Minimum share of failed runs. */
  readonly ratio: number;
  /** The time in which runs are counted, in ms. */
  readonly windowMs: number;
  /** How long no job starts after it has opened, in ms. */
  readonly openForMs: number;
  /** How many jobs start then. */
  readonly probes: number;
}

/** A retry budget. */
export interface RetryBudgetInfo {
  /** Maximum number of retries in the time. */
  readonly max: number;
  /** The time in ms. */
  readonly perMs: number;
  /** Further retries, in percent of the first attempts that end in this time; null if there are none. */
  readonly percent: number | null;
  /** How many ms after its backoff a job that fails now is retried, because the budget is used up; 0 while it has room. */
  readonly delayMs: number;
}

/** A limit at the time of the call: its rule and how much of it is used. */
export interface LimitInfo {
  /** The target of the limit. */
  readonly of: 'queue' | 'name' | 'groups' | 'group' | 'shared';
  /** Name of the job, group or shared limit; null for the limits of the queue and of all groups. */
  readonly name: string | null;
  /** How often jobs may start; null if unlimited. */
  readonly rate: RateInfo | null;
  /** How many jobs may run at the same time; null if unlimited. */
  readonly concurrency: number | null;
  /** The circuit breaker; null if there is none. */
  readonly breaker: BreakerInfo | null;
  /** How many failed jobs may be retried in a time; null if there is no limit. */
  readonly retryBudget: RetryBudgetInfo | null;
  /** How many jobs of a group may wait; null if unlimited. */
  readonly maxSize: number | null;
  /** How many jobs of the group start for each job of a group with weight 1. */
  readonly weight: number;
  /** Which group starts the next job; null for a limit that is not of groups. */
  readonly fairness: 'turns' | 'in-flight' | null;
  /** Whether the group is paused. */
  readonly paused: boolean;
  /** Whether a part of the limit was set at run time and overrides the code. */
  readonly isLive: boolean;
  /** How many jobs the rate would let start now; null without a rate. */
  readonly left: number | null;
  /** Milliseconds until the next job may start; 0 if one may start now. */
  readonly nextInMs: number;
  /** Remaining time of a hold (`hold()`, or `RateLimited` thrown by a handler) in ms; 0 without one. */
  readonly heldForMs: number;
  /** How many jobs of the name or the group wait. */
  readonly waiting: number;
  /**
   * How many jobs run, if the concurrency is limited or groups have `fairness: 'in-flight'`; otherwise 0. In strict order, a job that waits
   * for its retry counts too; a dead one does not.
   */
  readonly running: number;
  /**
   * Of a group in strict order: the job that must end before the next one starts. It runs, waits for a retry, or is dead (with `onDead: 'block'`).
   * Otherwise null.
   */
  readonly holder: string | null;
  /** Whether the holder is dead: the group is stopped until you retry or remove it. */
  readonly isStopped: boolean;
}

/** A limit that keeps waiting jobs from starting at the time of the call. */
export interface HoldReason {
  /** Whose limit it is. */
  readonly of: LimitInfo['of'];
  /** Name of the job, group or shared limit; null for the queue. */
  readonly name: string | null;
  /** Why: a hold, an open circuit breaker, a rate, a concurrency, or a paused group. */
  readonly reason: 'held' | 'breaker' | 'rate' | 'concurrency' | 'paused';
  /** When the next job may start, in ms; null if that depends on a running job, on a person, or on the cost of the job. */
  readonly opensInMs: number | null;
  /** The reason as a sentence. */
  readonly text: string;
}

/**
 * @internal Null if this limit lets a job start now.
 * @param job its id, if it is known: it does not wait for itself if it holds its group. `isFirst`: another job waits behind it.
 * @param holderState the state of the job that holds the group, if it is known.
 */
export function reasonOf(
  limit: LimitInfo,
  {
    id,
    cost = 1,
    isFirst,
  }: { readonly id?: string; readonly cost?: number; readonly isFirst?: boolean } = {},
  holderState?: JobState,
): HoldReason | null {
  const { of, name, paused, heldForMs, breaker, nextInMs, left, concurrency, running, holder } = limit;
  const whose =
    of === 'queue' ? 'the queue' : of === 'shared' ? `the shared limit '${name}'` : `the ${of} '${name}'`;
  const reason = (why: HoldReason['reason'], opensInMs: number | null, text: string): HoldReason => ({
    of,
    name,
    reason: why,
    opensInMs,
    text,
  });
  if (paused) return reason('paused', null, `${whose} is paused`);
  // If a breaker or the rate holds jobs back for longer, that is the reason.
  if (heldForMs > 0 && heldForMs >= nextInMs)
    return reason('held', heldForMs, `${whose} is held for ${waitText(heldForMs)}`);
  if (breaker && breaker.state !== 'closed' && nextInMs > 0)
    return reason(
      'breaker',
      nextInMs,
      `the circuit breaker of ${whose} is ${breaker.state} for ${waitText(nextInMs)}`,
    );
  if (left !== null && left < 1)
    return reason('rate', nextInMs, `the rate of ${whose} is used up for ${waitText(nextInMs)}`);
  if (isTooCostly(limit, cost)) {
    const which = isFirst ? `job '${id}' before it` : 'the job';
    const text = `the rate of ${whose} has ${left} of ${limit.rate!.max} left, and ${which} costs ${cost}`;
    return reason('rate', null, text);
  }
  if (holder !== null && holder === id) return null;
  const advice = ADVICE[limit.isStopped ? 'dead' : (holderState ?? 'waiting')];
  if (holder !== null)
    return reason(
      'concurrency',
      null,
      `${whose} runs one job at a time, and job '${holder}' holds it${advice ? `: ${advice}` : ''}`,
    );
  if (concurrency !== null && running >= concurrency)
    return reason('concurrency', null, `${running} of ${concurrency} jobs of ${whose} run`);
  return null;
}

/**
 * Whether the cost of a job does not fit what is left of the rate. False if it is unknown: then `left` is less than what the rate has
 * left, because starts are spaced evenly or a breaker lets only probes start.
 */
function isTooCostly({ of, rate, breaker, left }: LimitInfo, cost: number): boolean {
  if (of === 'shared' || !rate || left === null || rate.window === 'bucket' || rate.burst < rate.max)
    return false;
  return (breaker?.state ?? 'closed') === 'closed' && Math.min(cost, rate.max) > left;
}

/** The state of the job that holds a group in strict order, and what to do about it. */
const ADVICE: Partial<Record<JobState, string>> = {
  active: 'it runs',
  delayed: 'it waits for its next attempt',
  dead: 'it is dead, so retry or remove it',
};

/** Tenths of a second matter only for short times. */
function waitText(ms: number): string {
  if (ms < 1_000) return `${ms} ms`;
  if (ms < 120_000) return `${Math.round(ms / 100) / 10} s`;
  return ms < 7_200_000 ? `${Math.round(ms / 60_000)} min` : `${Math.round(ms / 3_600_000)} h`;
}

/** @internal Whether a hold or a circuit breaker keeps its jobs from starting until it ends or a person releases it. */
export function stopsJobs({ heldForMs, breaker }: Pick<LimitInfo, 'heldForMs' | 'breaker'>): boolean {
  return heldForMs > 0 || (breaker !== null && breaker.state !== 'closed');
}

/** The queues whose workers use a shared limit now, by name. */
export function usersOf({ users }: Pick<LimitState, 'users'>): readonly string[] {
  return [...new Set(users)].toSorted((a, b) => a.localeCompare(b));
}

const KINDS: Readonly<Record<string, LimitInfo['of']>> = { 'g:': 'group', 'n:': 'name', 's:': 'shared' };

/** @internal */
export function infoOf({
  field: of,
  live,
  rule: limit,
  left,
  nextInMs,
  blockedForMs,
  waiting,
  running,
  breaker: state,
  retryDelayMs: delayMs,
  holder,
  isStopped,
}: LimitState): LimitInfo {
  const { rate, concurrency, maxSize, weight = 1, paused = false, order, fairness = 'turns' } = limit;
  const { breaker, retryBudget } = limit;
  const kind = of === 'q' ? 'queue' : of === 'g' ? 'groups' : KINDS[of.slice(0, 2)]!;
  return {
    of: kind,
    name: of.length > 1 ? of.slice(2) : null,
    rate: rate ? { max: rate.max, perMs: rate.per, window: rate.window, burst: rate.burst } : null,
    concurrency: order === 'strict' ? 1 : concurrency || null,
    breaker:
      breaker && state
        ? {
            state,
            failures: breaker.failures,
            ratio: breaker.ratio,
            windowMs: breaker.window,
            openForMs: breaker.openFor,
            probes: breaker.probes,
          }
        : null,
    retryBudget: retryBudget
      ? { max: retryBudget.max, perMs: retryBudget.per, percent: retryBudget.percent ?? null, delayMs }
      : null,
    maxSize: maxSize || null,
    weight,
    fairness: kind === 'groups' || kind === 'group' ? fairness : null,
    paused,
    isLive: live !== null && Object.keys(live).length > 0,
    left,
    nextInMs,
    heldForMs: blockedForMs,
    waiting,
    running,
    holder,
    isStopped,
  };
}
