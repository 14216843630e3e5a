import type { QueueStats } from '../job/queue-stats.js';
import { readStats } from '../contract/stats.js';
import { RULES } from '../job/rules.js';

const DAY_MS = 86_400_000;

export type CountedKind = 'processed' | 'failed' | 'dead';

/** What became of jobs, by day (UTC) and job name. */
export class DayCounters {
  /** `kind:name`, or `cancelled`, of each day since 1970. */
  private readonly days = new Map<number, { readonly counts: Map<string, number>; names: Set<string> }>();

  cancelled(now: number, count: number): void {
    if (count > 0) this.add(now, 'cancelled', count);
  }

  count(now: number, kind: CountedKind, name: string, count: number): void {
    if (count === 0) return;
    const { names } = this.dayOf(now);
    const isListed = name === '' || names.has(name) || names.size < RULES.namesPerDay;
    if (isListed && name !== '') names.add(name);
    this.add(now, `${kind}:${isListed ? name : ''}`, count);
  }

  /** Of today and the days before, `days` in all. */
  read(now: number, days: number): QueueStats {
    const read = Array.from({ length: days }, (_, ago) => {
      const at = now - ago * DAY_MS;
      const counts = this.days.get(Math.floor(at / DAY_MS))?.counts ?? [];
      const counters = [...counts].flatMap(([field, count]) => [field, String(count)]);
      return { date: new Date(at).toISOString().slice(0, 10), counters };
    });
    return readStats(read);
  }

  clear(): void {
    this.days.clear();
  }

  private add(now: number, field: string, count: number): void {
    const { counts } = this.dayOf(now);
    counts.set(field, (counts.get(field) ?? 0) + count);
  }

  private dayOf(now: number) {
    const number = Math.floor(now / DAY_MS);
    let day = this.days.get(number);
    if (!day) {
      this.days.set(number, (day = { counts: new Map(), names: new Set() }));
      for (const old of this.days.keys()) if (old <= number - RULES.statsDays) this.days.delete(old);
    }
    return day;
  }
}
