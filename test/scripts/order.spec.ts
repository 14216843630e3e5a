import { expect, it } from 'vitest';
import type { RedisStore } from '#lib/engine/redis-store.js';
import { processKeys } from '#lib/engine/keys.js';
import { order } from '#lib/engine/scripts/processes.js';
import { LEASE_MS, processRecord, useQueue } from './support.js';
import { changingNothing, itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();

const register = () => q.engine.processes.register(processRecord({ id: 'p1' }), LEASE_MS);
const run = (id: string, process = 'p1', maxBytes = 1_000) => {
  const { store } = q.engine as unknown as { store: RedisStore };
  return store.run(order, processKeys(q.redis.prefix), { process, id, order: `{${id}}`, maxBytes });
};
const stored = async () => (await q.hash('processInfo'))['orders p1'];

it('adds an order after the others, once', async () => {
  await register();
  expect(await run('a')).toBe(true);
  expect(await run('b')).toBe(true);
  expect(await stored()).toBe('a {a}\nb {b}\n');
  await changingNothing(q, async () => expect(await run('a')).toBe(true));
  await changingNothing(q, async () => expect(await run('b')).toBe(true));
});

it('keeps the latest orders of a process that does not answer', async () => {
  await register();
  for (const id of ['a', 'b', 'c', 'd']) await run(id, 'p1', 12);
  expect(await stored()).toBe('b {b}\nc {c}\nd {d}\n');
});

it('changes nothing for a process that is not alive', async () => {
  await register();
  await q.admin.zadd(q.key('processes'), 1, 'p1');
  await changingNothing(q, async () => expect(await run('a')).toBe(false));
  await changingNothing(q, async () => expect(await run('a', 'nobody')).toBe(false));
});

it('is in no list of processes', async () => {
  await register();
  await run('a');
  expect((await q.engine.processes.list()).records.map(({ id }) => id)).toEqual(['p1']);
  expect((await q.engine.processes.list()).unreadable).toEqual([]);
});

itRefusesWrongTypes(q, {
  keys: order.keys,
  async prepare() {
    await register();
    return () => run('a');
  },
});
