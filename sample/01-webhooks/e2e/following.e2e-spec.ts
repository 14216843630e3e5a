import { expect, test } from 'vitest';
import { Deliveries } from '../src/page/assets/deliveries.js';

const T0 = Date.UTC(2026, 0, 1);

/** Events as the live stream has them, numbered from 1, a second apart. */
function follow(moves: readonly object[], deliveries = new Deliveries(), startedAt = T0): Deliveries {
  moves.forEach((move, index) => {
    deliveries.apply({
      eventId: String(index + 1),
      at: new Date(startedAt + index * 1000).toJSON(),
      jobId: 'a',
      ...move,
    });
  });
  return deliveries;
}

test('a retry, a person, a success: one delivery with its attempts', () => {
  const deliveries = follow([
    { type: 'added' },
    { type: 'active', attempt: 1 },
    { type: 'retrying', attempt: 1, durationUs: 1500, delayMs: 500, error: { message: '500' } },
    { type: 'active', attempt: 2 },
    { type: 'dead', attempt: 2, durationUs: 2500, reason: 'retries-exhausted', error: { message: '503' } },
    { type: 'added' },
    { type: 'active', attempt: 1 },
    { type: 'completed', attempt: 1, durationUs: 3500 },
  ]);
  const [delivery] = deliveries.byId.values();
  expect(delivery).toMatchObject({ state: 'completed', dueAt: undefined, reason: undefined });
  expect(delivery!.runs).toMatchObject([
    { attempt: 1, outcome: 'failed', durationMs: 1.5, message: '500', retryInMs: 500, again: false },
    { attempt: 2, outcome: 'failed', durationMs: 2.5, message: '503', again: false },
    { attempt: 1, outcome: 'delivered', durationMs: 3.5, again: true },
  ]);
});

test('a delivery that waits says until when, one that lost its process waits again', () => {
  const retrying = { type: 'retrying', attempt: 1, durationUs: 1, delayMs: 500, error: null };
  const [delayed] = follow([{ type: 'added' }, { type: 'active', attempt: 1 }, retrying]).byId.values();
  expect(delayed).toMatchObject({ state: 'delayed', dueAt: new Date(T0 + 2500) });

  const [stalled] = follow([
    { type: 'added' },
    { type: 'active', attempt: 1 },
    { type: 'stalled', attempt: 1 },
  ]).byId.values();
  expect(stalled).toMatchObject({ state: 'waiting', runs: [{ outcome: 'lost' }] });
});

test('what was said before is not counted twice', () => {
  const moves = [{ type: 'added' }, { type: 'active', attempt: 1 }];
  const [delivery] = follow(moves, follow(moves)).byId.values();
  expect(delivery!.runs).toHaveLength(1);
});

test('another Redis begins with another list', () => {
  const before = follow([{ type: 'added' }, { type: 'added', jobId: 'b' }]);
  const after = follow([{ type: 'added', jobId: 'c' }], before, T0 + 60_000);
  expect([...after.byId.keys()]).toEqual(['c']);
});

test('a removed one goes, and of many the last fifty stay', () => {
  const many = Array.from({ length: 60 }, (_, index) => ({ type: 'added', jobId: `job-${index}` }));
  const deliveries = follow([...many, { type: 'removed', jobId: 'job-59' }]);
  expect([...deliveries.byId.keys()]).toEqual(many.slice(10, 59).map(({ jobId }) => jobId));
  expect(deliveries.dropped).toBe(10);
});
