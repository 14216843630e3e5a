import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { rateCharged, rateLeft } from '#lib/memory/rates.js';
import { readRate } from '#lib/options/limit-options.js';

const MS = 6_000;

/** The number of starts in each ms. Each claim comes some ms later than it could. */
function starts(per: string, lateMs: readonly number[]): number[] {
  const rate = readRate({ max: 1_000, per }, 'rate', (fault) => {
    throw fault;
  })!;
  const counts = Array.from({ length: MS }, () => 0);
  let state = '';
  for (let now = 0, claims = 0; now < MS; claims++) {
    const { left, nextMs } = rateLeft(rate, state, 1e12 + now);
    if (left > 0) {
      counts[now]! += left;
      state = rateCharged(rate, state, 1e12 + now, left);
    } else now += Math.max(1, Math.ceil(nextMs)) + lateMs[claims % lateMs.length]!;
  }
  return counts;
}

function windowsOf(counts: readonly number[], from: number): number[] {
  const windows: number[] = [];
  let sum = 0;
  for (const [at, count] of counts.entries()) {
    sum += count - (counts[at - 1_000] ?? 0);
    if (at >= from + 1_000) windows.push(sum);
  }
  return windows;
}

it('is used to 96 % in every second and never exceeded, however late its claims are', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 300 }), (lateMs) => {
      const windows = windowsOf(starts('1s', lateMs), 1_000);
      expect(Math.max(...windows)).toBeLessThanOrEqual(1_000);
      expect(Math.min(...windows)).toBeGreaterThanOrEqual(960);
    }),
  );
});

it('is accurate to 2 % if claims are on time', () => {
  expect(Math.min(...windowsOf(starts('1s', [0]), 1_000))).toBeGreaterThanOrEqual(980);
});

it('starts a fiftieth at once, and all at once if its period is shorter than 1 s or longer than 10 s', () => {
  expect(['900ms', '1s', '10s', '11s'].map((per) => Math.max(...starts(per, [0])))).toEqual([
    1_000, 20, 20, 1_000,
  ]);
});

it('is never exceeded if starts are granted, and given back unused some ms later', () => {
  const grant = fc.record({
    waitMs: fc.integer({ min: 0, max: 300 }),
    want: fc.integer({ min: 1, max: 12 }),
    used: fc.integer({ min: 0, max: 12 }),
    backMs: fc.integer({ min: 1, max: 50 }),
  });
  const rate = { max: 10, per: 1_000, window: 'sliding', burst: 10 } as const;
  fc.assert(
    fc.property(fc.array(grant, { minLength: 20, maxLength: 200 }), (grants) => {
      const counts = Array.from({ length: 90_000 }, () => 0);
      let state = '';
      let now = 0;
      for (const { waitMs, want, used, backMs } of grants) {
        now += waitMs;
        const at = 1e12 + now;
        const granted = Math.min(want, rateLeft(rate, state, at).left);
        if (granted <= 0) continue;
        state = rateCharged(rate, state, at, granted);
        counts[now]! += Math.min(used, granted);
        now += backMs;
        if (used < granted) state = rateCharged(rate, state, at + backMs, used - granted, at);
      }
      expect(Math.max(...windowsOf(counts, 0))).toBeLessThanOrEqual(10);
    }),
  );
});
