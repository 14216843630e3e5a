import { describe, expect, it } from 'vitest';
import type { EnqueueJob } from '#lib/contract/engine.js';
import { enqueue } from '#lib/engine/scripts/adds.js';
import { useServer } from '../support/server.js';
import { until } from '../support/wait.js';
import { encodeBody } from '#lib/job/job-record.js';
import { callOf, completed, EVERY_STATE, job, kept, LANE, QUEUE, retried, useQueue } from './support.js';
import { changingNothing, itRefusesWrongTypes, without } from './unchanged.js';

const q = useQueue();

it('a job whose retention is over is gone: its id is new, and nothing of it is left', async () => {
  await q.hold('x', 'y');
  for (const id of ['x', 'y']) {
    await q.note(id);
    await q.admin.hset(q.key('failures'), id, '1\n{}');
  }
  await q.settle(kept('x', 60_000, '1'), kept('y', 60_000, '1'));
  await q.admin.zadd(q.key('completed'), (await q.now()) - 1, 'x');
  expect(await q.add('x', job('y', { idHeldBy: ['completed'] }))).toEqual(['y']);
  expect(await q.zset('completed')).toEqual(['y']);
  for (const kind of ['results', 'failures', 'progress', 'logs'] as const)
    expect(Object.keys(await q.hash(kind)).filter((field) => field[0] !== 'y')).toEqual([]);
  expect(await q.list('wait')).toEqual(['x']);
});

describe('where jobs go', () => {
  it('delayed ones by the clock of Redis, or until a moment that is kept to the millisecond', async () => {
    const before = await q.now();
    await q.add(job('in', { delayMs: 60_000 }), job('at', { dueAt: 4_102_444_800_123 }));
    const after = await q.now();
    const due = Number(await q.admin.zscore(q.key('delayed'), 'in'));
    expect(due).toBeGreaterThanOrEqual(before + 60_000);
    expect(due).toBeLessThanOrEqual(after + 60_000);
    expect(await q.admin.zscore(q.key('delayed'), 'at')).toBe('4102444800123');
    expect(await q.admin.exists(q.key('wait'), q.key('priorities'))).toBe(0);
  });

  it('the last priority is exact up to the last sequence number', async () => {
    await q.admin.hset(q.key('meta'), 'ranks', 4_294_967_293);
    await q.add(job('a', { priority: 2_097_151 }), job('b', { priority: 2_097_151 }));
    expect(await q.admin.zrange(q.key('prioritized'), '0', '-1', 'WITHSCORES')).toEqual([
      'a',
      String(2_097_151 * 2 ** 32 + 4_294_967_294),
      'b',
      String(2 ** 53 - 1),
    ]);
  });

  it('a delayed one remembers its priority', async () => {
    await q.add(job('a', { delayMs: 1_000, priority: 7 }), job('b', { delayMs: 1_000 }));
    expect(await q.hash('priorities')).toEqual({ a: '7' });
    expect(await q.admin.exists(q.key('prioritized'))).toBe(0);
  });

  it('in a mixed call each to its place, with 1,000 jobs', async () => {
    const jobs = Array.from({ length: 1_000 }, (_, i) => {
      if (i % 3 === 1) return job(`p${i}`, { priority: 1 + (i % 5) });
      return i % 3 === 2 ? job(`d${i}`, { delayMs: 60_000 }) : job(`w${i}`);
    });
    expect(await q.add(...jobs)).toEqual([]);
    expect(await q.engine.admin.counts(QUEUE)).toMatchObject({ waiting: 667, delayed: 333 });
    expect(await q.admin.lrange(q.key('wait'), 0, 1)).toEqual(['w0', 'w3']);
    expect(await q.admin.hlen(q.key('jobs'))).toBe(1_000);
  });

  it('takes 1,000 of any one kind', async () => {
    const thousand = (kind: string, more: object) =>
      q.add(...Array.from({ length: 1_000 }, (_, i) => job(`${kind}${i}`, more)));
    await thousand('w', {});
    await thousand('p', { priority: 3 });
    await thousand('d', { delayMs: 60_000, priority: 3 });
    expect(await q.engine.admin.counts(QUEUE)).toMatchObject({ waiting: 2_000, delayed: 1_000 });
  });
});

it.each([
  'meta',
  'wait',
  'active:w1',
  '{x}',
  '__proto__',
  'constructor',
  '0',
  ' ',
  '🦆🪶',
  'ü'.repeat(127) + 'x',
  'x'.repeat(255),
])('takes the id %j as an ordinary one', async (id) => {
  await q.add(job(id), job(`${id.slice(0, 5)}-later`, { delayMs: 60_000 }));
  expect(await q.add(id)).toEqual([id]);
  expect(await q.engine.admin.get(QUEUE, id)).toMatchObject({ id, state: 'waiting', body: job(id).body });
  expect(await q.claim()).toEqual([id]);
  expect((await q.settle(completed(id))).lost).toEqual([]);
  const said = (await q.events()).filter((event) => event.id === id).map((event) => event.type);
  expect(said).toEqual(['added', 'active', 'completed']);
});

