import { describe, expect, it } from 'vitest';
import { counts } from '#lib/engine/scripts/admin.js';
import { dead, job, kept, QUEUE, useQueue } from './support.js';
import { changingNothing, itRefusesWrongTypes } from './unchanged.js';
import { countsOf } from '../support/queue-states.js';

const q = useQueue();

const counting = () => changingNothing(q, () => q.engine.admin.counts(QUEUE));

it('of an empty queue are all zero', async () => {
  expect(await counting()).toEqual({ ...countsOf(), paused: false, isLimited: false });
});

it('count each job once, in the state it is in', async () => {
  await q.hold('kept', 'dead1', 'dead2', 'a1');
  await q.settle(kept('kept', 60_000), dead('dead1'), dead('dead2'));
  await q.add('a2', 'a3');
  await q.claim(2, 'w2');
  await q.add('wait', job('prio', { priority: 2 }), job('late', { delayMs: 60_000 }));
  await q.add(job('prio late', { delayMs: 60_000, priority: 1 }));
  await q.admin.rpush(q.key('suspects'), 'suspect');
  expect(await counting()).toEqual({
    ...countsOf({ waiting: 3, delayed: 2, active: 3, completed: 1, dead: 2 }),
    paused: false,
    isLimited: false,
  });
});

it('return whether the queue has limits', async () => {
  await q.engine.limits.set(QUEUE, 'q', 'code', { concurrency: 1 });
  expect((await counting()).isLimited).toBe(true);
});

describe('refused', () => {
  itRefusesWrongTypes(q, {
    keys: counts.keys,
    async prepare() {
      await q.hold('a');
      return () => q.engine.admin.counts(QUEUE);
    },
  });

  it('changes nothing if an active set is of another type', async () => {
    await q.hold('a');
    await q.admin.set(q.key('active'), 'not ours');
    await changingNothing(q, () =>
      expect(q.engine.admin.counts(QUEUE)).rejects.toMatchObject({ reply: 'WRONGTYPE', verb: 'counts' }),
    );
  });
});
