import { beforeEach, expect, it, vi } from 'vitest';
import { Prefetch } from '#lib/worker/prefetch.js';
import { atEnd } from '../support/cleanup.js';

let now: number;
let prefetch: Prefetch;

beforeEach(() => {
  now = 1_000;
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now);
  atEnd(() => clock.mockRestore());
  prefetch = new Prefetch();
});

/** Exchanges one after another, each with so many runs that end before the next. */
function exchanges(count: number, { runs = 0, roundTripMs = 1, restMs = 9, saturated = true }): void {
  for (let i = 0; i < count; i++) {
    now += roundTripMs;
    prefetch.measured(saturated, roundTripMs);
    now += restMs;
    for (let n = 0; n < runs; n++) prefetch.count();
  }
}

it('holds as many jobs as run in 5 ms and a round trip', () => {
  exchanges(100, { runs: 1_000 });
  expect(prefetch.jobs).toBeGreaterThan(590);
  expect(prefetch.jobs).toBeLessThanOrEqual(600);
});

it('holds more over a slow network, up to 25 ms', () => {
  exchanges(100, { runs: 3_000, roundTripMs: 21 });
  expect(prefetch.jobs).toBeCloseTo(100 * (5 + 21), -2);
  exchanges(100, { runs: 10_000, roundTripMs: 91 });
  expect(prefetch.jobs).toBeCloseTo(100 * (5 + 25), -2);
});

it('takes an answer that waited for a handler for no round trip, unless all are so slow', () => {
  exchanges(100, { runs: 1_000 });
  exchanges(1, { runs: 2_000, roundTripMs: 11 });
  expect(prefetch.jobs).toBeLessThan(620);
  exchanges(100, { runs: 2_000, roundTripMs: 11 });
  expect(prefetch.jobs).toBeCloseTo(100 * (5 + 11), -2);
});

it('holds nothing ahead where jobs are slow, or where there is not always more to do', () => {
  exchanges(100, { runs: 1 });
  expect(prefetch.jobs).toBe(0);
  exchanges(100, { runs: 1_000 });
  exchanges(20, { runs: 1_000, saturated: false });
  expect(prefetch.jobs).toBe(0);
  exchanges(100, { runs: 1_000 });
  prefetch.forget();
  expect(prefetch.jobs).toBe(0);
});

it('asks for no more than 500 at once, and for less where bodies are large', () => {
  expect(prefetch.most).toBe(500);
  for (let i = 0; i < 30; i++) prefetch.received(10, 1024 * 1024);
  expect(prefetch.most).toBe(10);
  for (let i = 0; i < 30; i++) prefetch.received(1, 1024 * 1024 * 1024);
  expect(prefetch.most).toBe(1);
});

it('takes half a claim for worth a call beside another one, where more is likely to be there', () => {
  expect(prefetch.isWorthBeside(500)).toBe(false);
  exchanges(1, {});
  expect([249, 250].map((want) => prefetch.isWorthBeside(want))).toEqual([false, true]);
  exchanges(1, { saturated: false });
  expect(prefetch.isWorthBeside(500)).toBe(false);
  exchanges(1, {});
  for (let i = 0; i < 30; i++) prefetch.received(10, 1024 * 1024);
  expect([4, 5].map((want) => prefetch.isWorthBeside(want))).toEqual([false, true]);
});
