import { describe, expect, it } from 'vitest';
import { bootQueue, describeOnRedis, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';

const redis = useRedis({ leaves: ['active', 'worker', 'workers'] });

const jobs = (count: number) => Array.from({ length: count }, (_, data) => ({ name: 'one', data }));

describe('once pause() has resolved', () => {
  it('no job starts that was claimed ahead, however short they are', async () => {
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
      // Settled and given back, what was claimed is in line again.
      await until(async () => (await app.queue.counts()).active === 0, PATIENT);
      expect(started).toBe(before);
      expect((await app.queue.counts()).waiting).toBe(2_000 - before);
      await app.queue.resume();
      await until(() => started === 2_000, PATIENT);
    }
  });

  it('a job that runs goes on, and what was claimed behind it does not start', async () => {
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
});

describeOnRedis('a worker that is dead', () => {
  it('does not hold pause() up for longer than a beat', async () => {
    const app = await bootQueue(redis, { root: { lease: { duration: '4s' } } });
    const key = (kind: string) => `{${redis.prefix}:work}:${kind}`;
    await redis.admin.zadd(key('workers'), Date.now() + 60_000, 'dead');
    await redis.admin.hset(key('worker:dead'), 'seq', 1);
    const began = performance.now();
    expect(await app.queue.pause()).toBe(true);
    const tookMs = performance.now() - began;
    expect(tookMs).toBeGreaterThan(900);
    expect(tookMs).toBeLessThan(4_000);
  });
});
