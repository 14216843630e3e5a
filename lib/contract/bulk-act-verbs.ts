import type { JobState } from '../job/job-state.js';

/** The records of acts on many jobs, for all queues of a prefix. No job needs these verbs to run. */
export interface BulkActVerbs {
  /** Replaces a record. Resolves to false, and changes nothing, if the record is not `before` any more. */
  put(change: BulkActChange): Promise<boolean>;
  /** All records, by id. */
  list(): Promise<ReadonlyMap<string, string>>;
}

/** A change of one record. */
export interface BulkActChange {
  readonly id: string;
  /** Name of the queue of the act. */
  readonly queue: string;
  /** The record as it was read. Empty: there is none. */
  readonly before: string;
  /** The new record. Empty: it is removed. */
  readonly after: string;
}

/** Records are removed this long after the last change of any of them. */
export const KEEP_BULK_ACTS_MS = 604_800_000;

/**
 * The states from which each kind of act takes jobs, in the order in which it lists them. A delayed job may be queued and start while
 * `cancel` works, so it lists the later states last.
 */
export const BULK_STATES = {
  retry: ['dead'],
  promote: ['delayed'],
  cancel: ['delayed', 'waiting', 'active'],
  remove: ['waiting', 'delayed', 'completed', 'dead', 'cancelled'],
} as const satisfies Readonly<Record<BulkKind, readonly JobState[]>>;

/** The change that a bulk act makes to each job. */
export type BulkKind = 'retry' | 'promote' | 'cancel' | 'remove';

export const BULK_KINDS = Object.keys(BULK_STATES) as BulkKind[];

/** An act on many jobs, as it was last reported: at most 10 s ago if it is running. */
export interface BulkAct {
  /** Its id. */
  readonly id: string;
  /** Name of the queue. */
  readonly queue: string;
  /** The change to each job. */
  readonly kind: BulkKind;
  /** The filter that it was started with. Ages count from `startedAt`. */
  readonly filter: Readonly<Record<string, unknown>>;
  /** Its rate; null: as fast as Redis answers. */
  readonly rate: {
    /** At most this many jobs ... */
    readonly max: number;
    /** ... in this many ms. */
    readonly per: number;
  } | null;
  /** Reason of a `cancel`. */
  readonly reason: string | null;
  /** The person or program that started it: the actor of `queue.as(actor)` or of the dashboard; null without one. */
  readonly startedBy: string | null;
  /** When it was started, by the clock of Redis. Jobs that were added or ended later are not affected. */
  readonly startedAt: Date;
  /** `interrupted`: the process that worked on it has ended, or has not reported for 10 s. `bulkActs.resume` continues it. */
  readonly state: 'running' | 'interrupted' | 'stopped' | 'done' | 'failed';
  /** How many jobs were in the states of the filter when it began. */
  readonly total: number;
  /** How many of them it has looked at. */
  readonly examined: number;
  /** How many jobs it has changed. */
  readonly done: number;
  /** How many matching jobs it could not change, because they had changed meanwhile. */
  readonly unchanged: number;
  /** Who stopped it. */
  readonly stoppedBy: string | null;
  /** Why it failed. */
  readonly error: string | null;
  /** When it was last reported. */
  readonly updatedAt: Date;
}

/** @internal The record in the store. Times are in ms. */
export interface BulkActRecord extends Omit<BulkAct, 'id' | 'startedAt' | 'updatedAt'> {
  readonly startedAt: number;
  readonly updatedAt: number;
  /** The process that works on it. */
  readonly runner: string;
  /** A filter of the dashboard that goes beyond `filter`. */
  readonly more: Readonly<Record<string, string>> | null;
}

/** An act without a report for this time is interrupted. */
export const SILENT_MS = 10_000;

/** Null for a record that another program or a newer version wrote. */
export function readBulkAct(text: string): BulkActRecord | null {
  try {
    const record = JSON.parse(text) as BulkActRecord;
    return BULK_KINDS.includes(record.kind) && typeof record.queue === 'string' ? record : null;
  } catch {
    return null;
  }
}

/** The acts in these records, the latest first. */
export function bulkActsOf(records: ReadonlyMap<string, string>, now: number): BulkAct[] {
  return [...records]
    .flatMap(([id, text]) => {
      const record = readBulkAct(text);
      return record ? [bulkActOf(id, record, now)] : [];
    })
    .toSorted((a, b) => b.startedAt.getTime() - a.startedAt.getTime() || (a.id < b.id ? 1 : -1));
}

/** The fields of a record that users see. */
export function bulkActOf(
  id: string,
  { startedAt, updatedAt, runner: _, more, filter, ...rest }: BulkActRecord,
  now: number,
): BulkAct {
  const isSilent = rest.state === 'running' && now - updatedAt > SILENT_MS;
  return {
    ...rest,
    id,
    filter: { ...filter, ...more },
    state: isSilent ? 'interrupted' : rest.state,
    startedAt: new Date(startedAt),
    updatedAt: new Date(updatedAt),
  };
}
