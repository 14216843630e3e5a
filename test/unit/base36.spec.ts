import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { timeText } from '#lib/job/job-id.js';

const NOW = Date.UTC(2026, 6, 1);
const STEP = 36 ** 3;

describe('a time in base 36', () => {
  it('is what toString(36) returns, whatever was converted before', () => {
    const ms = fc.oneof(
      fc.integer({ min: -STEP, max: STEP * 2 }),
      fc.integer({ min: NOW, max: NOW + STEP * 2 }),
      fc.nat({ max: 36 ** 9 - 1 }),
      fc.constant(Number.NaN),
    );
    fc.assert(
      fc.property(fc.array(ms, { minLength: 1, maxLength: 20 }), (times) => {
        expect(times.map(timeText)).toEqual(times.map((time) => time.toString(36)));
      }),
    );
  });

  it('is correct across the limits of its cache', () => {
    const edge = Math.ceil(NOW / STEP) * STEP;
    const times = [STEP - 1, STEP, edge - 1, edge, edge - 1, edge + STEP - 1, edge + STEP, edge];
    expect(times.map(timeText)).toEqual(times.map((time) => time.toString(36)));
  });
});
