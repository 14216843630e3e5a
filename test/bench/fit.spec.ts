import { describe, expect, it } from 'vitest';
import { changeOver, fitPower, valueAt } from '../../bench/src/measure/fit.js';

const sizes = [1_000, 10_000, 100_000, 1_000_000];
const of = (f: (x: number) => number) => sizes.map((x) => ({ x, y: f(x) }));

describe('the fitted slope of a growth', () => {
  it.each([
    ['does not depend on the size', () => 250_000, 0],
    ['grows in step with it', (x: number) => 3 * x, 1],
    ['grows with its root', (x: number) => 7 * Math.sqrt(x), 0.5],
    ['is halved where it doubles', (x: number) => 9e9 / x, -1],
  ])('is the exponent of what %s', (_, f, exponent) => {
    const fit = fitPower(of(f))!;
    expect(fit.exponent).toBeCloseTo(exponent, 10);
    expect(valueAt(fit, 5_000)).toBeCloseTo(f(5_000), 4);
  });

  it('weighs what lies above and below the line alike', () => {
    const fit = fitPower([
      { x: 1, y: 10 },
      { x: 10, y: 20 },
      { x: 100, y: 5 },
      { x: 1_000, y: 10 },
    ])!;
    // By hand: x as 0, 1, 2, 3 decades; Σ(x − 1.5)(log y − mean) / Σ(x − 1.5)² = −0.5 log₁₀ 2 − 0.5 log₁₀ 2 over 5.
    expect(fit.exponent).toBeCloseTo(-Math.log10(2) / 5, 10);
  });

  it('says the change over a range as a share', () => {
    expect(changeOver({ exponent: 0, factor: 5 }, 1, 1_000)).toBe(0);
    expect(changeOver({ exponent: 1, factor: 5 }, 10, 20)).toBeCloseTo(1, 10);
    expect(changeOver({ exponent: -1, factor: 5 }, 10, 20)).toBeCloseTo(-0.5, 10);
  });

  it.each([
    ['no point', []],
    ['one point', [{ x: 10, y: 5 }]],
    [
      'one size twice',
      [
        { x: 10, y: 5 },
        { x: 10, y: 6 },
      ],
    ],
    [
      'values of which a logarithm knows nothing',
      [
        { x: 10, y: 0 },
        { x: 20, y: -1 },
        { x: 0, y: 3 },
      ],
    ],
  ])('is none of %s', (_, points) => {
    expect(fitPower(points)).toBeUndefined();
  });
});
