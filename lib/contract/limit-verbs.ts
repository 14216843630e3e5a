import type { QueueRef } from './queue-ref.js';

/** How often jobs may start. */
export interface RateRule {
  /** How many starts, or so much cost. */
  readonly max: number;
  /** In so many ms. */
  readonly per: number;
  readonly window: 'sliding' | 'fixed' | 'bucket';
  /** Of a bucket: how many may start at once after a rest. */
  readonly burst: number;
}

/**
 * What limits the jobs of a queue, of one name, or of a group. `false` takes back what a rule says that this one is laid over: the code, or
 * all groups.
 */
export interface LimitRule {
  readonly rate?: RateRule | false;
  /** Jobs that run at the same time, in all processes. */
  readonly concurrency?: number | false;
  /** Of groups: waiting jobs at most. */
  readonly maxSize?: number | false;
  /** Of groups: none of its jobs starts. */
  readonly paused?: boolean;
  /** Of groups: how many turns it gets for one of the others. */
  readonly weight?: number;
  /** Of groups. `strict`: one job after another, also where one is retried. */
  readonly order?: 'fair' | 'strict';
  /** Of groups in strict order: whether the next job starts when one is dead. */
  readonly onDead?: 'continue' | 'block';
}

/** `q`: the queue. `g`: all groups. `g:<group>`: one group. `n:<name>`: the jobs of one name. */
export type LimitField = string;

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
  /** Nothing starts for so long. */
  readonly holdMs: number;
  /** What to add to the count of its rate; may be negative. */
  readonly count: number;
}

/** Limits of queues, names and groups. */
export interface LimitVerbs {
  /** Sets one part of a rule, or removes it with null. What was set live wins over the code, field by field. */
  set(queue: QueueRef, field: LimitField, part: 'code' | 'live', rule: LimitRule | null): Promise<void>;
  charge(queue: QueueRef, changes: readonly LimitCharge[]): Promise<void>;
  /** Those of the queue, of all groups and of names; only those that there are. */
  list(queue: QueueRef): Promise<readonly LimitState[]>;
  group(queue: QueueRef, group: string): Promise<LimitState>;
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
  return rule.rate ? `${kind}r` : kind;
}
