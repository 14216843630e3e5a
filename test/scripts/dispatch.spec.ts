import { describe, expect, it } from 'vitest';
import { useServer } from '../support/server.js';
import { atEnd } from '../support/cleanup.js';
import { useQueue } from './support.js';
import type { DispatchCall } from '#lib/contract/task-verbs.js';

// Keys of other programs. The server is the spec's own, since it is filled here.
const q = useQueue({ server: useServer() });

const delayedKey = () => `{${q.redis.prefix}:tasks}:delayed`;
const readyKey = () => `{${q.redis.prefix}:tasks}:wait`;
const dispatch = (more: Partial<DispatchCall> = {}) =>
  q.engine.tasks.dispatch({
    delayedKey: delayedKey(),
    readyKey: readyKey(),
    limit: 100,
    unit: 's',
    ...more,
  });
const put = (...tasks: (readonly [due: number | string, task: string | Buffer])[]) =>
  q.admin.zadd(delayedKey(), ...tasks.flat());
const ready = () => q.admin.lrange(readyKey(), 0, -1);
const delayed = () => q.admin.zrange(delayedKey(), '0', '-1');
const nowInSeconds = async () => (await q.now()) / 1000;

describe('a due task', () => {
  it('goes to the end of the list in the order of due times, then of the bytes', async () => {
    await q.admin.rpush(readyKey(), 'there before');
    await put([3, 'late'], [1, 'b'], [2, 'middle'], [1, 'a'], [2.5, 'fraction'], [1, 'B']);
    const answer = await dispatch();
    expect(answer).toEqual({ dispatched: 6, delayed: 0, ready: 7, dueInMs: null });
    expect(await ready()).toEqual(['there before', 'B', 'a', 'b', 'middle', 'fraction', 'late']);
    expect(await q.admin.exists(delayedKey())).toBe(0);
  });

  it('is decided by the clock of Redis, in seconds with fractions', async () => {
    const now = await nowInSeconds();
    await put([now - 0.001, 'due'], [now + 60.5, 'later']);
    const { dispatched, dueInMs } = await dispatch();
    expect(dispatched).toBe(1);
    expect(dueInMs).toBeGreaterThan(50_000);
    expect(dueInMs).toBeLessThanOrEqual(60_501);
    expect(await delayed()).toEqual(['later']);
  });

  it('is decided in milliseconds if the scores are in milliseconds', async () => {
    const now = await q.now();
    await put([now, 'due'], [now + 60_000, 'later']);
    const { dispatched, dueInMs } = await dispatch({ unit: 'ms' });
    expect(dispatched).toBe(1);
    expect(dueInMs).toBeGreaterThan(50_000);
    expect(dueInMs).toBeLessThanOrEqual(60_000);
    expect(await dispatch()).toMatchObject({ dispatched: 0, delayed: 1 });
  });

  it('may have the score -inf, but never inf', async () => {
    await put(['inf', 'never'], ['-inf', 'first'], [1, 'second'], [1e300, 'nearly never']);
    expect(await dispatch({ limit: 1 })).toEqual({ dispatched: 1, delayed: 3, ready: 1, dueInMs: 0 });
    expect(await dispatch()).toEqual({ dispatched: 1, delayed: 2, ready: 2, dueInMs: null });
    expect(await ready()).toEqual(['first', 'second']);
    await q.admin.zrem(delayedKey(), 'nearly never');
    expect(await dispatch()).toEqual({ dispatched: 0, delayed: 1, ready: 2, dueInMs: null });
  });

  it('comes through as the bytes it is', async () => {
    const all = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
    const tasks = [
      all,
      Buffer.alloc(0),
      Buffer.from([0xff, 0xfe]),
      Buffer.from('a\r\nb\0c'),
      Buffer.alloc(70_000, 0x80),
    ];
    await put(...tasks.map((task, i) => [i, task] as const));
    expect((await dispatch()).dispatched).toBe(tasks.length);
    expect(await q.admin.lrangeBuffer(readyKey(), 0, -1)).toEqual(tasks);
  });
});

it('moves no more than the limit, and returns that more tasks are due', async () => {
  await put([1, 'a'], [2, 'b'], [3, 'c']);
  expect(await dispatch({ limit: 2 })).toEqual({ dispatched: 2, delayed: 1, ready: 2, dueInMs: 0 });
  expect(await dispatch({ limit: 2 })).toEqual({ dispatched: 1, delayed: 0, ready: 3, dueInMs: null });
});

