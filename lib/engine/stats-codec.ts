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
      const count = Number(counters[i + 1]);
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

function add(counts: Counts, field: string, count: number): void {
  const stop = field.indexOf(':');
  const kind = stop === -1 ? field : field.slice(0, stop);
  if (stop === -1) {
    if (kind === 'cancelled' || isOfNames(kind)) counts[kind] += count;
  } else if (isOfNames(kind)) {
    const name = field.slice(stop + 1);
    const ofName = (counts.byName[name] ??= { processed: 0, failed: 0, dead: 0 });
    ofName[kind] += count;
  }
}

function isOfNames(kind: string): kind is keyof NameStats {
  return kind === 'processed' || kind === 'failed' || kind === 'dead';
}
