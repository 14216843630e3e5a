import { afterEach, expect, it, vi } from 'vitest';
import { Log } from '#lib/contract/log.js';
import { Room } from '#lib/producer/enqueuer.js';

afterEach(() => void vi.useRealTimers());

it('logs once that a queue is full, and once that it had room for a minute', () => {
  vi.useFakeTimers();
  const lines: string[] = [];
  vi.spyOn(Log.prototype, 'log').mockImplementation((text) => void lines.push(text));
  const room = new Room('work', { limit: 10, onFull: 'dropOldest', timeoutMs: 0 });
  room.found();
  expect(lines).toEqual([]);
  const full = "queue 'work' is full (maxWaiting 10): the oldest waiting jobs are removed";
  room.found(1);
  expect(lines).toEqual([full]);
  for (let i = 0; i < 5; i++) {
    vi.advanceTimersByTime(59_000);
    room.found();
    room.missed();
  }
  expect(lines).toEqual([full]);
  vi.advanceTimersByTime(60_000);
  room.found();
  room.found();
  expect(lines).toEqual([full, "queue 'work' has room again"]);
  room.missed();
  expect(lines.at(-1)).toBe(full);
});
