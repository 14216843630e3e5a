import { setImmediate as nextImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { QueueEngine } from '#lib/contract/engine.js';
import { QUEUE_ENGINE } from '#lib/decorators/metadata.js';
import { realPause } from '#lib/contract/retry.js';
import { RateLimited } from '#lib/job/job.js';
import type { Queue } from '#lib/producer/queue.js';
import { bootQueue, describeOnRedis, keyOf, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';

const redis = useRedis({ leaves: ['active', 'worker', 'workers'] });

/** With the default lease. */
const BEAT_MS = 2_000;
const BLOCK_MS = 1_000;

const jobs = (count: number) => Array.from({ length: count }, (_, data) => ({ name: 'one', data }));

describe('once pause() has resolved', () => {
  it('no prefetched job starts, however short the jobs are', async () => {
    let started = 0;
    const app = await bootQueue(redis, {
      handlers: { one: () => void started++ },
      queue: { events: false },
      watch: false,
    });
    for (let round = 0; round < 5; round++) {
      started = 0;
      await app.queue.addBulk(jobs(1_000));
      await app.queue.addBulk(jobs(1_000));
      await until(() => started > 50, PATIENT);
      await app.queue.pause();
      const before = started;
      // Jobs that were claimed and given back wait in the line again.
      await until(async () => (await app.queue.counts()).active === 0, PATIENT);
      expect(started).toBe(before);
      expect((await app.queue.counts()).waiting).toBe(2_000 - before);
      await app.queue.resume();
      await until(() => started === 2_000, PATIENT);
    }
  });

  it('a running job continues, and jobs claimed after it do not start', async () => {
    const gate = latch();
    const started: number[] = [];
    const app = await bootQueue(redis, {
      root: { lease: { duration: '2s' } },
      concurrency: 1,
      handlers: {
        one: ({ data }) => {
          started.push(data as number);
          return gate.promise;
        },
      },
    });
    await app.queue.addBulk(jobs(3));
    await until(() => started.length === 1, PATIENT);
    await app.queue.pause();
    gate.open();
    await until(async () => (await app.queue.counts()).active === 0, PATIENT);
    expect(started).toEqual([0]);
    await app.queue.resume();
    await until(() => started.length === 3, PATIENT);
  });

  it('no job starts in a process whose event loop was blocked when the queue was paused', async () => {
    let started = 0;
    let atEndOfBlock = 0;
    const app = await bootQueue(redis, {
      handlers: {
        one: () => void started++,
        blocks: async () => {
          // From here on timers run before sockets are read.
          await nextImmediate();
          // Sent at once. The answer with the claimed jobs is still unread in the socket.
          void app.get<QueueEngine>(QUEUE_ENGINE).admin.pause('work');
          const end = performance.now() + BLOCK_MS;
          while (performance.now() < end);
          atEndOfBlock = started;
        },
      },
      watch: false,
    });
    await app.queue.addBulk(jobs(1_000));
    await app.queue.addBulk([{ name: 'blocks', data: 1 }, ...jobs(900)]);
    await until(() => atEndOfBlock > 0, PATIENT);
    await until(async () => (await app.queue.counts()).active === 0, PATIENT);
    expect(started).toBe(atEndOfBlock);
    expect((await app.queue.counts()).waiting).toBe(1_900 - started);
    await app.queue.resume();
    await until(() => started === 1_900, PATIENT);
  });

  it('no job starts that waited for a slot while the event loop was blocked', async () => {
    let started = 0;
    let atEndOfBlock = 0;
    const app = await bootQueue(redis, {
      concurrency: 1,
      handlers: {
        one: () => void started++,
        blocks: () => {
          // The answer to the exchange before this job is unread. It says that the queue is open.
          void app.get<QueueEngine>(QUEUE_ENGINE).admin.pause('work');
          const end = performance.now() + BLOCK_MS;
          while (performance.now() < end);
          atEndOfBlock = started;
        },
      },
      queue: { events: false },
      watch: false,
    });
    for (let round = 0; round < 3; round++) {
      started = atEndOfBlock = 0;
      await app.queue.pause();
      await app.queue.addBulk(jobs(1_000));
      await app.queue.addBulk([{ name: 'blocks', data: 1 }, ...jobs(900)]);
      await app.queue.resume();
      await until(() => atEndOfBlock > 0, PATIENT);
      await until(async () => (await app.queue.counts()).active === 0, PATIENT);
      expect(started).toBe(atEndOfBlock);
      await app.queue.resume();
      await until(() => started === 1_900, PATIENT);
    }
  });
});

it('once group().pause() has resolved, no prefetched job of the group starts', async () => {
  const started = { a: 0, b: 0 };
  let takesMs = 0;
  const app = await bootQueue(redis, {
    concurrency: 1,
    handlers: {
      one: ({ group }) => {
        started[group as 'a' | 'b'] += 1;
        return takesMs > 0 ? realPause(takesMs) : undefined;
      },
    },
    queue: { events: false },
    watch: false,
  });
  await app.queue.pause();
  for (let i = 0; i < 4; i++)
    await app.queue.addBulk(
      jobs(1_000).map((job) => ({ ...job, options: { group: Number(job.data) % 2 ? 'a' : 'b' } })),
    );
  await app.queue.resume();
  await until(() => started.a > 100, PATIENT);
  // The worker has claimed many jobs ahead, which now take longer. It keeps them, because all will start soon.
  takesMs = 1;
  await app.queue.group('a').pause();
  const before = { ...started };
  expect(before.a).toBeLessThan(2_000);
  await until(() => started.b > before.b + 5, PATIENT);
  takesMs = 0;
  app.runtime.setConcurrency('work', 50);
  await until(() => started.b === 2_000, PATIENT);
  expect(started.a).toBe(before.a);
  await app.queue.group('a').resume();
  await until(() => started.a === 2_000, PATIENT);
});

it.each([
  ['the process pauses', undefined, 'pause'],
  ['the process pauses', 'a', 'pause'],
  ['a handler throws RateLimited', undefined, 'hold'],
  ['a handler throws RateLimited', 'a', 'hold'],
] as const)('jobs keep their order when %s and they go back (group: %s)', async (_, group, how) => {
  const started: unknown[] = [];
  const app = await bootQueue(redis, {
    concurrency: 1,
    handlers: {
      one: ({ data }) => {
        started.push(data);
        if (started.length !== 3_000) return;
        if (how === 'hold') throw new RateLimited(200, { scope: group ? 'group' : 'queue' });
        app.runtime.pause('work');
      },
    },
    queue: { events: false },
    watch: false,
  });
  await app.queue.pause();
  for (let n = 0; n < 6; n++)
    await app.queue.addBulk(
      jobs(1_000).map(({ data, ...job }) => ({
        ...job,
        data: Number(data) + n * 1_000,
        options: group ? { group } : {},
      })),
    );
  await app.queue.resume();
  await until(() => started.length >= 3_000, PATIENT);
  await until(async () => (await app.queue.counts()).active === 0, PATIENT);
  // After a hold, one slot would need a call for each job.
  app.runtime.setConcurrency('work', 50);
  app.runtime.resume('work');
  await until(() => new Set(started).size === 6_000, PATIENT);
  if (how === 'hold') started.splice(2_999, 1);
  expect(started.map((data, i) => Number(data) - i).filter((ahead) => ahead !== 0)).toEqual([]);
});

describe('pause()', () => {
  const took = async (queue: Queue) => {
    const began = performance.now();
    expect(await queue.pause()).toBe(true);
    return performance.now() - began;
  };

  it('resolves within a beat while all workers are busy with long jobs', async () => {
    const gate = latch();
    const app = await bootQueue(redis, { concurrency: 2, handlers: { one: () => gate.promise } });
    await app.queue.addBulk(jobs(5));
    await until(async () => (await app.queue.counts()).active === 2, PATIENT);
    expect(await took(app.queue)).toBeLessThan(BEAT_MS);
    gate.open();
  });

  describeOnRedis('of a worker that is dead', () => {
    it('resolves within a beat', async () => {
      const app = await bootQueue(redis);
      await redis.admin.zadd(keyOf(redis, 'workers'), Date.now() + 60_000, 'dead');
      await redis.admin.hset(keyOf(redis, 'worker:dead'), 'seq', 1);
      await redis.admin.sadd(keyOf(redis, 'active:dead'), 'a');
      expect(await took(app.queue)).toBeLessThan(BEAT_MS);
    });
  });
});
