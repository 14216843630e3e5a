import { expect, it } from 'vitest';
import { bootDashboard } from '../support/dashboard.js';
import { useRedis } from '../support/redis.js';
import { KEEPING, useServer } from '../support/server.js';
import { until } from '../support/wait.js';

const server = useServer({ args: KEEPING });
const redis = useRedis({ server });

it(
  'shows that Redis is away, serves its pages meanwhile, and continues when Redis is back',
  { timeout: 120_000 },
  async () => {
    const { ask, api, queue } = await bootDashboard(redis, { handlers: { a: () => {} } });
    await queue.pause();
    await queue.add('a', 1, { id: 'a' });
    expect((await api('GET', 'overview')).status).toBe(200);
    await server.kill9();
    for (const path of [
      'overview',
      'queues/work/jobs',
      'queues/work/jobs/a',
      'dead',
      'workers',
      'schedules',
      'redis',
      'actions',
    ]) {
      const { status, body } = await api('GET', path);
      expect([path, status, body.error.code]).toEqual([path, 503, 'GODWIT_REDIS_UNAVAILABLE']);
    }
    expect((await api('POST', 'queues/work/resume')).status).toBe(503);
    expect((await ask('GET', '')).status).toBe(200);
    await server.restart();
    await until(async () => (await api('GET', 'overview')).status === 200, { timeout: 60_000 });
    expect((await api('GET', 'queues/work/jobs/a')).body).toMatchObject({ id: 'a', state: 'waiting' });
  },
);
