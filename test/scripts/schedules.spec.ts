import { describe, expect, it } from 'vitest';
import { schedules } from '#lib/engine/scripts/schedules.js';
import { QUEUE, useQueue } from './support.js';
import { put, seen } from './schedules-support.js';
import { changingNothing, itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();
const list = (offset = 0, limit = 100) => q.engine.schedules.list(QUEUE, { offset, limit });

it('returns one as it was put, and the time', async () => {
  const before = await q.now();
  await put(q, '__proto__', { record: 'a\nb "c" ü', nextAt: 4_102_444_800_123 });
  const { now, schedule } = await changingNothing(q, () => q.engine.schedules.get(QUEUE, '__proto__'));
  expect(now).toBeGreaterThanOrEqual(before);
  expect(schedule).toMatchObject({
    id: '__proto__',
    record: 'a\nb "c" ü',
    mode: 'running',
    nextAt: 4_102_444_800_123,
    fired: 0,
    lastAt: null,
    recent: [],
    lastJob: null,
  });
  expect(schedule!.createdAt).toBeGreaterThanOrEqual(before);
  expect(await q.engine.schedules.get(QUEUE, 'nobody')).toMatchObject({ schedule: null });
});

it('returns pages in the order of their creation', async () => {
  for (const [i, id] of ['c', 'a', 'b'].entries()) {
    await put(q, id);
    await q.admin.zadd(q.key('scheduleOrder'), i, id);
  }
  const ids = async (offset: number, limit: number) => {
    const page = await list(offset, limit);
    expect(page.total).toBe(3);
    return page.schedules.map(({ id }) => id);
  };
  expect(await ids(0, 100)).toEqual(['c', 'a', 'b']);
  expect(await ids(1, 1)).toEqual(['a']);
  expect(await ids(3, 5)).toEqual([]);
});

it('returns as many as fit if their records are large, at least one', async () => {
  for (const id of ['a', 'b', 'c']) await put(q, id, { record: 'x'.repeat(3_000_000) });
  expect((await list()).schedules).toHaveLength(1);
  expect((await list(1)).schedules.map(({ id }) => id)).toEqual(['b']);
});

it('shows a record that was written by hand unchanged, with defaults for the other fields', async () => {
  await q.admin.hset(q.key('schedules'), 'hand', 'some words');
  expect(await seen(q, 'hand')).toEqual({
    id: 'hand',
    record: 'some words',
    revision: 0,
    mode: 'running',
    nextAt: null,
    fired: 0,
    lastAt: null,
    recent: [],
    lastJob: null,
    createdAt: 0,
  });
});

describe('refused', () => {
  itRefusesWrongTypes(q, {
    keys: schedules.keys,
    async prepare() {
      await put(q, 'a');
      return () => q.engine.schedules.get(QUEUE, 'a');
    },
  });
});
