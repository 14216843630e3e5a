import { describe, expect, it } from 'vitest';
import { LETTERED_JOBS, type KeyName } from '#lib/engine/keys.js';
import { obliterate } from '#lib/engine/scripts/admin.js';
import { completed, dead, job, kept, QUEUE, retried, useQueue, WORKER } from './support.js';
import { declaring } from './declarations-support.js';
import { firing, put, tick } from './schedules-support.js';
import { changingNothing } from './unchanged.js';
import { countsOf } from '../support/queue-states.js';

const q = useQueue();

const obliterating = (force = false) => q.engine.admin.obliterate(QUEUE, force);

/** Jobs in every state but active, with all keys they may have. */
async function fill(): Promise<void> {
  await q.hold('kept', 'dead', 'again', 'prio');
  await q.note('kept', 'dead');
  await q.settle(
    kept('kept', 60_000, '1'),
    dead('dead'),
    retried('again', { delayMs: 60_000, priority: 3 }),
    retried('prio', { priority: 3 }),
  );
  await q.add('suspect');
  await q.admin.rpoplpush(q.key('wait'), q.key('suspects'));
  await q.add('waiting', job('member', { group: 'g' }), job('limited', { name: 'limited' }));
  await q.engine.limits.set(QUEUE, 'g', 'live', { rate: { max: 1, per: 9_000, window: 'fixed', burst: 1 } });
  await q.admin.zadd(q.key('slots'), 1, 'kept');
  await q.admin.zadd(q.key('resting'), 1, '0000001');
  await q.admin.hset(q.key('limitStates'), 'g:g', '0 ');
  await q.admin.hset(q.key('stalls'), 'suspect', 2);
  await declaring(q, 'p1', ['declared']);
  const schedule = await put(q, 'a');
  await q.engine.schedules.fire(QUEUE, [firing(schedule, [tick('a@1')])]);
  await q.engine.admin.pause(QUEUE);
}

/** The number of the last event stays, for subscribers. */
const KEPT = ['meta'];

/** Every key that stays until someone deletes it. */
async function lasting(): Promise<string[]> {
  const all = Object.entries(await q.dump());
  return all.filter(([, { expiresAt }]) => expiresAt === -1).map(([key]) => key);
}

it('removes everything except keys that expire on their own', async () => {
  await fill();
  // Leases and marks exist only while jobs are active, sizes only with large events and progress, and names with a
  // handler only after a process has asked for one. Records of cancelled jobs expire.
  const others: KeyName[] = [
    'workers',
    'toCancel',
    'cancelled',
    'large',
    'largeProgress',
    'handled',
    'unique',
    'shares',
    ...LETTERED_JOBS,
  ];
  expect((await lasting()).toSorted()).toEqual(
    obliterate.keys.filter((key) => !others.includes(key)).toSorted(),
  );
  await q.admin.hset(q.keys.stats('2020-01-01'), 'processed', 1);
  expect(await obliterating()).toBe('obliterated');
  expect(await lasting()).toEqual([...KEPT, 'stats:2020-01-01']);
  expect(await q.engine.admin.counts(QUEUE)).toEqual({ ...countsOf(), paused: false, isLimited: false });
});

it('refuses while a job is active, whichever worker holds it', async () => {
  await fill();
  await q.engine.admin.resume(QUEUE);
  await q.claim(1, 'w2');
  expect(await changingNothing(q, () => obliterating())).toBe('active');
});

it('ignores a lease of a worker that holds nothing', async () => {
  await fill();
  await q.admin.zadd(q.key('workers'), (await q.now()) + 5_000, 'idle');
  expect(await obliterating()).toBe('obliterated');
});

it('removes active jobs if it is forced; their workers lose them', async () => {
  await q.add('a', 'b');
  await q.claim(1, 'w1');
  await q.claim(1, 'w2');
  expect(await obliterating(true)).toBe('obliterated');
  expect(await lasting()).toEqual(KEPT);
  expect(await q.admin.exists(q.keys.worker('w1'), q.keys.worker('w2'))).toBe(0);
  expect((await q.exchange({ settled: [completed('a')] })).kind).toBe('unknown-worker');
});

