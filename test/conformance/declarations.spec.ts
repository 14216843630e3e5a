import { describe, expect, it } from 'vitest';
import { ownedRecord } from '#lib/contract/declaration-verbs.js';
import {
  declaring,
  OWNER,
  renewing,
  scheduleIds,
  TTL_MS,
  withdrawing,
} from '../scripts/declarations-support.js';
import { QUEUE } from '../scripts/support.js';
import { ENGINES, useEngine } from './support.js';

describe.each(ENGINES)('declarations (%s)', (kind) => {
  const t = useEngine(kind);
  const get = async (id: string) => (await t.engine.schedules.get(QUEUE, id)).schedule;
  const NOTHING_NEW = { kind: 'renewed', removed: [], shifted: false, idle: false };

  it('write those schedules of a set that have not changed since they were read', async () => {
    const written = { outcomes: ['written', 'written'], removed: [], idle: false };
    expect(await declaring(t, 'p1', ['a', 'b'])).toEqual(written);
    expect(await get('a')).toMatchObject({ record: 'app\n{"of":"a"}', mode: 'running', nextAt: 1, fired: 0 });
    const before = await get('a');
    expect((await declaring(t, 'p2', ['a'])).outcomes).toEqual(['changed']);
    expect(await get('a')).toEqual(before);
    expect(await declaring(t, 'p1', ['a', 'b'], { puts: [] })).toEqual({ ...written, outcomes: [] });
  });

  it('keep a schedule paused that a person paused, and keep its next time on request', async () => {
    await declaring(t, 'p1', ['a']);
    await t.engine.schedules.pause(QUEUE, 'a');
    const { revision } = (await get('a'))!;
    const put = { id: 'a', revision, record: ownedRecord(OWNER, '{}'), nextAt: 5 };
    await declaring(t, 'p1', ['a'], { puts: [put] });
    expect(await get('a')).toMatchObject({ record: 'app\n{}', mode: 'paused', nextAt: null });
    await declaring(t, 'p1', ['b']);
    const b = (await get('b'))!;
    const keep = { id: 'b', revision: b.revision, record: ownedRecord(OWNER, '{}'), nextAt: 'keep' as const };
    await declaring(t, 'p1', ['b'], { puts: [keep] });
    expect(await get('b')).toMatchObject({ record: 'app\n{}', nextAt: 1 });
  });

  it('that were withdrawn are pruned by the next one of the same owner', async () => {
    await declaring(t, 'p1', ['a', 'b']);
    await withdrawing(t, 'p1', ['a', 'b']);
    await withdrawing(t, 'nobody', []);
    expect(await scheduleIds(t)).toEqual(['a', 'b']);
    expect(await declaring(t, 'p2', ['a', 'c'], { puts: [] })).toMatchObject({ removed: ['b'], idle: false });
    expect(await scheduleIds(t)).toEqual(['a']);
  });

  it('hold while one process of several is left', async () => {
    await declaring(t, 'p1', ['a', 'b']);
    await declaring(t, 'p3', ['a', 'b'], { puts: [] });
    await withdrawing(t, 'p1', ['a', 'b']);
    expect((await declaring(t, 'p2', ['a'], { puts: [] })).removed).toEqual([]);
    expect(await scheduleIds(t)).toEqual(['a', 'b']);
  });

  it('do not remove schedules that a person created or replaced, or of an owner whose name has the same beginning', async () => {
    await declaring(t, 'p0', ['x'], { owner: 'app2' });
    await withdrawing(t, 'p0', ['x'], 'app2');
    await declaring(t, 'p1', ['a', 'b']);
    const { revision } = (await get('b'))!;
    await t.engine.schedules.put(QUEUE, { id: 'b', revision, record: '{}', nextAt: 1 });
    await t.engine.schedules.put(QUEUE, { id: 'mine', revision: 0, record: '{}', nextAt: 1 });
    await withdrawing(t, 'p1', ['a', 'b']);
    expect((await declaring(t, 'p2', [])).removed).toEqual(['a']);
    expect(await scheduleIds(t)).toEqual(['b', 'mine', 'x']);
  });

  it('of many schedules are pruned, in one call or in several', async () => {
    const many = Array.from({ length: 600 }, (_, i) => `s${i}`);
    await declaring(t, 'p1', many);
    await declaring(t, 'p1', ['x', 'y']);
    await withdrawing(t, 'p1', many);
    await withdrawing(t, 'p1', ['x', 'y']);
    await declaring(t, 'p2', ['z'], { puts: [] });
    await declaring(t, 'p2', ['z'], { puts: [] });
    expect(await scheduleIds(t)).toEqual([]);
  });

  it('of many schedules are pruned before the last declaration of their owner ends', async () => {
    const sets = ['a', 'b'].map((name) => Array.from({ length: 600 }, (_, i) => `${name}${i}`));
    for (const ids of sets) await declaring(t, 'p1', ids);
    for (const ids of sets) await withdrawing(t, 'p1', ids);
    let answer: { readonly idle?: boolean } = await declaring(t, 'p2', []);
    while (!answer.idle) answer = (await renewing(t, 'p2', [])) as typeof answer;
    expect(await scheduleIds(t)).toEqual([]);
  });

  it('belong to another owner while one of its processes lives, and are taken over if none does', async () => {
    await declaring(t, 'p1', ['a', 'b'], { owner: 'shop' });
    const { revision } = (await get('a'))!;
    const ours = { id: 'a', revision, record: ownedRecord(OWNER, '{}'), nextAt: 7 };
    expect((await declaring(t, 'p2', ['a'], { puts: [ours] })).outcomes).toEqual(['taken']);
    expect(await get('a')).toMatchObject({ record: 'shop\n{"of":"a"}' });
    await t.advance(TTL_MS + 1);
    expect((await declaring(t, 'p2', ['a'], { puts: [ours] })).outcomes).toEqual(['written']);
    await withdrawing(t, 'p1', ['a', 'b'], 'shop');
    expect((await declaring(t, 'p3', [], { owner: 'shop' })).removed).toEqual(['b']);
    expect(await scheduleIds(t)).toEqual(['a']);
  });

  it('live on by renewal, and are not known once they were withdrawn', async () => {
    expect(await renewing(t, 'p1', ['a'])).toEqual({ kind: 'unknown' });
    await declaring(t, 'p1', ['a']);
    await declaring(t, 'p2', ['b']);
    for (let i = 0; i < 4; i++) {
      await t.advance(TTL_MS / 2);
      expect(await renewing(t, 'p1', ['a'])).toEqual(NOTHING_NEW);
      expect(await renewing(t, 'p2', ['b'])).toEqual(NOTHING_NEW);
    }
    await withdrawing(t, 'p1', ['a']);
    expect(await renewing(t, 'p1', ['a'])).toEqual({ kind: 'unknown' });
  });

  it('of a process that went silent are given up by the renewal of another one', async () => {
    await declaring(t, 'p1', ['a', 'b']);
    await t.advance(TTL_MS / 2);
    await declaring(t, 'p2', ['a'], { puts: [] });
    await t.advance(TTL_MS / 2 + 1);
    expect(await renewing(t, 'p2', ['a'])).toEqual({ ...NOTHING_NEW, removed: ['b'], shifted: true });
    expect(await scheduleIds(t)).toEqual(['a']);
    expect(await renewing(t, 'p2', ['a'])).toEqual(NOTHING_NEW);
    expect(await renewing(t, 'p1', ['a', 'b'])).toEqual({ kind: 'unknown' });
  });

  it('of all processes are renewed if the renewing one is late itself', async () => {
    await declaring(t, 'p1', ['a', 'b']);
    await declaring(t, 'p2', ['a'], { puts: [] });
    await t.advance(TTL_MS + 1);
    expect(await renewing(t, 'p2', ['a'])).toEqual(NOTHING_NEW);
    await t.advance(TTL_MS - 1);
    expect(await renewing(t, 'p2', ['a'])).toEqual(NOTHING_NEW);
    await t.advance(2);
    expect(await renewing(t, 'p2', ['a'])).toMatchObject({ removed: ['b'] });
  });

  it('end earlier if the clock was set back than they would have by the old clock', async () => {
    await declaring(t, 'p1', ['a', 'b']);
    await t.advance(-3_600_000);
    await declaring(t, 'p2', ['a'], { puts: [] });
    expect(await renewing(t, 'p2', ['a'])).toEqual(NOTHING_NEW);
    await t.advance(TTL_MS / 2);
    await renewing(t, 'p2', ['a']);
    await t.advance(TTL_MS / 2 + 1);
    expect(await renewing(t, 'p2', ['a'])).toMatchObject({ removed: ['b'] });
  });

  it('of an empty set leave no keys once the owner has no schedules', async () => {
    expect(await declaring(t, 'p1', [])).toEqual({ outcomes: [], removed: [], idle: true });
    expect(await renewing(t, 'p1', [])).toEqual({ kind: 'unknown' });
    await declaring(t, 'p1', ['a']);
    expect((await declaring(t, 'p2', [])).idle).toBe(false);
    expect(await renewing(t, 'p2', [])).toMatchObject({ idle: false });
    await withdrawing(t, 'p1', ['a']);
    expect(await renewing(t, 'p2', [])).toMatchObject({ removed: ['a'], idle: true });
    expect(await renewing(t, 'p2', [])).toEqual({ kind: 'unknown' });
  });

  it('go when the queue is obliterated', async () => {
    await declaring(t, 'p1', ['a']);
    await t.engine.admin.obliterate(QUEUE, false);
    expect(await renewing(t, 'p1', ['a'])).toEqual({ kind: 'unknown' });
    expect(await declaring(t, 'p2', [])).toMatchObject({ removed: [], idle: true });
  });
});
