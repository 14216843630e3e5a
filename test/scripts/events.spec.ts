import { describe, expect, it } from 'vitest';
import type { RedisEngine } from '#lib/engine/redis-engine.js';
import { callOf, completed, dead, job, LEASE_MS, QUEUE, retried, useQueue, WORKER } from './support.js';

// Rules for all scripts that write events (shared/say.lua).
const q = useQueue();

const xlen = () => q.admin.xlen(q.key('events'));
const adding = (engine: RedisEngine, seq: number, ids: string[]) =>
  engine.enqueue(QUEUE, callOf(ids, seq, 'events'));

describe('numbers', () => {
  it('rise by one for each event, and an entry is named by its last', async () => {
    await q.add('a', 'b', 'c');
    await q.claim(2);
    await q.settle(completed('a'), dead('b'));
    expect((await q.events()).map(({ number }) => number)).toEqual([1, 2, 3, 4, 5, 6, 7]);
    const entries = (await q.admin.xrange(q.key('events'), '-', '+')).map(([id]) => id);
    expect(entries).toEqual(['3-0', '5-0', '7-0']);
    expect(await q.engine.lastEvent(QUEUE)).toBe(7);
  });

  it('count events of a type that only a newer version knows, which are not delivered', async () => {
    await q.admin.hset(q.key('meta'), 'events', 4);
    const newer = ['blocked', 'x\ny', 'blocked.name', 'work', 'blocked.group', 'g'];
    const entry = ['at', 1, 'n', 4, 'added', 'a', 'added.name', 'work', 'added.tags', 't', ...newer];
    await q.admin.xadd(
      q.key('events'),
      '4-0',
      ...entry,
      'dead',
      'b',
      'dead.name',
      'work',
      'dead.reason',
      'bored',
    );
    expect(await q.events()).toMatchObject([
      { number: 1, type: 'added', id: 'a', name: 'work' },
      { number: 4, type: 'dead', id: 'b', reason: 'bored' },
    ]);
    await q.add('c');
    expect((await q.events()).at(-1)).toMatchObject({ number: 5, id: 'c' });
  });

  it('let a reader continue after any entry', async () => {
    await q.add('a', 'b', 'c');
    await q.claim(2);
    await q.engine.openEvents();
    const batches = await q.engine.readEvents(new Map([[QUEUE, 3]]), 50);
    expect(batches).toMatchObject([{ queue: QUEUE, last: 5, events: [{ number: 4 }, { number: 5 }] }]);
    expect(batches[0]?.at).toBeGreaterThan((await q.now()) - 60_000);
    expect(await q.engine.readEvents(new Map([[QUEUE, 5]]), 5)).toEqual([]);
  });

  it('give a reader inside an entry the whole entry', async () => {
    await q.add('a', 'b', 'c');
    await q.engine.openEvents();
    const batches = await q.engine.readEvents(new Map([[QUEUE, 2]]), 50);
    expect(batches[0]?.events.map(({ number }) => number)).toEqual([1, 2, 3]);
  });

  it('stay exact when they are large', async () => {
    await q.admin.hset(q.key('meta'), 'events', 4_000_000_000_000);
    await q.add('a', 'b');
    expect((await q.events()).map(({ number }) => number)).toEqual([4_000_000_000_001, 4_000_000_000_002]);
  });
});

it('columns: one value for all if they are equal, one for each otherwise', async () => {
  await q.add(job('a'), job('b'));
  await q.claim();
  await q.add(job('c'), job('d', { name: 'mail' }));
  const [same, active, differing] = (await q.admin.xrange(q.key('events'), '-', '+')).map(
    ([, fields]) => fields,
  );
  expect(same?.slice(2)).toEqual(['n', '2', 'added', 'a\nb', 'added.name', 'work']);
  expect(active?.slice(2)).toEqual(['n', '2', 'active', 'a\nb', 'active.name', 'work']);
  expect(differing?.slice(2)).toEqual(['n', '2', 'added', 'c\nd', 'added.name', 'work\nmail']);
});

describe('kept', () => {
  it('are about as many events as asked for, in small entries', async () => {
    const engine = q.engineWith({ maxEvents: 100 });
    for (let i = 0; i < 600; i++) await adding(engine, i + 1, [`j${i}`]);
    // Redis drops whole nodes of 100 entries.
    expect(await xlen()).toBeGreaterThanOrEqual(100);
    expect(await xlen()).toBeLessThanOrEqual(201);
    expect(await q.engine.lastEvent(QUEUE)).toBe(600);
  });

  it('are about as many events as asked for, in large entries', async () => {
    const engine = q.engineWith({ maxEvents: 1_000 });
    for (let i = 0; i < 30; i++)
      await adding(
        engine,
        i + 1,
        Array.from({ length: 200 }, (_, k) => `job-${i}-${k}`),
      );
    const [oldest] = await q.admin.xrange(q.key('events'), '-', '+', 'COUNT', 1);
    const first = Number(oldest?.[0].split('-')[0]);
    expect(first).toBeLessThanOrEqual(5_000);
    expect(first).toBeGreaterThan(3_000);
  });
});

