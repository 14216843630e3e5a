import { describe, expect, it } from 'vitest';
import { retryDead } from '#lib/engine/scripts/upkeep.js';
import { job, kept, QUEUE, useQueue, WORKER } from './support.js';
import { changingNothing, itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();

const byIds = (...ids: string[]) => q.engine.upkeep.retryDead(QUEUE, { ids });
const byLimit = (limit: number) => q.engine.upkeep.retryDead(QUEUE, { limit });

/** Jobs that died in this order. */
async function died(...ids: string[]): Promise<void> {
  await q.bury(...ids);
  for (const [i, id] of ids.entries()) await q.admin.zadd(q.key('dead'), (await q.now()) - 10_000 + i, id);
}

it('puts the named jobs at the end of the line, in that order, like new ones', async () => {
  await q.hold('a');
  await q.note('a');
  await q.engine.release(QUEUE, { worker: WORKER, ids: ['a'], leave: false });
  await died('a', 'b', 'c');
  await q.admin.hset(q.key('stalls'), 'a', 3);
  await q.add('waiting');
  expect(await byIds('c', 'a')).toEqual({ retried: ['c', 'a'] });
  expect(await q.list('wait')).toEqual(['waiting', 'c', 'a']);
  expect(await q.engine.admin.get(QUEUE, 'a')).toMatchObject({
    state: 'waiting',
    body: job('a').body,
    failed: 0,
    stalls: 0,
    failure: null,
    failedAt: null,
    progress: null,
    logs: [],
  });
  expect(await q.zset('dead')).toEqual(['b']);
  expect(await q.hash('attempts')).toEqual({ a: '0', b: '1', c: '0' });
});

it('ignores jobs that are not dead, and retries an id once however often it is named', async () => {
  await died('a');
  await q.hold('active', 'completed');
  await q.settle(kept('completed', 60_000));
  await q.add('waiting', job('delayed', { delayMs: 60_000 }));
  const others = ['active', 'completed', 'waiting', 'delayed', 'nowhere'];
  expect(await changingNothing(q, () => byIds(...others))).toEqual({ retried: [] });
  expect(await byIds('a', ...others, 'a')).toEqual({ retried: ['a'] });
  expect(await q.list('wait')).toEqual(['waiting', 'a']);
});

it('leaves a corrupt job dead: it has nothing to run', async () => {
  await q.add('a', 'b');
  await q.admin.hdel(q.key('jobs'), 'a');
  await q.claim();
  expect(await changingNothing(q, () => byIds('a'))).toEqual({ retried: [] });
  expect(await changingNothing(q, () => byLimit(5))).toEqual({ retried: [] });
  expect(await q.engine.admin.get(QUEUE, 'a')).toMatchObject({ state: 'dead' });
});

it('lets them run and die again', async () => {
  await died('a');
  await byLimit(1);
  expect((await q.exchanged({ want: 1 })).claimed).toEqual([
    { id: 'a', body: job('a').body, failed: 0, stalls: 0, started: true },
  ]);
});

it('loses nothing if more jobs are dead than Lua can unpack at once', async () => {
  const ids = Array.from({ length: 9_000 }, (_, i) => `j${i}`);
  await q.admin.hset(q.key('jobs'), ...ids.flatMap((id) => [id, job(id).body]));
  await q.admin.hset(q.key('attempts'), ...ids.flatMap((id) => [id, 3]));
  await q.admin.zadd(q.key('dead'), ...ids.flatMap((id, i) => [i + 1, id]));
  expect((await byLimit(9_000)).retried).toEqual(ids);
  expect(await q.list('wait')).toEqual(ids);
  expect(await q.admin.exists(q.key('dead'))).toBe(0);
  expect(new Set(Object.values(await q.hash('attempts')))).toEqual(new Set(['0']));
});

describe('refused', () => {
  itRefusesWrongTypes(q, {
    keys: retryDead.keys,
    except: ['events'],
    async prepare() {
      await died('a', 'b');
      await q.admin.hset(q.key('stalls'), 'a', 3);
      return () => byIds('a', 'b');
    },
  });
});