describe('a job that already exists', () => {
  it.each(EVERY_STATE)('is not changed when %s, and is returned; the others are added', async (_, bring) => {
    await bring(q);
    const before = await q.engine.admin.get(QUEUE, 'x');
    const other = { body: 'other\n{}', name: 'other', idHeldBy: ['completed', 'dead'] as const };
    expect(await q.add(job('a'), job('x', other), job('b', { delayMs: 9_000 }))).toEqual(['x']);
    expect(await q.add(job('x', { ...other, priority: 9 }))).toEqual(['x']);
    expect(await q.add(job('x', { ...other, delayMs: 1 }))).toEqual(['x']);
    expect(await q.engine.admin.get(QUEUE, 'x')).toEqual(before);
    expect(await q.engine.admin.get(QUEUE, 'a')).toMatchObject({ state: 'waiting' });
    expect(await q.engine.admin.get(QUEUE, 'b')).toMatchObject({ state: 'delayed' });
  });

  it('writes no event, but uses its number, so that the others keep theirs', async () => {
    await q.add('x');
    await q.add('a', 'x', 'b');
    expect((await q.events()).map(({ number, type, id }) => [number, type, id])).toEqual([
      [1, 'added', 'x'],
      [2, 'added', 'a'],
      [4, 'added', 'b'],
    ]);
    expect(await q.engine.lastEvent(QUEUE)).toBe(4);
  });

  it('alone in its call changes only the record of the lane', async () => {
    await q.add('x', job('y', { delayMs: 9_000 }));
    await q.wasRung();
    const before = without(await q.dump(), `lane:${LANE}`);
    expect(await q.add('y', 'x')).toEqual(['y', 'x']);
    expect(without(await q.dump(), `lane:${LANE}`)).toEqual(before);
  });
});

describe('a repeated call', () => {
  it('is answered as the first time and changes nothing', async () => {
    await q.add('x');
    const call = callOf([job('a'), job('x'), job('b', { priority: 1 }), job('c', { delayMs: 9_000 })], 2);
    const first = await q.engine.enqueue(QUEUE, call);
    expect(first).toEqual({ kind: 'stored', duplicates: [{ id: 'x', state: 'waiting' }] });
    expect(await changingNothing(q, () => q.engine.enqueue(QUEUE, call))).toEqual(first);
  });

  it('is remembered as long as requested, counted from the last one', async () => {
    await q.engine.enqueue(QUEUE, { ...callOf(['a'], 1), rememberMs: 30_000 });
    const left = await q.admin.pttl(q.key('lane'));
    expect(left).toBeGreaterThan(20_000);
    expect(left).toBeLessThanOrEqual(30_000);
    await q.engine.enqueue(QUEUE, { ...callOf(['b'], 2), rememberMs: 30 });
    await until(async () => (await q.admin.exists(q.key('lane'))) === 0);
  });
});

it('is stored also if it does not have to be remembered', async () => {
  await q.engine.enqueue(QUEUE, { ...callOf(['a'], 1), rememberMs: 0 });
  expect(await q.list('wait')).toEqual(['a']);
});

describe('the bell', () => {
  it('rings for a delayed job only if it is the new first one, and for two workers', async () => {
    const wokenBy = async (...jobs: EnqueueJob[]) => {
      await q.add(...jobs);
      let woken = 0;
      while (await q.wasRung()) woken += 1;
      return woken;
    };
    expect(await wokenBy(job('first', { delayMs: 30_000 }))).toBe(2);
    expect(await wokenBy(job('later', { delayMs: 60_000 }))).toBe(0);
    expect(await wokenBy(job('latest', { delayMs: 90_000 }), job('sooner', { delayMs: 20_000 }))).toBe(2);
    expect(await wokenBy(job('now'))).toBe(1);
  });
});

