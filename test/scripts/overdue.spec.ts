import { describe, expect, it } from 'vitest';
import { overdue } from '#lib/engine/scripts/leases.js';
import { LEASE_MS, QUEUE, useQueue } from './support.js';
import { changingNothing, itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();

const looking = (withinMs = 2_000) => changingNothing(q, () => q.engine.overdue(QUEUE, withinMs));

/** Leases by worker, in ms from now. */
async function leases(ends: Record<string, number>): Promise<void> {
  const now = await q.now();
  for (const [worker, inMs] of Object.entries(ends)) await q.admin.zadd(q.key('workers'), now + inMs, worker);
}

it('finds no worker if all leases are valid, or if there are no workers', async () => {
  expect(await looking()).toEqual([]);
  await leases({ a: LEASE_MS - 500, b: LEASE_MS });
  expect(await looking(1)).toEqual([]);
});

it('finds leases further ahead than one lease: the clock was set back', async () => {
  await leases({ good: LEASE_MS - 500, far: 3_600_000, farther: 7_200_000 });
  const found = await looking();
  expect(found.map(({ worker }) => worker)).toEqual(['farther', 'far']);
  expect(found[1]?.endsInMs).toBeGreaterThan(3_590_000);
});

it('returns 100 workers at a time', async () => {
  await leases(Object.fromEntries(Array.from({ length: 150 }, (_, i) => [`w${i}`, -1_000 + i])));
  const found = await looking();
  expect(found).toHaveLength(100);
  expect(found[0]?.worker).toBe('w0');
});

describe('refused', () => {
  itRefusesWrongTypes(q, {
    keys: overdue.keys,
    prepare: () => Promise.resolve(() => q.engine.overdue(QUEUE, 1)),
  });
});
