import {
  addRow,
  encodeRow,
  fieldOf,
  HOUR_MS,
  MAX_ROWS,
  type MinuteRow,
  type MinutesCall,
  type StoredMinuteRow,
} from '../contract/history.js';
import { RULES } from '../job/rules.js';

interface Hour {
  readonly rows: Map<string, MinuteRow>;
  /** Number of the last call of each process. */
  readonly lanes: Map<string, number>;
  until: number;
}

/** Counters of outcomes by minute and job name, or by minute and host. */
export class MinuteCounters {
  private readonly hours = new Map<number, Hour>();

  count({ lane, seq, hour, rows }: MinutesCall, now: number): void {
    this.expire(now);
    let known = this.hours.get(hour);
    if (!known) this.hours.set(hour, (known = { rows: new Map(), lanes: new Map(), until: 0 }));
    if ((known.lanes.get(lane) ?? 0) >= seq) return;
    known.lanes.set(lane, seq);
    known.until = now + (RULES.historyHours + 1) * HOUR_MS;
    for (const one of rows) this.add(known, one);
  }

  read(hours: readonly number[], now: number): StoredMinuteRow[] {
    this.expire(now);
    const rows = hours.flatMap((hour) => [...(this.hours.get(hour)?.rows.values() ?? [])]);
    return rows.map(({ minute, name, row }) => ({ minute, name, text: encodeRow(row) }));
  }

  clear(): void {
    this.hours.clear();
  }

  private add({ rows }: Hour, one: MinuteRow): void {
    let named = one;
    if (!rows.has(fieldOf(named)) && rows.size >= MAX_ROWS) named = { ...one, name: '' };
    const found = rows.get(fieldOf(named));
    if (found) addRow(found.row, one.row);
    else rows.set(fieldOf(named), { ...named, row: [...one.row] });
  }

  private expire(now: number): void {
    for (const [hour, { until }] of this.hours) if (until <= now) this.hours.delete(hour);
  }
}
