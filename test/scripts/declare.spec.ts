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

it('writes the schedules and says who has them, in one step', async () => {
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

it('rings, so that a worker that sleeps hears of the new time', async () => {
  await declaring(q, 'p1', ['a']);
  expect(await q.wasRung()).toBe(true);
});

it('writes only what is still as it was seen: of two that start at once the second changes nothing', async () => {
  await declaring(q, 'p1', ['a']);
  const first = await get('a');
  expect((await declaring(q, 'p2', ['a'])).outcomes).toEqual(['changed']);
  expect(await get('a')).toEqual(first);
  expect(await q.zset('declarers')).toHaveLength(2);
});

it('said twice it is as said once, but for the time it lives', async () => {
  await declaring(q, 'p1', ['a', 'b'], { puts: [] });
  const before = await q.dump();
  await declaring(q, 'p1', ['a', 'b'], { puts: [] });
  expect(without(await q.dump(), 'declarers')).toEqual(without(before, 'declarers'));
  expect(await q.zset('declarers')).toHaveLength(1);
});

it('keeps the counters and the pause of one that is written anew, and its next time where it is told to', async () => {
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

describe('what nobody declares any more', () => {
  it('goes once the set was withdrawn and another one is declared', async () => {
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

  it('stays where its process has only run out: a start cannot tell a crash from a clock that jumped', async () => {
    await declaring(q, 'p1', ['a', 'b']);
    await endsIn(q, 'p1', -1);
    expect((await declaring(q, 'p2', ['a'], { puts: [] })).removed).toEqual([]);
    expect(await scheduleIds(q)).toEqual(['a', 'b']);
  });

  it('stays where a person made it, or made it anew', async () => {
    await declaring(q, 'p1', ['a', 'b']);
    const b = (await get('b'))!;
    await q.engine.schedules.put(QUEUE, { id: 'b', revision: b.revision, record: '{}', nextAt: 1 });
    await q.engine.schedules.put(QUEUE, { id: 'mine', revision: 0, record: '{}', nextAt: 1 });
    await withdrawing(q, 'p1', ['a', 'b']);
    expect((await declaring(q, 'p2', [])).removed).toEqual(['a']);
    expect(await scheduleIds(q)).toEqual(['b', 'mine']);
  });

  it('stays where it belongs to another owner, whose name begins the same', async () => {
    await declaring(q, 'p1', ['a'], { owner: 'app2' });
    await declaring(q, 'p2', ['b']);
    await withdrawing(q, 'p1', ['a'], 'app2');
    await withdrawing(q, 'p2', ['b']);
    expect((await declaring(q, 'p3', ['c'])).removed).toEqual(['b']);
    expect(await scheduleIds(q)).toEqual(['a', 'c']);
  });

  it('goes in several calls where it is much', async () => {
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

  it('is left to it while a process of it lives', async () => {
    await declaring(q, 'p1', ['a', 'b'], { owner: 'shop' });
    const { revision } = (await get('a'))!;
    const { outcomes } = await declaring(q, 'p2', ['a'], { puts: [{ ...ours, revision }] });
    expect(outcomes).toEqual(['taken']);
    expect(await get('a')).toMatchObject({ record: 'shop\n{"of":"a"}' });
  });

  it('is taken over where none does, so that an owner can be renamed', async () => {
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
  it('leaves nothing where there is nothing to watch over', async () => {
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

it('names its declaration as the scripts take it apart', async () => {
  await declaring(q, 'p1', ['a']);
  const { process, ttlMs, owner, set } = declaration('p1', ['a']);
  expect(await q.zset('declarers')).toEqual([`${process} ${ttlMs} ${owner}:${set}`]);
});
