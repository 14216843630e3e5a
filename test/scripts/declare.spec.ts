import { describe, expect, it } from 'vitest';
import { declare } from '#lib/engine/scripts/schedules.js';
import { ownedRecord } from '#lib/contract/declaration-verbs.js';
import {
  declaration,
  declaring,
  endsIn,
  OWNER,
  scheduleIds,
  TTL_MS,
  withdrawing,
} from './declarations-support.js';
import { QUEUE, useQueue } from './support.js';
import { changingNothing, itRefusesWrongTypes, without } from './unchanged.js';

const q = useQueue();
const get = async (id: string) => (await q.engine.schedules.get(QUEUE, id)).schedule;

it('writes the schedules and their declaration in one step', async () => {
  const before = await q.now();
  expect(await declaring(q, 'p1', ['a', 'b'])).toEqual({
    outcomes: ['written', 'written'],
    removed: [],
    idle: false,
  });
  expect(await scheduleIds(q)).toEqual(['a', 'b']);
  expect(await get('a')).toMatchObject({ record: 'app\n{"of":"a"}', mode: 'running', nextAt: 1, fired: 0 });
  expect(await q.hash('declaredSets')).toEqual({ 'app:set-a-b': 'a\nb' });
  const [who, until] = await q.admin.zrange(q.key('declarers'), '0', '-1', 'WITHSCORES');
  expect(who).toBe(`p1 ${TTL_MS} app:set-a-b`);
  expect(Number(until)).toBeGreaterThanOrEqual(before + TTL_MS);
});

it('rings, so that a sleeping worker learns the new time', async () => {
  await declaring(q, 'p1', ['a']);
  expect(await q.wasRung()).toBe(true);
});

it('writes only schedules that have not changed since they were read: of two that start at once the second changes nothing', async () => {
  await declaring(q, 'p1', ['a']);
  const first = await get('a');
  expect((await declaring(q, 'p2', ['a'])).outcomes).toEqual(['changed']);
  expect(await get('a')).toEqual(first);
  expect(await q.zset('declarers')).toHaveLength(2);
});

it('called twice has the effect of one call, except for the time it lives', async () => {
  await declaring(q, 'p1', ['a', 'b'], { puts: [] });
  const before = await q.dump();
  await declaring(q, 'p1', ['a', 'b'], { puts: [] });
  expect(without(await q.dump(), 'declarers')).toEqual(without(before, 'declarers'));
  expect(await q.zset('declarers')).toHaveLength(1);
});

it('keeps the counters and the pause of a schedule that is written again, and its next time on request', async () => {
  await declaring(q, 'p1', ['a']);
  await q.engine.schedules.pause(QUEUE, 'a');
  const paused = (await get('a'))!;
  const put = { id: 'a', revision: paused.revision, record: ownedRecord(OWNER, '{}'), nextAt: 5 };
  await declaring(q, 'p1', ['a'], { puts: [put] });
  expect(await get('a')).toMatchObject({ record: 'app\n{}', mode: 'paused', nextAt: null });

  await declaring(q, 'p1', ['b'], {});
  const b = (await get('b'))!;
  const kept = { id: 'b', revision: b.revision, record: ownedRecord(OWNER, '{}'), nextAt: 'keep' as const };
  await declaring(q, 'p1', ['b'], { puts: [kept] });
  expect(await get('b')).toMatchObject({ record: 'app\n{}', nextAt: 1 });
});