describe('the events', () => {
  it('are one entry for the whole call: first the jobs that can run at once, then the delayed ones with their delays', async () => {
    await q.add(
      job('late', { delayMs: 5_000 }),
      job('mail', { name: 'mail' }),
      job('past', { dueAt: 1 }),
      job('vip', { priority: 4 }),
    );
    expect(await q.admin.xlen(q.key('events'))).toBe(1);
    expect(await q.events()).toMatchObject([
      { number: 1, type: 'added', id: 'mail', name: 'mail', delayMs: 0 },
      { number: 2, type: 'added', id: 'vip', name: 'work', delayMs: 0 },
      { number: 3, type: 'delayed', id: 'late', name: 'work', delayMs: 5_000 },
      { number: 4, type: 'delayed', id: 'past', name: 'work', delayMs: 0 },
    ]);
  });

  it('contain how long a job with a due time waits', async () => {
    await q.add(job('a', { dueAt: (await q.now()) + 60_000 }));
    const [event] = await q.events();
    expect(event).toMatchObject({ type: 'delayed', id: 'a' });
    expect(event?.delayMs).toBeGreaterThan(50_000);
    expect(event?.delayMs).toBeLessThan(61_000);
  });

  it('leave out duplicates, also among delayed jobs', async () => {
    await q.add('x', job('y', { delayMs: 9_000 }));
    await q.add('a', 'x', job('y', { delayMs: 1_000 }), job('b', { delayMs: 1_000 }));
    expect((await q.events()).slice(2).map(({ number, type, id }) => [number, type, id])).toEqual([
      [3, 'added', 'a'],
      [6, 'delayed', 'b'],
    ]);
    expect(await q.engine.lastEvent(QUEUE)).toBe(6);
  });
});

it('finds existing jobs in each of its lists, also if their retention is over', async () => {
  await q.hold('old');
  await q.settle(kept('old', 60_000));
  await q.admin.zadd(q.key('completed'), (await q.now()) - 1, 'old');
  await q.add('a', job('p', { priority: 2 }), job('d', { delayMs: 60_000, priority: 3 }));
  const again = ['a', job('p', { priority: 9 }), job('d', { delayMs: 1 })] as const;
  const added = [
    job('new'),
    job('old', { priority: 5 }),
    job('last', { priority: 7 }),
    job('later', { delayMs: 90_000, priority: 4 }),
  ];
  expect(await q.add(...again, ...added)).toEqual(['a', 'p', 'd']);
  expect(await q.list('wait')).toEqual(['a', 'new']);
  expect(await q.zset('prioritized')).toEqual(['p', 'old', 'last']);
  expect(await q.zset('delayed')).toEqual(['d', 'later']);
  expect(await q.hash('priorities')).toEqual({ d: '3', later: '4' });
  expect(await q.zset('completed')).toEqual([]);
});

describe('in a full queue', () => {
  // Its commands are counted.
  const own = useQueue({ server: useServer() });

  it('removes the oldest jobs with a few commands, however many they are', async () => {
    const many = (from: string, more: object = {}) =>
      Array.from({ length: 100 }, (_, i) => job(`${from}${i}`, more));
    await own.add(...many('old'), ...many('ranked', { priority: 1 }));
    await own.admin.config('RESETSTAT');
    const call = callOf(many('new'), 1, 'bounded');
    await own.engine.enqueue(QUEUE, { ...call, maxWaiting: { limit: 100, onFull: 'dropOldest' as const } });
    const stats = await own.admin.info('commandstats');
    for (const command of ['lpop', 'zrange', 'zrem']) {
      const calls = Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
      expect([command, calls < 10]).toEqual([command, true]);
    }
    expect(await own.list('wait')).toEqual(many('new').map(({ id }) => id));
    expect(await own.zset('prioritized')).toEqual([]);
  });
});

it('frees the slot of a job that makes room, also if its body is gone', async () => {
  await q.engine.limits.set(QUEUE, 'g', 'code', { order: 'strict' });
  await q.hold(job('a', { group: 'g', body: encodeBody('work', 1, { group: 'g' }, '') }));
  await q.settle(retried('a'));
  await q.admin.hdel(q.keys.bodies('a'), 'a');
  expect(await q.zset('slots')).toEqual(['a']);
  const maxWaiting = { limit: 1, onFull: 'dropOldest' as const };
  await q.engine.enqueue(QUEUE, { ...callOf(['b'], 1, 'bounded'), maxWaiting });
  expect(await q.list('wait')).toEqual(['b']);
  expect(await q.zset('slots')).toEqual([]);
});

describe('refused', () => {
  itRefusesWrongTypes(q, {
    keys: enqueue.keys,
    except: ['jobsA', 'events', 'unique', 'slots'],
    async prepare() {
      await q.add('x', job('y', { delayMs: 60_000, priority: 2 }), job('z', { priority: 1 }));
      const jobs = [
        job('a'),
        // Whether a job is kept, and what it left, matters only if the job is there.
        job('x'),
        job('b', { priority: 1 }),
        job('c', { delayMs: 1_000, priority: 4 }),
        job('d', { dueAt: 1 }),
        job('e', { group: 'g' }),
      ];
      return () => q.engine.enqueue(QUEUE, callOf(jobs, 2));
    },
  });
});
