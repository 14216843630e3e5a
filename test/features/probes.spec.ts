import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { QueueProbes, QueueProbesModule, type QueueProbesOptions } from '#lib/subpaths/probes.js';
import { QueueModule } from '#lib/module/queue.module.js';
import { QueueMetrics, QueueMetricsModule } from '#lib/subpaths/prometheus.js';
import type { LinkEvent } from '#lib/contract/engine.js';
import { bootQueue, PATIENT, type QueueAppOptions } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { useServer } from '../support/server.js';
import { latch, until } from '../support/wait.js';
import { temporaryFolder } from '../support/cleanup.js';

const redis = useRedis();

const boot = async (probes: QueueProbesOptions = {}, options: QueueAppOptions = {}) => {
  const app = await bootQueue(redis, {
    watch: false,
    handlers: { ok: () => undefined },
    ...options,
    imports: [
      QueueProbesModule.forRoot({ port: 0, host: '127.0.0.1', ...probes }),
      ...(options.imports ?? []),
    ],
  });
  const { port } = app.get(QueueProbes);
  const get = async (path: string, headers: Record<string, string> = {}) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers });
    const text = await response.text();
    return { status: response.status, body: text.startsWith('{') ? JSON.parse(text) : text };
  };
  return { app, get };
};

describe('QueueProbesModule', () => {
  it('reports live, started and ready once the workers run', async () => {
    const { get } = await boot();
    expect(await get('/live')).toEqual({ status: 200, body: { status: 'live' } });
    expect(await get('/startup')).toEqual({ status: 200, body: { status: 'started' } });
    expect(await get('/ready')).toEqual({ status: 200, body: { status: 'ready' } });
    expect((await get('/')).status).toBe(404);
    expect((await get('/metrics')).status).toBe(404);
    expect((await get('/%E0')).status).toBe(400);
  });

  it('is not ready, but live, once the process is quiet; it is ready while it is paused', async () => {
    const { app, get } = await boot();
    app.runtime.pause();
    expect((await get('/ready')).status).toBe(200);
    app.runtime.quiet();
    expect(await get('/ready')).toEqual({
      status: 503,
      body: { status: 'not ready', reasons: ['the workers are quiet'] },
    });
    expect((await get('/live')).status).toBe(200);
  });

  it('is not ready, but live, while the workers stop', async () => {
    const end = latch('the end of the job');
    const started = latch();
    const { app, get } = await boot({}, { handlers: { slow: () => (started.open(), end.promise) } });
    await app.queue.add('slow', null);
    await started.wait(PATIENT);
    const stopped = app.runtime.stop();
    expect(await get('/ready')).toEqual({
      status: 503,
      body: { status: 'not ready', reasons: ['the workers are draining'] },
    });
    expect((await get('/live')).status).toBe(200);
    end.open();
    await stopped;
    expect((await get('/ready')).body.reasons).toEqual(['the workers are stopped']);
  });

  it('writes a file while the event loop turns, and removes it at the end', async () => {
    const file = join(temporaryFolder(), 'alive');
    const { app } = await boot({ file, port: false });
    expect(app.get(QueueProbes).port).toBeNull();
    expect(Date.parse(readFileSync(file, 'utf8').trim())).toBeGreaterThan(Date.now() - 10_000);
    await app.close();
    expect(existsSync(file)).toBe(false);
  });

  it('serves the metrics, protected by a token', async () => {
    const { get } = await boot(
      { token: 'secret' },
      { imports: [QueueMetricsModule.forRoot({ path: false })] },
    );
    expect((await get('/metrics')).status).toBe(401);
    expect((await get('/metrics', { authorization: 'Bearer other' })).status).toBe(401);
    expect((await get('/metrics', { authorization: 'Bearer secret' })).body).toContain('godwit_build_info');
    // The name of the scheme is case-insensitive (RFC 9110 §11.1); the token is not.
    expect((await get('/metrics', { authorization: 'bearer  secret' })).status).toBe(200);
    expect((await get('/metrics', { authorization: 'bearer SECRET' })).status).toBe(401);
    expect((await get('/scale/work')).status).toBe(401);
    expect((await get('/live')).status).toBe(200);
  });

  it('fails at the start if its port is taken', async () => {
    const { app } = await boot();
    const { port } = app.get(QueueProbes);
    await expect(boot({ port: port! })).rejects.toThrow(
      /QueueProbesModule\.forRoot\(\)\.port must be free on 127\.0\.0\.1/,
    );
  });

  it('refuses wrong options', () => {
    expect(() => QueueProbesModule.forRoot({ port: -1 })).toThrow(/port must be an integer/);
    expect(() => QueueProbesModule.forRoot({ port: false, token: 's3cret' })).toThrow(
      /^QueueProbesModule\.forRoot\(\)\.port must be a port if token is given: .*, got false \(boolean\)$/,
    );
    expect(() => QueueProbesModule.forRoot({ file: '' })).toThrow(/file must be the path of a file/);
  });
});

