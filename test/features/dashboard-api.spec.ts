import { ValidationPipe } from '@nestjs/common';
import { map } from 'rxjs';
import { describe, expect, it, vi } from 'vitest';
import type { QueueEngine } from '#lib/contract/engine.js';
import { QUEUE_ENGINE } from '#lib/decorators/metadata.js';
import type { QueueAction } from '#lib/index.js';
import type { QueueDashboardOptions } from '#lib/subpaths/dashboard.js';
import { bootDashboard, dead, OWN } from '../support/dashboard.js';
import { PATIENT } from '../support/queue-app.js';
import { gated, oneOfEach } from '../support/queue-states.js';
import { useRedis } from '../support/redis.js';
import { until } from '../support/wait.js';

const redis = useRedis();

describe.each(['express', 'fastify'] as const)('the dashboard on %s', (platform) => {
  const boot = (dashboard?: QueueDashboardOptions, more: Partial<Parameters<typeof bootDashboard>[1]> = {}) =>
    bootDashboard(redis, { platform, ...(dashboard && { dashboard }), ...more });

  it('serves its page, and its files compressed and cached permanently', async () => {
    const { ask } = await boot();
    const page = await ask('GET', '');
    expect([page.status, page.headers['content-type'], page.headers['cache-control']]).toEqual([
      200,
      'text/html; charset=utf-8',
      'no-store',
    ]);
    const nonce = /script-src 'nonce-([^']+)'/.exec(page.headers['content-security-policy'] as string)![1]!;
    expect(page.headers['content-security-policy']).toMatch(/^default-src 'none'; .*frame-ancestors 'none'$/);
    expect(page.text.match(/nonce="([^"]+)"/g)).toEqual(Array(3).fill(`nonce="${nonce}"`));
    expect((await ask('GET', '')).text).not.toContain(nonce);
    const [script] = /assets\/app\.[0-9a-f]{12}\.js/.exec(page.text)!;
    const plain = await ask('GET', script);
    const zipped = await ask('GET', script, { headers: { 'accept-encoding': 'br, gzip' } });
    expect(plain.headers).toMatchObject({
      'cache-control': 'public, max-age=31536000, immutable',
      'content-type': 'text/javascript; charset=utf-8',
      'x-content-type-options': 'nosniff',
    });
    expect(zipped.headers['content-encoding']).toBe('gzip');
    expect(Number(zipped.headers['content-length'])).toBeLessThan(
      Number(plain.headers['content-length']) / 2,
    );
    const again = await ask('GET', script, { headers: { 'if-none-match': plain.headers['etag'] as string } });
    expect([again.status, again.text, again.headers['content-length']]).toEqual([304, '', undefined]);
    const { status, text, headers } = await ask('HEAD', script);
    expect([status, text, headers['content-length']]).toEqual([200, '', plain.headers['content-length']]);
  });

  it('resolves relative addresses of every page to the same files', async () => {
    const { ask } = await boot({ access: 'public', path: '/admin/queues' }, { at: '/admin/queues' });
    const start = await ask('GET', '?x=1');
    expect([start.status, start.headers['location']]).toEqual([302, 'queues/?x=1']);
    for (const [path, base] of [
      ['/', './'],
      ['/dead', './'],
      ['/queues/work', '../'],
      ['/queues/work/jobs', '../../'],
      ['/queues/work/jobs/a%2Fb', '../../../'],
    ] as const)
      expect([path, /<base href="([^"]+)">/.exec((await ask('GET', path)).text)?.[1]]).toEqual([path, base]);
    for (const path of [
      '/nothing',
      '/queues/work/nothing',
      '/assets/',
      '/assets/app.js',
      '/assets/..%2f..%2fserver.js',
    ])
      expect([path, (await ask('GET', path)).status]).toEqual([path, 404]);
    expect((await ask('POST', '/', { headers: OWN, body: '{}' })).status).toBe(405);
  });

  it('is found behind a global prefix, and is not changed by pipes and interceptors of the application', async () => {
    const { ask, api } = await boot(undefined, {
      at: '/api/queues/',
      configure: (app) => {
        app.setGlobalPrefix('api');
        app.useGlobalPipes(new ValidationPipe({ whitelist: true, forbidNonWhitelisted: true }));
        app.useGlobalInterceptors({
          intercept: (_, next) => next.handle().pipe(map((data: unknown) => ({ data }))),
        });
      },
    });
    expect((await ask('GET', 'queues/work')).status).toBe(200);
    expect((await api('GET', 'me')).body.queues).toEqual(['work']);
    expect((await api('POST', 'queues/work/pause')).body).toEqual({ changed: true });
  });

  it('lists each job under its state, and shows everything about one job', async () => {
    const { gate, handlers } = gated();
    const { queue, api } = await boot(undefined, { handlers });
    await oneOfEach(queue);
    for (const [state, ids] of Object.entries({
      active: ['active'],
      completed: ['completed'],
      dead: ['dead'],
      delayed: ['delayed'],
      waiting: ['waiting', 'ranked'],
      cancelled: [],
    })) {
      const { body } = await api('GET', `queues/work/jobs?state=${state}`);
      expect([state, body.jobs.map((job: { id: string }) => job.id), body.total]).toEqual([
        state,
        ids,
        ids.length,
      ]);
    }
    const died = await api('GET', 'queues/work/jobs/dead');
    expect(died.body).toMatchObject({
      id: 'dead',
      name: 'die',
      state: 'dead',
      reason: 'retries-exhausted',
      attempt: 1,
      attempts: 1,
      failure: { name: 'Error', message: 'no luck', stack: expect.stringContaining('no luck') },
      failures: [{ attempt: 1, name: 'Error', message: 'no luck', stack: expect.stringMatching(/^at /) }],
      data: { json: '1', isCut: false },
    });
    expect((await api('GET', 'queues/work/jobs/completed')).body.result.json).toBe('"done"');
    const overview = await api('GET', 'overview');
    expect(overview.body.queues).toMatchObject([
      {
        name: 'work',
        paused: true,
        counts: { waiting: 2, active: 1, delayed: 1, dead: 1 },
        today: { dead: 1 },
      },
    ]);
    expect(overview.body.attention.map(({ text }: { text: string }) => text)).toEqual(
      expect.arrayContaining(['1 job died today; 1 dead in all.', 'It is paused, and has 2 waiting jobs.']),
    );
    await until(
      async () => (await api('GET', 'workers')).body.workers[0]?.pools[0]?.jobs.length === 1,
      PATIENT,
    );
    expect((await api('GET', 'workers')).body.maxReportMs).toBe(4_000);
    expect((await api('GET', 'queues/work')).body).toMatchObject({
      byName: { die: { dead: 1 }, done: { processed: 1 } },
    });
    expect((await api('GET', 'redis')).body).toMatchObject({
      server: expect.stringMatching(/\d/),
      roundTripMs: expect.any(Number),
    });
    gate.open();
  });

  it('acts on one job', async () => {
    const { queue, api } = await boot();
    await queue.pause();
    await queue.add('a', { n: 1 }, { id: 'x/1' });
    await queue.add('a', 1, { id: 'later', delay: '1h' });
    const at = `queues/work/jobs/${encodeURIComponent('x/1')}`;
    const { version } = (await api('GET', at)).body.data;
    expect((await api('POST', `${at}/data`, { data: '{"n": 12345678901234567890}', version })).status).toBe(
      200,
    );
    expect((await api('GET', at)).body.data.json).toBe('{"n":12345678901234567890}');
    expect((await api('POST', `${at}/data`, { data: '2', version })).body.error.code).toBe('CHANGED');
    expect((await api('POST', 'queues/work/jobs/later/promote')).status).toBe(200);
    expect((await queue.get('later'))?.state).toBe('waiting');
    expect((await api('POST', 'queues/work/jobs/later/promote')).status).toBe(409);
    expect((await api('POST', `${at}/cancel`, { reason: 'why not' })).body).toEqual({ outcome: 'cancelled' });
    expect((await api('DELETE', 'queues/work/jobs/later')).status).toBe(200);
    expect((await api('DELETE', 'queues/work/jobs/later')).status).toBe(404);
    expect((await queue.counts()).waiting).toBe(0);
  });

  it.each(['reject', 'dropNew'] as const)('says that the queue is full, with onFull %s', async (onFull) => {
    const { queue, api } = await boot(undefined, { queue: { maxWaiting: { limit: 1, onFull } } });
    await queue.add('a', 1);
    const { status, body } = await api('POST', 'queues/work/jobs', { name: 'a', data: '1' });
    expect([status, body.error.code]).toEqual([409, 'GODWIT_QUEUE_FULL']);
    expect((await api('GET', 'actions?limit=1')).body.actions).toMatchObject([
      { action: 'job.add', count: null, result: 'GODWIT_QUEUE_FULL' },
    ]);
  });

  it('adds a job, with the checks of the queue', async () => {
    const { queue, api } = await boot();
    await queue.pause();
    const job = { name: 'a', data: '{"n":[1.5,{"__proto__":2}]}', id: 'new', delay: '1h', group: 'g' };
    expect((await api('POST', 'queues/work/jobs', job)).body).toEqual({ id: 'new', duplicate: false });
    expect(await queue.get('new')).toMatchObject({
      name: 'a',
      state: 'delayed',
      delay: 3_600_000,
      group: 'g',
    });
    expect((await api('GET', 'queues/work/jobs/new')).body.data.json).toBe(job.data);
    expect((await api('POST', 'queues/work/jobs', job)).body).toEqual({ id: 'new', duplicate: true });
    const { id } = (await api('POST', 'queues/work/jobs', { name: 'a', data: '1' })).body;
    expect(id).toMatch(/./);
    expect((await api('GET', 'actions?limit=1')).body.actions).toMatchObject([
      { action: 'job.add', target: id, count: 1, result: 'ok' },
    ]);
    for (const [wrong, said] of [
      [{ data: '1' }, 'job name'],
      [{ name: '', data: '1' }, 'job name'],
      [{ name: 'a', data: '{' }, 'job.data must be JSON'],
      [{ name: 'a', data: { n: 1 } }, 'job.data must be JSON'],
      [{ name: 'a', data: '1', delay: 'soon' }, 'job.delay'],
      [{ name: 'a', data: '1', attempts: 0 }, 'attempts'],
      [{ name: 'a', data: '1', group: { id: 'g' } }, 'a group is its name'],
    ] as const) {
      const { status, body } = await api('POST', 'queues/work/jobs', wrong);
      expect([wrong, status, body.error.message]).toEqual([wrong, 400, expect.stringContaining(said)]);
    }
    expect((await queue.counts()).delayed).toBe(1);
  });

  it('retries a dead job, with other data if it is edited', async () => {
    const seen: unknown[] = [];
    const { queue, api } = await boot(undefined, {
      handlers: {
        a: ({ data }) => {
          seen.push(data);
          if (seen.length < 3) throw new Error('no');
        },
      },
    });
    await queue.add('a', { n: 1 }, { id: 'a', attempts: 1 });
    await dead(queue, 'a');
    expect((await api('POST', 'queues/work/jobs/a/retry')).status).toBe(200);
    await until(() => seen.length === 2, PATIENT);
    await dead(queue, 'a');
    const { version } = (await api('GET', 'queues/work/jobs/a')).body.data;
    const edit = (id: string, seenVersion: string) =>
      api('POST', `queues/work/jobs/${id}/data`, { data: '{"n":2}', version: seenVersion });
    expect(await edit('a', version)).toMatchObject({ status: 200, body: { done: 1, retried: true } });
    await until(() => seen.length === 3, PATIENT);
    expect(seen).toEqual([{ n: 1 }, { n: 1 }, { n: 2 }]);
    await queue.add('a', { n: 1 }, { id: 'later', delay: '1h' });
    expect(await edit('later', version)).toMatchObject({ status: 200, body: { done: 1, retried: false } });
  });

  it('acts on all that match, in steps, and leaves later jobs alone', async () => {
    const { queue, api } = await boot();
    await queue.pause();
    await queue.addBulk(Array.from({ length: 1_200 }, (_, n) => ({ name: n % 2 ? 'odd' : 'even', data: n })));
    const act = { kind: 'remove', filter: { state: 'waiting', name: 'odd' } };
    const first = await api('POST', 'queues/work/actions', act);
    expect(first.body).toMatchObject({ done: 500, cursor: expect.any(String) });
    await until(async () => (await api('GET', 'me')).body.now > first.body.before + 1, PATIENT);
    await queue.add('odd', 'late', { id: 'late' });
    const { cursor, before } = first.body;
    const second = await api('POST', 'queues/work/actions', { ...act, cursor, before });
    expect(second.body).toMatchObject({ done: 100, cursor: null });
    expect((await queue.counts()).waiting).toBe(601);
    expect(await queue.get('late')).not.toBeNull();
    const ids = { kind: 'cancel', ids: ['late', 'nobody'] };
    expect((await api('POST', 'queues/work/actions', ids)).body.done).toBe(1);
  });

  it('finds jobs by a field of their data, and a job of any state by its id', async () => {
    const { queue, api } = await boot();
    await queue.pause();
    await queue.addBulk([1, 2, 2].map((id) => ({ name: 'a', data: { tenant: { id }, token: 'x' } })));
    await queue.add('a', { tenant: { id: '2' } }, { id: 'import-7', delay: '1h' });
    const found = async (query: string) => (await api('GET', `queues/work/jobs?${query}`)).body;
    expect((await found('where=tenant.id%3D2')).jobs).toHaveLength(2);
    expect((await found('where=tenant.id%3D"2"')).jobs).toHaveLength(0);
    expect((await found('state=delayed&where=tenant.id%3D"2"')).jobs).toHaveLength(1);
    expect(await found('state=dead&contains=import-7')).toMatchObject({
      jobs: [],
      counts: { waiting: 3, delayed: 1 },
      withId: { id: 'import-7', state: 'delayed' },
    });
    expect((await found('contains=import')).withId).toBeNull();
    const act = { kind: 'cancel', filter: { state: 'waiting', where: 'tenant.id=2' } };
    expect((await api('POST', 'queues/work/actions', act)).body.done).toBe(2);
    for (const where of ['tenant', '=7', ''])
      expect([where, (await api('GET', `queues/work/jobs?where=${where}`)).status]).toEqual([where, 400]);
  });

  it('runs a completed job again if it is kept', async () => {
    const { queue, api } = await boot(undefined, { handlers: { a: () => 1 } });
    await queue.add('a', 1, { id: 'a', retention: '1h' });
    await until(async () => (await queue.get('a'))?.state === 'completed', PATIENT);
    await queue.pause();
    expect((await api('POST', 'queues/work/jobs/a/retry')).status).toBe(200);
    expect((await queue.get('a'))?.state).toBe('waiting');
    expect((await api('POST', 'queues/work/jobs/a/retry')).status).toBe(409);
  });

  it('shows in which process a job runs', async () => {
    const { gate, handlers } = gated();
    const { queue, api } = await boot(undefined, { handlers });
    await queue.add('active', 1, { id: 'active' });
    await until(async () => (await queue.get('active'))?.state === 'active', PATIENT);
    const place = async () => {
      const { worker, processes } = (await api('GET', 'queues/work/jobs/active')).body;
      return processes[worker] as string | undefined;
    };
    // The process names its workers with the next renewal of its record.
    expect(await until(place, PATIENT)).toMatch(new RegExp(`:${process.pid}$`));
    gate.open();
  });

  it('gathers dead jobs by what went wrong, and retries one kind', async () => {
    let isWell = false;
    const { queue, api } = await boot(undefined, {
      handlers: {
        '*': ({ name, data }) => {
          if (!isWell) throw new Error(name === 'a' ? `order ${String(data)} is closed` : 'other');
        },
      },
    });
    await queue.addBulk([1, 2, 3].map((n) => ({ name: 'a', data: n, options: { attempts: 1 } })));
    await queue.add('b', 1, { attempts: 1 });
    await until(async () => (await queue.counts()).dead === 4, PATIENT);
    const { body } = await api('GET', 'dead');
    expect(body.groups).toMatchObject([
      { queue: 'work', name: 'a', reason: 'retries-exhausted', error: 'Error: order # is closed', count: 3 },
      { name: 'b', error: 'Error: other', count: 1 },
    ]);
    const filter = { state: 'dead', error: 'Error: order # is closed' };
    const query = new URLSearchParams(filter).toString();
    expect((await api('GET', `queues/work/jobs?${query}`)).body.jobs).toHaveLength(3);
    isWell = true;
    expect((await api('POST', 'queues/work/actions', { kind: 'retry', filter })).body.done).toBe(3);
    await until(async () => (await queue.counts()).dead === 1, PATIENT);
  });

  it('shows schedules with their next five times, runs, pauses and removes them', async () => {
    const { queue, api } = await boot();
    await queue.pause();
    await queue.schedules.upsert(
      'daily',
      { cron: '0 7 * * *', tz: 'Europe/Berlin' },
      { name: 'a', data: { token: 't', n: 1 } },
    );
    const [one] = (await api('GET', 'schedules')).body.schedules;
    expect(one).toMatchObject({
      queue: 'work',
      id: 'daily',
      jobName: 'a',
      paused: false,
      rule: { cron: '0 7 * * *' },
    });
    expect(one.next).toHaveLength(5);
    expect(one.data.json).toMatch(/^\{"token":"\[hidden 1 of \w+\]","n":1\}$/);
    const { id } = (await api('POST', 'queues/work/schedules/daily/run')).body;
    expect((await queue.get(id))?.name).toBe('a');
    await api('POST', 'queues/work/schedules/daily/pause');
    expect((await queue.schedules.get('daily'))?.paused).toBe(true);
    await api('POST', 'queues/work/schedules/daily/resume');
    await api('DELETE', 'queues/work/schedules/daily');
    expect(await queue.schedules.count()).toBe(0);
    expect((await api('POST', 'queues/work/schedules/daily/run')).status).toBe(404);
  });

  it('pauses, checks and deletes a queue, the last only by its name', async () => {
    const { queue, api } = await boot();
    expect((await api('POST', 'queues/work/pause')).body).toEqual({ changed: true });
    expect(await queue.isPaused()).toBe(true);
    await queue.add('a', 1);
    expect((await api('POST', 'queues/work/audit')).body.report.violations).toEqual([]);
    expect((await api('POST', 'queues/work/resume')).body).toEqual({ changed: true });
    expect((await api('DELETE', 'queues/work', { confirm: 'wrong' })).status).toBe(400);
    expect((await queue.counts()).waiting).toBe(1);
    expect((await api('DELETE', 'queues/work', { confirm: 'work' })).status).toBe(200);
    expect((await queue.counts()).waiting).toBe(0);
  });

  it('shows limits and groups, and pauses a group', async () => {
    const { queue, api } = await boot();
    expect((await api('GET', 'queues/work')).body).toMatchObject({ limits: [], hasMoreGroups: false });
    await queue.limits.set({ rate: { max: 5, per: '1s' }, concurrency: 2 });
    const { id } = await queue.add('a', 1, { group: 'tenant 7/x' });
    const { limits } = (await api('GET', 'queues/work')).body;
    expect(limits).toMatchObject([
      { of: 'queue', rate: { max: 5, perMs: 1_000 }, concurrency: 2, left: 5, running: 0, isLive: true },
      { of: 'group', name: 'tenant 7/x', waiting: 1, paused: false },
    ]);
    const at = `queues/work/groups/${encodeURIComponent('tenant 7/x')}`;
    expect((await api('POST', `${at}/pause`)).status).toBe(200);
    expect((await queue.group('tenant 7/x').state()).paused).toBe(true);
    expect((await api('GET', `queues/work/jobs/${id}`)).body.waitsFor).toEqual([
      'no process works on the queue',
      "the group 'tenant 7/x' is paused",
    ]);
    const ofGroup = await api('GET', 'queues/work/jobs?group=tenant%207%2Fx');
    expect(ofGroup.body).toMatchObject({ jobs: [{ id, group: 'tenant 7/x' }], cursor: null });
    expect((await api('GET', 'queues/work/jobs?group=other')).body.jobs).toEqual([]);
    expect((await api('POST', `${at}/resume`)).status).toBe(200);
    expect((await queue.group('tenant 7/x').state()).paused).toBe(false);
    const wrong = await api('POST', 'queues/work/groups/a%0Ab/pause');
    expect([wrong.status, wrong.body]).toEqual([
      400,
      {
        error: {
          code: 'GODWIT_INVALID_OPTION',
          message:
            'group() must be a string of 1 to 256 bytes without control characters, got "a\\nb" (string)',
        },
      },
    ]);
    await queue.group('tenant 7/x').clear();
    await queue.pause();
    expect((await api('GET', `queues/work/jobs/${id}`)).body.waitsFor).toEqual([
      'the queue is paused',
      'no process works on the queue',
    ]);
    await queue.resume();
    const drain = { kind: 'remove', filter: { state: 'waiting', group: 'tenant 7/x' } };
    await queue.add('a', 1, { id: 'ungrouped' });
    expect((await api('POST', 'queues/work/actions', drain)).body.done).toBe(1);
    expect((await queue.jobs({ state: 'waiting' })).jobs.map((job) => job.id)).toEqual(['ungrouped']);
    await queue.limits.clear();
  });

  it('shows that a hold stops jobs, on the overview too, and releases it', async () => {
    const { queue, api } = await boot();
    await queue.limits.set({ concurrency: 4 }, { name: 'a' });
    await queue.limits.hold('1h');
    await queue.limits.hold('1h', { name: 'a' });
    await queue.group('g').set({ concurrency: 2 });
    const texts = async () =>
      ((await api('GET', 'overview')).body.attention as { text: string }[]).map(({ text }) => text);
    const stopped = (await texts()).filter((text) => text.includes('it is held'));
    expect(stopped).toEqual([
      expect.stringMatching(/^No job of the queue starts for (59 min|1 h) more: it is held\.$/),
      expect.stringMatching(/^No job of name "a" starts for (59 min|1 h) more: it is held\.$/),
    ]);
    expect((await api('POST', 'queues/work/limits/release', { name: 'a' })).status).toBe(200);
    expect((await texts()).filter((text) => text.includes('it is held'))).toHaveLength(1);
    expect((await api('POST', 'queues/work/limits/release')).status).toBe(200);
    for (const name of ['tenant-10', 'tenant-9']) await queue.group(name).set({ concurrency: 2 });
    const { limits } = (await api('GET', 'queues/work')).body as { limits: { of: string; name: string }[] };
    const groups = limits.filter(({ of }) => of === 'group').map(({ name }) => name);
    expect(groups).toEqual(['g', 'tenant-9', 'tenant-10']);
    expect((await texts()).filter((text) => text.includes('it is held'))).toEqual([]);
    expect((await api('POST', 'queues/work/groups/g/release')).status).toBe(200);
    for (const name of [7, '', 'a\nb'])
      expect((await api('POST', 'queues/work/limits/release', { name })).status).toBe(400);
    const { actions } = (await api('GET', 'actions')).body as { actions: QueueAction[] };
    expect(
      actions.filter(({ result }) => result === 'ok').map(({ action, target }) => [action, target]),
    ).toEqual([
      ['group.release', 'g'],
      ['limit.release', ''],
      ['limit.release', 'name a'],
    ]);
  });

  it('shows the jobs of a schedule that are kept, the latest first', async () => {
    const { queue, api } = await boot(undefined, { handlers: { a: () => 1 } });
    const job = { name: 'a', options: { retention: '1h' } } as const;
    await queue.schedules.upsert('daily', { cron: '0 7 * * *' }, job);
    await queue.schedules.upsert('daily@noon', { cron: '0 12 * * *' }, job);
    const { id: first } = await queue.schedules.runNow('daily');
    await until(async () => (await queue.get(first))?.state === 'completed', PATIENT);
    await queue.pause();
    const { id: second } = await queue.schedules.runNow('daily');
    const { id: other } = await queue.schedules.runNow('daily@noon');
    const history = async (id: string) =>
      (await api('GET', `queues/work/schedules/${encodeURIComponent(id)}/history`)).body;
    expect(await history('daily')).toMatchObject({
      jobs: [
        { id: second, state: 'waiting' },
        { id: first, state: 'completed', durationUs: expect.any(Number) },
      ],
      isPartial: false,
    });
    expect((await history('daily@noon')).jobs.map(({ id }: { id: string }) => id)).toEqual([other]);
    expect(await history('none')).toEqual({ jobs: [], isPartial: false });
  });

  it('shows counters by minute, of one queue and of all', async () => {
    const { api } = await boot();
    expect((await api('GET', 'series')).body.isCounted).toBe(false);
    const worker = await boot(undefined, { handlers: { a: () => {} }, root: { history: true } });
    await worker.queue.addBulk([1, 2, 3].map((n) => ({ name: 'a', data: n })));
    await until(async () => (await worker.queue.stats()).total.processed === 3, PATIENT);
    // A process writes its counters when it stops.
    await worker.app.close();
    const { body } = await api('GET', 'queues/work/series?hours=1');
    const sum = (values: number[]) => values.reduce((total, one) => total + one);
    expect(body).toMatchObject({
      stepMs: 60_000,
      isCounted: true,
      byName: { a: { completed: 3, failed: 0 } },
    });
    for (const { p50, p95, p99 } of [body.byName.a.run, body.byName.a.wait])
      expect([p50 > 0, p50 <= p95, p95 <= p99]).toEqual([true, true, true]);
    for (const { p50, p95, p99 } of [body.run, body.wait])
      expect([p50.length, p95.length, Math.max(...p99) > 0]).toEqual([body.times.length, p50.length, true]);
    expect([sum(body.completed), sum(body.added), body.dead]).toEqual([3, 3, body.times.map(() => 0)]);
    const all = (await api('GET', 'series?hours=24')).body;
    expect([all.isCounted, sum(all.completed)]).toEqual([true, 3]);
    const times = { p50: expect.any(Number), p95: expect.any(Number), p99: expect.any(Number) };
    const work = { perMinute: expect.any(Number), run: times, wait: times, runByName: { a: times } };
    expect(all.byQueue).toEqual({ work });
    for (const hours of ['0', '73', '1e1', 'x'])
      expect([hours, (await api('GET', `series?hours=${hours}`)).status]).toEqual([hours, 400]);
  });

  it('shows queues of other applications on request', async () => {
    const other = await boot(undefined, { queues: ['elsewhere'], handlers: { '*': () => {} } });
    await other.queueOf('elsewhere').pause();
    await other.queueOf('elsewhere').add('a', { n: 1 }, { id: 'far' });
    await other.queueOf('elsewhere').add('a', null, { id: 'own', attempts: 7 });
    const own = await boot();
    expect((await own.api('GET', 'me')).body.queues).toEqual(['work']);
    expect((await own.api('GET', 'queues/elsewhere')).status).toBe(404);
    const all = await boot({ access: 'public', queues: 'all' });
    await until(async () => (await all.api('GET', 'me')).body.queues.includes('elsewhere'), PATIENT);
    const asked = vi.spyOn(all.app.get<QueueEngine>(QUEUE_ENGINE).processes, 'queues');
    expect((await all.api('GET', 'overview')).body.queues.map(({ name }: { name: string }) => name)).toEqual([
      'work',
      'elsewhere',
    ]);
    expect(asked).toHaveBeenCalledTimes(1);
    const far = await all.api('GET', 'queues/elsewhere/jobs/far');
    // This process does not know the default of the queue.
    expect(far.body).toMatchObject({ attempts: null, data: { json: '{"n":1}' } });
    expect((await all.api('GET', 'queues/elsewhere/jobs/own')).body.attempts).toBe(7);
    const stream = await all.follow('elsewhere:0');
    expect((await all.api('DELETE', 'queues/elsewhere/jobs/far')).status).toBe(200);
    await stream.until('"removed"');
    stream.close();
  });

  it('answers wrong values with the rule, and changes nothing', async () => {
    const { queue, ask, api } = await boot();
    await queue.add('a', 1, { id: 'a' });
    for (const [path, said] of [
      ['queues/work/jobs?limit=1e9', 'limit must be an integer from 1 to 200'],
      ['queues/work/jobs?limit=-1', 'limit must be'],
      ['queues/work/jobs?limit=201', 'limit must be'],
      ['queues/work/jobs?state=gone', "query.state must be one of 'waiting'"],
      ['queues/work/jobs?page=1', 'page'],
      ['queues/work/jobs?cursor=made-up', 'query.cursor must be the cursor'],
      ['queues/work/jobs?reason=stalled', "reason must be left out unless state is 'dead'"],
      ['queues/work/jobs?state=dead&reason=bored', 'query.reason must be one of'],
      ['queues/work/jobs?olderThan=soon', 'query.olderThan'],
      ['queues/work/jobs?contains=', 'query.contains must be a string of 1 to 200 characters'],
      ['queues/work/jobs?limit=1&limit=2', '"limit" twice'],
      ['queues/..%2f..%2fetc', 'queue name'],
      ['queues/%7Bx%7D', 'queue name'],
    ] as const) {
      const { status, body } = await api('GET', path);
      expect([path, status, body.error.message]).toEqual([path, 400, expect.stringContaining(said)]);
    }
    for (const [body, said] of [
      [{ kind: 'explode', filter: { state: 'dead' } }, 'kind must be one of'],
      [{ kind: 'retry', filter: { state: 'waiting' } }, 'filter.state must be one of dead'],
      [{ kind: 'remove', filter: {} }, 'filter.state must be a state'],
      [{ kind: 'remove' }, 'filter.state must be a state'],
      [{ kind: 'remove', ids: [] }, 'ids must be a list of 1 to 500 ids'],
      [{ kind: 'remove', ids: [5] }, 'job id'],
      [{ kind: 'remove', filter: { state: 'waiting', nmae: 'a' } }, 'nmae'],
      [{ kind: 'remove', filter: { state: 'waiting' }, before: 'now' }, 'before must be'],
      [{ kind: 'remove', filter: { state: 'waiting' }, limit: 1e9 }, 'limit must be'],
      [{ kind: 'remove', filter: { state: 'waiting' }, rate: 1 }, 'body.rate is not an option'],
      [{ kind: 'remove', ids: ['a'], filter: {} }, 'body.filter is not an option'],
    ] as const) {
      const { status, body: answer } = await api('POST', 'queues/work/actions', body);
      expect([body, status, answer.error?.message]).toEqual([body, 400, expect.stringContaining(said)]);
    }
    for (const path of [
      'nothing',
      'queues/nobody',
      'queues/nobody/jobs',
      'queues/work/jobs/nobody',
      'queues/__proto__',
    ])
      expect([path, (await api('GET', path)).status]).toEqual([path, 404]);
    for (const method of ['GET', 'PATCH', 'OPTIONS'])
      expect([method, (await ask(method, 'api/v1/queues/work/pause')).status]).toEqual([method, 405]);
    expect((await ask('POST', 'api/v1/queues/work/pause', { headers: OWN, body: '{' })).status).toBe(400);
    expect((await ask('POST', 'api/v1/queues/work/pause', { headers: OWN, body: '[]' })).status).toBe(400);
    expect((await ask('GET', 'api/v1/queues/%E0%A4%A')).status).toBe(400);
    const large = JSON.stringify({ confirm: 'x'.repeat(1_100_000) });
    expect((await ask('DELETE', 'api/v1/queues/work', { headers: OWN, body: large })).status).toBe(413);
    expect((await queue.counts()).waiting).toBe(1);
    expect(await queue.isPaused()).toBe(false);
  });

  it('returns how far a search went, and continues from there', async () => {
    const { queue, api } = await boot();
    await queue.pause();
    const ids = Array.from({ length: 12_000 }, (_, n) => ({
      name: 'a',
      data: 1,
      options: { id: `job-${n}` },
    }));
    await queue.addBulk(ids);
    const first = await api('GET', 'queues/work/jobs?contains=job-11999');
    expect(first.body).toMatchObject({ jobs: [], total: 12_000, cursor: expect.any(String) });
    expect(first.body.examined).toBeGreaterThanOrEqual(10_000);
    expect(first.body.examined).toBeLessThan(12_000);
    const second = await api('GET', `queues/work/jobs?contains=job-11999&cursor=${first.body.cursor}`);
    expect(second.body).toMatchObject({ jobs: [{ id: 'job-11999' }], cursor: null });
  });
});
