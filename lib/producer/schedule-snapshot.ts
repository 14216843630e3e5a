import type { StoredSchedule } from '../contract/schedule-verbs.js';
import type { ScheduleRule, ScheduleTemplate } from '../options/schedule-options.js';
import { ownerOf } from '../contract/declaration-verbs.js';
import { readRecord } from '../schedule/record.js';

/** A schedule as it stood when it was asked for. */
export interface ScheduleSnapshot<Data = unknown> {
  /** Id of the schedule. */
  readonly id: string;
  /** Name of its queue. */
  readonly queue: string;
  /** As it was given, moments as ms; null where the record was written by hand or by a newer version and cannot be read. */
  readonly rule: ScheduleRule | null;
  /** What job it makes; null as `rule` is. */
  readonly template: ScheduleTemplate<Data> | null;
  /** The next occurrence, without jitter; null while it is paused, and once it has ended. */
  readonly nextAt: Date | null;
  /** The last occurrence that made a job. */
  readonly lastAt: Date | null;
  /** The id of that job. */
  readonly lastJobId: string | null;
  /** Jobs made by occurrences. */
  readonly fired: number;
  /** Whether a person paused it. */
  readonly paused: boolean;
  /** Whether `limit` or `endAt` is reached: it stays listed and makes no jobs any more. */
  readonly ended: boolean;
  /** Whose code declares it with `@Schedule`; null where a person made it. */
  readonly owner: string | null;
  /** When it was made, by the clock of Redis. */
  readonly createdAt: Date;
}

export function toScheduleSnapshot(queue: string, stored: StoredSchedule): ScheduleSnapshot {
  const read = readRecord(stored.record);
  return {
    id: stored.id,
    queue,
    rule: read?.given ?? null,
    template: read?.template ?? null,
    nextAt: date(stored.nextAt),
    lastAt: date(stored.lastAt),
    lastJobId: stored.lastJob,
    fired: stored.fired,
    paused: stored.mode === 'paused',
    ended: stored.mode === 'ended',
    owner: ownerOf(stored.record),
    createdAt: new Date(stored.createdAt),
  };
}

function date(ms: number | null): Date | null {
  return ms === null ? null : new Date(ms);
}
