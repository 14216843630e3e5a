import { hostname } from 'node:os';
import { describe, expect, it } from 'vitest';
import {
  addStored,
  classOf,
  COMPLETED,
  emptyRow,
  encodeRow,
  FINE_BOUNDS_MS,
  FINE_RUN_CLASSES,
  fineClassOf,
  hostRowOf,
  HOUR_MS,
  hoursOf,
  MINUTE_MS,
  RUN_BOUNDS_MS,
  RUN_CLASSES,
  RUN_SUM,
  type CountedBy,
  type MinuteRow,
  type MinutesCall,
  type StoredMinuteRow,
} from '#lib/contract/history.js';
import { MinuteRecorder } from '#lib/history/minute-recorder.js';
import { readSpan, seriesOf } from '#lib/inspect/queue-series.js';

const NOW = Date.UTC(2026, 0, 2, 12, 0, 30);
const spanOf = (options: object) => readSpan(options, NOW);
const storedRow = ({ minute, name, row }: MinuteRow) => ({ minute, name, text: encodeRow(row) });
const named = (name: readonly MinuteRow[]) => ({ name: name.map(storedRow), host: [] });
const decoded = (text: string) => {
  const row = emptyRow();
  addStored(text, [row]);
  return row;
};

describe('rows of counters', () => {
  it('are stored as text and read again', () => {
    const row = Object.assign(emptyRow(), { [COMPLETED]: 12, [RUN_SUM]: 34.6, [RUN_CLASSES]: 1 });
    expect(encodeRow(row)).toBe(',12,,,35,,1');
    expect(decoded(encodeRow(row))).toEqual(Object.assign(row, { [RUN_SUM]: 35 }));
    expect(decoded('')).toEqual(emptyRow());
    expect(decoded('x,-1,NaN,Infinity,1x2,7')).toEqual(Object.assign(emptyRow(), { 5: 7 }));
    // A later version has further counters behind these.
    expect(decoded('1,'.repeat(row.length + 2))).toEqual(emptyRow().fill(1));
  });

  it('count a time in the class whose bound it does not exceed', () => {
    expect([0, 5, 5.1, 900_000, 900_001].map((ms) => classOf(ms, RUN_BOUNDS_MS))).toEqual([0, 0, 1, 14, 15]);
  });

  it('have fine classes, each with times up to its bound', () => {
    expect(fineClassOf(0)).toBe(0);
    for (const [at, bound] of FINE_BOUNDS_MS.entries())
      expect([fineClassOf(bound * 0.999), fineClassOf(bound * 1.001)]).toEqual([at, at + 1]);
    expect(fineClassOf(1e12)).toBe(FINE_BOUNDS_MS.length);
    // The part of a row that a process of an older version reads.
    expect(encodeRow(emptyRow()).split(',').length).toBeLessThan(FINE_RUN_CLASSES);
  });

  it('are in the hours of a span', () => {
    expect(hoursOf(HOUR_MS - 1, HOUR_MS)).toEqual([0]);
    expect(hoursOf(HOUR_MS - 1, HOUR_MS + 1)).toEqual([0, HOUR_MS]);
    expect(hoursOf(5, 5 - HOUR_MS)).toEqual([]);
  });
});

describe('the span of a series', () => {
  it('is the last hour in minutes by default', () => {
    const { from, to, stepMs, hours } = spanOf({});
    expect([new Date(from).toISOString(), new Date(to).toISOString(), stepMs]).toEqual([
      '2026-01-02T11:00:00.000Z',
      '2026-01-02T12:01:00.000Z',
      MINUTE_MS,
    ]);
    expect(hours).toHaveLength(2);
  });

  it.each([
    [3, 1],
    [3.1, 5],
    [15.1, 15],
    [72, 60],
    [1_000, 60],
    [5_000, 120],
  ])('of %d hours has steps of %d minutes', (hours, minutes) => {
    expect(spanOf({ from: NOW - hours * HOUR_MS }).stepMs).toBe(minutes * MINUTE_MS);
  });

  it('reads no hours that are not kept any more', () => {
    const { hours } = spanOf({ from: NOW - 365 * 24 * HOUR_MS, step: '1d' });
    expect(hours.length).toBeLessThan(80);
    expect(hours.at(-1)).toBe(NOW - (NOW % HOUR_MS));
  });
});

