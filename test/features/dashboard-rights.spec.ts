import { ForbiddenException, Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import type { QueueAction } from '#lib/index.js';
import { QueueDashboardModule, type QueueDashboardOptions } from '#lib/subpaths/dashboard.js';
import type { Attention } from '#lib/subpaths/dashboard/views.js';
import { QueueModule } from '#lib/module/queue.module.js';
import { QueueRuntime } from '#lib/module/queue.runtime.js';
import { bootDashboard, dead, OWN, type DashboardApp } from '../support/dashboard.js';
import { PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { until } from '../support/wait.js';

const redis = useRedis();

@Injectable()
class TokenGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<{ headers: Record<string, string>; user?: string }>();
    request.user = request.headers['x-user'];
    return request.user !== undefined;
  }
}

/** Calls the API as one of the people that `TokenGuard` knows. */
const callsOf =
  (ask: DashboardApp['ask']) =>
  (user: string, method: string, path: string): ReturnType<typeof ask> =>
    ask(method, `api/v1/${path}`, {
      headers: { ...OWN, 'x-user': user },
      ...(method !== 'GET' && { body: '{}' }),
    });

/** An action without its time and queue. */
const told = ({ actor, action, target, count, result }: Omit<QueueAction, 'at'>) =>
  `${[actor, action, target].filter(Boolean).join(' ')}: ${count} ${result}`;

