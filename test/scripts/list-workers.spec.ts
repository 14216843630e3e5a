import { describe, expect, it } from 'vitest';
import { processKeys } from '#lib/engine/keys.js';
import type { RedisStore } from '#lib/engine/redis-store.js';
import { listWorkers } from '#lib/engine/scripts/processes.js';
import { LEASE_MS, processRecord, useQueue } from './support.js';
import { changingNothing, itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();

const list = () => changingNothing(q, () => q.engine.processes.list());
const register = (id: string) => q.engine.processes.register(processRecord({ id }), LEASE_MS);

it('is empty without worker processes', async () => {
  expect(await list()).toEqual({ records: [], silent: [], unreadable: [] });
});

it('returns the records of live processes unchanged', async () => {
  const record = processRecord({ id: 'p1', state: 'draining' });
  await q.engine.processes.register(record, LEASE_MS);
  expect(await list()).toEqual({ records: [record], silent: [], unreadable: [] });
});

it('leaves out processes that have not renewed within the lease', async () => {
  await register('gone');
  await register('here');
  await q.admin.zadd(q.key('processes'), (await q.now()) - 1, 'gone');
  expect((await list()).records.map(({ id }) => id)).toEqual(['here']);
});

it('reads many processes in pages, each once', async () => {
  const ids = Array.from({ length: 300 }, (_, i) => `p${i}`);
  await Promise.all(ids.map((id) => register(id)));
  const { records } = await list();
  expect(records.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
  const { store } = q.engine as unknown as { store: RedisStore };
  const page = await store.run(listWorkers, processKeys(q.redis.prefix), { cursor: '0', count: 50 });
  expect(page.entries.length).toBeGreaterThanOrEqual(50);
  expect(page.entries.length).toBeLessThan(150);
  expect(page.cursor).not.toBe('0');
});

it('reports entries that other programs wrote, and lists the rest', async () => {
  await register('p1');
  const foreign: Record<string, string> = {
    text: 'not JSON',
    null: 'null',
    list: '[]',
    other: '{"hello":1}',
    wrong: JSON.stringify({ ...processRecord({ id: 'wrong' }), pid: 'seven' }),
    date: JSON.stringify({ ...processRecord({ id: 'date' }), startedAt: 1e300 }),
    long: 'x'.repeat(100_000),
  };
  // Redis answers in pairs: an object would lose the first one.
  const pairs = [['__proto__', '{"__proto__":{"host":"x"}}'], ...Object.entries(foreign)];
  const ids = pairs.map(([id]) => id!);
  await q.admin.hset(q.key('processInfo'), ...pairs.flat());
  const end = (await q.now()) + LEASE_MS;
  await q.admin.zadd(q.key('processes'), ...ids.flatMap((id) => [end, id]));
  // Never registered, so no record says that it lives.
  await q.admin.hset(q.key('processInfo'), 'no lease', JSON.stringify(processRecord()));
  const { records, unreadable } = await list();
  expect(records.map(({ id }) => id)).toEqual(['p1']);
  expect(unreadable.map(({ process }) => process).toSorted()).toEqual(ids.toSorted());
  expect(Math.max(...unreadable.map(({ why }) => why.length))).toBe(200);
});

it('reads records of a newer version, without the fields that it does not know', async () => {
  const newer = { ...processRecord({ id: 'newer' }), wings: 2 };
  await register('newer');
  await q.admin.hset(q.key('processInfo'), 'newer', JSON.stringify(newer));
  expect((await list()).records).toEqual([processRecord({ id: 'newer' })]);
});

it('returns for some time to which process a worker belonged, also if the process is gone', async () => {
  await register('p1');
  expect(await q.engine.processes.ofWorker('w1')).toMatchObject({ id: 'p1', host: 'box', pid: 7 });
  await q.admin.zadd(q.key('processes'), 1, 'p1');
  expect(await q.engine.processes.ofWorker('w1')).toMatchObject({ id: 'p1' });
  expect(await q.engine.processes.ofWorker('w')).toBeNull();
  expect(await q.engine.processes.ofWorker('box')).toBeNull();
});

describe('refused', () => {
  itRefusesWrongTypes(q, {
    keys: listWorkers.keys,
    async prepare() {
      await register('p1');
      return () => q.engine.processes.list();
    },
  });
});
