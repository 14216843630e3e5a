import { describe, expect, it } from 'vitest';
import type { JobsCall } from '#lib/contract/admin-verbs.js';
import { encodeBody } from '#lib/job/job-record.js';
import { completed, dead, job, kept, QUEUE, released, WORKER } from '../scripts/support.js';
import { BEAT_MS } from '../model/rig.js';
import { ENGINES, useEngine } from './support.js';

describe.each(ENGINES)('cancelled jobs that are kept on %s', (kind) => {
  const t = useEngine(kind, { cancelledMs: 10_000, completedMax: 3 });
  const cancel = (id: string, reason = 'why') => t.engine.admin.cancel(QUEUE, id, reason);
  const get = (id: string) => t.engine.admin.get(QUEUE, id);
  const counts = () => t.engine.admin.counts(QUEUE);
  const list = async (state: JobsCall['state'], more = {}) =>
    (await t.engine.admin.jobs(QUEUE, { state, after: null, limit: 10, ...more })).jobs.map(({ id }) => id);
  const isWell = async () => expect((await t.engine.admin.audit(QUEUE)).violations).toEqual([]);
  const of = (id: string, cancelledRetentionMs: number) =>
    job(id, { body: encodeBody('work', t.now, { cancelledRetentionMs }, '1') });

  it('show what they were and why, wherever they waited', async () => {
    await t.add('a', job('b', { delayMs: 5_000, priority: 3 }), job('c', { priority: 3 }));
    for (const id of ['a', 'b', 'c']) expect(await cancel(id, `not "${id}"\\`)).toBe('cancelled');
    for (const id of ['a', 'b', 'c'])
      expect(await get(id)).toMatchObject({
        state: 'cancelled',
        body: job(id).body,
        cancelReason: `not "${id}"\\`,
        attempt: 0,
        endedAt: t.now,
        resultFault: null,
      });
    expect(await counts()).toMatchObject({ waiting: 0, delayed: 0, completed: 0, cancelled: 3 });
    expect(await t.engine.admin.cancelled(QUEUE, 'a')).toMatchObject({ reason: 'not "a"\\' });
    expect((await t.events()).filter(({ type }) => type === 'cancelled')).toHaveLength(3);
    expect(await cancel('a')).toBe('not-found');
    await isWell();
  });

  it('are listed from an offset on, in either order', async () => {
    await t.hold('done');
    await t.settle(kept('done', 60_000));
    await t.add('a', 'b', 'c');
    for (const id of ['a', 'b', 'c']) {
      await cancel(id);
      await t.advance(1);
    }
    expect(await list('cancelled', { offset: 1 })).toEqual(['b', 'c']);
    expect(await list('cancelled', { offset: 1, limit: 1 })).toEqual(['b']);
    expect(await list('cancelled', { offset: 1, backward: true })).toEqual(['b', 'a']);
    expect(await list('cancelled', { offset: 3 })).toEqual([]);
    expect(await list('cancelled', { offset: 9 })).toEqual([]);
  });

  it('come from their workers, whether settled, released or lost', async () => {
    await t.hold('a', 'b', 'c', 'd', 'e');
    await t.engine.note(QUEUE, { worker: WORKER, id: 'a', name: 'work', attempt: 1, log: 'so far' });
    for (const id of ['a', 'b', 'c', 'd', 'e']) expect(await cancel(id)).toBe('signalled');
    expect(await cancel('a', 'again')).toBe('signalled');
    expect(await get('a')).toMatchObject({ state: 'active', cancelReason: 'why' });
    const { jobs: running } = await t.engine.admin.jobs(QUEUE, { state: 'active', after: null, limit: 10 });
    expect(running.map(({ cancelReason }) => cancelReason)).toEqual(['why', 'why', 'why', 'why', 'why']);
    const beat = await t.engine.beat(QUEUE, WORKER, 8_000);
    expect(beat.kind === 'alive' && beat.cancels.get('a')).toBe('why');
    const settlement = { seq: 100, settled: [dead('a'), released('b'), completed('c'), dead('z')] };
    // A completed job counts as completed.
    const told = { lost: ['z'], cancelled: ['a', 'b'] };
    expect(await t.exchanged(settlement)).toMatchObject(told);
    expect(await t.exchanged(settlement)).toMatchObject(told);
    expect(await t.exchanged({ seq: 101 })).not.toHaveProperty('cancelled');
    await t.engine.release(QUEUE, { worker: WORKER, ids: ['d'], leave: false });
    const call = { worker: WORKER, beatMs: BEAT_MS, leaseMs: 8_000, maxStalls: 5 };
    await t.advance(20_000);
    await t.engine.recover(QUEUE, call);
    await t.advance(BEAT_MS);
    expect(await t.engine.recover(QUEUE, call)).toMatchObject({ cancelled: ['e'] });
    expect(await get('e')).toMatchObject({ state: 'cancelled', attempt: 1, stalls: 0 });
    expect(await get('c')).toBeNull();
    await isWell();
  });

  it('are gone once their retention is over, and are trimmed then', async () => {
    await t.add('a', of('b', 1_000), of('c', 0));
    for (const id of ['a', 'b', 'c']) await cancel(id);
    expect(await get('c')).toBeNull();
    expect(await t.engine.upkeep.overgrown([QUEUE])).toEqual([]);
    await t.advance(1_000);
    expect(await get('b')).toBeNull();
    expect([await list('cancelled'), (await counts()).cancelled]).toEqual([['a'], 1]);
    expect(await t.engine.upkeep.overgrown([QUEUE])).toEqual([QUEUE]);
    expect(await t.engine.upkeep.trim(QUEUE)).toBe(1);
    expect(await t.engine.upkeep.trim(QUEUE)).toBe(0);
    expect(await t.engine.upkeep.overgrown([QUEUE])).toEqual([]);
    await isWell();
  });

  it('are counted with those that have completed: beyond the number these go first', async () => {
    await t.hold('k1', 'k2');
    await t.settle(kept('k1', 1_000), kept('k2', 5_000));
    await t.add('a', 'b');
    await cancel('a');
    await cancel('b');
    await t.engine.upkeep.trim(QUEUE);
    expect([await list('completed'), await list('cancelled')]).toEqual([['k2'], ['a', 'b']]);
    await t.advance(5_000);
    expect([await list('completed'), await counts()]).toMatchObject([[], { completed: 0, cancelled: 2 }]);
    expect((await t.engine.admin.audit(QUEUE)).counts).toMatchObject({ completed: 1, cancelled: 2 });
  });

  it('are listed in pages and backwards, by name and text', async () => {
    await t.add('a', of('b', 5_000), of('c', 6_000));
    for (const id of ['a', 'b', 'c']) await cancel(id);
    expect(await list('cancelled')).toEqual(['b', 'c', 'a']);
    expect(await list('cancelled', { backward: true, limit: 2 })).toEqual(['a', 'c']);
    const first = await t.engine.admin.jobs(QUEUE, { state: 'cancelled', after: null, limit: 1 });
    expect(await list('cancelled', { after: first.next })).toEqual(['c', 'a']);
    expect(await list('cancelled', { name: 'other' })).toEqual([]);
    expect(await list('completed')).toEqual([]);
  });

  it('are removed, cleaned, and replaced by a new job unless it asks otherwise', async () => {
    await t.add('a', 'b', 'c');
    for (const id of ['a', 'b', 'c']) await cancel(id);
    expect(await t.add(job('a', { idHeldBy: ['cancelled'] }))).toMatchObject({
      duplicates: [{ id: 'a', state: 'cancelled' }],
    });
    expect(await t.add('a')).toMatchObject({ duplicates: [] });
    expect(await get('a')).toMatchObject({ state: 'waiting', cancelReason: null, endedAt: null });
    expect(await t.engine.admin.remove(QUEUE, 'b')).toBe('removed');
    const clean = { state: 'cancelled', olderThanMs: 1_000, limit: 10 } as const;
    expect(await t.engine.upkeep.clean(QUEUE, clean)).toEqual({ removed: [] });
    expect(await t.engine.upkeep.clean(QUEUE, { ...clean, state: 'completed', olderThanMs: 0 })).toEqual({
      removed: [],
    });
    await t.advance(1_000);
    expect(await t.engine.upkeep.clean(QUEUE, clean)).toEqual({ removed: ['c'] });
    expect(await t.engine.admin.update(QUEUE, { id: 'c', data: '1' })).toEqual({ kind: 'not-found' });
    await isWell();
  });
});
