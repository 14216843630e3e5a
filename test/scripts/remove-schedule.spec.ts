import { describe, expect, it } from 'vitest';
import { removeSchedule } from '#lib/engine/scripts/schedules.js';
import { QUEUE, useQueue } from './support.js';
import { firing, put, tick } from './schedules-support.js';
import { changingNothing, itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();
const removing = (id: string) => q.engine.schedules.remove(QUEUE, id);

it('removes all of a schedule, and none of its jobs', async () => {
  const a = await put(q, 'a');
  await put(q, 'b');
  await q.engine.schedules.fire(QUEUE, [firing(a, [tick('a@1')])]);
  expect(await removing('a')).toBe(true);
  expect(await q.zset('upcoming')).toEqual(['b']);
  expect(await q.zset('scheduleOrder')).toEqual(['b']);
  expect(Object.keys(await q.hash('schedules'))).toEqual(['b']);
  expect(Object.keys(await q.hash('firings'))).toEqual(['b']);
  expect(await q.list('wait')).toEqual(['a@1']);
  expect(await changingNothing(q, () => removing('a'))).toBe(false);
});

it('removes the remaining data of one whose record is gone', async () => {
  await put(q, 'a');
  await q.admin.hdel(q.key('schedules'), 'a');
  expect(await removing('a')).toBe(false);
  expect(await q.zset('upcoming')).toEqual([]);
});

describe('refused', () => {
  itRefusesWrongTypes(q, {
    keys: removeSchedule.keys,
    async prepare() {
      await put(q, 'a');
      return () => removing('a');
    },
  });
});
