import type { PutSchedule } from './schedule-verbs.js';

/**
 * Schedules that come from code. Each process declares the whole set of those it has, and renews that while it lives; what only
 * sets named that no process declares any more goes, so that neither a second release beside the first nor a restart of all
 * processes removes what is still wanted.
 */
export interface DeclarationVerbs {
  /**
   * Declares a set and writes those of its schedules that are not yet as they should be, all in one step. Sets that were
   * withdrawn by their last process are pruned.
   */
  declare(queue: string, call: DeclareCall): Promise<DeclareAnswer>;
  /**
   * Lives on, and prunes sets whose processes went silent: not in a renewal that comes too late itself, since then Redis or its
   * clock may have stood still for all of them.
   */
  renew(queue: string, declaration: Declaration): Promise<RenewAnswer>;
  /** Ends a declaration at once, and prunes nothing: the next process may be about to declare the same. */
  withdraw(queue: string, declaration: Declaration): Promise<void>;
}

/** Who declares, and what. */
export interface Declaration {
  /** Unlike that of any other start of any process. */
  readonly process: string;
  /** A plain name; sets of other owners are not touched. */
  readonly owner: string;
  /** Plain text that is the same for the same schedules, and another one for others. */
  readonly set: string;
  /** How long it lives without a renewal. */
  readonly ttlMs: number;
}

export interface DeclareCall extends Declaration {
  /** Of all schedules in the set. */
  readonly ids: readonly string[];
  /** Those to write, each only if it is still as it was seen; their records begin as `ownedRecord` has it. */
  readonly puts: readonly PutSchedule[];
}

/**
 * `changed`: it is not as it was seen any more. `taken`: a live process of another owner declares it.
 */
export type PutOutcome = 'written' | 'changed' | 'taken';

export interface DeclareAnswer {
  /** For each of `puts`. */
  readonly outcomes: readonly PutOutcome[];
  readonly removed: readonly string[];
  /** The set is empty and no other one of this owner is left: there is nothing to renew, and nothing was declared. */
  readonly idle: boolean;
}

export type RenewAnswer =
  | {
      readonly kind: 'renewed';
      readonly removed: readonly string[];
      /** A set has gone: where it said otherwise of the same schedules, they have to be declared anew. */
      readonly shifted: boolean;
      /** As `DeclareAnswer.idle`; the declaration has ended. */
      readonly idle: boolean;
    }
  /** It ran out, or was removed with the queue. */
  | { readonly kind: 'unknown' };

/*
 * The record of a schedule that comes from code begins with a line that names its owner. One that a person made has none, so
 * that nothing but a person ever changes or removes it. JSON holds no line end, and no owner begins with a brace.
 */

/** The record as the code of this owner writes it. */
export function ownedRecord(owner: string, record: string): string {
  return `${owner}\n${record}`;
}

/** Whose code a record comes from; null where a person made it. */
export function ownerOf(record: string): string | null {
  const end = record.indexOf('\n');
  return end === -1 ? null : record.slice(0, end);
}

/** The record without its owner. */
export function withoutOwner(record: string): string {
  return record.slice(record.indexOf('\n') + 1);
}
