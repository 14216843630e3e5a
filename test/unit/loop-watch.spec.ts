import { beforeEach, expect, it, vi } from 'vitest';
import { LoopWatch } from '#lib/worker/loop-watch.js';
import { atEnd } from '../support/cleanup.js';

beforeEach(() => {
  vi.useFakeTimers();
  atEnd(() => vi.useRealTimers());
});

/** The longest delay of the timer since the last reset, in ms. */
const delays = { max: 0, enable: () => true, disable: () => true, reset: () => void (delays.max = 0) };
const delayed = (ms: number) => (delays.max = ms * 1e6);

it('keeps the longest block for a minute, and leaves out short ones', () => {
  const watch = new LoopWatch(delays);
  delayed(149);
  expect(watch.blockedMs()).toBe(0);
  delayed(1_050);
  expect(watch.blockedMs()).toBe(1_000);
  delayed(250);
  vi.advanceTimersByTime(59_000);
  expect(watch.blockedMs()).toBe(1_000);
  vi.advanceTimersByTime(2_000);
  expect(watch.blockedMs()).toBe(0);
  delayed(250);
  expect(watch.blockedMs()).toBe(200);
  delayed(650);
  expect(watch.blockedMs()).toBe(600);
});
