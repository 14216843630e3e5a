import { describe, expect, it } from 'vitest';
import { charge } from '#lib/engine/scripts/limits.js';
import { job, QUEUE, useQueue } from './support.js';
import { changingNothing, itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();

it('corrects a rate by what a job has really cost, in both directions', async () => {
  for (const window of ['sliding', 'fixed', 'bucket'] as const) {
    const rate = { max: 10, per: 600_000, window, burst: 10 };
    await q.engine.limits.set(QUEUE, 'n:work', 'live', { rate });
    await q.engine.limits.charge(QUEUE, [{ field: 'n:work', holdMs: 0, count: 4 }]);
    expect((await q.engine.limits.list(QUEUE))[1]).toMatchObject({ field: 'n:work', left: 6 });
    await q.engine.limits.charge(QUEUE, [{ field: 'n:work', holdMs: 0, count: -3 }]);
    expect((await q.engine.limits.list(QUEUE))[1]).toMatchObject({ left: 9 });
    await q.engine.limits.charge(QUEUE, [{ field: 'n:work', holdMs: 0, count: -50 }]);
    expect((await q.engine.limits.list(QUEUE))[1]).toMatchObject({ left: 10 });
    await q.admin.del(q.key('limitStates'));
  }
});

it('of a field without a rate counts nothing', async () => {
  const charge = () => q.engine.limits.charge(QUEUE, [{ field: 'q', holdMs: 0, count: 4 }]);
  expect(await changingNothing(q, charge)).toBeUndefined();
  // Nor does it touch a state, also one that it cannot read.
  await q.admin.hset(q.key('limitStates'), 'q', 'what a later version wrote');
  expect(await changingNothing(q, charge)).toBeUndefined();
});

it('that corrects a rate ends no hold, and wakes nobody', async () => {
  await q.engine.limits.set(QUEUE, 'n:mail', 'live', {
    rate: { max: 10, per: 600_000, window: 'fixed', burst: 10 },
  });
  await q.engine.limits.charge(QUEUE, [{ field: 'n:mail', holdMs: 60_000, count: 0 }]);
  await q.add(job('m', { name: 'mail' }));
  await q.wasRung();
  await q.engine.limits.charge(QUEUE, [{ field: 'n:mail', holdMs: 0, count: -1 }]);
  expect(await q.wasRung()).toBe(false);
  expect(await q.claim(9)).toEqual([]);
  await q.engine.limits.charge(QUEUE, [{ field: 'n:mail', holdMs: -1, count: 0 }]);
  expect(await q.wasRung()).toBe(true);
  expect(await q.claim(9)).toEqual(['m']);
});

it('holds back the jobs of one name, and no others', async () => {
  await q.engine.limits.charge(QUEUE, [{ field: 'n:mail', holdMs: 60_000, count: 0 }]);
  await q.add(job('m', { name: 'mail' }), job('p', { name: 'page' }));
  expect(await q.claim(9)).toEqual(['p']);
});

describe('refused', () => {
  itRefusesWrongTypes(q, {
    keys: charge.keys,
    prepare: async () => () => q.engine.limits.charge(QUEUE, [{ field: 'n:mail', holdMs: 9, count: 0 }]),
  });
});
