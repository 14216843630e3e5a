import { InvalidOptionError } from '#lib/errors.js';
import { MAX_DURATION_MS, parseDuration, readDuration } from '#lib/job/duration.js';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { outcomeOf } from '../support/caught.js';

/** The result of a call, or the class of its error. */

describe('parseDuration', () => {
  it.each([
    [0, 0],
    [250, 250],
    [MAX_DURATION_MS, MAX_DURATION_MS],
    ['250ms', 250],
    ['10s', 10_000],
    ['5m', 300_000],
    ['2h', 7_200_000],
    ['90d', 7_776_000_000],
    ['2 hours', 7_200_000],
    ['10Y', MAX_DURATION_MS],
    ['1500', 1_500],
    ['1.5s', 1_500],
    ['0', 0],
    ['-0s', 0],
    [-0, 0],
  ])('reads %j as %d ms', (value, ms) => {
    expect(parseDuration(value, 'delay')).toBe(ms);
  });

  it.each([
    ['1.5', 2],
    ['0.4ms', 0],
    ['0.0004s', 0],
    ['1.0006s', 1_001],
  ])('rounds the fraction of a millisecond in %j to %d ms', (value, ms) => {
    expect(parseDuration(value, 'delay')).toBe(ms);
  });

  it('returns the same for a string that it has seen before, and for ten thousand different ones', () => {
    for (let round = 0; round < 2; round++) {
      for (let n = 0; n < 10_000; n++) expect(parseDuration(`${n}s`, 'delay')).toBe(n * 1_000);
    }
  });

  const rule = "a duration in ms or like '10s'";
  it.each([
    ['', `add().delay must be ${rule}, got "" (string)`],
    [' ', `add().delay must be ${rule}, got " " (string)`],
    ['soon', `add().delay must be ${rule}, got "soon" (string)`],
    ['10 parsecs', `add().delay must be ${rule}, got "10 parsecs" (string)`],
    ['10s ', `add().delay must be ${rule}, got "10s " (string)`],
    ['1e3', `add().delay must be ${rule}, got "1e3" (string)`],
    ['NaN', `add().delay must be ${rule}, got "NaN" (string)`],
    ['-5m', `add().delay must be ${rule}, not negative, got "-5m" (string)`],
    [-1, `add().delay must be ${rule}, not negative, got -1 (number)`],
    [-Infinity, `add().delay must be ${rule}, not negative, got -Infinity (number)`],
    [Number.NaN, `add().delay must be ${rule}, got NaN (number)`],
    [1.5, `add().delay must be ${rule}, in whole milliseconds, got 1.5 (number)`],
    [Infinity, `add().delay must be ${rule}, at most 10 years, got Infinity (number)`],
    [1e20, `add().delay must be ${rule}, at most 10 years, got 100000000000000000000 (number)`],
    [MAX_DURATION_MS + 1, `add().delay must be ${rule}, at most 10 years, got 315576000001 (number)`],
    ['11y', `add().delay must be ${rule}, at most 10 years, got "11y" (string)`],
    [undefined, `add().delay must be ${rule}, got undefined`],
    [null, `add().delay must be ${rule}, got null (null)`],
    [true, `add().delay must be ${rule}, got true (boolean)`],
    [10n, `add().delay must be ${rule}, got 10n (bigint)`],
    [['10s'], `add().delay must be ${rule}, got ["10s"] (array)`],
    [{ ms: 5 }, `add().delay must be ${rule}, got {"ms":5} (object)`],
  ])('refuses %s with a message', (value, message) => {
    let error: unknown;
    try {
      parseDuration(value, 'add().delay');
    } catch (caught) {
      error = caught;
    }
    expect(error).toBeInstanceOf(InvalidOptionError);
    expect(error).toMatchObject({
      message,
      path: 'add().delay',
      code: 'GODWIT_INVALID_OPTION',
      received: value,
    });
    expect(readDuration(value)).toBeUndefined();
  });

  it('refuses a string of any length without reading all of it', () => {
    expect(() => parseDuration(`${'9'.repeat(10_000_000)}s`, 'delay')).toThrow(InvalidOptionError);
  });

  it('returns whole ms between 0 and 10 years for everything that it accepts', () => {
    const anything = fc.oneof(
      fc.anything(),
      fc.string(),
      fc.double(),
      fc
        .tuple(
          fc.double({ noNaN: true, noDefaultInfinity: true }),
          fc.constantFrom('', 'ms', 's', ' m', 'h', 'y'),
        )
        .map(([n, unit]) => `${n}${unit}`),
    );
    fc.assert(
      fc.property(anything, (value) => {
        const ms = readDuration(value);
        const parse = () => parseDuration(value, 'delay');
        const isWhole = Number.isInteger(ms) && ms! >= 0 && ms! <= MAX_DURATION_MS;
        expect(outcomeOf(parse)).toBe(isWhole ? ms : InvalidOptionError);
        expect(ms === undefined || isWhole).toBe(true);
      }),
      { numRuns: 1_000 },
    );
  });
});
