import type { BreakerRule, LimitField, LimitRule, RateRule } from '../job/limit-rule.js';
import type { QueueRef } from './queue-ref.js';

export type { LimitField, LimitRule, RateRule, BreakerRule };

/** The current state of one limit. */
export interface LimitState {
  readonly field: LimitField;
  readonly code: LimitRule | null;
  readonly live: LimitRule | null;
  /** The result of both, and for a group also of the rule for all groups. */
  readonly rule: LimitRule;
  /** How many ms no job starts because of a hold. 0: jobs may start. */
  readonly blockedForMs: number;
  /** How many starts the rate has left. Null: there is no rate. */
  readonly left: number | null;
  /** Ms until the next start, if none is left. */
  readonly nextInMs: number;
  /** How many jobs wait in the line of a name or a group. */
  readonly waiting: number;
  /**
   * How many jobs hold a slot, without a dead one that stops its group. 0 if no concurrency is limited and no group is served by its
   * running jobs.
   */
  readonly running: number;
  /** State of the circuit breaker; null if there is none. */
  readonly breaker: BreakerState | null;
  /** How many ms the retry budget would delay a retry now. 0: it has room, or there is no budget. */
  readonly retryDelayMs: number;
  /** In a group with strict order: the job that must end before the next one starts. Null if there is none. */
  readonly holder: string | null;
  /** Whether the job that holds the group is dead, so that the group is stopped until a person acts (`onDead: 'block'`). */
  readonly isStopped: boolean;
  /**
   * Queues of the workers that have places of this shared limit, wait for one, or have asked for one within a lease. In no particular
   * order, and with repetitions. Empty for all other limits.
   */
  readonly users: readonly string[];
}

/** The limits of a queue, and the number of its groups. */
export interface LimitsOverview {
  readonly limits: readonly LimitState[];
  readonly groups: GroupCounts;
}

/**
 * Numbers of groups. A group that is paused, or whose concurrency is used up, is in neither; if many groups are ready, some whose
 * concurrency is used up count as ready.
 */
export interface GroupCounts {
  /** Jobs of the group wait, and its own limits let one start. */
  readonly ready: number;
  /** The rate of the group is used up, or no job waits but its last starts still count. */
  readonly resting: number;
  /** A dead job stops the group. Such a group may count as ready too. With several dead jobs it counts several times. */
  readonly stopped: number;
}

/** `half-open`: the time is over; probe jobs may start, or run. */
export type BreakerState = 'closed' | 'open' | 'half-open';

/** How runs that count for one limit ended. */
export interface RunReport {
  readonly field: LimitField;
  readonly completed: number;
  readonly failed: number;
  /** How many retries the budget must book. Below 0: how many booked retries do not happen. */
  readonly retries: number;
  /** How many runs were first attempts. 0 unless the retry budget of the limit has a percentage. */
  readonly firsts: number;
  /** A person closes the breaker. @default false */
  readonly closes?: boolean;
}

export interface RunReportAnswer {
  /** The change of the breaker. `tried`: a probe failed, so the breaker stays open. */
  readonly breaker: '' | 'opened' | 'tried' | 'closed';
  /** Ms until the retry budget lets the first retry run; may be below 0. */
  readonly firstMs: number;
  /** Ms between each further retry and the one before. */
  readonly eachMs: number;
}

/** Corrects the count of a limit, or holds starts back. */
export interface LimitCharge {
  readonly field: LimitField;
  /** Nothing starts for this many ms. Below 0: a hold ends. */
  readonly holdMs: number;
  /** Added to the number of starts that its rate has counted. May be negative. */
  readonly count: number;
  /** When the starts were counted that a negative count takes back, in ms since 1970 by the clock of the store. @default now */
  readonly countedAt?: number;
  /** The probes of a breaker called no handler, so the next ones may start now. @default false */
  readonly probesAgain?: boolean;
}

