import { InvalidOptionError } from '#lib/errors.js';
import { backoffDelay, checkBackoff, type BackoffOption, type CheckedBackoff } from '#lib/job/backoff.js';
import { MAX_DURATION_MS } from '#lib/job/duration.js';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';

const HOUR = 3_600_000;
const delays = (option: BackoffOption, attempts: readonly number[], random?: () => number) =>
  attempts.map((attempt) =>
    backoffDelay(checkBackoff(option, 'backoff') as CheckedBackoff, attempt, new Error('x'), random),
  );

describe('backoffDelay', () => {
  it('waits a bare duration every time', () => {
    expect(delays(5_000, [1, 2, 10_000])).toEqual([5_000, 5_000, 5_000]);
    expect(delays('5s', [1, 2])).toEqual([5_000, 5_000]);
    expect(delays({ type: 'fixed', delay: '5s' }, [1, 2, 10_000])).toEqual([5_000, 5_000, 5_000]);
  });

  it('takes the nth of a list, then the last', () => {
    expect(delays(['1s', 10_000, '1m'], [1, 2, 3, 4, 10_000])).toEqual([
      1_000, 10_000, 60_000, 60_000, 60_000,
    ]);
  });

  it('doubles by default, up to one hour', () => {
    expect(delays({ type: 'exponential', delay: '1s' }, [1, 2, 3, 12, 13, 10_000])).toEqual([
      1_000,
      2_000,
      4_000,
      2_048_000,
      HOUR,
      HOUR,
    ]);
  });

  it('takes another factor and cap', () => {
    expect(
      delays({ type: 'exponential', delay: 100, factor: 1.5, max: 400 }, [1, 2, 3, 4, 5, 10_000]),
    ).toEqual([100, 150, 225, 338, 400, 400]);
    expect(delays({ type: 'exponential', delay: 100, factor: 1 }, [1, 10_000])).toEqual([100, 100]);
  });

  it('does not cut a first delay that is longer than the default cap', () => {
    expect(delays({ type: 'exponential', delay: '2h' }, [1, 2])).toEqual([2 * HOUR, 2 * HOUR]);
  });

  it('stays 0 if the delay is 0, in any attempt', () => {
    expect(delays({ type: 'exponential', delay: 0 }, [1, 2, 10_000])).toEqual([0, 0, 0]);
  });

  it.each([
    ['nothing taken off', 0, [1_000, 2_000]],
    ['half of the share', 0.5, [900, 1_800]],
    ['all of the share', 1, [800, 1_600]],
  ])('subtracts jitter from the wait: %s', (_, chance, expected) => {
    const random = () => chance;
    expect(delays({ type: 'exponential', delay: '1s', jitter: 0.2 }, [1, 2], random)).toEqual(expected);
    expect(delays({ type: 'fixed', delay: '1s', jitter: 0.2 }, [1], random)).toEqual([expected[0]]);
  });

  it('does not fall below the minimum by rounding', () => {
    expect(delays({ type: 'fixed', delay: 3, jitter: 0.5 }, [1], () => 0.999)).toEqual([2]);
  });

  it('uses Math.random by default', () => {
    const waits = new Set(delays({ type: 'fixed', delay: '1h', jitter: 1 }, Array(50).fill(1)));
    expect(waits.size).toBeGreaterThan(1);
  });

  it('is a whole number of ms in [wait * (1 - jitter), wait], for any option and attempt', () => {
    const options = fc.record({
      delay: fc.nat({ max: MAX_DURATION_MS }),
      more: fc.nat({ max: HOUR }),
      factor: fc.double({ min: 1, max: 100, noNaN: true }),
      jitter: fc.double({ min: 0, max: 1, noNaN: true }),
    });
    const chance = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    fc.assert(
      fc.property(options, fc.integer({ min: 1, max: 10_000 }), chance, (given, attempt, random) => {
        const { delay, factor, jitter } = given;
        const max = Math.min(delay + given.more, MAX_DURATION_MS);
        const option = { type: 'exponential', delay, factor, max } as const;
        const whole = delays(option, [attempt])[0] as number;
        const wait = delays({ ...option, jitter }, [attempt], () => random)[0] as number;
        expect(whole).toBeGreaterThanOrEqual(delay);
        expect(whole).toBeLessThanOrEqual(max);
        expect(Number.isInteger(wait)).toBe(true);
        expect(wait).toBeLessThanOrEqual(whole);
        expect(wait).toBeGreaterThanOrEqual(whole * (1 - jitter));
      }),
    );
  });

  describe('own function', () => {
    it('is given the attempt that failed and what was thrown', () => {
      const error = new Error('busy');
      const calls: unknown[][] = [];
      const own = (...call: [number, unknown, unknown]) => {
        calls.push(call);
        return '2s';
      };
      expect(
        backoffDelay(checkBackoff(own, 'backoff') as CheckedBackoff, 3, error, undefined, {
          id: 'job',
        } as never),
      ).toBe(2_000);
      expect(calls).toEqual([[3, error, { id: 'job' }]]);
    });

    it('may compute: fractions are rounded, and there is a maximum', () => {
      expect(delays((attempt) => 1_000 * 1.5 ** attempt, [1, 3, 9_000])).toEqual([
        1_500,
        3_375,
        MAX_DURATION_MS,
      ]);
    });

    it.each([
      [-2, "must be a duration in ms or like '10s', not negative, got -2 (number)"],
      [Number.NaN, "must be a duration in ms or like '10s', got NaN (number)"],
      ['later', 'got "later" (string)'],
      [undefined, 'got undefined'],
      [{}, 'got {} (object)'],
    ])('that returns %s is refused', (returned, message) => {
      const run = () => backoffDelay((() => returned) as () => number, 1, null);
      expect(run).toThrow(InvalidOptionError);
      expect(run).toThrow(`what the backoff function returned must be`);
      expect(run).toThrow(message);
    });

    it('may be asynchronous, with the same rules', async () => {
      const own = (returned: unknown) =>
        backoffDelay((async () => returned) as () => Promise<number>, 1, null);
      expect(await own('2s')).toBe(2_000);
      expect(await own(1.4)).toBe(1);
      await expect(own('later')).rejects.toThrow('got "later" (string)');
    });

    it('that throws, throws', () => {
      const error = new RangeError('own fault');
      const own = () => {
        throw error;
      };
      expect(() => backoffDelay(own, 1, null)).toThrow(error);
    });
  });
});

