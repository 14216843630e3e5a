import { describe, expect, it } from 'vitest';
import { QueueKeys, type QueueKeyName } from '#lib/engine/keys.js';
import { callOf, job, LEASE_MS, QUEUE, useQueue, WORKER } from './support.js';
import { changingNothing } from './unchanged.js';

const q = useQueue();

const asleep = (...queues: string[]) => queues.map((queue) => ({ queue, worker: WORKER }));
const looking = (...queues: string[]) => changingNothing(q, () => q.engine.look(asleep(...queues)));
const nothing = { work: false, dueInMs: null, leaseInMs: null, scheduleInMs: null };
const keyOf = (queue: string, kind: QueueKeyName) => new QueueKeys(q.redis.prefix, queue).fixed[kind];

it.each(['wait', 'suspects', 'prioritized'] as const)(
  'finds work in %s, but not in a paused queue',
  async (kind) => {
    if (kind === 'prioritized') await q.admin.zadd(q.key(kind), 1, 'a');
    else await q.admin.rpush(q.key(kind), 'a');
    expect(await looking('other', QUEUE)).toEqual([{ queue: QUEUE, ...nothing, work: true }]);
    await q.engine.admin.pause(QUEUE);
    expect(await looking('other', QUEUE)).toEqual([]);
    await q.engine.admin.resume(QUEUE);
    expect(await looking('other', QUEUE)).toEqual([{ queue: QUEUE, ...nothing, work: true }]);
  },
);

it('returns when the first delayed job is due, which is not work yet', async () => {
  await q.add(job('far', { delayMs: 3_600_000 }), job('near', { delayMs: 60_000 }));
  const [found] = await looking(QUEUE);
  expect(found).toMatchObject({ queue: QUEUE, work: false, leaseInMs: null });
  expect(found!.dueInMs).toBeGreaterThan(50_000);
  expect(found!.dueInMs).toBeLessThanOrEqual(60_000);
  await q.add(job('over', { dueAt: 1 }));
  expect((await looking(QUEUE))[0]).toMatchObject({ work: false, dueInMs: 0 });
});

it('returns when the first lease of another worker ends, never its own', async () => {
  await q.hold('a');
  expect(await looking(QUEUE)).toEqual([]);
  await q.add('b');
  await q.claim(1, 'another');
  const [found] = await looking(QUEUE);
  expect(found).toMatchObject({ work: false, dueInMs: null });
  expect(found!.leaseInMs).toBeGreaterThan(LEASE_MS / 2);
  expect(found!.leaseInMs).toBeLessThanOrEqual(LEASE_MS);
  await q.admin.zadd(q.key('workers'), 1, 'another');
  expect((await looking(QUEUE))[0]).toMatchObject({ leaseInMs: 0 });
});

it('returns when the next occurrence of a schedule is due', async () => {
  await q.admin.zadd(q.key('upcoming'), (await q.now()) + 60_000, 'daily');
  const [found] = await looking(QUEUE);
  expect(found).toMatchObject({ work: false, dueInMs: null, leaseInMs: null });
  expect(found!.scheduleInMs).toBeGreaterThan(50_000);
  expect(found!.scheduleInMs).toBeLessThanOrEqual(60_000);
});

it('reports each queue separately, those known from the last look and new ones', async () => {
  const names = Array.from({ length: 450 }, (_, i) => `queue-${i}`);
  const add = (queue: string, seq: number) =>
    q.engine.enqueue(queue, callOf([job('a', seq % 2 ? {} : { delayMs: 60_000 })], seq, 'many'));
  await add('queue-3', 1);
  await add('queue-7', 2);
  await add('queue-430', 3);
  const found = async () =>
    Object.fromEntries((await looking(...names)).map(({ queue, work }) => [queue, work]));
  const first = { 'queue-3': true, 'queue-7': false, 'queue-430': true };
  expect(await found()).toEqual(first);
  expect(await found()).toEqual(first);
  await add('queue-199', 5);
  expect(await found()).toEqual({ ...first, 'queue-199': true });
  await q.admin.del(keyOf('queue-3', 'wait'));
  expect(await found()).toEqual({ 'queue-7': false, 'queue-199': true, 'queue-430': true });
});

describe('a key of another type', () => {
  it.each(['delayed', 'workers', 'upcoming'] as const)(
    '%s counts as work, and hides no other queue',
    async (kind) => {
      await q.admin.set(keyOf('broken', kind), 'not ours');
      await q.add('a');
      expect(await looking('broken', QUEUE)).toMatchObject([
        { queue: 'broken', work: true },
        { queue: QUEUE, work: true },
      ]);
    },
  );

  it.each(['wait', 'suspects', 'prioritized', 'meta'] as const)('%s is not read', async (kind) => {
    await q.add('a');
    await q.admin.del(q.key(kind));
    await q.admin.set(q.key(kind), 'not ours');
    expect(await looking(QUEUE)).toEqual([{ queue: QUEUE, ...nothing, work: true }]);
  });
});
