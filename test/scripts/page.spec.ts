import { describe, expect, it } from 'vitest';
import type { RedisStore } from '#lib/engine/redis-store.js';
import { walkArgs } from '#lib/engine/walks.js';
import { page } from '#lib/engine/scripts/admin.js';
import type { JobsPlace } from '#lib/contract/admin-verbs.js';
import type { DeadMatch } from '#lib/contract/upkeep-verbs.js';
import { job, QUEUE, useQueue } from './support.js';
import { itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();

const pageOf = (limit: number, after: JobsPlace | null = null, match: DeadMatch = {}) =>
  q.engine.admin.jobs(QUEUE, { state: 'dead', ...match, limit, after });
const idsOf = async (...args: Parameters<typeof pageOf>) => (await pageOf(...args)).jobs.map(({ id }) => id);

const record = (reason: string, message = 'no luck') =>
  `1\n${JSON.stringify({ name: 'Error', message, attempt: 1, reason })}`;

/** Dead jobs as the store holds them. They died `at` ms ago, by default their index. */
async function plant(...jobs: { id: string; ago: number; name?: string; record?: string }[]): Promise<void> {
  const now = await q.now();
  const one = ({ id, name = 'work' }: { id: string; name?: string }) => [id, job(id, { name }).body];
  await q.admin.hset(q.key('jobs'), ...jobs.flatMap(one));
  await q.admin.hset(q.key('failures'), ...jobs.flatMap((all) => [all.id, all.record ?? record('stalled')]));
  await q.admin.zadd(q.key('dead'), ...jobs.flatMap(({ id, ago }) => [now - ago, id]));
}

it('continues at its position although the job there is gone, has died again, or others died at the same time', async () => {
  const ids = ['B', 'a', 'aa', 'b', 'bb', 'c', 'ä', '😀'];
  await plant(...ids.map((id) => ({ id, ago: 0 })));
  await q.admin.zadd(q.key('dead'), ...ids.flatMap((id) => [5, id]));
  const { next } = await pageOf(3);
  expect(next).toEqual({ line: 'dead', at: '5', id: 'aa' });
  await q.admin.zrem(q.key('dead'), 'aa', 'B');
  expect(await idsOf(9, next)).toEqual(['b', 'bb', 'c', 'ä', '😀']);
  await q.admin.zadd(q.key('dead'), 9, 'aa', 5, 'abc');
  expect(await idsOf(9, next)).toEqual(['abc', 'b', 'bb', 'c', 'ä', '😀', 'aa']);
  expect(await idsOf(9, { line: 'dead', at: '5', id: '😀' })).toEqual(['aa']);
  expect(await idsOf(9, { line: 'dead', at: '9', id: 'aa' })).toEqual([]);
});

describe('finds jobs', () => {
  it('by their reason only, not by other texts in their records', async () => {
    await plant(
      { id: 'a', ago: 4, record: record('expired') },
      { id: 'b', ago: 3, record: record('stalled', '"reason":"expired"}') },
      { id: 'c', ago: 2, record: 'no record' },
      { id: 'd', ago: 1, record: record('expired', 'a\n"quoted" line') },
    );
    await q.admin.hdel(q.key('failures'), 'c');
    expect(await idsOf(9, null, { reason: 'expired' })).toEqual(['a', 'd']);
    expect(await idsOf(9, null, { reason: 'stalled' })).toEqual(['b']);
    expect(await idsOf(9, null, { reason: 'corrupt' })).toEqual([]);
    expect((await pageOf(9)).jobs[2]).toMatchObject({ id: 'c', failure: null, failed: 0 });
  });

  it('of a name, and not of longer names that begin with it', async () => {
    await plant({ id: 'a', ago: 3, name: 'mail' }, { id: 'b', ago: 2, name: 'mailing' }, { id: 'c', ago: 1 });
    expect(await idsOf(9, null, { name: 'mail' })).toEqual(['a']);
    expect(await idsOf(9, null, { name: 'work', reason: 'stalled' })).toEqual(['c']);
  });
});

it('reads a bounded part at a time, by number and by size, and still finds the last one', async () => {
  const many = Array.from({ length: 1_200 }, (_, i) => ({ id: `j${i}`, ago: 5_000 - i }));
  await plant(...many);
  await q.admin.hset(q.key('failures'), 'j1199', record('expired'));
  expect(await idsOf(5, null, { reason: 'expired' })).toEqual(['j1199']);
  expect(await idsOf(1_000)).toEqual(many.slice(0, 1_000).map(({ id }) => id));
  const large = 'x'.repeat(600_000);
  for (let i = 0; i < 5; i++) await q.admin.hset(q.key('jobs'), `j${i}`, `work\n${large}`);
  expect((await pageOf(5)).jobs.map(({ body }) => body.length)).toEqual(Array(5).fill(600_005));
});

it('searches a limited amount of text at a time', async () => {
  const message = 'x'.repeat(20_000);
  const many = Array.from({ length: 40 }, (_, i) => ({ id: `j${i}`, ago: 100 - i }));
  await plant(...many.map((one) => ({ ...one, record: record('stalled', message) })));
  const { store } = q.engine as unknown as { store: RedisStore };
  const any = { worker: '', group: '', where: '', priorityFrom: -1, priorityTo: 0 };
  const more = { skip: 0, backward: 0, brief: 1 };
  const args = { ...walkArgs({ after: null, limit: 50, until: 0 }, {}), kind: 'dead', ...any, ...more };
  const searched = (contains: string) =>
    store.run(page, { ...q.keys.fixed, active: q.keys.active('') }, { ...args, contains });
  // To search takes five times as long as to read 1 MB.
  expect((await searched('none')).examined).toBe(11);
  expect((await searched('j')).examined).toBe(40);
  const { jobs, examined } = await q.engine.admin.jobs(QUEUE, {
    state: 'dead',
    limit: 50,
    after: null,
    contains: 'none',
  });
  expect([jobs, examined]).toEqual([[], 40]);
});

describe('refused', () => {
  itRefusesWrongTypes(q, {
    keys: page.keys,
    // Those of other states.
    except: [
      'jobsA',
      'wait',
      'suspects',
      'prioritized',
      'grouped',
      'lines',
      'lineStates',
      'delayed',
      'active',
      'completed',
      'toCancel',
    ],
    async prepare() {
      await q.bury('a');
      return () => pageOf(5);
    },
  });
});
