import type { LimitField, LimitRule, RateRule } from '../job/limit-rule.js';
import type { QueueRef } from './queue-ref.js';

export type { LimitField, LimitRule, RateRule };

/** One limit as it is now. */
export interface LimitState {
  readonly field: LimitField;
  readonly code: LimitRule | null;
  readonly live: LimitRule | null;
  /** What comes of both, and for a group of the rule for all groups. */
  readonly rule: LimitRule;
  /** For how long nothing starts because a handler said so, ms; 0: it may. */
  readonly blockedForMs: number;
  /** Starts that the rate has left; null: there is no rate. */
  readonly left: number | null;
  /** Until the next start, where none is left. */
  readonly nextInMs: number;
  /** Jobs of its line, of a name or a group. */
  readonly waiting: number;
  /** Jobs that hold a slot; 0 where no concurrency is limited. */
  readonly running: number;
}

/** Corrects what a limit has counted, or holds starts back. */
export interface LimitCharge {
  readonly field: LimitField;
  /** Nothing starts for so long; below 0: a hold ends. */
  readonly holdMs: number;
  /** What to add to the count of its rate; may be negative. */
  readonly count: number;
}

/** What a worker asks of the shared limits of its queue, or gives back. */
export interface ShareCall {
  readonly limits: readonly string[];
  readonly worker: string;
  /** The number of the exchange that it is for: a repetition is granted the same, and counts once. */
  readonly seq: number;
  /** Jobs of the queue that this worker runs now. */
  readonly running: number;
  /** How many more it would start. */
  readonly want: number;
  /** What it has claimed of what this number was granted, by its cost; null before it has claimed. */
  readonly kept: number | null;
  /** For so long its places count without a further call. */
  readonly leaseMs: number;
}

export interface ShareAnswer {
  /** How many may start now. */
  readonly granted: number;
  /** When a rate grants more; null: none refuses any. */
  readonly opensInMs: number | null;
  /** A concurrency refuses more. */
  readonly isFull: boolean;
  /** Queues whose workers found no place before, and may find one now. */
  readonly woken: readonly string[];
}

/** Limits of queues, names and groups. A field `s:<name>` is a limit that several queues share, whatever the queue of the call. */
export interface LimitVerbs {
  /** Sets one part of a rule, or removes it with null. What was set live wins over the code, field by field. */
  set(queue: QueueRef, field: LimitField, part: 'code' | 'live', rule: LimitRule | null): Promise<void>;
  charge(queue: QueueRef, changes: readonly LimitCharge[]): Promise<void>;
  /** Those of the queue, of all groups and of names; only those that there are. */
  list(queue: QueueRef): Promise<readonly LimitState[]>;
  group(queue: QueueRef, group: string): Promise<LimitState>;
  /** Asks shared limits for starts and places, in a call of its own: in a cluster they are on another node than the queue. */
  share(queue: QueueRef, call: ShareCall): Promise<ShareAnswer>;
  /** The shared limits of the store of this queue. */
  shared(queue: QueueRef): Promise<readonly LimitState[]>;
  /** A page of the groups that have waiting jobs, or running ones that hold a slot. */
  groups(
    queue: QueueRef,
    cursor: string,
    limit: number,
  ): Promise<{ readonly groups: readonly LimitState[]; readonly next: string | null }>;
}

/** What a claim must look for because of a rule, as `flag_limits` of the scripts has it. */
export function flagsOf(field: LimitField, rule: LimitRule): string {
  const kind = field.startsWith('g:') ? 'go' : field === 'g' ? 'g' : field === 'q' ? 'q' : 'n';
  return `${kind}${rule.rate ? 'r' : ''}${rule.aging ? 'a' : ''}`;
}
