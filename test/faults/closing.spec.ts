import { Redis } from 'ioredis';
import { expect, it } from 'vitest';
import { Link } from '#lib/engine/wire/link.js';
import { useRedis } from '../support/redis.js';
import { until } from '../support/wait.js';

const redis = useRedis();

it('says of a call that was sent before the connection was closed that its effect is unknown', async () => {
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
