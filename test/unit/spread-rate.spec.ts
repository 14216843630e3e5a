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
