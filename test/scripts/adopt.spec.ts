import { describe, expect, it } from 'vitest';
import { adopt } from '#lib/engine/scripts/work.js';
import { job, QUEUE, useQueue, WORKER } from './support.js';
import { changingNothing, itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();

const adopting = (known: string[]) => changingNothing(q, () => q.engine.adopt(QUEUE, WORKER, known));

it('finds nothing if both agree', async () => {
  await q.hold('a', 'b');
  expect(await adopting(['b', 'a'])).toEqual({ unknown: [], buried: [], lost: [] });
  expect(await q.engine.adopt(QUEUE, 'nobody', [])).toEqual({ unknown: [], buried: [], lost: [] });
});

it('returns jobs that the worker holds in the store but does not know', async () => {
  await q.hold('a', 'b', 'c');
  const { unknown, lost } = await adopting(['a']);
  expect(lost).toEqual([]);
  expect(unknown.toSorted()).toEqual(['b', 'c']);
});

it('returns jobs that the worker knows but does not hold in the store', async () => {
  await q.hold('a');
  await q.add('waiting');
  expect(await adopting(['waiting', 'a', 'nowhere'])).toEqual({
    unknown: [],
    buried: [],
    lost: ['waiting', 'nowhere'],
  });
});

it('returns jobs that another worker holds by now', async () => {
  await q.hold('a', 'b');
  await q.engine.release(QUEUE, { worker: WORKER, ids: ['a'], leave: false });
  await q.claim(1, 'w2');
  expect(await adopting(['a', 'b'])).toEqual({ unknown: [], buried: [], lost: ['a'] });
});

it('also returns a job without a body, so that it can be ended', async () => {
  await q.hold('a');
  await q.admin.hdel(q.key('jobs'), 'a');
  expect((await adopting([])).unknown).toEqual(['a']);
});

it('takes more ids than Lua can unpack at once', async () => {
  const ids = Array.from({ length: 9_000 }, (_, i) => `j${i}`);
  await q.admin.sadd(q.key('active'), ...ids, 'extra');
  const { unknown, lost } = await adopting([...ids, 'lost']);
  expect(unknown).toEqual(['extra']);
  expect(lost).toEqual(['lost']);
});

it('makes a job with an unreadable id dead, under a readable id', async () => {
  await q.hold('a');
  await q.admin.sadd(q.key('active'), 'x\ny', Buffer.from([0xff]), '');
  await q.admin.hset(q.key('jobs'), 'x\ny', job('x').body);
  const { unknown, lost, buried } = await q.engine.adopt(QUEUE, WORKER, ['a']);
  expect({ unknown, lost }).toEqual({ unknown: [], lost: [] });
  expect(buried).toHaveLength(3);
  expect((await q.zset('dead')).toSorted()).toEqual(buried.toSorted());
  expect(await q.admin.smembers(q.key('active'))).toEqual(['a']);
  expect(await q.hash('jobs')).toMatchObject(
    Object.fromEntries(buried.map((id) => [id, expect.any(String)])),
  );
  expect(await q.admin.hexists(q.key('jobs'), 'x\ny')).toBe(0);
});

it('frees the slot of such a job, and wakes a worker', async () => {
  await q.hold('a');
  await q.admin.sadd(q.key('active'), 'x\ny');
  await q.admin.zadd(q.key('slots'), 1.5, 'x\ny', 0, 'a');
  await q.admin.del(q.key('doorbell'));
  await q.engine.adopt(QUEUE, WORKER, ['a']);
  expect(await q.zset('slots')).toEqual(['a']);
  expect(await q.zset('doorbell')).toEqual(['work']);
});

describe('refused', () => {
  itRefusesWrongTypes(q, {
    keys: adopt.keys,
    // A key of another type names no workers.
    except: ['events'],
    async prepare() {
      await q.hold('a');
      return () => q.engine.adopt(QUEUE, WORKER, ['b']);
    },
  });
});
