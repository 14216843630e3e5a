import type { PutSchedule } from './schedule-verbs.js';
import type { QueueRef } from './queue-ref.js';

/**
 * Schedules from code. Each process declares the set of its schedules and renews the declaration while it lives. A schedule is
 * removed when no live declaration contains it. So neither a rolling deploy nor a restart of all processes removes a schedule in
 * use.
 */
export interface DeclarationVerbs {
  /** Declares a set and writes its new and changed schedules in one step. Sets without a process are pruned. */
  declare(queue: QueueRef, call: DeclareCall): Promise<DeclareAnswer>;
  /**
   * Renews a declaration, and prunes sets whose processes went silent. A renewal that is late itself prunes nothing, because then Redis or
   * its clock may have stopped for all processes.
   */
  renew(queue: QueueRef, declaration: Declaration): Promise<RenewAnswer>;
  /** Ends a declaration at once, and prunes nothing: the next process may be about to declare the same set. */
  withdraw(queue: QueueRef, declaration: Declaration): Promise<void>;
}

/** A process and the set of schedules that it declares. */
export interface Declaration {
  /** Id of this start of the process. */
  readonly process: string;
  /** A plain name; sets of other owners are not changed. */
  readonly owner: string;
  /** A digest of the schedules: equal sets have equal text. */
  readonly set: string;
  /** How long the declaration is valid without a renewal. */
  readonly ttlMs: number;
}

export interface DeclareCall extends Declaration {
  /** Ids of all schedules in the set. */
  readonly ids: readonly string[];
  /** The schedules to write, each only if its revision is unchanged. `ownedRecord` makes their records. */
  readonly puts: readonly PutSchedule[];
}

/** `changed`: the revision has changed meanwhile. `taken`: a live process of another owner declares the schedule. */
export type PutOutcome = 'written' | 'changed' | 'taken';

export interface DeclareAnswer {
  /** The outcome of each of `puts`. */
  readonly outcomes: readonly PutOutcome[];
  readonly removed: readonly string[];
  /** Whether the set is empty and this owner has no other set. Then nothing was declared, and nothing must be renewed. */
  readonly idle: boolean;
}

export type RenewAnswer =
  | {
      readonly kind: 'renewed';
      readonly removed: readonly string[];
      /** Another set was pruned: schedules that both contained must be declared again, because the other set may have changed them. */
      readonly shifted: boolean;
      /** Like `DeclareAnswer.idle`. The declaration has ended. */
      readonly idle: boolean;
    }
  /** The declaration expired, or was removed with the queue. */
  | { readonly kind: 'unknown' };

/*
 * The record of a schedule from code begins with a line that names its owner. A schedule that was created at run time has no such line, and
 * code never changes or removes it. JSON has no line break, and no owner begins with a brace.
 */

/** The record of a schedule from the code of this owner. */
export function ownedRecord(owner: string, record: string): string {
  return `${owner}\n${record}`;
}

/** The owner of a record; null if the schedule was created at run time. */
export function ownerOf(record: string): string | null {
  const end = record.indexOf('\n');
  return end === -1 ? null : record.slice(0, end);
}

/** The record without its owner. */
export function withoutOwner(record: string): string {
  return record.slice(record.indexOf('\n') + 1);
}
