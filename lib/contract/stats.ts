import { RULES } from '../job/rules.js';

/** Counters of one job name. */
export interface NameStats {
  /** Jobs that completed. */
  readonly processed: number;
  /** Attempts that failed; a job that died in its third attempt counts three. */
  readonly failed: number;
  /** Jobs that died. */
  readonly dead: number;
}

/** Counters of a queue. */
export interface StatsCounts extends NameStats {
  /** Jobs that ended as cancelled. */
  readonly cancelled: number;
  /**
   * The counters by job name, for the names that occurred. The object has no prototype, so any name can be looked up. Beyond the
   * first 200 names of a day all others are counted under the empty name, as are jobs whose name is lost.
   */
  readonly byName: Readonly<Record<string, NameStats>>;
}

/** Counters of a queue on one day. */
export interface DayStats extends StatsCounts {
  /** `yyyy-mm-dd`, UTC by the clock of Redis. */
  readonly date: string;
}

/** The result of `Queue.stats`. */
export interface QueueStats {
  /** The newest first, including days without jobs. */
  readonly days: readonly DayStats[];
  /** Sum of these days. */
  readonly total: StatsCounts;
}

/** The counters of the newest days, the newest first, without names. */
export type CountedDays = readonly (NameStats & { readonly date: string })[];

export function countedDays({ days }: QueueStats): CountedDays {
  return days.map(({ date, processed, failed, dead }) => ({ date, processed, failed, dead }));
}

/**
 * The counts between two readings of two or more days. Each day is compared with itself, because the sum of the days decreases at
 * midnight, when the oldest day is no longer read. Null if the readings cannot be compared: too much time has passed between them,
 * or the queue was deleted.
 */
export function countedBetween(first: CountedDays, last: CountedDays): NameStats | null {
  if (!last.some(({ date }) => date === first[0]?.date)) return null;
  const change = { processed: 0, failed: 0, dead: 0 };
  for (const day of last) {
    const before = first.find(({ date }) => date === day.date);
    change.processed += day.processed - (before?.processed ?? 0);
    change.failed += day.failed - (before?.failed ?? 0);
    change.dead += day.dead - (before?.dead ?? 0);
  }
  return Math.min(change.processed, change.failed, change.dead) < 0 ? null : change;
}

/** The name under which to count a job: its own if it is among the first `namesPerDay`, otherwise the empty name. */
export function countedName(name: string, known: ReadonlySet<string> | ReadonlyMap<string, unknown>): string {
  const named = known.size - Number(known.has(''));
  return known.has(name) || named < RULES.namesPerDay ? name : '';
}

export type Mutable<T> = { -readonly [K in keyof T]: T[K] };

interface Counts extends Mutable<Omit<StatsCounts, 'byName'>> {
  readonly byName: Record<string, Mutable<NameStats>>;
}

/** The counters of each day as `QueueStats`. `counters` has fields and values alternately. */
export function readStats(days: readonly { date: string; counters: readonly string[] }[]): QueueStats {
  const total = nothing();
  const read = days.map(({ date, counters }): DayStats => {
    const day = nothing();
    for (let i = 0; i < counters.length; i += 2) {
      // Another program may have overwritten it.
      const count = Number(counters[i + 1]) || 0;
      add(day, counters[i]!, count);
      add(total, counters[i]!, count);
    }
    return { date, ...day };
  });
  return { days: read, total };
}

function nothing(): Counts {
  return { processed: 0, failed: 0, dead: 0, cancelled: 0, byName: Object.create(null) as Counts['byName'] };
}

/** Adds a counter of one name; the total of a kind is the sum of its names. */
function add(counts: Counts, field: string, count: number): void {
  if (field === 'cancelled') counts.cancelled += count;
  const stop = field.indexOf(':');
  const kind = field.slice(0, Math.max(stop, 0));
  if (kind !== 'processed' && kind !== 'failed' && kind !== 'dead') return;
  const ofName = (counts.byName[field.slice(stop + 1)] ??= { processed: 0, failed: 0, dead: 0 });
  ofName[kind] += count;
  counts[kind] += count;
}