it('moves more than Lua can unpack at once', async () => {
  const tasks = Array.from({ length: 9_000 }, (_, i) => `t${String(i).padStart(5, '0')}`);
  await put(...tasks.map((task, i) => [i, task] as const));
  expect((await dispatch({ limit: 9_000 })).dispatched).toBe(9_000);
  expect(await ready()).toEqual(tasks);
});

it('fills the list no further than its bound', async () => {
  await put([1, 'a'], [2, 'b'], [3, 'c']);
  expect(await dispatch({ maxReady: 2 })).toEqual({ dispatched: 2, delayed: 1, ready: 2, dueInMs: 0 });
  expect(await dispatch({ maxReady: 2 })).toEqual({ dispatched: 0, delayed: 1, ready: 2, dueInMs: 0 });
  expect(await dispatch({ maxReady: 1 })).toMatchObject({ dispatched: 0, ready: 2 });
  await q.admin.lpop(readyKey());
  expect(await dispatch({ maxReady: 2 })).toEqual({ dispatched: 1, delayed: 0, ready: 2, dueInMs: null });
});

it('writes nothing if nothing is due', async () => {
  expect(await dispatch()).toEqual({ dispatched: 0, delayed: 0, ready: 0, dueInMs: null });
  expect(await q.redis.keys()).toEqual([]);
  await put(['inf', 'never']);
  const before = await q.admin.info('persistence');
  await dispatch();
  const changes = (info: string) => /rdb_changes_since_last_save:(\d+)/.exec(info)![1];
  expect(changes(await q.admin.info('persistence'))).toBe(changes(before));
});

it('still moves tasks when the memory is full', async () => {
  await put([1, 'a']);
  await q.admin.config('SET', 'maxmemory', 1);
  atEnd(() => q.admin.config('SET', 'maxmemory', 0));
  expect((await dispatch()).dispatched).toBe(1);
});

describe('a key of another type', () => {
  const hold: Record<string, (key: string) => Promise<unknown>> = {
    string: (key) => q.admin.set(key, 'not a task'),
    hash: (key) => q.admin.hset(key, 'field', 'value'),
    set: (key) => q.admin.sadd(key, 'member'),
    stream: (key) => q.admin.xadd(key, '1-1', 'field', 'value'),
    list: (key) => q.admin.rpush(key, 'item'),
    zset: (key) => q.admin.zadd(key, 1, 'member'),
  };

  it.each(['string', 'hash', 'set', 'stream', 'list'])('a %s for the sorted set is refused', async (type) => {
    await q.admin.rpush(readyKey(), 'ready');
    await hold[type]!(delayedKey());
    const before = await q.dump();
    await expect(dispatch()).rejects.toMatchObject({
      code: 'GODWIT_REDIS_REFUSED',
      reply: 'WRONGTYPE',
      applied: 'no',
      message:
        `dispatch: Redis refused, nothing was changed: the key "${delayedKey()}" is a ${type}, ` +
        'and delayed tasks wait in a sorted set (ZADD); name another key',
    });
    expect(await q.dump()).toEqual(before);
  });

  it.each(['string', 'hash', 'set', 'stream', 'zset'])('a %s for the list is refused', async (type) => {
    await put([1, 'due']);
    await hold[type]!(readyKey());
    const before = await q.dump();
    await expect(dispatch()).rejects.toMatchObject({
      reply: 'WRONGTYPE',
      applied: 'no',
      message: expect.stringContaining(
        `"${readyKey()}" is a ${type}, and ready tasks wait in a list (BLPOP)`,
      ),
    });
    expect(await q.dump()).toEqual(before);
  });
});

it('moves each task once, also with calls at the same time', async () => {
  const tasks = Array.from({ length: 1_000 }, (_, i) => `t${i}`);
  await put(...tasks.map((task, i) => [i, task] as const));
  const other = q.engineWith({});
  const call = { delayedKey: delayedKey(), readyKey: readyKey(), limit: 7, unit: 's' } as const;
  const answers = await Promise.all(
    Array.from({ length: 200 }, (_, i) => (i % 2 === 0 ? q.engine : other).tasks.dispatch(call)),
  );
  expect(answers.reduce((sum, { dispatched }) => sum + dispatched, 0)).toBe(1_000);
  expect(await ready()).toEqual(tasks);
});
