import { beforeEach, describe, expect, it } from 'vitest';
import type { RedisEngine } from '#lib/engine/redis-engine.js';
import type { SettledRun } from '#lib/job/outcome.js';
import { newSet } from '../scripts/declarations-support.js';
import { firing, put, seen, tick } from '../scripts/schedules-support.js';
import {
  callOf,
  completed,
  dead,
  HASHES_OF_JOBS,
  job,
  kept,
  LEASE_MS,
  QUEUE,
  released,
  retried,
  snoozed,
  useQueue,
  WORKER,
} from '../scripts/support.js';

// Someone overwrites one field of one hash. Whatever is in it, no call fails, all other jobs go where they should, and
// `repair` corrects the rest.
const q = useQueue({
  leaves: ['active', 'worker', 'workers', 'processes', 'toCancel', 'declarers', 'lane'],
});

const VALUES = ['text', '1.5', '9223372036854775807', '', '-5', '12\n34'];
/** Every hash of a queue in which a script keeps something, but those of bodies. Workers read the bodies. */
const HASHES = [
  ...HASHES_OF_JOBS,
  'cancelled',
  'meta',
  'stats',
  'firings',
  'schedules',
  'declaredSets',
  'worker',
  'worker of another',
] as const;
/** Where most jobs have nothing. */
const MORE: Partial<Record<(typeof HASHES)[number], string[]>> = {
  attempts: ['a1', 'a2', 'a3', 'o1'],
  stalls: ['a2', 'a4', 'r1'],
  priorities: ['d1', 'p1'],
};
const OTHER = 'w2';

let seqs: Record<string, number> = {};

async function exchanged(worker: string, want: number, ...runs: SettledRun[]): Promise<string[]> {
  const seq = (seqs[worker] = (seqs[worker] ?? 0) + 1);
  const { claimed } = await q.exchanged({ worker, seq, want, settled: runs });
  return claimed.map(({ id }) => id);
}

const keyOf = (hash: (typeof HASHES)[number]) =>
  hash === 'worker of another' ? q.keys.worker(OTHER) : q.key(hash);

/** Jobs in every place, with a field in every hash. */
async function settled(engine: RedisEngine): Promise<void> {
  await q.add('c1', 'x1', 'x2', 'r1', 'r2', 'm1', 'gone');
  const first = [kept('c1', 60_000, '1'), dead('x1'), dead('x2'), retried('r1'), snoozed('r2', 0)];
  await exchanged(WORKER, 100);
  await engine.note(QUEUE, { worker: WORKER, id: 'm1', name: 'work', attempt: 1, progress: '1', log: 'l' });
  await engine.admin.cancel(QUEUE, 'gone', 'why');
  await exchanged(WORKER, 0, ...first, released('gone'));
  const ranked = [job('p1', { priority: 3 }), job('p2', { priority: 3 })];
  const later = [1, 2, 3, 4].map((n) => job(`d${n}`, { delayMs: 1, ...(n > 2 && { priority: n }) }));
  await q.add(
    'a1',
    'a2',
    'a3',
    'a4',
    'o1',
    'o2',
    'o3',
    ...ranked,
    job('later', { delayMs: 1e7, priority: 1 }),
  );
  await q.admin.hset(q.key('stalls'), { a1: 1, o1: 1, o2: 5 });
  await exchanged(WORKER, 6);
  await exchanged(OTHER, 3);
  await engine.admin.cancel(QUEUE, 'o3', 'why');
  await q.add(...later);
  await put(q, 's');
  await engine.declarations.declare(QUEUE, newSet('p1', ['x', 'y']));
}

/** Calls every verb that moves jobs or reads them, and returns the places of all jobs at the end. */
async function playOn(engine: RedisEngine): Promise<unknown> {
  const ids = ['a1', 'a2', 'a3', 'a4', 'm1', 'r1', 'r2', 'o1', 'o2', 'p1', 'p2', 'd1', 'd2', 'd3', 'd4'];
  ids.push('later', 'c1', 'x1', 'x2', 's@1');
  for (const id of ids) await engine.admin.get(QUEUE, id);
  await engine.beat(QUEUE, WORKER, LEASE_MS);
  await engine.adopt(QUEUE, WORKER, []);
  await engine.note(QUEUE, {
    worker: WORKER,
    id: 'm1',
    name: 'work',
    attempt: 1,
    progress: '2',
    log: 'more',
  });
  const runs = [completed('m1'), retried('a1', { delayMs: 1e7, priority: 2 }), dead('a2'), kept('a3', 1e7)];
  const claimed = await exchanged(WORKER, 1, ...runs);
  expect(claimed).toHaveLength(1);
  await engine.promote(QUEUE, 10);
  await engine.admin.promoteNow(QUEUE, 'later');
  await q.add('new', job('new ranked', { priority: 3 }), job('new later', { delayMs: 1e7 }));
  await engine.schedules.list(QUEUE, { offset: 0, limit: 10 });
  await engine.schedules.due(QUEUE, 0);
  await engine.schedules.fire(QUEUE, [firing(await seen(q, 's'), [tick('s@1')])]);
  await engine.schedules.pause(QUEUE, 's');
  await engine.declarations.renew(QUEUE, newSet('p1', ['x', 'y']));
  // Its lease has expired beyond doubt.
  await q.admin.zadd(q.key('workers'), 1, OTHER);
  const recovering = { worker: OTHER, beatMs: 1, leaseMs: LEASE_MS, maxStalls: 5 };
  await expect
    .poll(async () => (await engine.recover(QUEUE, recovering)).kind, { timeout: 10_000 })
    .not.toBe('doubted');
  await engine.release(QUEUE, { worker: WORKER, ids: ['a4'], leave: false });
  await engine.upkeep.retryDead(QUEUE, { ids: ['x1'] });
  await engine.admin.jobs(QUEUE, { state: 'dead', after: null, limit: 10 });
  await engine.admin.cancel(QUEUE, 'p2', 'why');
  await engine.admin.cancelled(QUEUE, 'gone');
  await engine.admin.stats(QUEUE, 2);
  await engine.admin.oldestWaitingMs(QUEUE);
  await engine.upkeep.overgrown([QUEUE]);
  await engine.upkeep.trim(QUEUE);
  await exchanged(WORKER, 100, ...[...claimed, 'never'].map((id) => completed(id)));
  const counts = await engine.admin.counts(QUEUE);
  const said = await q.events();
  return { counts, places: await placesOf(), said: said.length > 0 };
}

