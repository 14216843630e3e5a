import { expect, it } from 'vitest';
import type { QueueEventBatch } from '#lib/contract/engine.js';
import { ReadPerQueue } from '#lib/engine/read-per-queue.js';
import { until } from '../support/wait.js';

const batch = (queue: string, last: number): QueueEventBatch => ({
  queue,
  first: last,
  last,
  at: 0,
  events: [],
});

/** Streams whose calls end when the test says so. */
function bench() {
  const calls: {
    queue: string;
    from: number;
    end: (found: QueueEventBatch[]) => void;
    fail: (e: Error) => void;
  }[] = [];
  const reader = new ReadPerQueue(
    (queue, from) => new Promise((end, fail) => void calls.push({ queue, from, end, fail })),
  );
  const open = () => calls.map(({ queue, from }) => `${queue}@${from}`);
  const read = (after: Record<string, number>, blockMs = 10_000) =>
    reader.read(new Map(Object.entries(after)), blockMs);
  const called = (n: number) => until(() => calls.length === n);
  return { calls, open, read, called, interrupt: () => reader.interrupt() };
}

it('returns the first answer, and keeps the other calls for the next read', async () => {
  const { calls, open, read, called } = bench();
  const first = read({ a: 1, b: 5 });
  await called(2);
  calls[1]!.end([batch('b', 6)]);
  expect(await first).toEqual([batch('b', 6)]);
  const second = read({ a: 1, b: 6 });
  await called(3);
  expect(open()).toEqual(['a@1', 'b@5', 'b@6']);
  calls[0]!.end([batch('a', 2)]);
  expect(await second).toEqual([batch('a', 2)]);
});

it('returns events that came between two reads to the next one, but only from the same position', async () => {
  const { calls, read, called } = bench();
  const first = read({ a: 1, b: 5, c: 7 });
  await called(3);
  calls[0]!.end([batch('a', 2)]);
  expect(await first).toEqual([batch('a', 2)]);
  calls[1]!.end([batch('b', 6)]);
  calls[2]!.end([batch('c', 8)]);
  // A subscriber asked for older events of c.
  const second = read({ b: 5, c: 3 });
  expect(await second).toEqual([batch('b', 6)]);
  await called(4);
  expect(calls[3]).toMatchObject({ queue: 'c', from: 3 });
});

it('returns when it is interrupted, and keeps waiting calls for the next read', async () => {
  const { calls, read, called, interrupt } = bench();
  const first = read({ a: 1 });
  await called(1);
  interrupt();
  expect(await first).toEqual([]);
  const second = read({ a: 1, b: 5 });
  await called(2);
  calls[0]!.end([batch('a', 2)]);
  expect(await second).toEqual([batch('a', 2)]);
});

it('returns nothing when every call has ended without events', async () => {
  const { calls, read, called } = bench();
  const reading = read({ a: 1, b: 1 });
  await called(2);
  calls[0]!.end([]);
  calls[1]!.end([]);
  expect(await reading).toEqual([]);
  expect(calls.length).toBe(2);
});

it('does not wait longer than requested for calls that were waiting already, and repeats ended calls', async () => {
  const { calls, read, called } = bench();
  const first = read({ a: 1, b: 1 });
  await called(2);
  calls[0]!.end([batch('a', 2)]);
  await first;
  expect(await read({ b: 1 }, 1)).toEqual([]);
  const third = read({ b: 1 }, 10_000);
  calls[1]!.end([]);
  await called(3);
  calls[2]!.end([batch('b', 2)]);
  expect(await third).toEqual([batch('b', 2)]);
});

it('fails with the call that fails, and calls again at the next read', async () => {
  const { calls, read, called } = bench();
  const first = read({ a: 1 });
  await called(1);
  calls[0]!.fail(new Error('gone'));
  await expect(first).rejects.toThrow('gone');
  const second = read({ a: 1 });
  await called(2);
  calls[1]!.end([batch('a', 2)]);
  expect(await second).toEqual([batch('a', 2)]);
});