/** A worker's call to the shared limits of its queue: it asks for starts, or gives back those that it did not use. */
export interface ShareCall {
  readonly limits: readonly string[];
  readonly worker: string;
  /**
   * The sequence number of the exchange that needs the starts. A repeated call is granted the same number and counts once. A call with
   * an earlier number only renews the lease.
   */
  readonly seq: number;
  /** Jobs of the queue that this worker runs now. */
  readonly running: number;
  /** How many more jobs the worker would start. */
  readonly want: number;
  /** The cost of the jobs claimed so far from the grant of this `seq`; null before the claim. */
  readonly kept: number | null;
  /** Only with `kept`: the queue had no job for some of the granted starts, so this worker does not wait for a place. @default false */
  readonly unused?: boolean;
  /** How long the worker keeps its places without a further call. */
  readonly leaseMs: number;
}

export interface ShareAnswer {
  /** How many jobs may start now. */
  readonly granted: number;
  /** When these starts were counted, in ms since 1970 by the clock of the store. */
  readonly grantedAt: number;
  /** Milliseconds until a rate limit grants more; null if no rate limit refuses jobs. */
  readonly opensInMs: number | null;
  /** Queues whose workers found no place earlier and may find one now. */
  readonly woken: readonly string[];
  /** Whether the store does not have one of the limits, because its data was lost. Then nothing is granted. */
  readonly isLost: boolean;
}

/**
 * Limits of queues, names and groups. A field `s:<name>` names a limit that several queues share;
 * the queue of the call is then ignored.
 */
export interface LimitVerbs {
  /**
   * Sets one part of a rule, or removes it with null. Fields set live override those from the code, and live fields that the rule
   * does not have stay as they are.
   */
  set(queue: QueueRef, field: LimitField, part: 'code' | 'live', rule: LimitRule | null): Promise<void>;
  /** Makes the next claims examine all lines, also those that rest. */
  wakeLines(queue: QueueRef): Promise<void>;
  /** Reports to circuit breakers and retry budgets how runs ended. Returns an answer for each report. */
  report(queue: QueueRef, reports: readonly RunReport[]): Promise<readonly RunReportAnswer[]>;
  charge(queue: QueueRef, changes: readonly LimitCharge[]): Promise<void>;
  /** The existing limits of the queue, of all groups and of names. */
  list(queue: QueueRef): Promise<readonly LimitState[]>;
  /** `list`, and the number of groups. */
  overview(queue: QueueRef): Promise<LimitsOverview>;
  group(queue: QueueRef, group: string): Promise<LimitState>;
  /**
   * Asks the shared limits for starts and places. This is a separate call, because a cluster may store them on another node than
   * the queue.
   */
  share(queue: QueueRef, call: ShareCall): Promise<ShareAnswer>;
  /** All shared limits in the store of this queue. */
  shared(queue: QueueRef): Promise<readonly LimitState[]>;
  /** A page of the groups that have waiting jobs, or running jobs with a slot. */
  groups(queue: QueueRef, cursor: string, limit: number): Promise<GroupStates>;
  /** A page of the groups that dead jobs stop. */
  stoppedGroups(queue: QueueRef, cursor: string, limit: number): Promise<GroupStates>;
  /** A page of the groups that have a rule of their own, whether they have jobs or not. */
  ruledGroups(queue: QueueRef, cursor: string, limit: number): Promise<GroupStates>;
}

/** A page of groups. */
export interface GroupStates {
  readonly groups: readonly LimitState[];
  readonly next: string | null;
}

/** The circuit breaker of a limit, after the name of the queue in a line of the log. */
export function breakerText(field: LimitField): string {
  const whose = `${field.startsWith('s:') ? 'the shared limit ' : ''}'${field.slice(2)}'`;
  return field === 'q' ? 'its circuit breaker' : `the circuit breaker of ${whose}`;
}

/** Shared limits are stored in the keys of the queue without a name. */
export const SHARED = '';

/** The name of the queue whose keys store a limit. */
export function placeOf(queue: string, field: LimitField): string {
  return field.startsWith('s:') ? SHARED : queue;
}
