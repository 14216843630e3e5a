import { describe, expect, it } from 'vitest';
import { remove } from '#lib/engine/scripts/admin.js';
import { job, kept, QUEUE, retried, useQueue, WORKER } from './support.js';
import { changingNothing, itRefusesWrongTypes, without } from './unchanged.js';

const q = useQueue();

const removing = (id = 'x') => q.engine.admin.remove(QUEUE, id);

describe('removes a job with everything it left, and no other, when it is', () => {
  const states: Record<string, () => Promise<unknown>> = {
    waiting: () => q.add('x'),
    prioritized: () => q.add(job('x', { priority: 3 })),
    delayed: () => q.add(job('x', { delayMs: 60_000, priority: 3 })),
    dead: () => q.bury('x'),
    async 'completed and kept'() {
      await q.hold('x');
      await q.settle(kept('x', 60_000, '1'));
    },
    async 'a suspect'() {
      await q.add('x');
      await q.admin.rpoplpush(q.key('wait'), q.key('suspects'));
      await q.admin.hset(q.key('stalls'), 'x', 2);
    },
    async 'waiting for a retry'() {
      await q.hold('x');
      await q.engine.note(QUEUE, {
        worker: WORKER,
        id: 'x',
        name: 'work',
        attempt: 1,
        progress: '1',
        log: 'l',
      });
      await q.settle(retried('x', { delayMs: 60_000, priority: 2 }));
    },
  };

  it.each(Object.keys(states))('%s', async (state) => {
    await states[state]?.();
    await q.add('other', job('other late', { delayMs: 60_000, priority: 2 }));
    expect(await removing()).toBe('removed');
    expect(await q.engine.admin.get(QUEUE, 'x')).toBeNull();
    expect(await q.engine.admin.counts(QUEUE)).toMatchObject({
      waiting: 1,
      delayed: 1,
      completed: 0,
      dead: 0,
      cancelled: 0,
    });
    const left = without(await q.dump(), 'events', `worker:${WORKER}`);
    expect(JSON.stringify(left)).not.toContain('"x"');
    expect((await q.events()).at(-1)).toMatchObject({
      type: 'removed',
      id: 'x',
      name: 'work',
      reason: 'asked',
    });
    expect(await q.add('x')).toEqual([]);
  });
});

it('does not remove an active job, whichever worker holds it', async () => {
  await q.add('a', 'x');
  await q.claim(1, 'w1');
  await q.claim(1, 'w2');
  expect(await changingNothing(q, () => removing())).toBe('active');
});

it('finds nothing if there is no such job, or it is gone', async () => {
  expect(await changingNothing(q, () => removing())).toBe('not-found');
  await q.add('x');
  await removing();
  expect(await changingNothing(q, () => removing())).toBe('not-found');
});

describe('refused', () => {
  itRefusesWrongTypes(q, {
    keys: remove.keys,
    except: ['events'],
    async prepare() {
      await q.hold('x', 'held');
      await q.engine.note(QUEUE, {
        worker: WORKER,
        id: 'x',
        name: 'work',
        attempt: 1,
        progress: '1',
        log: 'l',
      });
      await q.settle(retried('x', { delayMs: 60_000, priority: 2 }));
      return () => removing();
    },
  });
});
