import { describe, expect, it } from 'vitest';
import { resumeSchedule } from '#lib/engine/scripts/schedules.js';
import { QUEUE, useQueue } from './support.js';
import { put, seen } from './schedules-support.js';
import { changingNothing, itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();
const FAR = 4_102_444_800_000;
const resuming = (id: string, revision: number, nextAt: number | null = FAR) =>
  q.engine.schedules.resume(QUEUE, { id, revision, nextAt });

async function paused(id: string): Promise<number> {
  await put(q, id);
  await q.engine.schedules.pause(QUEUE, id);
  await q.wasRung();
  return (await seen(q, id)).revision;
}

it('continues at the given time, once, and wakes a worker', async () => {
  const revision = await paused('a');
  expect(await resuming('a', revision)).toBe('resumed');
  expect(await seen(q, 'a')).toMatchObject({ mode: 'running', nextAt: FAR, record: 'record of a' });
  expect(await q.wasRung()).toBe(true);
  expect(await changingNothing(q, () => resuming('a', revision))).toBe('unchanged');
});

describe('refused', () => {
  itRefusesWrongTypes(q, {
    keys: resumeSchedule.keys,
    async prepare() {
      const revision = await paused('a');
      return () => resuming('a', revision);
    },
  });
});
