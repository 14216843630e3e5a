import { describe, expect, it } from 'vitest';
import {
  classOf,
  COMPLETED,
  decodeRow,
  emptyRow,
  encodeRow,
  HOUR_MS,
  hoursOf,
  MINUTE_MS,
  RUN_BOUNDS_MS,
  RUN_CLASSES,
  RUN_SUM,
  type MinuteRow,
} from '#lib/contract/history.js';
import { readSpan, seriesOf } from '#lib/inspect/queue-series.js';

const NOW = Date.UTC(2026, 0, 2, 12, 0, 30);
const spanOf = (options: object) => readSpan(options, NOW);

describe('rows of counters', () => {
  it('are stored as text and read again', () => {
    const row = Object.assign(emptyRow(), { [COMPLETED]: 12, [RUN_SUM]: 34.6, [RUN_CLASSES]: 1 });
    expect(encodeRow(row)).toMatch(/^,12,,,35,,1,+$/);
    expect(decodeRow(encodeRow(row))).toEqual(Object.assign(row, { [RUN_SUM]: 35 }));
    expect(decodeRow('')).toEqual(emptyRow());
    expect(decodeRow('x,-1,NaN,Infinity')).toEqual(emptyRow());
    // A later version has further counters behind these.
    expect(decodeRow(`${encodeRow(row)},7,8`)).toHaveLength(row.length);
  });

  it('count a time in the class whose bound it does not exceed', () => {
    expect([0, 5, 5.1, 900_000, 900_001].map((ms) => classOf(ms, RUN_BOUNDS_MS))).toEqual([0, 0, 1, 14, 15]);
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
    const { points, total, byName } = seriesOf('q', rows, span);
    expect(points).toHaveLength(6);
    expect(points.map(({ completed }) => completed)).toEqual([95, 5, 0, 0, 0, 0]);
    expect(total.run).toEqual({ count: 100, mean: 100, p50: 5, p95: 10, p99: 900_000 });
    expect(byName['a']!.run).toMatchObject({ count: 95, p50: 4.8 });
    expect(points[5]!.run).toEqual({ count: 0, mean: null, p50: null, p95: null, p99: null });
    expect(total.wait.count).toBe(0);
  });

  it('leaves out other names and minutes outside', () => {
    const span = spanOf({ from: NOW - 5 * MINUTE_MS, to: NOW, name: 'a' });
    const rows = [
      rowAt(span.from, 'a', { 0: 1 }),
      rowAt(span.from, 'b', { 0: 2 }),
      rowAt(span.from - 1, 'a', { 0: 4 }),
      rowAt(span.to, 'a', { 0: 8 }),
    ];
    expect(seriesOf('q', rows, span).total.completed).toBe(1);
  });
});
