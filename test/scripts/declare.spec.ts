import { describe, expect, it } from 'vitest';
import { declare } from '#lib/engine/scripts/schedules.js';
import { declaring, endsIn, scheduleIds, TTL_MS, withdrawing } from './declarations-support.js';
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

it('called twice has the effect of one call, except for the time it lives', async () => {
  await declaring(q, 'p1', ['a', 'b'], { puts: [] });
  const before = await q.dump();
  await declaring(q, 'p1', ['a', 'b'], { puts: [] });
  expect(without(await q.dump(), 'declarers')).toEqual(without(before, 'declarers'));
  expect(await q.zset('declarers')).toHaveLength(1);
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

  it('stays if the declaration of its process only expired: it may have crashed, or the clock may have jumped', async () => {
    await declaring(q, 'p1', ['a', 'b']);
    await endsIn(q, 'p1', -1);
    expect((await declaring(q, 'p2', ['a'], { puts: [] })).removed).toEqual([]);
    expect(await scheduleIds(q)).toEqual(['a', 'b']);
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

describe('an empty set', () => {
  it('leaves nothing if the owner has no schedules', async () => {
    const answer = await changingNothing(q, () => declaring(q, 'p1', []));
    expect(answer).toEqual({ outcomes: [], removed: [], idle: true });
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
