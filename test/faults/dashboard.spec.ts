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

it('says of an act whether Redis may have done it, and what to do', { timeout: 120_000 }, async () => {
  const { api, queue } = await bootDashboard(redis);
  await queue.add('a', 1, { id: 'a' });
  const said = async (path: string, body: object = {}) =>
    [path, (await api('POST', `queues/work/${path}`, body)).body.error.message] as const;
  const pid = server.pid!;
  process.kill(pid, 'SIGSTOP');
  const [added, audit, ...unclear] = await Promise.all([
    said('jobs', { name: 'a', data: '1' }),
    said('audit'),
    said('pause'),
    // Its first call only reads.
    said('jobs/a/retry'),
  ]);
  process.kill(pid, 'SIGCONT');
  const again = 'the change may or may not have been made: look, and repeat it if it was not';
  for (const [path, message] of unclear)
    expect([path, message]).toEqual([path, expect.stringMatching(new RegExp(`^[^:]*; ${again}$`))]);
  const once =
    'the job may or may not have been added: look for it before you add it again, or it may be there twice';
  expect(added[1]).toMatch(new RegExp(`; ${once}$`));
  expect(audit[1]).toMatch(/; nothing was changed, try again$/);
  await until(async () => (await api('GET', 'overview')).status === 200, { timeout: 60_000 });
  await server.kill9();
  expect((await said('pause'))[1]).toMatch(/^no connection to Redis .*; nothing was changed, try again$/);
  await server.restart();
});
