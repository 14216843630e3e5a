import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { HeldBack } from '#lib/contract/held-back.js';
import type { Log } from '#lib/contract/log.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function heldBack() {
  const lines: string[] = [];
  const log = (text: string) => void lines.push(text);
  return { lines, held: new HeldBack({ log } as Log, 'begins', 'ends') };
}

it('logs once that work is held back, and once that it was not for a minute', () => {
  const { lines, held } = heldBack();
  held.over();
  vi.advanceTimersByTime(100_000);
  expect(lines).toEqual([]);
  held.now(' now');
  // Held back without a call in between, as by a rate of one an hour.
  vi.advanceTimersByTime(3_600_000);
  held.now(' again');
  for (let i = 0; i < 5; i++) {
    held.over();
    vi.advanceTimersByTime(50_000);
    held.now(' again');
  }
  expect(lines).toEqual(['begins now']);
  held.over();
  vi.advanceTimersByTime(40_000);
  held.over();
  vi.advanceTimersByTime(19_999);
  expect(lines).toEqual(['begins now']);
  vi.advanceTimersByTime(1);
  expect(lines).toEqual(['begins now', 'ends']);
  held.now();
  expect(lines).toEqual(['begins now', 'ends', 'begins']);
});

it('logs nothing after it was stopped', () => {
  const { lines, held } = heldBack();
  held.now();
  held.over();
  held.stop();
  vi.advanceTimersByTime(100_000);
  expect(lines).toEqual(['begins']);
});
