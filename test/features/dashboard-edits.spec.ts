import { describe, expect, it, vi } from 'vitest';
import type { QueueEngine } from '#lib/contract/engine.js';
import { QUEUE_ENGINE } from '#lib/decorators/metadata.js';
import type { QueueDashboardOptions } from '#lib/subpaths/dashboard.js';
import type { LimitInfo } from '#lib/producer/limit-info.js';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { QueueModule } from '#lib/module/queue.module.js';
import { Schedule } from '#lib/decorators/schedule.decorator.js';
import { bootDashboard, OWN } from '../support/dashboard.js';
import { PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { until } from '../support/wait.js';

const redis = useRedis();

it('stores the digits of a new job that JavaScript would round', async () => {
  const { api, app, queue } = await bootDashboard(redis, { queue: { groups: { by: 'tenant' } } });
  const add = (job: object) => api('POST', 'queues/work/jobs', { name: 'mail', ...job });
  const long =
    '{"tenant":"acme","id":12345678901234567890,"part":0.1234567890123456789,"token":12345678901234567891}';
  await add({ data: long.replaceAll(',', ' ,\n'), id: 'long' });
  const seen = (await api('GET', 'queues/work/jobs/long')).body.data.json;
  expect(seen).toMatch(/"id":12345678901234567890,"part":0\.1234567890123456789,"token":"\[hidden /);
  // Also a hidden value that it takes from another job.
  await add({ data: seen, like: 'long', id: 'copy' });
  const copy = await app.get<QueueEngine>(QUEUE_ENGINE).admin.get('work', 'copy');
  expect(copy!.body.split('\n').at(-1)).toBe(long);
  expect((await queue.get('copy'))!.group).toBe('acme');
  expect((await add({ data: '1e400' })).body.error.message).toContain('Infinity, which JSON cannot hold');
});

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
    const groups = async () => {
      const { limits } = (await api('GET', 'queues/work')).body as { limits: LimitInfo[] };
      return limits.filter(({ of }) => of === 'group').map(({ name, waiting }) => [name, waiting]);
    };
    expect(await groups()).toEqual([['t/7', 0]]);
    await queue.add('digest', null, { group: 't/7' });
    expect(await groups()).toEqual([['t/7', 1]]);
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

  it('are refused with a message, without the right, and if they are wrong', async () => {
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

describe('a hold of a shared limit', () => {
  it('is released by a person who may pause all queues that use it', async () => {
    const { ask, queueOf } = await bootDashboard(redis, {
      root: { limits: { openai: { concurrency: 1 } } },
      imports: [
        QueueModule.registerQueue({ name: 'chat', uses: ['openai'] }, { name: 'search', uses: ['openai'] }),
      ],
      dashboard: {
        authorize: (request, _action, { queue }) => {
          const mayAct = request.headers['x-user'] === 'boss' || queue === 'chat';
          return { allow: mayAct ? 'operator' : 'viewer', actor: String(request.headers['x-user']) };
        },
      },
    });
    const shared = queueOf('work').limits.shared('openai');
    await shared.set({ concurrency: 2 });
    const as = async (user: string, method: string, path: string, body?: object) => {
      const headers = { ...OWN, 'x-user': user };
      const { status, text } = await ask(method, `api/v1/${path}`, {
        headers,
        ...(body && { body: JSON.stringify(body) }),
      });
      return { status, body: JSON.parse(text) };
    };
    const shown = async (user: string) => {
      const { releasable, limits } = (await as(user, 'GET', 'queues/chat')).body;
      return [releasable, (limits as LimitInfo[]).map(({ name, heldForMs }) => [name, heldForMs > 0])];
    };
    expect(await shown('boss')).toEqual([[], [['openai', false]]]);
    await shared.hold('1h');
    expect(await shown('boss')).toEqual([['openai'], [['openai', true]]]);
    expect(await shown('ann')).toEqual([[], [['openai', true]]]);
    const release = async (user: string, queue: string, name: string) =>
      (await as(user, 'POST', `queues/${queue}/limits/release`, { shared: name })).status;
    expect(await release('ann', 'chat', 'openai')).toBe(403);
    expect(await release('boss', 'work', 'openai')).toBe(404);
    expect(await release('boss', 'chat', 'other')).toBe(404);
    expect((await shared.state())!.heldForMs).toBeGreaterThan(0);
    expect(await release('boss', 'chat', 'openai')).toBe(200);
    expect((await shared.state())!.heldForMs).toBe(0);
    const { actions } = (await as('boss', 'GET', 'actions?queue=chat')).body as {
      actions: Record<string, string>[];
    };
    expect(actions.map(({ actor, action, target, result }) => [actor, action, target, result])).toMatchObject(
      [
        ['boss', 'limit.release', 'shared openai', 'ok'],
        ['ann', 'limit.release', 'shared openai', expect.anything()],
      ],
    );
  });
});

describe('acts on many jobs', () => {
  it('acts on all that match in the background, and is stopped and continued', async () => {
    const { queue, api } = await bootDashboard(redis, {
      dashboard: { authorize: () => ({ allow: 'admin', actor: 'ada' }) },
    });
    await queue.pause();
    const jobs = Array.from({ length: 30 }, (_, n) => ({
      name: 'a',
      data: { n },
      options: { group: `g${n % 2}` },
    }));
    await queue.addBulk(jobs);
    const order = { kind: 'remove', filter: { state: 'waiting', group: 'g1' }, rate: { max: 1, per: '1h' } };
    const { id } = (await api('POST', 'queues/work/bulk', order)).body;
    const act = async () => (await api('GET', 'bulk')).body.find((one: { id: string }) => one.id === id);
    await until(async () => (await act()).done === 1, PATIENT);
    expect(await act()).toMatchObject({
      queue: 'work',
      kind: 'remove',
      filter: '{"state":"waiting","group":"g1"}',
      state: 'running',
      startedBy: 'ada',
      total: 30,
      canControl: true,
    });
    expect((await api('POST', `queues/work/bulk/${id}/stop`)).status).toBe(200);
    await until(async () => (await act()).state === 'stopped', PATIENT);
    // Only a dashboard knows this filter.
    await expect(queue.bulkActs.resume(id)).rejects.toMatchObject({ code: 'GODWIT_WRONG_STATE' });
    expect((await api('POST', `queues/work/bulk/${id}/resume`)).status).toBe(200);
    await until(async () => (await act()).done === 2, PATIENT);
    expect((await api('POST', `queues/work/bulk/${id}/resume`)).status).toBe(409);
    await api('POST', `queues/work/bulk/${id}/stop`);
    expect((await api('POST', 'queues/work/bulk/gone/stop')).status).toBe(404);
    for (const [body, message] of [
      [{ ...order, kind: 'explode' }, 'kind must be one of'],
      [{ ...order, filter: {} }, 'filter.state'],
      [{ ...order, filter: { state: 'active' } }, 'filter.state must be one of'],
      [{ ...order, rate: { max: 0, per: '1s' } }, 'rate.max'],
    ] as const) {
      const answer = await api('POST', 'queues/work/bulk', body);
      expect([answer.status, answer.body.error.message]).toEqual([400, expect.stringContaining(message)]);
    }
    const rest = { kind: 'remove', filter: { state: 'waiting', group: 'g1' } };
    const all = (await api('POST', 'queues/work/bulk', rest)).body;
    await until(async () => (await queue.bulkActs.get(all.id))?.state === 'done', PATIENT);
    expect((await queue.counts()).waiting).toBe(15);
    const { actions } = (await api('GET', 'actions')).body as { actions: Record<string, string>[] };
    expect(
      actions.filter(({ result }) => result !== 'GODWIT_INVALID_OPTION').map(({ action }) => action),
    ).toEqual(['job.remove', 'bulk.stop', 'bulk.resume', 'bulk.resume', 'bulk.stop', 'job.remove']);
  });

  it.each([
    ['as it is', {}],
    ['as it is shown', { redact: { text: (text: string) => text.replaceAll('refused', '***') } }],
  ])('acts on the jobs of one error, %s', async (_, dashboard) => {
    const fail = ({ data }: { readonly data: unknown }) => {
      throw new Error(data as string);
    };
    const { queue, api } = await bootDashboard(redis, {
      dashboard: { access: 'public', ...dashboard },
      handlers: { '*': fail },
    });
    const errors = [
      'order 17 "ä\\b" was refused',
      'order 18 "ä\\b" was refused',
      'the order was refused',
      'no',
    ];
    await queue.addBulk(errors.map((data) => ({ name: 'a', data, options: { attempts: 1 } })));
    await until(async () => (await queue.counts()).dead === errors.length, PATIENT);
    const groups = (await api('GET', 'dead')).body.groups as { error: string; count: number }[];
    const { error } = groups.find(({ count }) => count === 2)!;
    const order = { kind: 'remove', filter: { state: 'dead', error } };
    const { id } = (await api('POST', 'queues/work/bulk', order)).body;
    await until(async () => (await queue.bulkActs.get(id))?.state === 'done', PATIENT);
    expect(await queue.bulkActs.get(id)).toMatchObject({ done: 2, unchanged: 0 });
    expect((await queue.counts()).dead).toBe(2);
  });
});

describe('schedules on the dashboard', () => {
  it('need attention if they are late, however many there are', async () => {
    const { api, queue } = await bootDashboard(redis);
    const ids = Array.from({ length: 202 }, (_, n) => `s-${n}`);
    // One after another, because a list has them in the order of their creation.
    for (const id of ids) await queue.schedules.upsert(id, { every: '1h' }, { name: 'a' });
    await redis.admin.zadd(`{${redis.prefix}:work}:upcoming`, Date.now() - 600_000, 's-201');
    const { attention } = (await api('GET', 'overview')).body as { attention: { text: string }[] };
    expect(attention.map(({ text }) => text)).toContain('Schedule "s-201" is 10 min late.');
  });

  it('need attention if they are paused, and are read at most every 15 seconds', async () => {
    const { api, app, queue } = await bootDashboard(redis);
    for (const id of ['a', 'b', 'c']) await queue.schedules.upsert(id, { every: '1h' }, { name: 'a' });
    for (const id of ['b', 'c']) await queue.schedules.pause(id);
    const list = vi.spyOn(app.get<QueueEngine>(QUEUE_ENGINE).schedules, 'list');
    const texts = async () => {
      const { attention } = (await api('GET', 'overview')).body as { attention: { text: string }[] };
      return attention.map(({ text }) => text);
    };
    const calls = await Promise.all([texts(), texts()]);
    for (const found of [...calls, await texts()])
      expect(found).toContain('Schedule "b" and 1 other are paused.');
    expect(list).toHaveBeenCalledTimes(1);
  });

  const boot = (
    authorize: QueueDashboardOptions['authorize'] = () => ({ allow: 'operator', actor: 'ada' }),
  ) => bootDashboard(redis, { dashboard: { authorize, redact: { fields: /token/, paths: [] } } });

  it('are edited after a preview of the next five times, and recorded', async () => {
    const { api, queue } = await boot();
    const data = { token: 't', n: 1 };
    await queue.schedules.upsert('daily', { cron: '0 7 * * *', limit: 9 }, { name: 'a', data });
    const [{ version, rule, next }] = (await api('GET', 'schedules')).body.schedules;
    const at = 'queues/work/schedules/daily';
    const preview = async (of: object) => (await api('POST', `${at}/preview`, { rule: of })).body;
    expect((await preview(rule)).next).toEqual(next);
    const hourly = (await preview({ ...rule, cron: '30 * * * *', tz: 'Asia/Kolkata' })).next as number[];
    // Kolkata is 5 h 30 min ahead of UTC.
    expect(hourly.map((time) => time % 3_600_000)).toEqual([0, 0, 0, 0, 0]);
    expect((await preview({ every: '1h', limit: 2 })).next).toHaveLength(2);
    expect((await preview({ every: '1h', afterEnd: true })).next).toHaveLength(1);
    expect((await queue.schedules.get('daily'))?.rule).toEqual({ cron: '0 7 * * *', limit: 9 });
    // Without data and options they stay as they are.
    expect((await api('PUT', at, { version, rule: { every: '5m' }, name: 'b' })).status).toBe(200);
    const [changed] = (await api('GET', 'schedules')).body.schedules;
    const edit = changed.data.json.replace('"n":1', '"n":2');
    const body = { version: changed.version, data: edit, options: '{"attempts":2}' };
    expect((await api('PUT', at, body)).body).toEqual({ changed: true });
    expect(await queue.schedules.get('daily')).toMatchObject({
      rule: { every: '5m' },
      template: { name: 'b', data: { token: 't', n: 2 }, options: { attempts: 2 } },
    });
    await queue.schedules.pause('daily');
    expect((await preview({ every: '5m' })).next).toHaveLength(5);
    const { actions } = (await api('GET', 'actions')).body as { actions: Record<string, string>[] };
    expect(actions.map(({ actor, action, target, result }) => [actor, action, target, result])).toEqual([
      ['ada', 'schedule.upsert', 'daily', 'ok'],
      ['ada', 'schedule.upsert', 'daily', 'ok'],
    ]);
  });

  it('are not edited without the right, from an old page, or with wrong values', async () => {
    const { api, queue, ask } = await boot((request, action) =>
      request.headers['x-user'] === 'bob'
        ? ['read', 'schedule.edit'].includes(action)
        : request.headers['x-user'] !== 'eve' || action === 'read',
    );
    await queue.schedules.upsert('daily', { cron: '0 7 * * *' }, { name: 'a', data: { token: 't', to: '' } });
    const [{ version, data }] = (await api('GET', 'schedules')).body.schedules;
    const at = 'queues/work/schedules/daily';
    const as = async (user: string, method: string, path: string, body: object) =>
      (
        await ask(method, `api/v1/${path}`, {
          headers: { ...OWN, 'x-user': user },
          body: JSON.stringify(body),
        })
      ).status;
    expect(await as('eve', 'PUT', at, { version })).toBe(403);
    expect(await as('eve', 'POST', `${at}/preview`, { rule: { every: '1h' } })).toBe(403);
    const headers = { ...OWN, 'x-user': 'bob' };
    // The version does not depend on the data that he may not see.
    const [{ version: his }] = (await ask('GET', 'api/v1/schedules', { headers })).body.schedules;
    expect(await as('bob', 'PUT', at, { version: his, data: '{}' })).toBe(403);
    expect(await as('bob', 'PUT', at, { version: his, name: 'a' })).toBe(200);
    expect(his).not.toBe(version);
    const hidden = JSON.parse(data.json).token as string;
    for (const [status, body] of [
      [409, { version: 'other', name: 'b' }],
      [409, { name: 'b' }],
      [400, { version, rule: { cron: '61 * * * *' } }],
      [400, { version, rule: { cron: '0 7 * * *', tz: 'Mars/Olympus' } }],
      [400, { version, name: '' }],
      [400, { version, data: '{' }],
      [400, { version, data: 7 }],
      [400, { version, data: '{"n":12345678901234567890}' }],
      // A hidden value may not move to a field that is shown.
      [400, { version, data: JSON.stringify({ to: hidden }) }],
      [400, { version, options: '{"delay":5}' }],
      [400, { version, options: '7' }],
    ] as const)
      expect([body, (await api('PUT', at, body)).status]).toEqual([body, status]);
    expect((await api('POST', `${at}/preview`, { rule: { every: '1ms' } })).status).toBe(400);
    expect((await api('POST', 'queues/work/schedules/none/preview', { rule: { every: '1h' } })).status).toBe(
      404,
    );
    expect((await api('PUT', 'queues/work/schedules/none', { version })).status).toBe(404);
    expect((await queue.schedules.get('daily'))?.template).toEqual({
      name: 'a',
      data: { token: 't', to: '' },
    });
  });

  it('are not edited if the code declares them', async () => {
    @Processor('work')
    class Work {
      @Schedule({ every: '1h' })
      @Handle('a')
      a(): void {}
    }
    const { api } = await bootDashboard(redis, { providers: [Work] });
    const [one] = await until(async () => {
      const body = (await api('GET', 'schedules')).body.schedules;
      return body.length > 0 && body;
    });
    const { status, body } = await api('PUT', `queues/work/schedules/${encodeURIComponent(one.id)}`, {
      version: one.version,
      rule: { every: '2h' },
    });
    expect([status, body.error.message]).toEqual([409, expect.stringContaining('declared in the code of')]);
  });
});
