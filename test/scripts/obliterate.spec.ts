import { describe, expect, it } from 'vitest';
import { obliterate } from '#lib/engine/scripts/obliterate.js';
import { completed, dead, job, kept, QUEUE, retried, useQueue, WORKER } from './support.js';
import { changingNothing } from './unchanged.js';

const q = useQueue();

const obliterating = (force = false) => q.engine.admin.obliterate(QUEUE, force);

/** Jobs in every state but active, with everything they may leave. */
async function fill(): Promise<void> {
  await q.hold('kept', 'dead', 'again', 'prio');
  const note = { worker: WORKER, name: 'work', attempt: 1, progress: '1', log: 'l' };
  for (const id of ['kept', 'dead']) await q.engine.note(QUEUE, { ...note, id });
  await q.settle(
    kept('kept', 60_000, '1'),
    dead('dead'),
    retried('again', { delayMs: 60_000, priority: 3 }),
    retried('prio', { priority: 3 }),
  );
  await q.add('suspect');
  await q.admin.rpoplpush(q.key('wait'), q.key('suspects'));
  await q.add('waiting');
  await q.admin.hset(q.key('stalls'), 'suspect', 2);
  await q.engine.admin.pause(QUEUE);
}

/** Everything that is there for ever unless somebody deletes it. */
async function lasting(): Promise<string[]> {
  const all = Object.entries(await q.dump());
  return all.filter(([, { expiresAt }]) => expiresAt === -1).map(([key]) => key);
}

it('removes everything but what goes by itself', async () => {
  await fill();
  // Leases and marks are only there while jobs are active, and what is known of cancelled jobs goes by itself.
  const others = ['workers', 'cancels', 'cancelled'];
  expect((await lasting()).toSorted()).toEqual(
    obliterate.keys.filter((key) => !others.includes(key)).toSorted(),
  );
  expect(await obliterating()).toBe('obliterated');
  expect(await lasting()).toEqual([]);
  expect(await q.engine.admin.counts(QUEUE)).toEqual({
    waiting: 0,
    delayed: 0,
    active: 0,
    completed: 0,
    dead: 0,
    paused: false,
  });
});

it('refuses while a job is active, whoever holds it', async () => {
  await fill();
  await q.engine.admin.resume(QUEUE);
  await q.claim(1, 'w2');
  expect(await changingNothing(q, () => obliterating())).toBe('active');
});

it('does not mind a lease of a worker that holds nothing', async () => {
  await fill();
  await q.admin.zadd(q.key('workers'), (await q.now()) + 5_000, 'idle');
  expect(await obliterating()).toBe('obliterated');
});

it('removes active jobs where it is forced; their workers lose them', async () => {
  await q.add('a', 'b');
  await q.claim(1, 'w1');
  await q.claim(1, 'w2');
  expect(await obliterating(true)).toBe('obliterated');
  expect(await lasting()).toEqual([]);
  expect(await q.admin.exists(q.keys.worker('w1'), q.keys.worker('w2'))).toBe(0);
  expect((await q.exchange({ settled: [completed('a')] })).kind).toBe('unknown-worker');
});

it('of an empty queue does nothing', async () => {
  expect(await changingNothing(q, () => obliterating())).toBe('obliterated');
});

it('leaves a queue that works', async () => {
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
  it.each(['workers', 'active'] as const)('changes nothing where %s is of another type', async (kind) => {
    await q.hold('a');
    await q.admin.set(q.key(kind), 'not ours');
    await changingNothing(q, () =>
      expect(obliterating()).rejects.toMatchObject({ code: 'GODWIT_REDIS_REFUSED', reply: 'WRONGTYPE' }),
    );
  });
});
