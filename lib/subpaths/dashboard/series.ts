import {
  checkHost,
  type HostCounts,
  type QueueSeries,
  type SeriesCounts,
  type SeriesOptions,
  type TimeSummary,
} from '../../inspect/queue-series.js';
import { field, refuse, rule, shape } from '../../options/check.js';
import { checkJobName } from '../../job/job-id.js';
import { wholeNumber } from './job-search.js';
import type { Unreadable } from './views.js';

/** Counts of a queue, or of all queues, over the last hours. Only processes with `history: true` count. */
export interface SeriesView {
  readonly stepMs: number;
  /** When each step starts. */
  readonly times: readonly number[];
  readonly added: readonly number[];
  readonly completed: readonly number[];
  readonly failed: readonly number[];
  readonly dead: readonly number[];
  /** In ms; null for a step in which nothing ran. Left out for several queues together. */
  readonly run?: Percentiles<readonly (number | null)[]>;
  readonly wait?: Percentiles<readonly (number | null)[]>;
  readonly byName: Readonly<Record<string, NameSeries>>;
  /** Left out for several queues together. */
  readonly byHost?: Readonly<Record<string, HostSeries>>;
  /** For several queues together: each of them. */
  readonly byQueue?: Readonly<Record<string, QueueTimes>>;
  /** For several queues together: those that could not be read, with the error. */
  readonly unreadable?: Unreadable;
  /** Whether anything was counted. */
  readonly isCounted: boolean;
}

/** The 50th, 95th and 99th percentile. */
export interface Percentiles<T> {
  readonly p50: T;
  readonly p95: T;
  readonly p99: T;
}

/** One of several queues. */
export interface QueueTimes {
  /** Ended runs per minute, over the last minutes that are complete. */
  readonly perMinute: number;
  /** Over the whole time, in ms; null if nothing ran. */
  readonly run: Percentiles<number | null>;
  readonly wait: Percentiles<number | null>;
  /** Times of runs by job name. */
  readonly runByName: Readonly<Record<string, Percentiles<number | null>>>;
}

interface NameSeries {
  readonly completed: number;
  readonly failed: number;
  readonly dead: number;
  readonly run: Percentiles<number | null>;
  readonly wait: Percentiles<number | null>;
}

interface HostSeries {
  readonly completed: number;
  readonly failed: number;
  readonly dead: number;
  readonly run: Percentiles<number | null>;
  /** The last minute in which a job ended there, or an attempt failed. */
  readonly lastAt: number;
}

const HOUR_MS = 3_600_000;
/** A rate is the mean of this time. */
const RATE_MS = 300_000;
const MAX_HOURS = 72;
const readQuery = shape({
  hours: field('hours', rule(wholeNumber('hours', MAX_HOURS))),
  name: field('name', rule(checkJobName)),
  host: field('host', rule(checkHost)),
});

/** @throws {InvalidOptionError | InvalidJobNameError} */
export function readSeries(query: Readonly<Record<string, string>>, now: number): SeriesOptions {
  const { hours = 1, name, host } = readQuery(query, 'query', refuse)!;
  return {
    from: Math.floor(now) - hours * HOUR_MS,
    to: Math.floor(now),
    ...(name !== undefined && { name }),
    ...(host !== undefined && { host }),
  };
}

export function toSeriesView({ points, stepMs, byName, byHost, total }: QueueSeries): SeriesView {
  return {
    stepMs,
    times: points.map(({ at }) => at.getTime()),
    added: points.map((point) => point.added),
    completed: points.map((point) => point.completed),
    failed: points.map((point) => point.failed),
    dead: points.map((point) => point.dead),
    run: percentilesOf(points.map(({ run }) => run)),
    wait: percentilesOf(points.map(({ wait }) => wait)),
    byName: Object.fromEntries(Object.entries(byName).map(([name, counts]) => [name, ofName(counts)])),
    byHost: Object.fromEntries(Object.entries(byHost).map(([host, counts]) => [host, ofHost(counts)])),
    isCounted: isCounted(total),
  };
}

/** Several queues together; percentiles cannot be added. */
export function sumOf(all: readonly QueueSeries[], { from, to }: SeriesOptions): SeriesView {
  const [first] = all;
  if (!first)
    return {
      stepMs: Number(to) - Number(from),
      times: [],
      added: [],
      completed: [],
      failed: [],
      dead: [],
      byName: {},
      isCounted: false,
    };
  const sum = (field: 'added' | 'completed' | 'failed' | 'dead') =>
    first.points.map((_, at) => all.reduce((total, { points }) => total + (points[at]?.[field] ?? 0), 0));
  return {
    stepMs: first.stepMs,
    times: first.points.map(({ at }) => at.getTime()),
    added: sum('added'),
    completed: sum('completed'),
    failed: sum('failed'),
    dead: sum('dead'),
    byName: {},
    byQueue: Object.fromEntries(all.map((one) => [one.queue, timesOf(one, Number(to))])),
    isCounted: all.some(({ total }) => isCounted(total)),
  };
}

function timesOf({ points, stepMs, total, byName }: QueueSeries, now: number): QueueTimes {
  const isOver = ({ at }: QueueSeries['points'][number]) => at.getTime() + stepMs <= now;
  const last = points.filter(isOver).slice(-Math.max(1, Math.round(RATE_MS / stepMs)));
  const runs = last.reduce((sum, { completed, failed }) => sum + completed + failed, 0);
  return {
    perMinute: (runs * 60_000) / (stepMs * Math.max(1, last.length)),
    run: percentileOf(total.run),
    wait: percentileOf(total.wait),
    runByName: Object.fromEntries(Object.entries(byName).map(([name, { run }]) => [name, percentileOf(run)])),
  };
}

function isCounted({ added, completed, failed }: SeriesCounts): boolean {
  return added + completed + failed > 0;
}

function ofName({ completed, failed, dead, run, wait }: SeriesCounts): NameSeries {
  return { completed, failed, dead, run: percentileOf(run), wait: percentileOf(wait) };
}

function ofHost({ completed, failed, dead, run, lastAt }: HostCounts): HostSeries {
  return { completed, failed, dead, run: percentileOf(run), lastAt: lastAt.getTime() };
}

function percentileOf({ p50, p95, p99 }: TimeSummary): Percentiles<number | null> {
  return { p50, p95, p99 };
}

function percentilesOf(all: readonly TimeSummary[]): Percentiles<(number | null)[]> {
  return { p50: all.map(({ p50 }) => p50), p95: all.map(({ p95 }) => p95), p99: all.map(({ p99 }) => p99) };
}
