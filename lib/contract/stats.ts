import type { DayStats, NameStats, QueueStats, StatsCounts } from '../job/queue-stats.js';

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

interface Counts extends Mutable<Omit<StatsCounts, 'byName'>> {
  readonly byName: Record<string, Mutable<NameStats>>;
}

/** The counters of each day, fields and values in turn, as people read them. */
export function readStats(days: readonly { date: string; counters: readonly string[] }[]): QueueStats {
  const total = nothing();
  const read = days.map(({ date, counters }): DayStats => {
    const day = nothing();
    for (let i = 0; i < counters.length; i += 2) {
      // Somebody may have written over it.
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

/** The whole of a kind is the sum of its names. */
function add(counts: Counts, field: string, count: number): void {
  if (field === 'cancelled') counts.cancelled += count;
  const stop = field.indexOf(':');
  const kind = field.slice(0, Math.max(stop, 0));
  if (kind !== 'processed' && kind !== 'failed' && kind !== 'dead') return;
  const ofName = (counts.byName[field.slice(stop + 1)] ??= { processed: 0, failed: 0, dead: 0 });
  ofName[kind] += count;
  counts[kind] += count;
}