describe('/scale/<queue>', () => {
  it('returns how many jobs there are to run, and how many processes that takes', async () => {
    const end = latch('the end of the jobs');
    const { app, get } = await boot(
      {},
      { handlers: { slow: () => end.promise }, concurrency: 2, queues: [{ name: 'quiet' }] },
    );
    await app.queue.addBulk(Array.from({ length: 7 }, () => ({ name: 'slow', data: null })));
    await until(async () => (await app.queue.counts()).active === 2, PATIENT);
    await until(async () => (await get('/scale/work')).body.processes === 1, PATIENT);
    expect(await get('/scale/work')).toMatchObject({
      status: 200,
      body: { queue: 'work', backlog: 7, waiting: 5, active: 2, paused: false, slots: 2, wanted: 4 },
    });
    expect((await get('/scale/work?concurrency=7')).body.wanted).toBe(1);
    expect((await get('/scale/work?concurrency=0')).status).toBe(400);
    // A misspelt field would be taken for none, and start another number of processes.
    expect(await get('/scale/work?concurency=7')).toEqual({
      status: 400,
      body: { error: 'the query has "concurency"; it takes only concurrency' },
    });
    expect((await get('/scale/work?concurrency=7&concurrency=1')).body).toEqual({
      error: 'the query has concurrency twice',
    });
    expect((await get('/scale/quiet')).body).toMatchObject({ backlog: 0, wanted: 0, processes: 0 });
    expect((await get('/scale/other')).status).toBe(404);
    // Not 503: an autoscaler would take a wrong name for an outage.
    expect(await get('/scale/a%20b')).toMatchObject({
      status: 404,
      body: { error: 'there is no queue "a b"' },
    });
    expect((await get('/scale/%zz')).status).toBe(400);
    await app.queue.pause();
    // Its process must not be stopped before the running jobs have ended.
    const paused = { waiting: 5, paused: true };
    expect((await get('/scale/work')).body).toMatchObject({ ...paused, backlog: 2, active: 2, wanted: 1 });
    end.open();
    await until(async () => (await app.queue.counts()).active === 0, PATIENT);
    expect((await get('/scale/work')).body).toMatchObject({ ...paused, backlog: 0, wanted: 0 });
  });

  it('counts jobs that a paused group or a hold keeps from starting, as the state of the queue does', async () => {
    const { app, get } = await boot();
    await app.queue.group('a').pause();
    await app.queue.add('ok', null, { group: 'a' });
    expect((await get('/scale/work')).body).toMatchObject({ backlog: 1, waiting: 1, paused: false });
    await app.queue.limits.hold('1h');
    await app.queue.add('ok', null);
    expect((await get('/scale/work')).body).toMatchObject({ backlog: 2, waiting: 2, paused: false });
  });
});

it('names the servers in the order of their configurations, whichever was lost first', () => {
  let linked: (event: LinkEvent) => void = () => undefined;
  const engine = {
    onLink: (listener: typeof linked) => void (linked = listener),
    processes: { server: null },
  };
  const runtime = { state: 'running', workers: [] };
  const probes = new QueueProbes(
    { port: false, host: '' },
    runtime as never,
    {} as never,
    engine as never,
    undefined,
  );
  for (const config of ['b', '', 'a']) linked({ role: 'command', state: 'down', config });
  expect(probes.notReady.slice(1)).toEqual([
    'Redis is not connected',
    "Redis of forRoot('a') is not connected",
    "Redis of forRoot('b') is not connected",
  ]);
});

describe('a Redis that goes away', () => {
  const server = useServer();
  const second = useServer();
  const own = useRedis({ server });

  it('makes the process not ready, and leaves it live', async () => {
    const app = await bootQueue(own, {
      watch: false,
      handlers: { ok: () => undefined },
      imports: [QueueProbesModule.forRoot({ port: 0, host: '127.0.0.1' })],
    });
    const url = `http://127.0.0.1:${app.get(QueueProbes).port}`;
    const statusOf = async (path: string) => (await fetch(url + path)).status;
    await until(async () => (await statusOf('/ready')) === 200, PATIENT);
    await server.kill9();
    await until(async () => (await statusOf('/ready')) === 503, PATIENT);
    expect(await statusOf('/live')).toBe(200);
    await server.restart();
    await until(async () => (await statusOf('/ready')) === 200, PATIENT);
  });

  it('is named, and is not hidden by another one that is up, if there are several', async () => {
    const app = await bootQueue(own, {
      watch: false,
      handlers: { ok: () => undefined },
      imports: [
        QueueModule.forRoot('billing', { connection: second.url }),
        QueueModule.registerQueue({ name: 'invoices', configKey: 'billing' }),
        QueueProbesModule.forRoot({ port: 0, host: '127.0.0.1' }),
        QueueMetricsModule.forRoot({ path: false }),
      ],
    });
    const probes = app.get(QueueProbes);
    const reasons = () => probes.notReady.join(', ');
    await until(() => reasons() === '', PATIENT);
    await server.kill9();
    await second.kill9();
    await until(
      () => reasons() === "Redis is not connected, Redis of forRoot('billing') is not connected",
      PATIENT,
    );
    await server.restart();
    await until(() => reasons() === "Redis of forRoot('billing') is not connected", PATIENT);
    const page = await app.get(QueueMetrics).text();
    expect(page.match(/^godwit_redis_.*role="command".*$/gm)!.toSorted()).toEqual([
      'godwit_redis_reconnects_total{role="command",config=""} 1',
      'godwit_redis_reconnects_total{role="command",config="billing"} 0',
      'godwit_redis_up{role="command",config=""} 1',
      'godwit_redis_up{role="command",config="billing"} 0',
    ]);
    await second.restart();
    await until(() => reasons() === '', PATIENT);
  });
});
