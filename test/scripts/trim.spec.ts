import { describe, expect, it } from 'vitest';
import { trim } from '#lib/engine/scripts/upkeep.js';
import { dead, job, kept, QUEUE, useQueue, type Limits } from './support.js';
import { changingNothing, itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();

const trimming = (limits: Partial<Limits> = {}) => q.engineWith(limits).upkeep.trim(QUEUE);

async function complete(...ids: string[]): Promise<void> {
  await q.hold(...ids);
  await q.settle(...ids.map((id) => kept(id, 60_000, '1')));
}

it('does nothing for an empty queue, and for one within its limits', async () => {
  expect(await changingNothing(q, () => trimming())).toBe(0);
  await complete('a', 'b');
  await q.bury('c');
  expect(await changingNothing(q, () => trimming({ completedMax: 2, deadMax: 1, eventsAgeMs: 60_000 }))).toBe(
    0,
  );
});

describe('completed jobs', () => {
  it('are deleted with all their data once their retention is over, without an event', async () => {
    await complete('a', 'b');
    await q.admin.hset(q.key('logs'), 'a', 'l');
    await q.admin.hset(q.key('progress'), 'a', '1');
    await q.admin.hset(q.key('failures'), 'a', '1\n{}');
    await q.admin.zadd(q.key('completed'), (await q.now()) - 5, 'a');
    const last = await q.engine.lastEvent(QUEUE);
    expect(await trimming()).toBe(1);
    expect(await q.zset('completed')).toEqual(['b']);
    expect(Object.keys(await q.hash('jobs'))).toEqual(['b']);
    expect(Object.keys(await q.hash('results'))).toEqual(['b']);
    expect(await q.admin.exists(q.key('logs'), q.key('progress'), q.key('failures'))).toBe(0);
    expect(await q.engine.lastEvent(QUEUE)).toBe(last);
  });

  it('beyond the maximum are deleted, those first whose retention ends first', async () => {
    await q.hold('a', 'b', 'c');
    await q.settle(kept('a', 60_000), kept('b', 30_000), kept('c', 90_000));
    expect(await trimming({ completedMax: 2 })).toBe(1);
    expect(await q.zset('completed')).toEqual(['a', 'c']);
    expect(await trimming({ completedMax: 0 })).toBe(2);
    expect(await q.admin.exists(q.key('completed'), q.key('jobs'), q.key('results'))).toBe(0);
  });
});

describe('dead jobs', () => {
  it.each([
    ['age', { deadAgeMs: 60_000 }],
    ['number', { deadMax: 1 }],
  ])('beyond the %s are deleted, with an event', async (_, limits) => {
    await q.bury('a', 'b');
    await q.admin.zadd(q.key('dead'), (await q.now()) - 60_001, 'a');
    expect(await trimming(limits)).toBe(1);
    expect(await q.zset('dead')).toEqual(['b']);
    expect((await q.events()).at(-1)).toMatchObject({
      type: 'removed',
      id: 'a',
      name: 'work',
      reason: 'retention',
    });
    expect(await changingNothing(q, () => trimming(limits))).toBe(0);
  });
});

describe('events', () => {
  /** Entries that were written this long ago, as the store writes them. `numbers` are those of their last events. */
  async function written(...entries: [last: number, agoMs: number][]): Promise<void> {
    const now = await q.now();
    for (const [last, ago] of entries)
      await q.admin.xadd(q.key('events'), `${last}-0`, 'at', now - ago, 'n', 1, 'added', `j${last}`);
    await q.admin.hset(q.key('meta'), 'events', entries.at(-1)![0]);
  }
  const left = async () =>
    (await q.admin.xrange(q.key('events'), '-', '+')).map(([id]) => Number.parseInt(id, 10));

  it('beyond the age are all deleted', async () => {
    await written([3, 90_000], [4, 80_000], [900, 70_000], [1_000, 50_000], [1_001, 10_000]);
    expect(await trimming({ eventsAgeMs: 60_000 })).toBe(3);
    expect(await left()).toEqual([1_000, 1_001]);
    expect(await changingNothing(q, () => trimming({ eventsAgeMs: 60_000 }))).toBe(0);
  });

  it('may all be deleted, and their numbers continue', async () => {
    await written([7, 90_000], [9, 80_000]);
    expect(await trimming({ eventsAgeMs: 60_000 })).toBe(2);
    expect(await left()).toEqual([]);
    await q.add('a');
    expect(await left()).toEqual([10]);
  });

  it('stay at any age if none is set', async () => {
    await written([1, 9_000_000]);
    expect(await changingNothing(q, () => trimming({ eventsAgeMs: null }))).toBe(0);
  });

  it('written by other programs, or a key that is not a stream, cause no failure', async () => {
    await q.admin.xadd(q.key('events'), '5-0', 'not', 'ours');
    expect(await trimming({ eventsAgeMs: 60_000 })).toBe(1);
    await q.admin.del(q.key('events'));
    await q.admin.set(q.key('events'), 'not ours');
    await complete('a');
    expect(await trimming({ eventsAgeMs: 60_000, completedMax: 0 })).toBe(1);
  });
});

it('deletes a bounded part at a time, and returns a number above 0 until all is done', async () => {
  const ids = Array.from({ length: 1_100 }, (_, i) => `j${i}`);
  await q.admin.hset(q.key('jobs'), ...ids.flatMap((id) => [id, job(id).body]));
  await q.admin.zadd(q.key('completed'), ...ids.flatMap((id, i) => [i + 1, id]));
  await q.admin.zadd(q.key('dead'), ...ids.flatMap((id, i) => [i + 1, `d${id}`]));
  const steps: number[] = [];
  for (let more = 1; more > 0; steps.push(more)) more = await trimming();
  expect(steps).toEqual([400, 400, 300, 400, 400, 300, 0]);
  expect(await q.admin.exists(q.key('completed'), q.key('dead'), q.key('jobs'))).toBe(0);
});

it('is harmless when many do it at once', async () => {
  await complete('a', 'b', 'c');
  await q.hold('x', 'y');
  await q.settle(dead('x'), dead('y'));
  const counts = await Promise.all(
    Array.from({ length: 5 }, () => trimming({ completedMax: 1, deadMax: 1 })),
  );
  expect(counts.reduce((sum, count) => sum + count)).toBe(3);
  expect(await q.engine.admin.counts(QUEUE)).toMatchObject({ completed: 1, dead: 1 });
});

describe('refused', () => {
  itRefusesWrongTypes(q, {
    keys: trim.keys,
    except: ['events', 'slots'],
    async prepare() {
      await complete('a');
      await q.bury('b');
      return () => trimming({ completedMax: 0, deadMax: 0, eventsAgeMs: 0 });
    },
  });
});