describe.each(['express', 'fastify'] as const)('who may see and do what on %s', (platform) => {
  const boot = (dashboard?: QueueDashboardOptions, more: Partial<Parameters<typeof bootDashboard>[1]> = {}) =>
    bootDashboard(redis, { platform, ...(dashboard && { dashboard }), ...more });

  it('asks for the right of each job for named jobs, and for `bulk` for all that match', async () => {
    const { api, queue } = await boot({
      authorize: (_, action, { jobId }) => action !== 'bulk' && (action !== 'job.remove' || jobId === 'mine'),
    });
    await queue.add('a', 1, { id: 'mine' });
    await queue.add('a', 1, { id: 'other' });
    const remove = async (which: object) =>
      (await api('POST', 'queues/work/actions', { kind: 'remove', ...which })).status;
    expect(await remove({ ids: ['mine', 'other'] })).toBe(403);
    expect(await remove({ filter: { state: 'waiting' } })).toBe(403);
    expect(await remove({ ids: [] })).toBe(400);
    // The ids of one's own jobs must not stand in for the right to act on all that match.
    const both = { kind: 'remove', ids: ['mine'], filter: { state: 'waiting' } };
    expect((await api('POST', 'queues/work/bulk', both)).status).toBe(400);
    expect(await remove({ ids: ['mine'] })).toBe(200);
    expect((await queue.jobs({ state: 'waiting' })).jobs.map(({ id }) => id)).toEqual(['other']);
  });

  it('shows no job that a person may not read', async () => {
    const { api, queue } = await boot({
      authorize: (_, action, { jobId }) => action !== 'read' || jobId !== 'other',
    });
    for (const id of ['mine', 'other']) await queue.add('a', 1, { id });
    const status = async (id: string) => (await api('GET', `queues/work/jobs/${id}`)).status;
    expect([await status('mine'), await status('other')]).toEqual([200, 404]);
  });

  it('does not let the limits of a paused group be cleared without the right to pause', async () => {
    const { api, queue } = await boot({ authorize: (_, action) => action !== 'queue.pause' });
    await queue.group('g').set({ paused: true });
    const clear = async () => (await api('DELETE', 'queues/work/groups/g/limits')).status;
    expect(await clear()).toBe(403);
    expect((await queue.group('g').state()).paused).toBe(true);
    await queue.group('g').set({ paused: false, concurrency: 2 });
    expect(await clear()).toBe(200);
  });

  it('lets guards of the application decide, and authorize what a person may do', async () => {
    const seen: QueueAction[] = [];
    const { ask, api, queue } = await boot(
      {
        guards: [TokenGuard],
        authorize: (request, action, { queue }) =>
          queue === 'secret'
            ? false
            : { allow: request.user === 'boss' ? 'admin' : 'viewer', actor: request.user },
        onAction: (action) => seen.push(action),
      },
      { queues: ['secret'] },
    );
    const as = callsOf(ask);
    expect((await ask('GET', '')).status).toBe(403);
    expect((await api('GET', 'me')).status).toBe(403);
    expect((await as('ada', 'GET', 'me')).body).toMatchObject({
      queues: ['work'],
      rights: ['read', 'read-data'],
      actor: 'ada',
    });
    await queue.pause();
    await queue.add('a', 1, { id: 'a' });
    for (const [method, path] of [
      ['DELETE', 'queues/work/jobs/a'],
      ['POST', 'queues/work/jobs/a/cancel'],
      ['POST', 'queues/work/resume'],
      ['POST', 'queues/work/repair'],
      ['DELETE', 'queues/work'],
    ] as const)
      expect([path, (await as('ada', method, path)).status]).toEqual([path, 403]);
    // A queue that a person may not see is answered like a queue that does not exist.
    const hidden = await as('boss', 'GET', 'queues/secret');
    const absent = await as('boss', 'GET', 'queues/nobody');
    expect([hidden.status, hidden.text.replace('secret', 'nobody')]).toEqual([404, absent.text]);
    expect(
      (await as('boss', 'GET', 'overview')).body.queues.map(({ name }: { name: string }) => name),
    ).toEqual(['work']);
    expect((await as('boss', 'DELETE', 'queues/work/jobs/a')).status).toBe(200);
    const refused = ['job.remove a', 'job.cancel a', 'queue.resume', 'queue.repair', 'queue.obliterate'];
    expect(seen.map(told)).toEqual([
      ...refused.map((what) => `ada ${what}: null FORBIDDEN`),
      'boss job.remove a: 1 ok',
    ]);
    // They are in the record too, the newest first.
    const { actions } = (await as('boss', 'GET', 'actions')).body;
    expect(actions.map(told)).toEqual(seen.map(told).toReversed());
  });

  it('lets a person who may pause its queues give orders to a process', async () => {
    const seen: QueueAction[] = [];
    const { app, ask } = await boot(
      {
        guards: [TokenGuard],
        authorize: (request, _action, { queue }) =>
          queue === 'secret' ? false : request.user === 'boss' ? 'operator' : 'viewer',
        onAction: (action) => seen.push(action),
      },
      { queues: ['secret'], handlers: { a: () => {} }, root: { lease: { duration: '1s' } } },
    );
    const as = callsOf(ask);
    const shown = async () => (await as('boss', 'GET', 'workers')).body.workers[0];
    await until(async () => (await shown()) !== undefined, PATIENT);
    const { id, host, pid } = await shown();
    expect((await as('ada', 'POST', `workers/${id}/quiet`)).status).toBe(403);
    const absent = await as('boss', 'POST', 'workers/nobody/quiet');
    expect([absent.status, absent.body.error.message]).toEqual([404, 'no such worker process is alive']);
    const runtime = app.get(QueueRuntime);
    for (const [order, state] of [
      ['pause', 'paused'],
      ['resume', 'running'],
      ['quiet', 'quiet'],
    ] as const) {
      const told = await as('boss', 'POST', `workers/${id}/${order}`);
      expect([told.status, told.body]).toEqual([200, { queues: ['work'] }]);
      await until(() => runtime.workers[0]!.state === state, PATIENT);
    }
    await until(async () => (await shown()).pools[0].quiet.includes('work'), PATIENT);
    expect(seen.map(told)).toEqual([
      `dashboard process.quiet ${host}:${pid}: null FORBIDDEN`,
      ...['pause', 'resume', 'quiet'].map((order) => `dashboard process.${order} ${host}:${pid}: 1 ok`),
    ]);
  });

  it('returns the exception that authorize throws, and does the action although onAction throws', async () => {
    let isDown = false;
    const { api, queue, logs } = await boot({
      authorize: (_request, action) => {
        if (action === 'queue.repair') throw new ForbiddenException('ask the night shift');
        if (action === 'job.cancel' && isDown) throw new Error('the directory is down');
        return true;
      },
      onAction: () => {
        throw new Error('the log of actions is full');
      },
    });
    const repair = await api('POST', 'queues/work/repair');
    expect([repair.status, repair.body.error.message]).toEqual([403, 'ask the night shift']);
    await queue.add('a', 1, { id: 'a' });
    expect((await api('GET', 'queues/work/jobs/a')).body.rights).not.toContain('queue.repair');
    isDown = true;
    const cancel = await api('POST', 'queues/work/jobs/a/cancel');
    expect([cancel.status, cancel.text.includes('directory')]).toEqual([500, false]);
    expect((await queue.counts()).waiting).toBe(1);
    expect((await api('POST', 'queues/work/pause')).body).toEqual({ changed: true });
    expect(logs.complaints.join()).toMatch(/the log of actions is full.*the directory is down/s);
  });

  it('shows nothing about the server to a person who may see no queue', async () => {
    const { ask } = await boot({
      authorize: (request, _action, { queue }) =>
        request.headers['x-user'] === 'ada' || (request.headers['x-user'] === 'bob' && queue === undefined),
    });
    const status = async (user: string, path: string) =>
      (await ask('GET', `api/v1/${path}`, { headers: { 'x-user': user } })).status;
    for (const path of [
      'me',
      'overview',
      'queues',
      'series',
      'dead',
      'schedules',
      'workers',
      'redis',
      'actions',
    ]) {
      const answers = [await status('eve', path), await status('bob', path), await status('ada', path)];
      expect([path, ...answers]).toEqual([path, 403, 200, 200]);
    }
    expect(await status('eve', 'events')).toBe(403);
    expect(await status('eve', 'queues/work')).toBe(404);
  });

  it('shows warnings of Redis and shared limits of other queues only to those who may see them', async () => {
    const limits = { mailer: { concurrency: 1 }, vault: { concurrency: 1 } };
    const { app, ask, queueOf } = await boot(
      {
        authorize: (request, _action, { queue }) => {
          const user = request.headers['x-user'];
          if (user === 'ada') return queue === 'mail';
          return user === 'boss' || (user === 'bob' && queue !== 'secret');
        },
      },
      {
        root: { limits },
        imports: [
          QueueModule.registerQueue({ name: 'mail', uses: ['mailer'] }, { name: 'secret', uses: ['vault'] }),
        ],
      },
    );
    for (const name of Object.keys(limits)) {
      const shared = queueOf('work').limits.shared(name);
      await shared.set({ concurrency: 2 });
      await shared.hold('1h');
    }
    const as = callsOf(ask);
    const shown = async (user: string) => {
      const { attention } = (await as(user, 'GET', 'overview')).body as { attention: Attention[] };
      const names = attention.flatMap(({ text }) => /the shared limit "(\w+)"/.exec(text)?.[1] ?? []);
      return [names.toSorted(), attention.filter(({ page }) => page === 'redis').map(({ text }) => text)];
    };
    const warnings = app.get(QueueRuntime).warnings.map(({ message }) => message);
    expect(warnings).not.toEqual([]);
    expect(await shown('boss')).toEqual([['mailer', 'vault'], warnings]);
    expect(await shown('bob')).toEqual([['mailer'], warnings]);
    expect(await shown('ada')).toEqual([['mailer'], []]);
    const page = async (user: string) => [
      (await as(user, 'GET', 'redis')).status,
      (await as(user, 'GET', 'me')).body.canSeeRedis,
    ];
    expect(await page('bob')).toEqual([200, true]);
    expect(await page('ada')).toEqual([403, false]);
  });

  it('shows actions only for queues whose actions the person may see, also for deleted queues', async () => {
    const { ask, queueOf } = await boot(
      {
        authorize: (request, action, { queue }) => {
          const user = request.headers['x-user'];
          if (user === 'boss') return { allow: 'admin', actor: 'boss' };
          if (user === 'ada') return queue === 'work' ? 'operator' : queue === 'secret' && action === 'read';
          return user === 'bob' && 'viewer';
        },
      },
      { queues: ['secret'] },
    );
    const as = callsOf(ask);
    await as('boss', 'POST', 'queues/secret/pause');
    await as('boss', 'POST', 'queues/work/pause');
    const gone = { body: JSON.stringify({ confirm: 'secret' }), headers: { ...OWN, 'x-user': 'boss' } };
    expect((await ask('DELETE', 'api/v1/queues/secret', gone)).status).toBe(200);
    await queueOf('work').as('cron').publish('done', 1);
    const shown = async (user: string, query = '') => {
      const { status, body } = await as(user, 'GET', `actions${query}`);
      return status === 200 ? body.actions.map(told) : status;
    };
    const work = ['cron queue.publish done: 1 ok', 'boss queue.pause: 1 ok'];
    const all = [work[0], 'boss queue.obliterate: 1 ok', work[1], 'boss queue.pause: 1 ok'];
    expect(await shown('boss')).toEqual(all);
    expect(await shown('boss', '?actor=cron')).toEqual([work[0]]);
    expect(await shown('boss', '?queue=secret')).toEqual(all.filter((_, at) => at % 2 === 1));
    expect(await shown('ada')).toEqual(work);
    // A page ends after the actions that this person may see.
    const { actions, cursor } = (await as('ada', 'GET', 'actions?limit=1')).body;
    expect(actions.map(told)).toEqual([work[0]]);
    expect((await as('ada', 'GET', `actions?limit=2&cursor=${cursor}`)).body.actions.map(told)).toEqual([
      work[1],
    ]);
    for (const [user, query, status] of [
      ['ada', '?queue=secret', 404],
      ['ada', '?queue=nobody', 404],
      ['bob', '', 403],
      ['eve', '', 403],
      ['boss', '?limit=201', 400],
      ['boss', '?cursor=made%20up', 400],
      ['boss', '?actor=', 400],
      ['boss', '?order=asc', 400],
    ] as const)
      expect([user, query, await shown(user, query)]).toEqual([user, query, status]);
  });

  it('records at most 30 refusals a minute and person', async () => {
    const { api, ask } = await boot({
      authorize: (request, action) => request.headers['x-user'] === 'boss' || action === 'read',
    });
    for (let at = 0; at < 65; at += 1) expect((await api('POST', 'queues/work/pause')).status).toBe(403);
    const { body } = await callsOf(ask)('boss', 'GET', 'actions?limit=200');
    expect(body.actions.length).toBeGreaterThanOrEqual(30);
    // The next minute may begin in between.
    expect(body.actions.length).toBeLessThanOrEqual(60);
  });

  it('logs who did what, on one line', async () => {
    const authorize = () => ({ allow: 'admin', actor: 'eve\nfake line' }) as const;
    const { api, queue, logs } = await boot({ authorize });
    await queue.pause();
    await queue.add('a', 1, { id: 'a' });
    await api('DELETE', 'queues/work/jobs/a');
    await api('POST', 'queues/work/jobs', { name: 'a', data: 1 });
    const lines = logs.lines.map(({ text }) => text).filter((text) => text.startsWith('"eve'));
    expect(lines[0]).toBe(`"eve\\nfake line" did job.remove in queue 'work': a`);
    expect(lines[1]).toBe(`"eve\\nfake line" failed to do job.add in queue 'work' (GODWIT_INVALID_OPTION)`);
  });

  it('logs the field by which jobs were chosen, but not its value', async () => {
    const { api, queue, logs } = await boot({ access: 'public' });
    await queue.pause();
    await queue.add('a', { customer: { mail: 'ada@example.org' } });
    const filter = { state: 'waiting', where: 'customer.mail=ada@example.org' };
    expect((await api('POST', 'queues/work/actions', { kind: 'remove', filter })).body.done).toBe(1);
    const [line] = logs.lines.map(({ text }) => text).filter((text) => text.includes('job.remove'));
    expect(line).toContain('"where":["customer.mail"]');
    expect(line).not.toContain('ada@');
  });

  it('changes nothing and records nothing if it is read-only', async () => {
    const { queue, api, logs } = await boot({ access: 'public', readOnly: true });
    await queue.add('a', 1, { id: 'a' });
    for (const [method, path, body] of [
      ['DELETE', 'queues/work/jobs/a', {}],
      ['POST', 'queues/work/actions', { kind: 'remove', filter: { state: 'waiting' } }],
      ['POST', 'queues/work/pause', {}],
      ['DELETE', 'queues/work', { confirm: 'work' }],
    ] as const)
      expect([path, (await api(method, path, body)).status]).toEqual([path, 403]);
    expect((await queue.counts()).waiting).toBe(1);
    expect((await api('GET', 'actions')).body.actions).toEqual([]);
    expect(logs.lines.filter(({ text }) => text.includes('failed to do'))).toEqual([]);
    expect((await api('GET', 'me')).body.rights).toEqual(['read', 'read-data', 'read-actions']);
  });

  it('refuses changes from other origins', async () => {
    const { queue, ask } = await boot();
    const host = new URL((await boot()).url).host;
    const json = { 'content-type': 'application/json' };
    for (const headers of [
      json,
      { ...json, 'sec-fetch-site': 'cross-site' },
      { ...json, 'sec-fetch-site': 'same-site' },
      { ...json, 'sec-fetch-site': 'none' },
      { ...json, origin: 'https://evil.example' },
      { ...json, origin: `http://${host}` },
      { ...json, origin: 'null' },
      { ...json, origin: 'http://127.0.0.1' },
      { ...json, 'sec-fetch-site': 'cross-site', origin: 'http://queues.test', host: 'queues.test' },
      { 'content-type': 'text/plain', 'sec-fetch-site': 'same-origin' },
      { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'same-origin' },
    ]) {
      const { status } = await ask('POST', 'api/v1/queues/work/pause', { headers, body: '{}' });
      // Fastify itself refuses other types.
      expect([headers, [403, 415].includes(status)]).toEqual([headers, true]);
    }
    expect(await queue.isPaused()).toBe(false);
    const own = { ...json, origin: 'http://queues.test', host: 'queues.test' };
    expect((await ask('POST', 'api/v1/queues/work/pause', { headers: own, body: '{}' })).status).toBe(200);
  });

  it('never lets a hidden value leave the server', async () => {
    const secret = 'canary-7f3a';
    const { queue, api, ask, follow } = await boot(
      { access: 'public', redact: { paths: ['deep.card'], text: (text) => text.replaceAll(secret, '***') } },
      {
        handlers: {
          '*': async (job) => {
            await job.progress({ apiKey: secret, percent: 50 });
            await job.log(`using ${secret}`);
            if (job.name === 'die') throw new Error(`refused ${secret}`);
            return { token: secret, ok: true };
          },
        },
      },
    );
    const data = {
      password: secret,
      deep: { card: secret, open: 'visible' },
      list: [{ Authorization: secret }],
    };
    await queue.add('die', data, { id: 'dead', attempts: 1 });
    await queue.add('do', data, { id: 'done', retention: '1h' });
    await queue.schedules.upsert('s', { every: '1h' }, { name: 'do', data });
    await dead(queue, 'dead');
    await until(async () => (await queue.get('done'))?.state === 'completed', PATIENT);
    const stream = await follow('work:0');
    await stream.until('"dead"');
    let seen = await stream.until('"completed"');
    stream.close();
    for (const path of [
      'overview',
      'queues/work',
      'queues/work/jobs?state=dead',
      'queues/work/jobs?state=completed',
      'queues/work/jobs/dead',
      'queues/work/jobs/done?full=1',
      'schedules',
      'dead',
      'workers',
      'redis',
      'actions',
    ])
      seen += (await api('GET', path)).text;
    seen += (await ask('GET', 'queues/work/jobs/dead')).text;
    expect(seen).toContain('visible');
    expect(seen).toContain('hidden 1 of');
    expect(seen).not.toContain(secret);
    // A search must not tell it either, letter by letter.
    const jobs = 'queues/work/jobs?state=dead';
    const found = async (query: string) => (await api('GET', `${jobs}&${query}`)).body.jobs.length;
    for (const part of [secret, 'canary', 'CANARY-7'])
      expect([part, await found(`contains=${part}`)]).toEqual([part, 0]);
    expect(await found(`error=${encodeURIComponent(`Error: refused ${secret}`)}`)).toBe(0);
    expect(await found(`contains=${encodeURIComponent('Refused ***')}`)).toBe(1);
    const bulk = async (filter: object) =>
      (await api('POST', 'queues/work/actions', { kind: 'retry', filter: { state: 'dead', ...filter } })).body
        .done;
    expect(await bulk({ contains: 'canary' })).toBe(0);
    const [{ error }] = (await api('GET', 'dead')).body.groups;
    expect([error, await bulk({ error })]).toEqual(['Error: refused ***', 1]);
    await dead(queue, 'dead');
    const at = 'queues/work/jobs/dead';
    const { json, version } = (await api('GET', at)).body.data;
    await queue.pause();
    expect(
      (await api('POST', `${at}/data`, { data: json.replace('visible', 'changed'), version })).status,
    ).toBe(200);
    expect((await queue.get('dead'))?.data).toEqual({ ...data, deep: { card: secret, open: 'changed' } });
  });

  it('finds no jobs by a hidden value, nor without the right to see data', async () => {
    const { queue, api } = await bootDashboard(redis, {
      dashboard: {
        redact: { paths: ['card.number'] },
        access: 'public',
      },
    });
    await queue.pause();
    await queue.add('a', { token: 'x', card: { number: 7, kind: 'gold' }, password: { old: 'y' } });
    const found = async (where: string) =>
      (await api('GET', `queues/work/jobs?where=${encodeURIComponent(where)}`)).body;
    expect((await found('card.kind=gold')).jobs).toHaveLength(1);
    for (const where of ['token=x', 'card.number=7', 'password.old=y', 'a.Token=z']) {
      const fault = (await found(where)).error;
      expect(fault).toMatchObject({ code: 'FORBIDDEN', message: expect.stringContaining('is hidden here') });
      const act = { kind: 'remove', filter: { state: 'waiting', where } };
      expect((await api('POST', 'queues/work/actions', act)).status).toBe(403);
    }
    expect((await queue.counts()).waiting).toBe(1);
    const blind = await bootDashboard(redis, {
      dashboard: { authorize: (_, action) => action !== 'read-data' },
    });
    expect((await blind.api('GET', 'queues/work/jobs?where=card.kind%3Dgold')).status).toBe(403);
    expect((await blind.api('GET', 'queues/work/jobs')).status).toBe(200);
  });

  it('finds dead jobs by their error, whatever characters it has', async () => {
    const texts = ['other', 'the "file" C:\\temp\\7', 'größe 7', ''];
    const { api, queue } = await boot(undefined, {
      handlers: {
        a: ({ data }) => {
          throw new Error(texts[data as number]);
        },
      },
    });
    await queue.addBulk(texts.map((_, data) => ({ name: 'a', data, options: { attempts: 1 } })));
    await until(async () => (await queue.counts()).dead === texts.length, PATIENT);
    const { groups } = (await api('GET', 'dead')).body as { groups: { error: string }[] };
    expect(groups).toHaveLength(texts.length);
    for (const { error } of groups) {
      const query = new URLSearchParams({ state: 'dead', error }).toString();
      const { jobs } = (await api('GET', `queues/work/jobs?${query}`)).body;
      expect([error, jobs.length]).toEqual([error, 1]);
    }
  });

  it('links a job to other pages, with http and https only, and with data for those who may see it', async () => {
    const { ask, queue, logs } = await boot({
      authorize: (request, action) => request.headers['x-user'] === 'boss' || action === 'read',
      jobLinks: {
        Trace: 'https://tempo.example/t/{traceId}?q={queue}',
        Job: 'https://x.example/{id}#{name}',
        Customer: ({ data }) => `https://crm.example/${(data as { customer: string }).customer}`,
        Script: () => 'javascript:alert(1)',
        Relative: () => '/elsewhere',
        None: () => null,
      },
    });
    await queue.pause();
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const id = 'a/b?c=<d>"#';
    await queue.add('one', { customer: 'o"1' }, { id, headers: { traceparent } });
    await queue.add('one', null, { id: 'plain' });
    const links = async (user: string, job: string) =>
      (await callsOf(ask)(user, 'GET', `queues/work/jobs/${encodeURIComponent(job)}`)).body.links;
    const job = { label: 'Job', url: 'https://x.example/a%2Fb%3Fc%3D%3Cd%3E%22%23#one' };
    const trace = {
      label: 'Trace',
      url: 'https://tempo.example/t/0af7651916cd43dd8448eb211c80319c?q=work',
    };
    expect(await links('boss', id)).toEqual([
      trace,
      job,
      { label: 'Customer', url: 'https://crm.example/o%221' },
    ]);
    expect(await links('ada', id)).toEqual([trace, job]);
    expect(await links('ada', 'plain')).toEqual([{ label: 'Job', url: 'https://x.example/plain#one' }]);
    expect(logs.complaints.join()).toContain("jobLinks['Customer']: ");
  });

  it('can be mounted twice in one application, each with its own rights', async () => {
    const second = QueueDashboardModule.forRoot({
      path: 'view',
      access: 'public',
      readOnly: true,
      title: 'Only a view',
    });
    const { app, api, queue } = await boot(undefined, { imports: [second] });
    const { port } = app.getHttpServer().address() as { port: number };
    const view = `http://127.0.0.1:${port}/view/`;
    expect(await (await fetch(view, { headers: { connection: 'close' } })).text()).toContain(
      '<title>Only a view</title>',
    );
    const refused = await fetch(`${view}api/v1/queues/work/pause`, {
      method: 'POST',
      headers: { ...OWN, connection: 'close' },
      body: '{}',
    });
    expect([refused.status, await queue.isPaused()]).toEqual([403, false]);
    await refused.text();
    expect((await api('POST', 'queues/work/pause')).status).toBe(200);
  });

  it('hides data from a person who may only read', async () => {
    const { queue, api } = await boot({
      authorize: (_request, action) => action === 'read' || action === 'job.edit',
    });
    await queue.pause();
    await queue.add('a', { visible: 'canary' }, { id: 'a' });
    const { body, text } = await api('GET', 'queues/work/jobs/a');
    expect([body.id, body.data, text.includes('canary')]).toEqual(['a', null, false]);
    expect((await api('POST', 'queues/work/jobs/a/data', { data: '1', version: '' })).status).toBe(403);
  });
});