it('are not written by any verb if they are off', async () => {
  const engine = q.engineWith({ maxEvents: 0 });
  await adding(engine, 1, ['a', 'b', 'c', 'd', 'e']);
  await q.exchange({ want: 5 }, engine);
  await engine.note(QUEUE, { worker: WORKER, id: 'a', name: 'work', attempt: 1, progress: '1' });
  await q.exchange({ settled: [completed('a'), dead('b'), retried('c')] }, engine);
  await engine.release(QUEUE, { worker: WORKER, ids: ['d'], leave: false });
  await engine.upkeep.retryDead(QUEUE, { ids: ['b'] });
  await engine.admin.remove(QUEUE, 'c');
  await engine.admin.pause(QUEUE);
  await engine.admin.resume(QUEUE);
  await q.admin.zadd(q.key('workers'), 1, WORKER);
  await q.admin.hset(q.key('worker'), 'doubt', `1 ${(await q.now()) - 10}`);
  const call = { worker: WORKER, beatMs: 1, leaseMs: LEASE_MS, maxStalls: 0 };
  expect(await engine.recover(QUEUE, call)).toMatchObject({ kind: 'recovered', dead: ['e'] });
  expect(await q.admin.exists(q.key('events'))).toBe(0);
  expect(await engine.lastEvent(QUEUE)).toBe(0);
  expect(await engine.admin.counts(QUEUE)).toMatchObject({ waiting: 2, active: 0, dead: 1 });
});

it('a job whose settlement is refused and whose body is missing in the same exchange is reported as dead', async () => {
  await q.add('a');
  await q.admin.hdel(q.key('jobs'), 'a');
  expect(await q.exchanged({ settled: [completed('a')], want: 1 })).toMatchObject({
    lost: ['a'],
    claimed: [],
  });
  expect((await q.events()).map(({ type, id, reason }) => [type, id, reason])).toEqual([
    ['added', 'a', ''],
    ['dead', 'a', 'corrupt'],
  ]);
});

describe('recover automatically', () => {
  it('if the stream was deleted: the numbers continue', async () => {
    await q.add('a', 'b');
    await q.admin.del(q.key('events'));
    await q.add('c');
    expect((await q.events()).map(({ number, id }) => [number, id])).toEqual([[3, 'c']]);
  });

  it('if the counter was deleted: the stream has the last number', async () => {
    await q.add('a', 'b', 'c');
    await q.admin.del(q.key('meta'));
    await q.add('d', 'e');
    await q.add('f');
    expect((await q.events()).map(({ number, id }) => [number, id])).toEqual([
      [1, 'a'],
      [2, 'b'],
      [3, 'c'],
      [4, 'd'],
      [5, 'e'],
      [6, 'f'],
    ]);
    expect(await q.engine.lastEvent(QUEUE)).toBe(6);
  });

  it('if an older counter was restored, and everything was trimmed', async () => {
    await q.add('a', 'b', 'c');
    await q.admin.xtrim(q.key('events'), 'MAXLEN', 0);
    await q.admin.hset(q.key('meta'), 'events', 1);
    await q.add('d');
    expect(await q.events()).toMatchObject([{ number: 4, id: 'd', name: 'work' }]);
  });

  it('if the counter is not a number: jobs still run', async () => {
    await q.add('a', 'b');
    await q.admin.hset(q.key('meta'), 'events', 'no number');
    await q.add('c');
    await q.claim(1);
    const said = (await q.events()).map(({ number, type, id }) => [number, type, id]);
    expect(said.slice(2)).toEqual([
      [3, 'added', 'c'],
      [4, 'active', 'a'],
    ]);
  });

  it('if the counter is not a number and the stream is gone: they are numbered from 1 again', async () => {
    await q.add('a', 'b');
    await q.admin.hset(q.key('meta'), 'events', 'no number');
    await q.admin.del(q.key('events'));
    await q.add('c');
    expect(await q.engine.lastEvent(QUEUE)).toBe(1);
    await q.add('d');
    expect((await q.events()).map(({ number, id }) => [number, id])).toEqual([
      [1, 'c'],
      [2, 'd'],
    ]);
  });

  it.each(['9007199254740993-0', '18446744073709551615-5', '7-7'])(
    'if another program wrote an entry %s: it is read once, and later events are read',
    async (id) => {
      await q.add('a');
      await q.admin.xadd(q.key('events'), id, 'at', '1', 'n', '1', 'added', 'forged');
      await q.engine.openEvents();
      const read = (after: number) => q.engine.readEvents(new Map([[QUEUE, after]]), 30);
      const [forged] = await read(1);
      expect(forged!.last).toBeGreaterThan(1);
      const since = performance.now();
      expect(await read(forged!.last)).toEqual([]);
      expect(performance.now() - since).toBeGreaterThan(25);
      await q.add('b');
      const last = await q.engine.lastEvent(QUEUE);
      const behind = last < forged!.last ? 0 : forged!.last;
      expect((await read(behind)).flatMap(({ events }) => events.map((event) => event.id))).toContain('b');
    },
  );

  it('if the key of the stream has another type: jobs still run', async () => {
    await q.admin.set(q.key('events'), 'not ours');
    await q.hold('a', 'b');
    expect((await q.settle(completed('a'), dead('b'))).lost).toEqual([]);
    expect(await q.engine.admin.counts(QUEUE)).toMatchObject({ active: 0, dead: 1 });
    expect(await q.admin.get(q.key('events'))).toBe('not ours');
  });
});
