import { describe, expect, it } from 'vitest';
import { withdraw } from '#lib/engine/scripts/schedules.js';
import { declaring, scheduleIds, withdrawing } from './declarations-support.js';
import { useQueue } from './support.js';
import { changingNothing, itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();

it('ends the declaration, and leaves the schedules for the next process', async () => {
  await declaring(q, 'p1', ['a']);
  await withdrawing(q, 'p1', ['a']);
  expect(await q.zset('declarers')).toEqual([]);
  expect(await q.hash('declaredSets')).toEqual({ 'app:set-a': 'a' });
  expect(await scheduleIds(q)).toEqual(['a']);
});

it('leaves those of other processes, and may be called twice', async () => {
  await declaring(q, 'p1', ['a']);
  await declaring(q, 'p2', ['a'], { puts: [] });
  await withdrawing(q, 'p1', ['a']);
  expect(await q.zset('declarers')).toEqual([expect.stringMatching(/^p2 /)]);
  await changingNothing(q, () => withdrawing(q, 'p1', ['a']));
});

describe('withdraw refused', () => {
  itRefusesWrongTypes(q, {
    keys: withdraw.keys,
    async prepare() {
      await declaring(q, 'p1', ['a']);
      return () => withdrawing(q, 'p1', ['a']);
    },
  });
});
