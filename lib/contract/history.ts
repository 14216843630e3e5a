import { RULES } from '../job/rules.js';

/** Upper bounds of the classes of run time, in ms. One more class has all longer runs. */
export const RUN_BOUNDS_MS: readonly number[] = [
  5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 900_000,
];

/** Upper bounds of the classes of wait time: from when a job could first run to the start of its first run. */
export const WAIT_BOUNDS_MS: readonly number[] = [
  10, 50, 100, 500, 1_000, 5_000, 10_000, 30_000, 60_000, 300_000, 900_000, 3_600_000, 21_600_000,
];

/**
 * Each fine class is this much wider than the one before it. A value and the middle of its class differ by a factor of at most 1.29. One more class has all
 * longer times.
 */
const FINE_RATIO = 1.65;
/** Upper bounds of the fine classes of run and wait time, in ms: from 1 ms to 7 hours. */
export const FINE_BOUNDS_MS: readonly number[] = Array.from({ length: 35 }, (_, i) => FINE_RATIO ** i);

export const MINUTE_MS = 60_000;
export const HOUR_MS = 3_600_000;
export const DAY_MS = 86_400_000;

/** Indexes in a row of counters. A row is stored as text in this order, so a new counter goes to the end. */
export const ADDED = 0;
export const COMPLETED = 1;
export const FAILED = 2;
export const DEAD = 3;
/** Sums in ms. */
export const RUN_SUM = 4;
export const WAIT_SUM = 5;
/** The index of the first class of each kind. */
export const RUN_CLASSES = 6;
export const WAIT_CLASSES = RUN_CLASSES + RUN_BOUNDS_MS.length + 1;
/**
 * The same times in fine classes. Those of waits are last, because most waits are short: zeros at the end take no room. Processes of older versions do
 * not write them.
 */
export const FINE_RUN_CLASSES = WAIT_CLASSES + WAIT_BOUNDS_MS.length + 1;
export const FINE_WAIT_CLASSES = FINE_RUN_CLASSES + FINE_BOUNDS_MS.length + 1;
const LENGTH = FINE_WAIT_CLASSES + FINE_BOUNDS_MS.length + 1;

/** The counters of one job name or host in one minute, or in several. */
export type CounterRow = number[];

export function emptyRow(): CounterRow {
  return Array.from({ length: LENGTH }, () => 0);
}

/** The index of the class that a time belongs to. */
export function classOf(ms: number, bounds: readonly number[]): number {
  let at = 0;
  while (at < bounds.length && ms > bounds[at]!) at += 1;
  return at;
}

/** The index of the fine class that a time belongs to. It is computed, because there are many. */
export function fineClassOf(ms: number): number {
  if (ms <= 1) return 0;
  return Math.min(FINE_BOUNDS_MS.length, Math.ceil(Math.log(ms) / Math.log(FINE_RATIO)));
}

export function addRow(to: CounterRow, from: CounterRow): void {
  for (let i = 0; i < LENGTH; i++) to[i]! += from[i]!;
}

/** Counters that a host has too, besides the fine classes of run time. */
const OF_HOSTS = [COMPLETED, FAILED, DEAD, RUN_SUM];

/**
 * The stored row of a host: ended runs and how long they took, of all names together. Without waits, which do not depend on the host, and with
 * the fine classes in the place of the others, it takes half the room.
 */
export function hostRowOf(rows: Iterable<CounterRow>): CounterRow {
  const sum = emptyRow();
  for (const row of rows) {
    for (const i of OF_HOSTS) sum[i]! += row[i]!;
    for (let i = 0; i <= FINE_BOUNDS_MS.length; i++) sum[RUN_CLASSES + i]! += row[FINE_RUN_CLASSES + i]!;
  }
  return sum;
}

/** The counters of a stored row of a host, in the places of other rows. */
export function fromHostRow(stored: CounterRow): CounterRow {
  const row = emptyRow();
  for (const i of OF_HOSTS) row[i] = stored[i]!;
  for (let i = 0; i <= FINE_BOUNDS_MS.length; i++) row[FINE_RUN_CLASSES + i] = stored[RUN_CLASSES + i]!;
  return row;
}

/** The counters in order. Zeros are left out, and at the end also their commas. */
export function encodeRow(row: CounterRow): string {
  const last = row.findLastIndex((count) => count !== 0);
  return row
    .slice(0, last + 1)
    .map((count) => (count === 0 ? '' : String(Math.round(count))))
    .join(',');
}

const [COMMA, DIGIT_0, DIGIT_9] = [44, 48, 57];

/**
 * Adds a stored row to each of `sums`. Text that is not a number counts as 0, because another program may have written it. A chart reads tens of
 * thousands of rows, so digits are read one by one: to split each text and to make a row of it takes several times as long.
 */
export function addStored(text: string, sums: readonly CounterRow[]): void {
  let [at, count] = [0, 0];
  for (let i = 0; i <= text.length && at < LENGTH; i++) {
    const code = i < text.length ? text.charCodeAt(i) : COMMA;
    if (code === COMMA) {
      if (count > 0) for (const sum of sums) sum[at]! += count;
      at += 1;
      count = 0;
    } else count = code >= DIGIT_0 && code <= DIGIT_9 ? count * 10 + code - DIGIT_0 : NaN;
  }
}

/** Whether rows are those of job names or of hosts. An hour of each is one hash, so that many hosts leave the places of names free. */
export type CountedBy = 'name' | 'host';

/** The numbers that one process adds to the counters of one hour. */
export interface MinutesCall {
  readonly by: CountedBy;
  /** Name of the process, and its number of this call. A repetition adds nothing. */
  readonly lane: string;
  readonly seq: number;
  /** Start of the hour, ms since 1970. */
  readonly hour: number;
  readonly rows: readonly MinuteRow[];
}

/** Counters of one job name or host in one minute. */
export interface MinuteRow {
  /** Start of the minute, ms since 1970. */
  readonly minute: number;
  /** Name of the jobs, or of the host. */
  readonly name: string;
  readonly row: CounterRow;
}

/** A row as it is stored. */
export interface StoredMinuteRow extends Omit<MinuteRow, 'row'> {
  /** See `encodeRow`. */
  readonly text: string;
}

/** Maximum number of rows of an hour, of names and of hosts. Further ones share the empty name. */
export const MAX_ROWS = 60 * RULES.namesPerDay;

/** The field of a row: minute of the hour and name. */
export function fieldOf({ minute, name }: Omit<MinuteRow, 'row'>): string {
  return `${(minute % HOUR_MS) / MINUTE_MS}:${name}`;
}

/** The rows of an hour from fields and values alternately. Other fields are skipped. */
export function readRows(hour: number, raw: readonly string[]): StoredMinuteRow[] {
  const rows: StoredMinuteRow[] = [];
  for (let i = 0; i < raw.length; i += 2) {
    const [, minute, name] = /^(\d{1,2}):(.*)$/s.exec(raw[i]!) ?? [];
    if (minute === undefined || Number(minute) > 59) continue;
    rows.push({ minute: hour + Number(minute) * MINUTE_MS, name: name!, text: raw[i + 1]! });
  }
  return rows;
}

/** The hours of a time span, the oldest first. */
export function hoursOf(from: number, to: number): number[] {
  const first = Math.floor(from / HOUR_MS) * HOUR_MS;
  const count = Math.max(0, Math.ceil((to - first) / HOUR_MS));
  return Array.from({ length: count }, (_, i) => first + i * HOUR_MS);
}
