import { expect, it } from 'vitest';
import { dead, kept, QUEUE, useQueue } from './support.js';
import { changingNothing } from './unchanged.js';

const q = useQueue();

const look = async (limits = {}, queues: readonly string[] = [QUEUE]) =>
  changingNothing(q, () => q.engineWith(limits).upkeep.overgrown(queues));

it('ignores an empty queue, and one within its limits', async () => {
  expect(await look()).toEqual([]);
  await q.hold('a', 'b');
  await q.settle(kept('a', 60_000, '1'), dead('b'));
  expect(await look({ completedMax: 1, deadMax: 1, eventsAgeMs: 60_000 })).toEqual([]);
});

it.each([
  ['a completed job beyond the number', { completedMax: 0 }],
  ['a dead job beyond the number', { deadMax: 0 }],
  ['a dead job beyond the age', { deadAgeMs: 0 }],
  ['an event beyond the age', { eventsAgeMs: 0 }],
])('finds %s', async (_, limits) => {
  await q.hold('a', 'b');
  await q.settle(kept('a', 60_000, '1'), dead('b'));
  expect(await look(limits)).toEqual([QUEUE]);
});

it('finds a completed job whose retention is over', async () => {
  await q.hold('a');
  await q.settle(kept('a', 60_000, '1'));
  await q.admin.zadd(q.key('completed'), await q.now(), 'a');
  expect(await look()).toEqual([QUEUE]);
});

it('checks many queues in few calls, and returns those it found', async () => {
  await q.bury('a');
  const queues = Array.from({ length: 450 }, (_, i) => `quiet${i}`);
  queues.splice(300, 0, QUEUE);
  expect(await look({ deadMax: 0 }, queues)).toEqual([QUEUE]);
  expect(await look({}, [])).toEqual([]);
});

it.each(['completed', 'dead'] as const)(
  'does not report that %s is of another type, because other scripts do',
  async (kind) => {
    await q.admin.set(q.key(kind), 'not ours');
    expect(await look({}, ['quiet', QUEUE])).toEqual([QUEUE]);
  },
);