describe('without a way to decide who may see it', () => {
  it.each([{}, { guards: [] }, { readOnly: true }, { title: 'Jobs' }])('%j is refused', (options) => {
    expect(() => QueueDashboardModule.forRoot(options)).toThrow(
      /needs guards or authorize.*access: 'public'/,
    );
  });

  it.each([
    [{ access: 'everyone' }, "access must be 'public'"],
    [{ access: 'public', path: '' }, 'path must be a path'],
    [{ access: 'public', path: '../x' }, 'path must be a path'],
    [{ access: 'public', path: 'a/:b' }, 'path must be a path'],
    [{ access: 'public', guards: [5] }, 'guards must be a list of guards'],
    [{ authorize: 'admin' }, 'authorize must be a function'],
    [{ access: 'public', redact: { fields: 'password' } }, 'redact.fields must be a regular expression'],
    [{ access: 'public', redact: { paths: 'a' } }, 'redact.paths must be a list of paths'],
    [{ access: 'public', redact: true }, 'redact must be an object'],
    [{ access: 'public', titel: 'x' }, 'titel'],
    [{ access: 'public', title: '' }, 'title must be a string'],
    [{ access: 'public', maxOldest: 'soon' }, 'maxOldest'],
    [{ access: 'public', maxStreams: 0 }, 'maxStreams must be an integer'],
    [null, 'must be an object'],
  ])('%j is refused with a message', (options, said) => {
    expect(() => QueueDashboardModule.forRoot(options as never)).toThrow(said);
  });

  it.each<unknown>([
    'https://x.example/',
    { Trace: 7 },
    { '': 'https://x.example/' },
    { Trace: 'x.example/{id}' },
    { Trace: 'javascript:alert({id})' },
    { Trace: 'https://{queue}.example/' },
    { Trace: 'https://x.example/{data}' },
    { Trace: 'https://x.example/{id' },
    Object.fromEntries(Array.from({ length: 11 }, (_, at) => [`l${at}`, 'https://x.example/'])),
  ])('jobLinks: %j is refused with a message', (jobLinks) => {
    const options = { access: 'public', jobLinks } as never;
    expect(() => QueueDashboardModule.forRoot(options)).toThrow('jobLinks must be up to 10 labels');
  });
});
