import { Redis } from 'ioredis';
import { expect, it, vi } from 'vitest';
import type { QueueEngine } from '#lib/contract/engine.js';
import { QUEUE_ENGINE } from '#lib/decorators/metadata.js';
import { createInspector } from '#lib/subpaths/inspector.js';
import { atEnd } from '../support/cleanup.js';
import { bootQueue, PATIENT, type QueueApp } from '../support/queue-app.js';
import { Reports } from '../support/hourly-report.js';
import { useRedis } from '../support/redis.js';
import { useServer } from '../support/server.js';

// A Redis that loses all data, because it is emptied or starts without its data, while an idle worker runs.
const server = useServer();
const redis = useRedis({ server });

const boot = (connection?: () => Redis) =>
  bootQueue(redis, {
    root: {
      ...(connection && { connection }),
      lease: { duration: '1s' },
      limits: { api: { concurrency: 3 } },
    },
    queue: { limits: { concurrency: 5 }, groups: { concurrency: 1 }, uses: ['api'] },
    providers: [Reports],
    watch: false,
  });
const declared = async ({ queue }: QueueApp) => ({
  limits: (await queue.limits.list()).map(({ of, concurrency }) => `${of} ${concurrency ?? ''}`),
  schedules: (await queue.schedules.list()).map(({ id }) => id),
});
const ALL = { limits: ['queue 5', 'groups 1', 'shared 3'], schedules: ['report'] };

/** Waits until all is there, and the record of the process, whose loss tells the process that data was lost. */
const expectAll = (app: QueueApp) =>
  vi.waitFor(async () => {
    expect(await declared(app)).toEqual(ALL);
    expect(await redis.admin.zcard(`{${redis.prefix}}:processes`)).toBe(1);
  }, PATIENT);

it('writes the limits and schedules of the code again after FLUSHALL', async () => {
  const app = await boot();
  await expectAll(app);
  await redis.admin.flushall();
  await expectAll(app);
});

it('writes them again if Redis restarts without its data', async () => {
  const app = await boot();
  await expectAll(app);
  await server.kill9();
  await server.restart();
  await expectAll(app);
});

it('writes them again if a timer renews the record of the process', async () => {
  const app = await boot(() => new Redis(redis.url));
  await expectAll(app);
  await redis.admin.flushall();
  await expectAll(app);
});

it('writes the limits again before a worker claims that Redis did not know when it lost its data', async () => {
  const jobs = Array.from({ length: 20 }, () => ({ name: 'a', data: 1 }));
  let [running, most, ended] = [0, 0, 0];
  const run = async () => {
    most = Math.max(most, ++running);
    await new Promise(setImmediate);
    running -= 1;
    ended += 1;
  };
  const { get, queue, runtime } = await bootQueue(redis, {
    root: { autoStart: false },
    queue: { limits: { concurrency: 2 } },
    handlers: { a: run },
    concurrency: 10,
    watch: false,
  });
  const engine = get<QueueEngine>(QUEUE_ENGINE);
  const exchange = engine.exchange.bind(engine);
  engine.exchange = async (name, call) => {
    engine.exchange = exchange;
    await redis.admin.flushall();
    await queue.addBulk(jobs);
    return exchange(name, call);
  };
  await runtime.start();
  await vi.waitFor(() => expect(ended).toBe(jobs.length), PATIENT);
  expect(most).toBe(2);
  expect(await queue.limits.list()).toMatchObject([{ of: 'queue', concurrency: 2 }]);
});

it('lists a queue again within a minute after another process has obliterated it', async () => {
  const { queue } = await bootQueue(redis, { root: { role: 'producer' }, watch: false });
  await using other = createInspector({ connection: redis.url, prefix: redis.prefix });
  const listed = async () => (await other.queues()).map(({ name }) => name);
  await queue.add('a', 1);
  await vi.waitFor(async () => expect(await listed()).toEqual(['work']), PATIENT);
  await other.queue('work').obliterate();
  await queue.add('a', 1);
  expect(await listed()).toEqual([]);
  const now = performance.now.bind(performance);
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + 61_000);
  atEnd(() => clock.mockRestore());
  await queue.add('a', 1);
  await vi.waitFor(async () => expect(await listed()).toEqual(['work']), PATIENT);
});
