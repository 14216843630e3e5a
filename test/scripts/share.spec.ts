import { describe, expect, it } from 'vitest';
import { QueueKeys } from '#lib/engine/keys.js';
import { share } from '#lib/engine/scripts/limits.js';
import { LEASE_MS, QUEUE, useQueue } from './support.js';
import { changingNothing } from './unchanged.js';

const q = useQueue();
const call = { limits: ['api'], worker: 'w', seq: 1, running: 0, want: 2, kept: null, leaseMs: LEASE_MS };

it('keeps one entry for each worker, and drops expired ones', async () => {
  await q.engine.limits.set(QUEUE, 's:api', 'code', { concurrency: 9 });
  await q.engine.limits.share(QUEUE, { ...call, worker: 'gone', want: 0, leaseMs: 0 });
  await q.engine.limits.share(QUEUE, call);
  await q.engine.limits.share('other', { ...call, want: 1 });
  const { shares } = new QueueKeys(q.redis.prefix, '').fixed;
  const rows = (await q.admin.hget(shares, 'api'))!.split('\n').map((row) => row.split(' '));
  expect(rows.map(([queue, worker, , count, seq, granted]) => [queue, worker, count, seq, granted])).toEqual([
    [QUEUE, 'w', '2', '1', '2'],
    ['other', 'w', '1', '1', '1'],
  ]);
});

it('ignores entries that other programs wrote', async () => {
  const { shares } = new QueueKeys(q.redis.prefix, '').fixed;
  await q.engine.limits.set(QUEUE, 's:api', 'code', { concurrency: 9 });
  await q.admin.hset(shares, 'api', 'nonsense\n\n1 2 3');
  expect(await q.engine.limits.share(QUEUE, call)).toMatchObject({ granted: 2 });
});

describe('refused', () => {
  it.each(share.keys)('changes nothing if %s is of another type', async (kind) => {
    await q.engine.limits.set(QUEUE, 's:api', 'code', {
      rate: { max: 9, per: 60_000, window: 'fixed', burst: 9 },
    });
    await q.engine.limits.share(QUEUE, call);
    const key = new QueueKeys(q.redis.prefix, '').fixed[kind];
    await q.admin.del(key);
    await q.admin.set(key, 'not ours');
    const refused = () =>
      expect(q.engine.limits.share(QUEUE, { ...call, seq: 2 })).rejects.toMatchObject({ applied: 'no' });
    await changingNothing(q, refused);
  });
});
