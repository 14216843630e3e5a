import {
  ADDED,
  addStored,
  COMPLETED,
  DAY_MS,
  DEAD,
  emptyRow,
  FAILED,
  FINE_BOUNDS_MS,
  FINE_RUN_CLASSES,
  FINE_WAIT_CLASSES,
  fromHostRow,
  HOUR_MS,
  hoursOf,
  MINUTE_MS,
  RUN_BOUNDS_MS,
  RUN_CLASSES,
  RUN_SUM,
  WAIT_BOUNDS_MS,
  WAIT_CLASSES,
  WAIT_SUM,
  type CountedBy,
  type CounterRow,
  type StoredMinuteRow,
} from '../contract/history.js';
import { InvalidOptionError } from '../errors.js';
import { checkJobName } from '../job/job-id.js';
import type { Duration } from '../job/duration.js';
import { RULES } from '../job/rules.js';
import { duration, field, refuse, rule, shape } from '../options/check.js';
import { checkMoment } from '../options/job-options.js';

/** Options of `QueueInspector.series`. */
export interface SeriesOptions {
  /** Start, rounded down to a whole step. @default an hour before `to` */
  readonly from?: Date | number;
  /** End. @default now */
  readonly to?: Date | number;
  /**
   * Length of a step, in whole minutes, up to `'1d'`. At most 4,320 steps are read.
   *
   * @default the shortest of 1, 5, 15 and 60 minutes with at most 180 steps
   */
  readonly step?: Duration;
  /** Only jobs with this name. Not together with `host`. @default all */
  readonly name?: string;
  /**
   * Only jobs that ran on this host, as `inspector.workers()` names it. Not together with `name`. `added` is then 0, and there are no times of
   * waits, because these are not counted by host.
   *
   * @default all
   */
  readonly host?: string;
}

/** A distribution of durations. Percentiles are estimated from histograms. */
export interface TimeSummary {
  /** Number of measured durations. */
  readonly count: number;
  /** Mean in ms; null if there are none. */
  readonly mean: number | null;
  /** Median in ms; null if there are none. */
  readonly p50: number | null;
  /** 95th percentile in ms; null if there are none. */
  readonly p95: number | null;
  /** 99th percentile in ms; null if there are none. */
  readonly p99: number | null;
}

/** Counters of a period. */
export interface SeriesCounts {
  /** Jobs that were added, by producers and by schedules. */
  readonly added: number;
  /** Runs that completed. */
  readonly completed: number;
  /** Attempts that failed, including the last one of a job. */
  readonly failed: number;
  /** Jobs that died. */
  readonly dead: number;
  /** How long runs took, whether they completed or failed. */
  readonly run: TimeSummary;
  /** How long jobs waited for their first run, from when they were first due. */
  readonly wait: TimeSummary;
}

/** One step of a series. */
export interface SeriesPoint extends SeriesCounts {
  /** When the step starts. */
  readonly at: Date;
}

/** Counters of a host. */
export interface HostCounts extends Pick<SeriesCounts, 'completed' | 'failed' | 'dead' | 'run'> {
  /** The last minute in which a job ended here, or an attempt failed. */
  readonly lastAt: Date;
}

/** The result of `QueueInspector.series`. */
export interface QueueSeries {
  /** Name of the queue. */
  readonly queue: string;
  /** Start of the first step. */
  readonly from: Date;
  /** End of the last step. */
  readonly to: Date;
  /** Length of a step. */
  readonly stepMs: number;
  /** All steps, oldest first, including those in which nothing happened. */
  readonly points: readonly SeriesPoint[];
  /** All steps together. */
  readonly total: SeriesCounts;
  /**
   * The counters by job name, for the names that occurred. Names without a handler, and names beyond the first 200, are counted
   * under the empty name. Without names if `host` is given. The object has no prototype.
   */
  readonly byName: Readonly<Record<string, SeriesCounts>>;
  /**
   * The counters by host, for the hosts on which jobs ran. A dead job whose workers were lost counts for no host. Hosts beyond 200 that work at a time
   * are counted under the empty name. Without hosts if `name` is given. The object has no prototype.
   */
  readonly byHost: Readonly<Record<string, HostCounts>>;
}

/** The requested period, and which jobs. */
interface Span {
  /** A multiple of the step. */
  readonly from: number;
  readonly to: number;
  readonly stepMs: number;
  readonly name: string | undefined;
  readonly host: string | undefined;
  /** Hours that may have counters. */
  readonly hours: readonly number[];
}

const MAX_STEPS = 4_320;
const STEPS_MS = [MINUTE_MS, 5 * MINUTE_MS, 15 * MINUTE_MS, HOUR_MS];
const GOOD_STEPS = 180;

const readOptions = shape({
  from: field('from', rule(checkMoment)),
  to: field('to', rule(checkMoment)),
  step: field('stepMs', duration(MINUTE_MS, DAY_MS)),
  name: field(
    'name',
    rule((name: unknown) => (name === '' ? '' : checkJobName(name))),
  ),
  host: field('host', rule(checkHost)),
});

export function checkHost(value: unknown, path: string): string {
  if (typeof value === 'string' && value.length <= 256) return value;
  throw new InvalidOptionError(path, 'a string of at most 256 characters', value);
}