describe('a series', () => {
  const rowAt = (minute: number, name: string, classes: Record<number, number>): MinuteRow => {
    const row = emptyRow();
    for (const [at, count] of Object.entries(classes)) {
      row[RUN_CLASSES + Number(at)] = count;
      row[COMPLETED]! += count;
      row[RUN_SUM]! += count * 100;
    }
    return { minute, name, row };
  };

  it('estimates percentiles inside the classes', () => {
    const span = spanOf({ from: NOW - 5 * MINUTE_MS, to: NOW });
    const rows = [rowAt(span.from, 'a', { 0: 50, 1: 45 }), rowAt(span.from + MINUTE_MS, 'b', { 15: 5 })];
    const { points, total, byName } = seriesOf('q', named(rows), span);
    expect(points).toHaveLength(6);
    expect(points.map(({ completed }) => completed)).toEqual([95, 5, 0, 0, 0, 0]);
    expect(total.run).toEqual({ count: 100, mean: 100, p50: 5, p95: 10, p99: 900_000 });
    expect(byName['a']!.run).toMatchObject({ count: 95, p50: 4.8 });
    expect(points[5]!.run).toEqual({ count: 0, mean: null, p50: null, p95: null, p99: null });
    expect(total.wait.count).toBe(0);
  });

  it('has percentiles within a factor of 1.3 of the true ones, however the times are spread', async () => {
    const span = spanOf({ from: NOW - 5 * MINUTE_MS, to: NOW });
    const spreads: ((share: number) => number)[] = [
      () => 110,
      () => 1.2,
      () => 5_200,
      (share) => 1.1 + 400 * share,
      (share) => 20 * Math.exp(6 * share),
      (share) => -3_000 * Math.log(1 - share),
      (share) => (share < 0.9 ? 12 : 7_200_000),
    ];
    for (const timeAt of spreads) {
      const times = Array.from({ length: 1_000 }, (_, i) => timeAt((i + 0.5) / 1_000));
      const stored: Record<CountedBy, StoredMinuteRow[]> = { name: [], host: [] };
      const admin = {
        countMinutes: async (_: unknown, { by, rows }: MinutesCall) => {
          stored[by] = rows.map(storedRow);
        },
      };
      const recorder = new MinuteRecorder({ now: () => span.from, admin } as never);
      for (const ms of times) {
        const run = {
          outcome: { kind: 'completed' },
          durationUs: ms * 1_000,
          firstRunnableAt: span.from - 2 * ms,
        };
        recorder.ended('q', 'a', run as never, span.from);
      }
      // oxlint-disable-next-line no-await-in-loop -- one after another
      await recorder.write();
      const { total, byHost } = seriesOf('q', stored, span);
      for (const [share, name] of [
        [0.5, 'p50'],
        [0.95, 'p95'],
        [0.99, 'p99'],
      ] as const)
        for (const summary of [total.run, total.wait, byHost[hostname()]!.run]) {
          const factor = summary[name]! / timeAt(share);
          expect([String(timeAt), name, factor > 1 / 1.3 && factor < 1.3, factor]).toMatchObject({ 2: true });
        }
    }
  });

  it('with rows of an older process, which has no fine classes, uses the others', () => {
    const span = spanOf({ from: NOW - 5 * MINUTE_MS, to: NOW });
    const old = rowAt(span.from, 'a', { 0: 1 });
    const fresh = rowAt(span.from + MINUTE_MS, 'a', { 0: 1 });
    fresh.row[FINE_RUN_CLASSES + 1] = 1;
    const { points, total } = seriesOf('q', named([old, fresh]), span);
    expect([points[0]!.run.p50, points[1]!.run.p50, total.run.p50]).toEqual([2.5, 1.3, 2.5]);
  });

  it('leaves out other names and minutes outside', () => {
    const span = spanOf({ from: NOW - 5 * MINUTE_MS, to: NOW, name: 'a' });
    const rows = [
      rowAt(span.from, 'a', { 0: 1 }),
      rowAt(span.from, 'b', { 0: 2 }),
      rowAt(span.from - 1, 'a', { 0: 4 }),
      rowAt(span.to, 'a', { 0: 8 }),
    ];
    expect(seriesOf('q', named(rows), span).total.completed).toBe(1);
  });

  it('has the counters of each host, and the last minute in which each worked', () => {
    const span = spanOf({ from: NOW - 5 * MINUTE_MS, to: NOW });
    const hostRowAt = (minute: number, host: string, completed: number) => {
      const row = Object.assign(emptyRow(), { [COMPLETED]: completed, [RUN_SUM]: 100 * completed });
      row[FINE_RUN_CLASSES + fineClassOf(100)] = completed;
      return storedRow({ minute, name: host, row: hostRowOf([row]) });
    };
    const host = [
      hostRowAt(span.from + 2 * MINUTE_MS, 'web-1', 3),
      hostRowAt(span.from, 'web-1', 1),
      hostRowAt(span.from, '__proto__', 2),
      hostRowAt(span.to, 'web-2', 8),
    ];
    const { byHost, total } = seriesOf('q', { ...named([rowAt(span.from, 'a', { 0: 9 })]), host }, span);
    expect(total.completed).toBe(9);
    expect(Object.keys(byHost)).toEqual(['web-1', '__proto__']);
    expect(byHost['web-1']).toMatchObject({ completed: 4, run: { count: 4, mean: 100 } });
    expect(byHost['web-1']!.lastAt.getTime()).toBe(span.from + 2 * MINUTE_MS);
    const ofOne = spanOf({ from: span.from, to: NOW, host: 'web-1' });
    const { points, byHost: one } = seriesOf('q', { name: [], host }, ofOne);
    expect(points.map(({ completed }) => completed)).toEqual([1, 0, 3, 0, 0, 0]);
    expect(Object.keys(one)).toEqual(['web-1']);
  });

  it('is of a name or of a host, not of both', () => {
    expect(() => spanOf({ name: 'a', host: 'web-1' })).toThrow(/series\(\) must be given `name` or `host`/);
    for (const host of [3, null, 'x'.repeat(257)])
      expect(() => spanOf({ host })).toThrow('series().host must be a string of at most 256 characters');
  });
});
