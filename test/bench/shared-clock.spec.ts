import { describe, expect, it } from 'vitest';
import { payload } from '../../bench/src/contender.js';
import { Arrivals } from '../../bench/src/measure/arrivals.js';
import { now } from '../../bench/src/measure/clock.js';
import { together } from '../../bench/src/measure/together.js';

describe('arrivals', () => {
  it('are noted by the number of the job, at the moment they come', async () => {
    const arrivals = new Arrivals(3);
    const before = now();
    arrivals.handle(payload(2));
    arrivals.handle(payload(0));
    await arrivals.reached(2);
    expect(arrivals.at[1]).toBe(0);
    expect(arrivals.at[2]).toBeGreaterThanOrEqual(before);
    expect(arrivals.at[0]).toBeGreaterThanOrEqual(arrivals.at[2]!);
    expect(arrivals.count).toBe(2);
  });

  it('are waited for, but no longer than asked', async () => {
    const arrivals = new Arrivals(2);
    const waiting = arrivals.reached(2);
    arrivals.handle(payload(0));
    arrivals.handle(payload(1));
    await waiting;
    expect(arrivals.count).toBe(2);
    const nobody = new Arrivals(2);
    await nobody.reached(1, 1);
    expect(nobody.count).toBe(0);
  });

  it('fail if a job comes twice or was never added', async () => {
    const twice = new Arrivals(2);
    const waiting = twice.reached(2);
    twice.handle(payload(1));
    twice.handle(payload(1));
    await expect(waiting).rejects.toThrow('job 1 was handled twice');
    const strange = new Arrivals(2);
    strange.handle(payload(2));
    expect(() => strange.check()).toThrow('job 2 was never added');
  });
});

describe('several processes together', () => {
  const at = (...times: number[]) => Float64Array.from(times);

  it('have one clock, from the last job of the warm-up to the very last', () => {
    // Handled in the order 1, 0, 3, 2, 4; the first two are warm-up.
    const { elapsedMs, busiest } = together([at(20, 0, 0, 0, 50), at(0, 10, 35, 30, 0)], 2);
    expect(elapsedMs).toBe(30);
    expect(busiest).toBeCloseTo(2 / 3);
  });

  it('must have handled each job just once', () => {
    expect(() => together([at(10, 20), at(0, 21)], 1)).toThrow('job 1 was handled 2 times');
    expect(() => together([at(10, 0), at(0, 0)], 1)).toThrow('job 1 was handled 0 times');
  });
});
