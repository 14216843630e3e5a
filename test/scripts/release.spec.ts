import { describe, expect, it } from 'vitest';
import { release } from '#lib/engine/scripts/work.js';
import { completed, job, QUEUE, useQueue, WORKER } from './support.js';
import { changingNothing, itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();

const releasing = (ids: string[], leave = false) => q.engine.release(QUEUE, { worker: WORKER, ids, leave });

it('gives jobs back to the head of the line in the order given, and counts nothing', async () => {
  await q.hold('a', 'b', 'c', 'd');
  await q.add('next');
  expect(await releasing(['a', 'b', 'c'])).toEqual({ lost: [] });
  expect(await q.list('wait')).toEqual(['a', 'b', 'c', 'next']);
  expect(await q.admin.smembers(q.key('active'))).toEqual(['d']);
  expect(await q.admin.exists(q.key('attempts'), q.key('stalls'))).toBe(0);
  expect(await q.admin.zcard(q.key('workers'))).toBe(1);
});

it('gives suspects back to the head of their own line', async () => {
  await q.hold('a', 's1', 's2');
  await q.admin.hset(q.key('stalls'), { s1: 2, s2: 3, a: 1 });
  await q.admin.rpush(q.key('suspects'), 's3');
  await releasing(['s1', 'a', 's2']);
  expect(await q.list('suspects')).toEqual(['s1', 's2', 's3']);
  expect(await q.list('wait')).toEqual(['a']);
});

it('returns jobs that are not held, and does nothing for them', async () => {
  await q.hold('a');
  await q.add('waiting');
  await q.claim(1, 'w2');
  await q.wasRung();
  expect(await changingNothing(q, () => releasing(['waiting', 'nowhere']))).toEqual({
    lost: ['waiting', 'nowhere'],
  });
  expect(await releasing(['waiting', 'a'])).toEqual({ lost: ['waiting'] });
  expect(await q.list('wait')).toEqual(['a']);
});

it('wakes a worker and writes an event', async () => {
  await q.hold('a', job('b', { name: 'mail' }));
  await q.wasRung();
  const before = await q.engine.lastEvent(QUEUE);
  await releasing(['a', 'b']);
  expect(await q.wasRung()).toBe(true);
  expect((await q.events()).filter(({ number }) => number > before)).toMatchObject([
    { type: 'released', id: 'a', name: 'work' },
    { type: 'released', id: 'b', name: 'mail' },
  ]);
});

describe('the worker', () => {
  it('keeps its record, without a lease, when it holds nothing any more', async () => {
    await q.hold('a');
    await releasing(['a']);
    expect(await q.admin.exists(q.key('workers'))).toBe(0);
    expect(await q.admin.hget(q.key('worker'), 'seq')).toBe('1');
    expect(await q.claim()).toEqual(['a']);
  });

  it('is forgotten if it leaves with nothing to give back', async () => {
    await q.hold('a');
    await q.settle(completed('a'));
    expect(await releasing([], true)).toEqual({ lost: [] });
    expect(await q.admin.exists(q.key('worker'))).toBe(0);
  });
});

it('gives back more than Lua can unpack at once, in order', async () => {
  const ids = Array.from({ length: 9_000 }, (_, i) => `j${i}`);
  await q.admin.hset(q.key('jobs'), ...ids.flatMap((id) => [id, job(id).body]));
  await q.admin.hset(q.key('stalls'), ...['j5', 'j8500'].flatMap((id) => [id, 2]));
  await q.admin.sadd(q.key('active'), ...ids);
  expect(await releasing(ids)).toEqual({ lost: [] });
  const others = ids.filter((id) => id !== 'j5' && id !== 'j8500');
  expect(await q.list('wait')).toEqual(others);
  expect(await q.list('suspects')).toEqual(['j5', 'j8500']);
  expect(await q.events()).toHaveLength(9_000);
});

describe('refused', () => {
  itRefusesWrongTypes(q, {
    keys: release.keys,
    except: ['events', 'cancelled'],
    async prepare() {
      await q.hold('a', 's');
      await q.admin.hset(q.key('stalls'), 's', 2);
      return () => releasing(['a', 's'], true);
    },
  });
});
