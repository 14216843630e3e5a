import { Test } from '@nestjs/testing';
import { Redis } from 'ioredis';
import { expect, it } from 'vitest';
import { openHeartbeatThread } from '#lib/engine/heartbeat.js';
import { QueueKeys } from '#lib/engine/keys.js';
import { Link } from '#lib/engine/wire/link.js';
import { QueueModule } from '#lib/module/queue.module.js';
import { startCut } from '../support/cut.js';
import { bootQueue, Logs } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { until } from '../support/wait.js';

const redis = useRedis();

it('reports that the effect of a call is unknown if it was sent before the connection was closed', async () => {
  const make = () => new Redis(redis.url, { lazyConnect: true, enableOfflineQueue: false });
  const link = new Link('command', make, () => undefined);
  const key = `{${redis.prefix}:work}:doorbell`;
  const call = link.send('test', 'bzpopmin', [key, 30], 60_000).catch((error: unknown) => error);
  await until(async () => (await redis.clients()).some(({ cmd }) => cmd === 'bzpopmin'));
  await link.close();
  expect(await call).toMatchObject({ code: 'GODWIT_REDIS_UNAVAILABLE', applied: 'unknown' });
  await expect(link.send('test', 'ping', [], 1_000)).rejects.toMatchObject({
    code: 'GODWIT_NOT_RUNNING',
    applied: 'no',
  });
});

it('logs no failure to write limits if Redis was away from start to end', async () => {
  const cut = await startCut(redis.url);
  cut.refuse();
  const app = await bootQueue(redis, {
    root: { connection: cut.url, shutdown: { timeout: '1s', grace: '100ms' } },
    handlers: { job: () => undefined },
    watch: false,
  });
  await app.app.close();
  expect(app.logs.complaints.filter((text) => text.includes('limits'))).toEqual([]);
});

it('ends a start without an error if the application is closed before Redis has answered', async () => {
  const cut = await startCut(redis.url);
  cut.refuse();
  const root = QueueModule.forRoot({ connection: cut.url, prefix: redis.prefix });
  const logger = new Logs();
  const app = (await Test.createTestingModule({ imports: [root] }).compile()).createNestApplication({
    logger,
  });
  const starting = app.init();
  await until(() => logger.lines.some(({ text }) => text.startsWith('Redis of')));
  await app.close();
  await expect(starting).resolves.toBe(app);
});

it('ends a heartbeat thread that is still loading, which then never connects', async () => {
  const told: unknown[] = [];
  const tell = (event: unknown) => void told.push(event);
  const plan = { leaseMs: 8_000, beatMs: 2_000, maxBlockMs: 30_000 };
  const heartbeat = openHeartbeatThread(
    {
      ...plan,
      onReady: () => tell('ready'),
      onBeat: tell,
      onOrders: tell,
      onDataLost: () => tell('lost'),
      onFailure: tell,
    },
    { connection: redis.url, prefix: redis.prefix, callMs: 5_000, limitsOf: never },
    (queue) => new QueueKeys(redis.prefix, queue),
    tell,
  )!;
  heartbeat.follow('work', 'w1', plan);
  heartbeat.holds('work', true);
  await heartbeat.close();
  expect(told).toEqual([]);
  expect(await redis.clients()).toEqual([]);
  expect(await redis.keys()).toEqual([]);
});

function never(): never {
  throw new Error('nobody asks for limits');
}
