import { describe, expect, it } from 'vitest';
import type { RedisStore } from '#lib/engine/redis-store.js';
import { register } from '#lib/engine/scripts/processes.js';
import { processKeys } from '#lib/engine/keys.js';
import { LEASE_MS, processRecord, useQueue } from './support.js';
import { changingNothing, itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();

const REMEMBER_MS = 60_000;
const KEEP_MS = 3_600_000;

const run = async (process: string, info: string) => (await answerTo(process, info)).kind;
const answerTo = (process: string, info: string, obeyed = '', leaseMs = LEASE_MS) => {
  const { store } = q.engine as unknown as { store: RedisStore };
  const args = { process, info, obeyed, leaseMs, rememberMs: REMEMBER_MS, keepMs: KEEP_MS };
  return store.run(register, processKeys(q.redis.prefix), args);
};
const endOf = async (process: string) => Number(await q.admin.zscore(q.key('processes'), process));

it('writes the record of a process, for one lease from now by the clock of Redis', async () => {
  const before = await q.now();
  expect(await run('p1', 'one')).toBe('added');
  const after = await q.now();
  expect(await q.hash('processInfo')).toEqual({ p1: 'one' });
  expect(await endOf('p1')).toBeGreaterThanOrEqual(before + LEASE_MS);
  expect(await endOf('p1')).toBeLessThanOrEqual(after + LEASE_MS);
});

it('called again, replaces its own record, and none of others', async () => {
  await run('p1', 'one');
  await run('p2', 'other');
  expect(await run('p1', 'two')).toBe('registered');
  expect(await run('p1', 'two')).toBe('registered');
  expect(await q.hash('processInfo')).toEqual({ p1: 'two', p2: 'other' });
  expect(await q.admin.zcard(q.key('processes'))).toBe(2);
});

it('renews an entry without its record, and does not change others', async () => {
  await run('p1', 'one');
  await run('p2', 'other');
  await q.admin.zadd(q.key('processes'), 1, 'p1', 2, 'p2');
  const before = await q.now();
  expect(await run('p1', '')).toBe('registered');
  expect(await q.hash('processInfo')).toEqual({ p1: 'one', p2: 'other' });
  expect(await endOf('p1')).toBeGreaterThanOrEqual(before + LEASE_MS);
  expect(await endOf('p2')).toBe(2);
});

it('does not renew a missing entry', async () => {
  await run('p2', 'other');
  expect(await changingNothing(q, () => run('p1', ''))).toBe('unknown');
});

it('remembers ended processes for some time, and forgets at most a hundred at once', async () => {
  const now = await q.now();
  await run('old', 'x');
  await run('young', 'y');
  await q.admin.zadd(
    q.key('processes'),
    now - REMEMBER_MS - 1_000,
    'old',
    now - REMEMBER_MS + 30_000,
    'young',
  );
  await run('p1', 'one');
  expect(await q.hash('processInfo')).toEqual({ young: 'y', p1: 'one' });
  expect(await q.zset('processes')).toEqual(['young', 'p1']);

  const many = Array.from({ length: 150 }, (_, i) => `gone-${i}`);
  await q.admin.zadd(q.key('processes'), ...many.flatMap((id) => [1, id]));
  await q.admin.hset(q.key('processInfo'), Object.fromEntries(many.map((id) => [id, 'z'])));
  await run('p1', 'one');
  expect(await q.admin.hlen(q.key('processInfo'))).toBe(52);
  await run('p1', 'one');
  expect(await q.zset('processes')).toEqual(['young', 'p1']);
  expect(await q.admin.hlen(q.key('processInfo'))).toBe(2);
});

it('leaves keys that expire if no process registers any more', async () => {
  await run('p1', 'one');
  for (const kind of ['processes', 'processInfo'] as const) {
    const ms = await q.admin.pttl(q.key(kind));
    expect(ms).toBeGreaterThan(KEEP_MS - 60_000);
    expect(ms).toBeLessThanOrEqual(KEEP_MS);
  }
});

it('keeps the keys for longer than the longest lease', async () => {
  await q.engine.processes.register(processRecord(), 3_600_000);
  expect(await q.admin.pttl(q.key('processes'))).toBeGreaterThan(2 * 3_600_000);
});

const give = (process: string, id: string) =>
  q.engine.processes.order(process, { id, kind: 'pause', queue: 'a', by: 'ada' });
const idsOf = ({ orders }: { readonly orders: string }) =>
  orders.split('\n').flatMap((one) => (one === '' ? [] : [one.split(' ')[0]!]));

it('returns the orders to the process, until it has carried them out', async () => {
  // A renewal to the same millisecond changes nothing, so it looks like a lost record.
  let leaseMs = LEASE_MS;
  const ask = (process: string, info: string, obeyed = '') => answerTo(process, info, obeyed, ++leaseMs);
  await run('p1', 'one');
  await run('p2', 'other');
  for (const id of ['o-1', 'o-2', 'o-3']) await give('p1', id);
  expect(idsOf(await ask('p1', ''))).toEqual(['o-1', 'o-2', 'o-3']);
  expect(idsOf(await ask('p1', 'two'))).toEqual(['o-1', 'o-2', 'o-3']);
  expect(idsOf(await ask('p2', ''))).toEqual([]);
  expect(idsOf(await ask('p1', '', 'unknown'))).toEqual(['o-1', 'o-2', 'o-3']);
  expect(idsOf(await ask('p1', '', 'o-2'))).toEqual(['o-3']);
  expect(idsOf(await ask('p1', ''))).toEqual(['o-3']);
  expect(idsOf(await ask('p1', '', 'o-3'))).toEqual([]);
  expect(await q.hash('processInfo')).toEqual({ p1: 'two', p2: 'other' });
});

it('forgets the orders to a process with its record', async () => {
  await run('old', 'x');
  await give('old', 'o-1');
  await q.admin.zadd(q.key('processes'), 1, 'old');
  await run('p1', 'one');
  expect(await q.hash('processInfo')).toEqual({ p1: 'one' });
  await give('p1', 'o-2');
  await q.engine.processes.unregister('p1');
  expect(await q.redis.keys()).toEqual([]);
});

describe('refused', () => {
  itRefusesWrongTypes(q, {
    keys: register.keys,
    async prepare() {
      await run('gone', 'x');
      await q.admin.zadd(q.key('processes'), 1, 'gone');
      return () => q.engine.processes.register(processRecord(), LEASE_MS);
    },
  });

  it('changes nothing if an entry of another type is renewed', async () => {
    await q.admin.set(q.key('processes'), 'not ours');
    await changingNothing(q, () => expect(run('p1', '')).rejects.toMatchObject({ reply: 'WRONGTYPE' }));
  });
});