async function placesOf(): Promise<Record<string, string[]>> {
  const held = (await q.admin.smembers(q.key('active'))).toSorted();
  const lines = [...(await q.list('wait')), ...(await q.zset('prioritized'))].toSorted();
  const [delayed, died, done] = await Promise.all(
    ['delayed', 'dead', 'completed'].map((kind) => q.zset(kind as 'dead')),
  );
  return {
    held,
    lines,
    suspects: await q.list('suspects'),
    delayed: delayed!,
    dead: died!.toSorted(),
    completed: done!,
  };
}

/** Where the value only decides whether this job dies or goes on, it may do so. */
function withoutJob(outcome: unknown, id: string): unknown {
  const { places } = outcome as { places: Record<string, string[]> };
  const others = Object.entries(places).map(([place, ids]) => [place, ids.filter((one) => one !== id)]);
  return Object.fromEntries(others);
}

beforeEach(() => void (seqs = {}));

async function afresh(): Promise<void> {
  const keys = await q.redis.keys();
  if (keys.length > 0) await q.admin.del(...keys);
  seqs = {};
}

describe.each(HASHES)('over a field of `%s`', (hash) => {
  it('harms no other job, and is repaired', async () => {
    const { engine } = q;
    await afresh();
    await settled(engine);
    const fields = [...new Set([...(await q.admin.hkeys(keyOf(hash))), ...(MORE[hash] ?? [])])];
    expect(fields.length).toBeGreaterThan(0);
    const expected = await playOn(engine);
    for (const field of fields) {
      const values = VALUES.slice(0, fields.length > 8 ? 3 : VALUES.length);
      for (const value of values) {
        await afresh();
        await settled(engine);
        await q.admin.hset(keyOf(hash), field, value);
        const what = `${JSON.stringify(value)} in ${JSON.stringify(field)}`;
        // A queue is paused if the field exists.
        if (hash === 'meta' && field === 'paused') continue;
        const before = await engine.admin.audit(QUEUE);
        expect(
          before.violations.filter(({ id }) => id !== field),
          what,
        ).toEqual([]);
        const outcome = await playOn(engine).catch((error: unknown) => {
          throw new Error(`${what}: ${String(error)}`, { cause: error });
        });
        expect(withoutJob(outcome, field), what).toEqual(withoutJob(expected, field));
        const after = await engine.admin.audit(QUEUE);
        expect(
          after.violations.filter(({ id }) => id !== field),
          what,
        ).toEqual([]);
        await engine.admin.repair(QUEUE, 5);
        expect((await engine.admin.audit(QUEUE)).violations, what).toEqual([]);
      }
    }
  });
});

it.each([
  ['attempts', 'a1'],
  ['stalls', 'a1'],
  ['priorities', 'later'],
] as const)(
  'an unreadable number in `%s` is reported by the audit, and is counted from 0 again',
  async (hash, id) => {
    const { engine } = q;
    await settled(engine);
    await q.admin.hset(q.key(hash), id, 'text');
    const { violations } = await engine.admin.audit(QUEUE);
    expect(violations).toMatchObject([{ kind: 'unreadable', id, where: [hash] }]);
    const { repairs } = await engine.admin.repair(QUEUE, 5);
    expect(repairs).toMatchObject([{ did: 'reset', id }]);
    expect((await engine.admin.audit(QUEUE)).violations).toEqual([]);
  },
);

it('reports an unreadable number to the worker, and counts it as 0', async () => {
  await q.add('a', 'b', 'c');
  await q.admin.hset(q.key('attempts'), 'a', 'text');
  await q.admin.hset(q.key('stalls'), 'b', '1.5');
  expect((await q.exchanged({ want: 3 })).claimed).toMatchObject([
    { id: 'a', failed: 0, unreadable: true },
    { id: 'b', stalls: 0, unreadable: true },
    { id: 'c' },
  ]);
});

it.each(VALUES)('adds and events continue if the number of the last event is %j', async (value) => {
  for (const jobs of [['a'], [job('b', { priority: 1 })]]) {
    await q.admin.hset(q.key('meta'), 'events', value);
    const call = callOf(jobs, jobs.length + (jobs[0] === 'a' ? 0 : 1));
    expect((await q.engine.enqueue(QUEUE, call)).kind).toBe('stored');
  }
  expect((await q.events()).map(({ id }) => id)).toContain('b');
});
