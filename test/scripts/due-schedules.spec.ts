import { describe, expect, it } from 'vitest';
import { dueSchedules } from '#lib/engine/scripts/schedules.js';
import { QUEUE, useQueue } from './support.js';
import { put } from './schedules-support.js';
import { changingNothing, itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();
const due = (offset = 0) => changingNothing(q, () => q.engine.schedules.due(QUEUE, offset));

it('also returns schedules without a record', async () => {
  await q.admin.zadd(q.key('upcoming'), 5, 'ghost');
  expect((await due()).due).toMatchObject([{ id: 'ghost', record: '', revision: 0, nextAt: 5 }]);
});

it('an exchange returns when the first one is due', async () => {
  expect((await q.exchanged()).scheduleInMs).toBeNull();
  await put(q, 'later', { nextAt: (await q.now()) + 60_000 });
  const { scheduleInMs } = await q.exchanged();
  expect(scheduleInMs).toBeGreaterThan(50_000);
  expect(scheduleInMs).toBeLessThanOrEqual(60_000);
  await put(q, 'past');
  expect((await q.exchanged()).scheduleInMs).toBe(0);
});

it('a queue is checked and asked if it has a schedule that will fire', async () => {
  expect(await q.engine.schedules.scheduled([QUEUE, 'other'])).toEqual([]);
  expect(await q.engine.schedules.scheduled([QUEUE, 'other'])).toEqual([]);
  await put(q, 'a', { nextAt: (await q.now()) + 60_000 });
  expect(await q.engine.schedules.scheduled([QUEUE, 'other'])).toEqual([QUEUE]);
  expect(await q.engine.schedules.scheduled(['other', QUEUE])).toEqual([QUEUE]);
  await q.engine.schedules.pause(QUEUE, 'a');
  expect(await q.engine.schedules.scheduled([QUEUE])).toEqual([]);
});

describe('refused', () => {
  itRefusesWrongTypes(q, {
    keys: dueSchedules.keys,
    async prepare() {
      await put(q, 'a');
      return () => q.engine.schedules.due(QUEUE, 0);
    },
  });
});