/** @throws {InvalidOptionError} */
export function readSpan(options: unknown, now: number): Span {
  const place = 'series()';
  const given = readOptions(options, place, refuse)!;
  const { name, host } = given;
  if (name !== undefined && host !== undefined)
    throw new InvalidOptionError(place, 'given `name` or `host`, not both: no jobs are counted by both', {
      name,
      host,
    });
  const end = given.to ?? now;
  const start = given.from ?? end - HOUR_MS;
  if (start >= end) throw new InvalidOptionError(`${place}.from`, 'before `to`', new Date(start));
  const good = STEPS_MS.find((ms) => (end - start) / ms <= GOOD_STEPS);
  const stepMs = given.stepMs ?? good ?? Math.ceil((end - start) / MAX_STEPS / HOUR_MS) * HOUR_MS;
  if (stepMs % MINUTE_MS !== 0)
    throw new InvalidOptionError(`${place}.step`, 'a duration in whole minutes', stepMs);
  const from = Math.floor(start / stepMs) * stepMs;
  const steps = Math.ceil((end - from) / stepMs);
  if (steps > MAX_STEPS)
    throw new InvalidOptionError(
      `${place}.step`,
      `long enough for at most ${MAX_STEPS} steps; these would be ${steps}`,
      stepMs,
    );
  const to = from + steps * stepMs;
  const oldest = now - (RULES.historyHours + 2) * HOUR_MS;
  const hours = hoursOf(Math.max(from, oldest), Math.min(to, now + MINUTE_MS));
  return { from, to, stepMs, name, host, hours };
}

/** The rows that a series needs. */
type SeriesRows = Readonly<Record<CountedBy, readonly StoredMinuteRow[]>>;

export function seriesOf(queue: string, rows: SeriesRows, span: Span): QueueSeries {
  const { from, to, stepMs, name, host } = span;
  const steps = Array.from({ length: (to - from) / stepMs }, emptyRow);
  const total = emptyRow();
  const sums = { name: new Map<string, Sum>(), host: new Map<string, Sum>() };
  for (const by of ['name', 'host'] as const) {
    const [only, hasSteps] = by === 'name' ? [name, host === undefined] : [host, host !== undefined];
    for (const { minute, name: its, text } of rows[by]) {
      if (minute < from || minute >= to || (only ?? its) !== its) continue;
      let sum = sums[by].get(its);
      if (!sum) sums[by].set(its, (sum = { row: emptyRow(), last: minute }));
      sum.last = Math.max(sum.last, minute);
      const step = steps[Math.floor((minute - from) / stepMs)]!;
      addStored(text, hasSteps ? [sum.row, step, total] : [sum.row]);
    }
  }
  const inPlace = (row: CounterRow) => (host === undefined ? row : fromHostRow(row));
  const byName = Object.create(null) as Record<string, SeriesCounts>;
  for (const [one, { row }] of sums.name) byName[one] = countsOf(row);
  const byHost = Object.create(null) as Record<string, HostCounts>;
  for (const [one, { row, last }] of sums.host) {
    const { completed, failed, dead, run } = countsOf(fromHostRow(row));
    byHost[one] = { completed, failed, dead, run, lastAt: new Date(last) };
  }
  return {
    queue,
    from: new Date(from),
    to: new Date(to),
    stepMs,
    points: steps.map((row, i) => ({ at: new Date(from + i * stepMs), ...countsOf(inPlace(row)) })),
    total: countsOf(inPlace(total)),
    byName,
    byHost,
  };
}

/** The sum of the rows of a name or host, and the last minute in which it has one. */
interface Sum {
  readonly row: CounterRow;
  last: number;
}

function countsOf(row: CounterRow): SeriesCounts {
  return {
    added: row[ADDED]!,
    completed: row[COMPLETED]!,
    failed: row[FAILED]!,
    dead: row[DEAD]!,
    run: summary(row[RUN_SUM]!, {
      classes: row.slice(RUN_CLASSES, WAIT_CLASSES),
      bounds: RUN_BOUNDS_MS,
      fine: row.slice(FINE_RUN_CLASSES, FINE_WAIT_CLASSES),
    }),
    wait: summary(row[WAIT_SUM]!, {
      classes: row.slice(WAIT_CLASSES, FINE_RUN_CLASSES),
      bounds: WAIT_BOUNDS_MS,
      fine: row.slice(FINE_WAIT_CLASSES),
    }),
  };
}

interface Histogram {
  readonly classes: readonly number[];
  readonly bounds: readonly number[];
  readonly fine: readonly number[];
}

function summary(sum: number, { classes, bounds, fine }: Histogram): TimeSummary {
  // Rows of hosts have only the fine classes, those of an older version only the others.
  const count = Math.max(total(classes), total(fine));
  if (count === 0) return { count, mean: null, p50: null, p95: null, p99: null };
  const isFine = total(fine) === count;
  const at = (share: number) => {
    const rank = count * share;
    return Math.round((isFine ? fineQuantile(fine, rank) : quantile(classes, rank, bounds)) * 10) / 10;
  };
  return { count, mean: Math.round((sum / count) * 10) / 10, p50: at(0.5), p95: at(0.95), p99: at(0.99) };
}

function total(classes: readonly number[]): number {
  return classes.reduce((all, one) => all + one, 0);
}

/** The middle of the class in which the value is. */
function fineQuantile(classes: readonly number[], rank: number): number {
  let below = 0;
  const at = classes.findIndex((count) => (below += count) >= rank);
  const high = FINE_BOUNDS_MS[at];
  if (high === undefined) return FINE_BOUNDS_MS.at(-1)!;
  return at === 0 ? high / 2 : Math.sqrt(high * FINE_BOUNDS_MS[at - 1]!);
}

/**
 * Values are assumed to be spread evenly inside a histogram bucket. The last bucket has no upper bound, so its lower bound is
 * used.
 */
function quantile(classes: readonly number[], rank: number, bounds: readonly number[]): number {
  let below = 0;
  for (const [i, count] of classes.entries()) {
    if (below + count >= rank && count > 0) {
      const low = bounds[i - 1] ?? 0;
      const high = bounds[i] ?? low;
      return low + ((high - low) * (rank - below)) / count;
    }
    below += count;
  }
  return bounds.at(-1)!;
}
