import { describe, expect, it } from 'vitest';
import { bootDashboard, OWN } from '../support/dashboard.js';
import { useRedis } from '../support/redis.js';

const redis = useRedis();

describe('limits on the dashboard', () => {
  it('are set and cleared for the queue, a name and a group, and recorded', async () => {
    const { api, queue } = await bootDashboard(redis, {
      dashboard: { authorize: () => ({ allow: 'operator', actor: 'ada' }) },
    });
    const rate = { max: 5, per: '1s' };
    const done = async (method: string, path: string, body: object) =>
      expect([path, (await api(method, `queues/work/${path}`, body)).status]).toEqual([path, 200]);
    await done('POST', 'limits', { concurrency: 2, rate });
    await done('POST', 'limits', { concurrency: null });
    await done('POST', 'limits', { name: 'digest', concurrency: 1 });
    await done('POST', 'groups/t%2F7/limits', { concurrency: 3, weight: 2 });
    expect(await queue.limits.list()).toMatchObject([
      { of: 'queue', concurrency: null, rate: { max: 5, perMs: 1_000 }, isLive: true },
      { of: 'name', name: 'digest', concurrency: 1 },
    ]);
    expect(await queue.group('t/7').state()).toMatchObject({ concurrency: 3, weight: 2 });
    await done('DELETE', 'limits', {});
    await done('DELETE', 'limits', { name: 'digest' });
    await done('DELETE', 'groups/t%2F7/limits', {});
    expect(await queue.limits.list()).toMatchObject([{ of: 'queue', rate: null, isLive: false }]);
    expect(await queue.group('t/7').state()).toMatchObject({ concurrency: null, isLive: false });
    const { actions } = (await api('GET', 'actions')).body as { actions: Record<string, string>[] };
    expect(actions.map(({ action, target }) => `${action}: ${target}`).toReversed()).toEqual([
      'limit.set: {"concurrency":2,"rate":{"max":5,"per":"1s"}}',
      'limit.set: {"concurrency":null}',
      'limit.set: name digest {"concurrency":1}',
      'group.set: t/7 {"concurrency":3,"weight":2}',
      'limit.clear: ',
      'limit.clear: name digest',
      'group.clear: t/7',
    ]);
  });

  it('are refused in words, without the right, and where they are wrong', async () => {
    const { ask, queue } = await bootDashboard(redis, {
      dashboard: {
        authorize: (request, action) =>
          action === 'read' || request.headers['x-user'] === 'boss' || action === request.headers['x-user'],
      },
    });
    const status = async (user: string, method: string, path: string, body: string, headers: object = OWN) =>
      (await ask(method, `api/v1/queues/${path}`, { headers: { ...headers, 'x-user': user }, body })).status;
    const json = { 'content-type': 'application/json' };
    for (const path of ['work/limits', 'work/groups/g/limits']) {
      expect([path, await status('eve', 'POST', path, '{"concurrency":1}')]).toEqual([path, 403]);
      expect([path, await status('eve', 'DELETE', path, '{}')]).toEqual([path, 403]);
      expect([path, await status('boss', 'POST', path, '{"concurrency":1}', json)]).toEqual([path, 403]);
      for (const body of [
        '{"concurrency":0}',
        '{"concurrency":"many"}',
        '{"rate":{"max":1}}',
        '{"rate":{"max":1,"per":""}}',
        '{"speed":1}',
      ])
        expect([path, body, await status('boss', 'POST', path, body)]).toEqual([path, body, 400]);
      const large = JSON.stringify({ concurrency: 'x'.repeat(1_100_000) });
      expect([path, await status('boss', 'POST', path, large)]).toEqual([path, 413]);
    }
    expect(await status('boss', 'POST', 'nobody/limits', '{"concurrency":1}')).toBe(404);
    expect(await status('boss', 'POST', 'work/limits', '{"name":"a\\nb","concurrency":1}')).toBe(400);
    // To pause a group is another right.
    expect(await status('limit.edit', 'POST', 'work/groups/g/limits', '{"paused":true}')).toBe(403);
    expect(await status('limit.edit', 'POST', 'work/groups/g/limits', '{"weight":2}')).toBe(200);
    expect(await queue.limits.list()).toMatchObject([{ of: 'queue', concurrency: null, isLive: false }]);
    expect(await queue.group('g').state()).toMatchObject({ paused: false, weight: 2 });
  });
});