describe('a schedule that is no longer declared', () => {
  it('is removed once the set was withdrawn and another one is declared', async () => {
    await declaring(q, 'p1', ['a', 'b']);
    await withdrawing(q, 'p1', ['a', 'b']);
    expect((await declaring(q, 'p2', ['a', 'c'], { puts: [] })).removed).toEqual(['b']);
    expect(await scheduleIds(q)).toEqual(['a']);
    expect(await q.hash('declaredSets')).toEqual({ 'app:set-a-c': 'a\nc' });
    expect(await q.hash('firings')).not.toHaveProperty('b');
    expect(await q.zset('upcoming')).toEqual(['a']);
  });

  it('stays while a live process has it', async () => {
    await declaring(q, 'p1', ['a', 'b']);
    await declaring(q, 'p3', ['a', 'b'], { puts: [] });
    await withdrawing(q, 'p1', ['a', 'b']);
    expect((await declaring(q, 'p2', ['a'], { puts: [] })).removed).toEqual([]);
    expect(await scheduleIds(q)).toEqual(['a', 'b']);
  });

  it('stays if the declaration of its process only expired: it may have crashed, or the clock may have jumped', async () => {
    await declaring(q, 'p1', ['a', 'b']);
    await endsIn(q, 'p1', -1);
    expect((await declaring(q, 'p2', ['a'], { puts: [] })).removed).toEqual([]);
    expect(await scheduleIds(q)).toEqual(['a', 'b']);
  });

  it('stays if a person created or replaced it', async () => {
    await declaring(q, 'p1', ['a', 'b']);
    const b = (await get('b'))!;
    await q.engine.schedules.put(QUEUE, { id: 'b', revision: b.revision, record: '{}', nextAt: 1 });
    await q.engine.schedules.put(QUEUE, { id: 'mine', revision: 0, record: '{}', nextAt: 1 });
    await withdrawing(q, 'p1', ['a', 'b']);
    expect((await declaring(q, 'p2', [])).removed).toEqual(['a']);
    expect(await scheduleIds(q)).toEqual(['b', 'mine']);
  });

  it('stays if it belongs to another owner whose name has the same beginning', async () => {
    await declaring(q, 'p1', ['a'], { owner: 'app2' });
    await declaring(q, 'p2', ['b']);
    await withdrawing(q, 'p1', ['a'], 'app2');
    await withdrawing(q, 'p2', ['b']);
    expect((await declaring(q, 'p3', ['c'])).removed).toEqual(['b']);
    expect(await scheduleIds(q)).toEqual(['a', 'c']);
  });

  it('is removed in several calls if there are many', async () => {
    const many = Array.from({ length: 600 }, (_, i) => `s${i}`);
    await declaring(q, 'p1', many);
    await declaring(q, 'p1', ['x', 'y']);
    await withdrawing(q, 'p1', many);
    await withdrawing(q, 'p1', ['x', 'y']);
    const { removed } = await declaring(q, 'p2', ['z'], { puts: [] });
    expect(removed.length).toBeGreaterThanOrEqual(2);
    await declaring(q, 'p2', ['z'], { puts: [] });
    expect(await scheduleIds(q)).toEqual([]);
    expect(Object.keys(await q.hash('declaredSets'))).toEqual(['app:set-z']);
  });
});

describe('a schedule of another owner', () => {
  const ours = { id: 'a', record: ownedRecord(OWNER, '{}'), nextAt: 7 };

  it('is not changed while a process of that owner lives', async () => {
    await declaring(q, 'p1', ['a', 'b'], { owner: 'shop' });
    const { revision } = (await get('a'))!;
    const { outcomes } = await declaring(q, 'p2', ['a'], { puts: [{ ...ours, revision }] });
    expect(outcomes).toEqual(['taken']);
    expect(await get('a')).toMatchObject({ record: 'shop\n{"of":"a"}' });
  });

  it('is taken over if none does, so that an owner can be renamed', async () => {
    await declaring(q, 'p1', ['a', 'b'], { owner: 'shop' });
    await withdrawing(q, 'p1', ['a', 'b'], 'shop');
    const { revision } = (await get('a'))!;
    const { outcomes } = await declaring(q, 'p2', ['a'], { puts: [{ ...ours, revision }] });
    expect(outcomes).toEqual(['written']);
    // And the old one does not remove it.
    expect((await declaring(q, 'p3', [], { owner: 'shop' })).removed).toEqual(['b']);
    expect(await scheduleIds(q)).toEqual(['a']);
  });
});

describe('an empty set', () => {
  it('leaves nothing if the owner has no schedules', async () => {
    const answer = await changingNothing(q, () => declaring(q, 'p1', []));
    expect(answer).toEqual({ outcomes: [], removed: [], idle: true });
  });

  it('stays while another set has schedules', async () => {
    await declaring(q, 'p1', ['a']);
    expect((await declaring(q, 'p2', [])).idle).toBe(false);
    expect(await q.zset('declarers')).toHaveLength(2);
  });
});

describe('declare refused', () => {
  itRefusesWrongTypes(q, {
    keys: declare.keys,
    async prepare() {
      await declaring(q, 'p1', ['a', 'b']);
      await withdrawing(q, 'p1', ['a', 'b']);
      return () => declaring(q, 'p2', ['a', 'c']);
    },
  });
});

it('returns its declaration in the form that the scripts parse', async () => {
  await declaring(q, 'p1', ['a']);
  const { process, ttlMs, owner, set } = declaration('p1', ['a']);
  expect(await q.zset('declarers')).toEqual([`${process} ${ttlMs} ${owner}:${set}`]);
});
