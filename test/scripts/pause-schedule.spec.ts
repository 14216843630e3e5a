import { describe, expect, it } from 'vitest';
import { pauseSchedule } from '#lib/engine/scripts/schedules.js';
import { QUEUE, useQueue } from './support.js';
import { firing, put, tick } from './schedules-support.js';
import { changingNothing, itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();
const pausing = (id: string) => q.engine.schedules.pause(QUEUE, id);

it('keeps what was due from firing', async () => {
  const before = await put(q, 'a');
  await pausing('a');
  const { due } = await q.engine.schedules.due(QUEUE, 0);
  expect(due).toEqual([]);
  const fire = () => q.engine.schedules.fire(QUEUE, [firing(before, [tick('a@1')])]);
  expect((await changingNothing(q, fire)).made).toEqual([null]);
});

describe('refused', () => {
  itRefusesWrongTypes(q, {
    keys: pauseSchedule.keys,
    async prepare() {
      await put(q, 'a');
      return () => pausing('a');
    },
  });
});
