import { describe, expect, it } from 'vitest';
import { schedules } from '#lib/engine/scripts/schedules.js';
import { QUEUE, useQueue } from './support.js';
import { put, seen } from './schedules-support.js';
import { itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();
const list = (offset = 0, limit = 100) => q.engine.schedules.list(QUEUE, { offset, limit });

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
