import { describe, expect, it } from 'vitest';
import { pause } from '#lib/engine/scripts/admin.js';
import { QUEUE, useQueue } from './support.js';
import { changingNothing, itRefusesWrongTypes } from './unchanged.js';

// `pause` and `resume`: one script.
const q = useQueue();

it('pauses once, however often it is called, and keeps the time', async () => {
  const before = await q.now();
  expect(await q.engine.admin.pause(QUEUE)).toBe(true);
  expect(await changingNothing(q, () => q.engine.admin.pause(QUEUE))).toBe(false);
  expect(Number(await q.admin.hget(q.key('meta'), 'paused'))).toBeGreaterThanOrEqual(before);
});

it('resumes once, however often it is called', async () => {
  expect(await changingNothing(q, () => q.engine.admin.resume(QUEUE))).toBe(false);
  await q.engine.admin.pause(QUEUE);
  expect(await q.engine.admin.resume(QUEUE)).toBe(true);
  expect(await changingNothing(q, () => q.engine.admin.resume(QUEUE))).toBe(false);
  expect(await q.admin.hexists(q.key('meta'), 'paused')).toBe(0);
});

describe('pause refused', () => {
  itRefusesWrongTypes(q, {
    keys: pause.keys,
    except: ['events'],
    prepare: () => Promise.resolve(() => q.engine.admin.pause(QUEUE)),
  });
});

describe('resume refused', () => {
  itRefusesWrongTypes(q, {
    keys: ['doorbell', 'events'],
    except: ['events'],
    async prepare() {
      await q.engine.admin.pause(QUEUE);
      return () => q.engine.admin.resume(QUEUE);
    },
  });
});
