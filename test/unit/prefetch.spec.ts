import { performance } from 'node:perf_hooks';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { RULES } from '#lib/job/rules.js';
import { Prefetch, PrefetchTimeout, StartPermit } from '#lib/worker/prefetch.js';
import { atEnd } from '../support/cleanup.js';

let now: number;
let idle: number;
let prefetch: Prefetch;

beforeEach(() => {
  now = 1_000;
  idle = 0;
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now);
  const loop = vi
    .spyOn(performance, 'eventLoopUtilization')
    .mockImplementation(() => ({ idle, active: now - 1_000 - idle, utilization: 0 }));
  atEnd(() => {
    clock.mockRestore();
    loop.mockRestore();
  });
  prefetch = new Prefetch();
});

/** Exchanges in a row. So many runs end before each next one, and the event loop rests for a share of the time. */
function exchanges(
  count: number,
  { runs = 0, roundTripMs = 1, restMs = 9, saturated = true, restShare = 0.5 },
): void {
  for (let i = 0; i < count; i++) {
    now += roundTripMs;
    idle += roundTripMs * restShare;
    prefetch.measured(saturated ? 'more' : 'empty', roundTripMs);
    now += restMs;
    idle += restMs * restShare;
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

it('does not count the time in which there was nothing to run', () => {
  for (let i = 0; i < 20; i++) {
    prefetch.starves();
    now += 10;
    prefetch.starves();
    now += 10;
    prefetch.measured('more', 20);
    prefetch.received(50, 50, 20);
    now += 1;
    for (let n = 0; n < 50; n++) prefetch.count();
  }
  expect(prefetch.jobs).toBeCloseTo(50 * (5 + 20), -2);
});

it('counts the time before and after the one in which there was nothing to run', () => {
  for (let i = 0; i < 20; i++) {
    now += 2;
    for (let n = 0; n < 50; n++) prefetch.count();
    prefetch.starves();
    now += 10;
    prefetch.measured('more', 20);
    now += 10;
    prefetch.received(50, 50, null);
    now += 3;
  }
  expect(prefetch.jobs).toBeCloseTo((50 / 5) * (5 + 20), -1);
});

it('does not count an answer that waited for a handler as a round trip, unless all are that slow', () => {
  exchanges(100, { runs: 1_000 });
  exchanges(1, { runs: 2_000, roundTripMs: 11 });
  expect(prefetch.jobs).toBeLessThan(620);
  exchanges(100, { runs: 2_000, roundTripMs: 11 });
  expect(prefetch.jobs).toBeCloseTo(100 * (5 + 11), -2);
});

it('prefetches nothing if jobs are slow, or if there are not always more jobs', () => {
  exchanges(100, { runs: 1 });
  expect(prefetch.jobs).toBe(0);
  exchanges(100, { runs: 1_000 });
  exchanges(20, { runs: 1_000, saturated: false });
  expect(prefetch.jobs).toBe(0);
  exchanges(100, { runs: 1_000 });
  prefetch.forget();
  expect(prefetch.jobs).toBe(0);
});

it('keeps its speed if a queue is paused or limited, which says nothing about the number of waiting jobs', () => {
  exchanges(100, { runs: 1_000 });
  const { jobs } = prefetch;
  for (let i = 0; i < 20; i++) prefetch.measured(i % 2 ? 'paused' : { limitedForMs: 100 }, 1);
  expect(prefetch.jobs).toBe(jobs);
  expect(prefetch.isDry).toBe(true);
});

it('asks for at most 500 at once, and for fewer if bodies are large', () => {
  expect(prefetch.most).toBe(500);
  for (let i = 0; i < 30; i++) prefetch.received(10, 1024 * 1024, 1);
  expect(prefetch.most).toBe(10);
  for (let i = 0; i < 30; i++) prefetch.received(1, 1024 * 1024 * 1024, 1);
  expect(prefetch.most).toBe(1);
});

describe('a second call in flight', () => {
  const isWorth = (...wants: number[]) => wants.map((want) => prefetch.isWorthPipelining(want));

  it('is used for half a claim if more jobs are likely to wait', () => {
    expect(isWorth(500)).toEqual([false]);
    exchanges(1, {});
    expect(isWorth(249, 250)).toEqual([false, true]);
    exchanges(1, { saturated: false });
    expect(isWorth(500)).toEqual([false]);
    exchanges(1, {});
    for (let i = 0; i < 30; i++) prefetch.received(10, 1024 * 1024, 1);
    expect(isWorth(4, 5)).toEqual([false, true]);
  });

  it('is not used if this process does not wait for the store', () => {
    exchanges(20, { restShare: 0.01 });
    expect(isWorth(500)).toEqual([false]);
    exchanges(20, { restShare: 0.2 });
    expect(isWorth(500)).toEqual([true]);
    // Two answers at once.
    exchanges(1, { roundTripMs: 0, restMs: 0 });
    expect(isWorth(500)).toEqual([true]);
    exchanges(20, { restShare: 0.01 });
    expect(isWorth(500)).toEqual([false]);
  });

  it('is still used after a long idle time, which says nothing about the jobs', () => {
    exchanges(2, { restMs: 3_600_000, restShare: 1 });
    expect(isWorth(500)).toEqual([true]);
    exchanges(12, { restShare: 0.01 });
    expect(isWorth(500)).toEqual([false]);
  });
});

describe('claimed jobs that wait for a slot', () => {
  function waiting(size: number) {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    atEnd(() => void vi.useRealTimers());
    const giveBack = vi.fn<() => void>();
    const timeout = new PrefetchTimeout({ size }, giveBack);
    atEnd(() => timeout.stop());
    timeout.watch();
    return { giveBack, timeout };
  }

  it.each([
    [0, 1, true],
    [1, 20, false],
    [1, 21, true],
    [25, 500, false],
    [24, 500, true],
  ])('if %i of them start in 50 ms, %i go back: %s', (starts, size, expected) => {
    const { giveBack, timeout } = waiting(size);
    for (let round = 0; round < 3; round++) {
      for (let i = 0; i < starts; i++) timeout.starts();
      vi.advanceTimersByTime(50);
    }
    expect(giveBack.mock.calls.length > 0).toBe(expected);
  });
});

it('the jobs that wait for a permit to start go back at every second answer until one starts', () => {
  const permit = new StartPermit();
  const asked = vi.fn<() => void>();
  expect(permit.returns()).toBe(false);
  for (const expected of [true, false, true, false]) {
    expect(permit.starts() || permit.ask(asked)).toBe(false);
    expect(permit.returns()).toBe(expected);
    permit.renew(true, 10_000, false, 0);
  }
  permit.ask(asked);
  expect(permit.returns()).toBe(true);
  permit.renew(true, 0, false, 0);
  expect(permit.starts()).toBe(true);
  permit.ask(asked);
  expect(permit.returns()).toBe(true);
});

it('an answer that was unread while the event loop was blocked lets no waiting job start; the one to the next call does', () => {
  const permit = new StartPermit();
  now += 10_000;
  permit.arrive();
  const answer = (sentMsAgo: number, busyMs: number) => {
    permit.renew(true, sentMsAgo, true, busyMs);
    return permit.starts();
  };
  now += 5_000;
  expect(answer(900, RULES.startMs + 1)).toBe(false);
  // Another call was in flight at the same time.
  expect(answer(800, RULES.startMs + 1)).toBe(false);
  now += 700;
  expect(answer(700, 700)).toBe(true);
  now += 700;
  expect(answer(700, 700)).toBe(false);
  // A slow connection, not a blocked event loop.
  expect(answer(700, 30)).toBe(true);
  now += RULES.startMs - 29;
  expect(permit.starts()).toBe(false);
});