describe('checkBackoff', () => {
  it('turns durations into ms and keeps only what was given', () => {
    expect(checkBackoff('1m', 'b')).toBe(60_000);
    expect(checkBackoff(['1s', 2], 'b')).toEqual([1_000, 2]);
    expect(checkBackoff({ type: 'fixed', delay: '1s' }, 'b')).toEqual({ type: 'fixed', delay: 1_000 });
    const all = { type: 'exponential', delay: '1s', max: '1h', factor: 3, jitter: 0.5 };
    expect(checkBackoff(all, 'b')).toEqual({ ...all, delay: 1_000, max: HOUR });
    expect(Object.keys(checkBackoff({ type: 'exponential', delay: 1, max: undefined }, 'b'))).toEqual([
      'type',
      'delay',
    ]);
  });

  it('does not keep the list that it was given', () => {
    const list = [1, 2];
    const checked = checkBackoff(list, 'b');
    list[0] = -1;
    expect(checked).toEqual([1, 2]);
  });

  const at = 'add().backoff';
  const duration = "must be a duration in ms or like '10s'";
  const types = `'fixed' or 'exponential'; for a named backoff, set "backoff" to a name from the option "backoffs" of forRoot or registerQueue`;
  const any = `${duration}, a list of durations, { type: 'fixed' | 'exponential', delay }, a name from the option "backoffs" of forRoot or registerQueue, or in defaults and @Handle a function`;
  it.each([
    [undefined, `${at} ${any}, got undefined`],
    [null, `${at} ${any}, got null (null)`],
    [true, `${at} ${any}, got true (boolean)`],
    ['so on', `${at} ${any}, got "so on" (string)`],
    ['exponential', `${at} ${any}, got "exponential" (string)`],
    [-1, `${at} ${duration}, not negative, got -1 (number)`],
    [[], `${at} must be a list of 1 to 1000 durations, got [] (array)`],
    [Array(1_001).fill(1), `${at} must be a list of 1 to 1000 durations, got [1,1`],
    [[1, 'x'], `${at}[1] ${duration}, got "x" (string)`],
    [Object.assign([1], { 2: 3 }), `${at}[1] ${duration}, got undefined`],
    [{}, `${at}.type must be ${types}, got undefined`],
    [{ type: 'linear', delay: 1 }, `${at}.type must be ${types}, got "linear" (string)`],
    [{ type: 'fixed' }, `${at}.delay ${duration}, got undefined`],
    [{ type: 'exponential', delay: 'x' }, `${at}.delay ${duration}, got "x" (string)`],
    [{ type: 'exponential', delay: 1, max: -1 }, `${at}.max ${duration}, not negative, got -1 (number)`],
    [
      { type: 'exponential', delay: '1m', max: '1s' },
      `${at}.max must be at least delay (60000 ms), got "1s" (string)`,
    ],
    [
      { type: 'exponential', delay: 1, factor: 0.5 },
      `${at}.factor must be a number from 1 to 100, got 0.5 (number)`,
    ],
    [
      { type: 'exponential', delay: 1, factor: '2' },
      `${at}.factor must be a number from 1 to 100, got "2" (string)`,
    ],
    [{ type: 'fixed', delay: 1, jitter: 1.1 }, `${at}.jitter must be a number from 0 to 1, got 1.1 (number)`],
    [
      { type: 'fixed', delay: 1, jitter: Number.NaN },
      `${at}.jitter must be a number from 0 to 1, got NaN (number)`,
    ],
    [
      { type: 'fixed', delay: 1, factor: 2 },
      `${at}.factor is not an option; the options are type, delay, jitter`,
    ],
    [{ type: 'exponential', dealy: 1 }, `${at}.dealy is not an option; did you mean delay?`],
  ])('refuses %s', (option, message) => {
    expect(() => checkBackoff(option, at)).toThrow(InvalidOptionError);
    expect(() => checkBackoff(option, at)).toThrow(message);
  });
});
