import { describe, expect, it } from 'vitest';
import { beat } from '#lib/engine/scripts/beat.js';
import { LEASE_MS, QUEUE, useQueue, WORKER } from './support.js';
import { changingNothing, itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();

const beating = (leaseMs = LEASE_MS) => q.engine.beat(QUEUE, WORKER, leaseMs);
const lease = async () => Number(await q.admin.zscore(q.key('workers'), WORKER));

it('renews the lease for everything the worker holds, and tells how much that is', async () => {
  await q.hold('a', 'b');
  await q.admin.zadd(q.key('workers'), 5, WORKER);
  const before = await q.now();
  expect(await beating()).toEqual({ kind: 'alive', held: 2, seq: 1 });
  expect(await lease()).toBeGreaterThanOrEqual(before + LEASE_MS);
  expect(await lease()).toBeLessThanOrEqual((await q.now()) + LEASE_MS);
});

it('shortens a lease that lies too far ahead: the clock was stepped back', async () => {
  await q.hold('a');
  await q.admin.zadd(q.key('workers'), (await q.now()) + 3_600_000, WORKER);
  await beating();
  expect(await lease()).toBeLessThanOrEqual((await q.now()) + LEASE_MS);
});

it('makes no lease where nothing is held', async () => {
  await q.exchange();
  await q.exchange();
  expect(await beating()).toEqual({ kind: 'alive', held: 0, seq: 2 });
  expect(await q.admin.exists(q.key('workers'))).toBe(0);
});

it('brings a lease back that somebody deleted', async () => {
  await q.hold('a');
  await q.admin.del(q.key('workers'));
  await beating();
  expect(await lease()).toBeGreaterThan(await q.now());
});

it('keeps the record for another minute', async () => {
  await q.hold('a');
  await q.admin.pexpire(q.key('worker'), 5_000);
  await beating();
  expect(await q.admin.pttl(q.key('worker'))).toBeGreaterThan(50_000);
});

it('of a worker nobody knows changes nothing', async () => {
  expect(await changingNothing(q, () => beating())).toEqual({ kind: 'unknown-worker' });
  await q.hold('a');
  await q.admin.del(q.key('worker'));
  expect(await changingNothing(q, () => beating())).toEqual({ kind: 'unknown-worker' });
});

describe('refused', () => {
  itRefusesWrongTypes(q, {
    keys: beat.keys,
    async prepare() {
      await q.hold('a');
      return () => beating();
    },
  });
});
