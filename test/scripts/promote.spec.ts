import { describe, expect, it } from 'vitest';
import { promote } from '#lib/engine/scripts/work.js';
import { job, QUEUE, useQueue } from './support.js';
import { changingNothing, itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();

const promoting = (limit = 100) => q.engine.promote(QUEUE, limit);

it('keeps the priority', async () => {
  await q.add(
    job('5', { dueAt: 1, priority: 5 }),
    job('plain', { dueAt: 2 }),
    job('3', { dueAt: 3, priority: 3 }),
  );
  await promoting();
  expect(await q.zset('prioritized')).toEqual(['3', '5']);
  expect(await q.list('wait')).toEqual(['plain']);
  expect(await q.admin.exists(q.key('priorities'))).toBe(0);
});

it('moves no more than the limit, and returns that more jobs are due', async () => {
  await q.add(job('a', { dueAt: 1 }), job('b', { dueAt: 2 }), job('c', { dueAt: 3, priority: 1 }));
  expect(await promoting(2)).toEqual({ promoted: 2, dueInMs: 0 });
  expect(await promoting(2)).toEqual({ promoted: 1, dueInMs: null });
});

it('loses nothing if more jobs are due than Lua can unpack at once', async () => {
  const ids = Array.from({ length: 9_000 }, (_, i) => `j${i}`);
  await q.admin.zadd(q.key('delayed'), ...ids.flatMap((id, i) => [i + 1, id]));
  await q.admin.hset(q.key('priorities'), 'j7', 1);
  while ((await promoting(9_000)).promoted > 0);
  expect(await q.admin.llen(q.key('wait'))).toBe(8_999);
  expect(await q.admin.lrange(q.key('wait'), 6, 7)).toEqual(['j6', 'j8']);
  expect(await q.zset('prioritized')).toEqual(['j7']);
});

it('wakes a worker only if it moved something', async () => {
  await q.add(job('a', { dueAt: 1 }));
  await q.wasRung();
  await promoting();
  expect(await q.wasRung()).toBe(true);
  await q.add(job('later', { delayMs: 60_000 }));
  await q.wasRung();
  expect((await changingNothing(q, () => promoting())).promoted).toBe(0);
});

it('of an empty queue does nothing', async () => {
  expect(await changingNothing(q, () => promoting())).toEqual({ promoted: 0, dueInMs: null });
});

describe('refused', () => {
  itRefusesWrongTypes(q, {
    keys: promote.keys,
    async prepare() {
      await q.add(job('a', { dueAt: 1 }), job('b', { dueAt: 2, priority: 2 }));
      return () => promoting();
    },
  });
});
