import { describe, expect, it } from 'vitest';
import { atEnd } from '../support/cleanup.js';
import { useServer } from '../support/server.js';
import {
  callOf,
  completed,
  dead,
  job,
  kept,
  LEASE_MS,
  QUEUE,
  released,
  retried,
  useQueue,
  WORKER,
} from './support.js';
import { firing, put, putting, seen, tick } from './schedules-support.js';
import { changingNothing } from './unchanged.js';

// Adds are refused when the memory is full. Everything that frees memory still works.
const q = useQueue({ server: useServer() });

/** Until the end of the test Redis refuses whatever may take memory. */
async function fillMemory(): Promise<void> {
  await q.admin.config('SET', 'maxmemory', 1);
  atEnd(() => q.admin.config('SET', 'maxmemory', 0));
}

const OOM = { code: 'GODWIT_REDIS_REFUSED', reply: 'OOM', applied: 'no' };

describe('refused with nothing changed', () => {
  it('is enqueue', async () => {
    await q.add('a');
    await fillMemory();
    const call = callOf([job('b'), job('c', { priority: 1 }), job('d', { delayMs: 1_000 })], 2);
    await changingNothing(q, () => expect(q.engine.enqueue(QUEUE, call)).rejects.toMatchObject(OOM));
    await q.admin.config('SET', 'maxmemory', 0);
    expect(await q.engine.enqueue(QUEUE, call)).toEqual({ kind: 'stored', duplicates: [] });
  });

  it('is fire; the schedule is still due when there is room', async () => {
    const call = firing(await put(q, 'a'), [tick('a@1')]);
    await fillMemory();
    const fire = () => q.engine.schedules.fire(QUEUE, [call]);
    await changingNothing(q, () => expect(fire()).rejects.toMatchObject(OOM));
    await q.admin.config('SET', 'maxmemory', 0);
    expect((await fire()).made).toEqual([1]);
  });

  it('are the scripts that create a schedule', async () => {
    await fillMemory();
    const make = () => q.engine.schedules.put(QUEUE, putting('a'));
    await changingNothing(q, () => expect(make()).rejects.toMatchObject(OOM));
  });

  it('is note', async () => {
    await q.hold('a');
    await fillMemory();
    const call = { worker: WORKER, id: 'a', name: 'work', attempt: 1, progress: '1', log: 'x' };
    await changingNothing(q, () => expect(q.engine.note(QUEUE, call)).rejects.toMatchObject(OOM));
  });
});

it('the backlog drains: every outcome is settled, due jobs are promoted, jobs are claimed', async () => {
  await q.add('a', 'b', 'c', 'd', 'e', job('due', { dueAt: 1 }), job('vip', { priority: 1 }));
  await fillMemory();
  expect(await q.claim(5)).toEqual(['a', 'b', 'c', 'd', 'e']);
  const settled = [completed('a'), kept('b', 60_000, '1'), retried('c'), dead('d'), released('e')];
  const next = await q.exchanged({ want: 5, settled });
  expect(next.lost).toEqual([]);
  expect(next.claimed.map(({ id }) => id)).toEqual(['e', 'due', 'c', 'vip']);
  await q.settle(completed('e'), completed('c'), completed('due'), completed('vip'));
  expect(await q.engine.admin.counts(QUEUE)).toMatchObject({
    waiting: 0,
    active: 0,
    completed: 1,
    dead: 1,
    cancelled: 0,
  });
  expect((await q.events()).at(-1)).toMatchObject({ type: 'completed', id: 'vip' });
});

it('leases are kept', async () => {
  await q.hold('a', 'b');
  await fillMemory();
  expect(await q.engine.beat(QUEUE, WORKER, LEASE_MS)).toMatchObject({ kind: 'alive', held: 2 });
  expect(await q.engine.release(QUEUE, { worker: WORKER, ids: ['a'], leave: false })).toEqual({ lost: [] });
  expect(await q.engine.adopt(QUEUE, WORKER, ['b'])).toEqual({ buried: [], unknown: [], lost: [] });
  expect(await q.engine.overdue(QUEUE, LEASE_MS)).toMatchObject([{ worker: WORKER }]);
});

it.each([
  ['a worker is doubted', false, { kind: 'doubted', againInMs: 1_000 }],
  ['its jobs are taken back', true, { kind: 'recovered', waiting: ['a'], dead: ['b'] }],
])('%s', async (_, isDoubted, answer) => {
  await q.hold('a', 'b');
  await q.admin.zadd(q.key('workers'), 1, WORKER);
  await q.admin.hset(q.key('worker'), {
    seq: 1,
    ...(isDoubted && { doubt: `1 ${(await q.now()) - 1_000}` }),
  });
  await q.admin.hset(q.key('stalls'), 'b', 5);
  await fillMemory();
  const call = { worker: WORKER, beatMs: 1_000, leaseMs: LEASE_MS, maxStalls: 5 };
  expect(await q.engine.recover(QUEUE, call)).toMatchObject(answer);
});

it('people can inspect and remove jobs', async () => {
  await q.bury('dead', 'dead too');
  await q.add('waiting', job('due', { dueAt: 1 }), job('late', { delayMs: 60_000 }));
  await fillMemory();
  expect(await q.engine.admin.get(QUEUE, 'waiting')).toMatchObject({ state: 'waiting' });
  expect(await q.engine.promote(QUEUE, 10)).toMatchObject({ promoted: 1 });
  expect(await q.engine.admin.promoteNow(QUEUE, 'late')).toBe('promoted');
  expect(await q.engine.admin.remove(QUEUE, 'waiting')).toBe('removed');
  expect(await q.engine.upkeep.retryDead(QUEUE, { ids: ['dead'] })).toEqual({ retried: ['dead'] });
  expect(await q.engine.admin.pause(QUEUE)).toBe(true);
  expect(await q.engine.admin.resume(QUEUE)).toBe(true);
  expect(await q.engine.admin.counts(QUEUE)).toMatchObject({ waiting: 3, delayed: 0, dead: 1 });
  expect(await q.engine.admin.obliterate(QUEUE, false)).toBe('obliterated');
});

it('schedules can still be paused, resumed and removed', async () => {
  await put(q, 'a');
  await fillMemory();
  expect(await q.engine.schedules.pause(QUEUE, 'a')).toBe('paused');
  const { revision } = await seen(q, 'a');
  expect(await q.engine.schedules.resume(QUEUE, { id: 'a', revision, nextAt: 1_000 })).toBe('resumed');
  expect(await q.engine.schedules.remove(QUEUE, 'a')).toBe(true);
});
