import { describe, expect, it } from 'vitest';
import { promoteNow } from '#lib/engine/scripts/admin.js';
import { job, kept, QUEUE, useQueue } from './support.js';
import { changingNothing, itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();

const promoting = (id: string) => q.engine.admin.promoteNow(QUEUE, id);

it('keeps its priority', async () => {
  await q.add(job('a', { delayMs: 60_000, priority: 2 }), job('b', { priority: 9 }));
  expect(await promoting('a')).toBe('promoted');
  expect(await q.zset('prioritized')).toEqual(['a', 'b']);
  expect(await q.admin.exists(q.key('priorities'), q.key('wait'))).toBe(0);
});

describe('does not change jobs that are not delayed', () => {
  const states: Record<string, () => Promise<unknown>> = {
    waiting: () => q.add('a'),
    prioritized: () => q.add(job('a', { priority: 2 })),
    active: () => q.hold('a'),
    dead: () => q.bury('a'),
    async completed() {
      await q.hold('a');
      await q.settle(kept('a', 60_000));
    },
  };
  it.each(Object.keys(states))('%s', async (state) => {
    await states[state]?.();
    expect(await changingNothing(q, () => promoting('a'))).toBe('not-delayed');
  });

  it('promoted already', async () => {
    await q.add(job('a', { delayMs: 60_000 }));
    await promoting('a');
    expect(await changingNothing(q, () => promoting('a'))).toBe('not-delayed');
  });
});

describe('refused', () => {
  itRefusesWrongTypes(q, {
    keys: promoteNow.keys,
    async prepare() {
      await q.add(job('a', { delayMs: 60_000, priority: 2 }));
      return () => promoting('a');
    },
  });
});