it('removes the counters of every day that is kept', async () => {
  await q.hold('a');
  await q.settle(completed('a'));
  const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10);
  for (const days of [-1, 1, 45, 90]) await q.admin.hset(q.keys.stats(daysAgo(days)), 'processed', 1);
  await obliterating();
  expect((await q.redis.keys()).filter((key) => key.includes('stats'))).toEqual([]);
});

it('keeps the number of the last event, and nothing else of the events', async () => {
  await q.add('a', 'b');
  const last = await q.engine.lastEvent(QUEUE);
  expect(last).toBe(2);
  await obliterating();
  expect(await q.hash('meta')).toEqual({ events: '2' });
  await q.admin.hset(q.key('meta'), 'format', 1);
  await obliterating();
  expect(await q.hash('meta')).toEqual({ events: '2', format: '1' });
  await q.add('c');
  expect((await q.events()).map(({ number, id }) => ({ number, id }))).toEqual([{ number: 3, id: 'c' }]);
});

it('keeps the limits in the code, and that the queue has them', async () => {
  const rule = { concurrency: 1 };
  for (const field of ['q', 'n:page']) await q.engine.limits.set(QUEUE, field, 'live', rule);
  for (const field of ['q', 'n:mail']) await q.engine.limits.set(QUEUE, field, 'code', rule);
  const { limited } = await q.hash('meta');
  await obliterating();
  const code = JSON.stringify({ code: rule });
  expect(await q.hash('limits')).toEqual({ q: code, 'n:mail': code });
  expect(await q.hash('meta')).toEqual({ limited });
});

it('also removes settings that other programs have overwritten', async () => {
  await q.add('a');
  await q.admin.set(q.key('meta'), 'not ours');
  expect(await obliterating()).toBe('obliterated');
  expect(await lasting()).toEqual([]);
});

it('brings nothing back, whatever a worker that held jobs sends afterwards', async () => {
  await q.hold('a', 'b', 'c');
  await obliterating(true);
  const said = { worker: WORKER, id: 'a', name: 'work', attempt: 1, progress: '1', log: 'x' };
  expect(await q.engine.note(QUEUE, said)).toBe(false);
  expect(await q.engine.beat(QUEUE, WORKER, 8_000)).toEqual({ kind: 'unknown-worker' });
  expect(await q.engine.release(QUEUE, { worker: WORKER, ids: ['a', 'b'], leave: false })).toEqual({
    lost: ['a', 'b'],
  });
  const settled = [completed('a'), retried('b'), dead('c'), kept('a', 60_000, '1')];
  expect((await q.exchange({ settled })).kind).toBe('unknown-worker');
  expect(
    (await q.engine.recover(QUEUE, { worker: WORKER, beatMs: 1, leaseMs: 8_000, maxStalls: 5 })).kind,
  ).toBe('alive');
  expect(Object.keys(await q.dump()).filter((key) => !key.startsWith('lane'))).toEqual(KEPT);
});

it('of an empty queue does nothing', async () => {
  expect(await changingNothing(q, () => obliterating())).toBe('obliterated');
});

it('leaves a usable queue', async () => {
  await fill();
  await obliterating();
  expect(await q.add('waiting', job('kept', { priority: 1 }))).toEqual([]);
  expect(await q.claim(5, 'w2')).toEqual(['waiting', 'kept']);
});

it('leaves other queues alone', async () => {
  await q.engine.enqueue('q2', {
    lane: 'l',
    seq: 1,
    rememberMs: 1_000,
    withinMs: 5_000,
    jobs: [job('a')],
  });
  await obliterating(true);
  expect(await q.engine.admin.counts('q2')).toMatchObject({ waiting: 1 });
});

describe('refused', () => {
  it.each(['workers', 'active'] as const)('changes nothing if %s is of another type', async (kind) => {
    await q.hold('a');
    await q.admin.set(q.key(kind), 'not ours');
    await changingNothing(q, () =>
      expect(obliterating()).rejects.toMatchObject({ code: 'GODWIT_REDIS_REFUSED', reply: 'WRONGTYPE' }),
    );
  });
});
