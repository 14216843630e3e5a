import { describe, expect, it } from 'vitest';
import { beat } from '#lib/engine/scripts/leases.js';
import { until } from '../support/wait.js';
import { LEASE_MS, QUEUE, released, useQueue, WORKER } from './support.js';
import { changingNothing, itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();

const beating = () => q.engine.beat(QUEUE, WORKER, LEASE_MS);
const lease = async () => Number(await q.admin.zscore(q.key('workers'), WORKER));

it('shortens a lease that is too far ahead: the clock was set back', async () => {
  await q.hold('a');
  await q.admin.zadd(q.key('workers'), (await q.now()) + 3_600_000, WORKER);
  await beating();
  expect(await lease()).toBeLessThanOrEqual((await q.now()) + LEASE_MS);
});

it('restores a lease that was deleted by hand', async () => {
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

it('of an unknown worker changes nothing', async () => {
  expect(await changingNothing(q, () => beating())).toEqual({ kind: 'unknown-worker' });
  await q.hold('a');
  await q.admin.del(q.key('worker'));
  expect(await changingNothing(q, () => beating())).toEqual({ kind: 'unknown-worker' });
});

describe('returns which of its jobs were cancelled', () => {
  const told = async (worker = WORKER) => {
    const answer = await q.engine.beat(QUEUE, worker, LEASE_MS);
    return answer.kind === 'alive' ? answer.cancels : answer;
  };

  it('as long as it holds them', async () => {
    await q.hold('a', 'b');
    await q.engine.admin.cancel(QUEUE, 'a', 'why');
    expect(await told()).toEqual(new Map([['a', 'why']]));
    await q.settle(released('a'));
    expect(await told()).toEqual(new Map());
    await q.settle(released('b'));
    expect(await told()).toEqual(new Map());
  });

  it('at most 1,000 at a time, the others with the next heartbeats', async () => {
    const ids = Array.from({ length: 1_500 }, (_, i) => `j${i}`);
    await q.exchange();
    await q.admin.sadd(q.key('active'), ...ids);
    await q.admin.hset(q.key('toCancel'), ...ids.flatMap((id) => [id, 'why']));
    const seen = new Set<string>();
    await until(async () => {
      const cancels = (await told()) as ReadonlyMap<string, string>;
      expect(cancels.size).toBe(1_000);
      for (const id of cancels.keys()) seen.add(id);
      return seen.size === ids.length;
    });
  });
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
