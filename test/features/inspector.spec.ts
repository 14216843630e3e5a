import { hostname } from 'node:os';
import { createRequire } from 'node:module';
import { Controller, Get } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { processKeys } from '#lib/engine/keys.js';
import { decodeProcess, encodeProcess, MAX_RECORD_BYTES } from '#lib/engine/codec/process-codec.js';
import { QueueInspector, type WorkerInfo } from '#lib/inspect/queue-inspector.js';
import { QueueModule } from '#lib/module/queue.module.js';
import { QueueMetrics, QueueMetricsModule } from '#lib/subpaths/prometheus.js';
import { measure } from '#lib/subpaths/alerts/measure.js';
import { checkAlertsOptions } from '#lib/subpaths/alerts/queue-alerts.js';
import { createProducer } from '#lib/subpaths/standalone.js';
import { bootApp } from '../support/app.js';
import { keyOf, bootQueue, PATIENT, processorOf, type QueueApp } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';

const redis = useRedis();
const { version } = createRequire(import.meta.url)('../../package.json') as { version: string };

/** Longer than a test, so that no lease ends during a test. */
const LONG_LEASE = { lease: { duration: '1m' } } as const;

const inspectorOf = (app: Pick<QueueApp, 'get'>) => app.get(QueueInspector);

/** Resolves with the workers once they match. */
const workersWhen = (app: Pick<QueueApp, 'get'>, match: (workers: readonly WorkerInfo[]) => boolean) => {
  let last: readonly WorkerInfo[] = [];
  return until(
    async () => {
      last = await inspectorOf(app).workers();
      return match(last) && last;
    },
    { ...PATIENT, what: () => `other workers than ${JSON.stringify(last)}` },
  );
};
const only = async (app: Pick<QueueApp, 'get'>, match: (worker: WorkerInfo) => boolean = () => true) =>
  (await workersWhen(app, ([worker]) => worker !== undefined && match(worker)))[0]!;

describe('QueueInspector.workers()', () => {
  it('returns host, pid, versions, start time, queues and concurrency, and each running job with name, id and start time', async () => {
    const end = latch('the end of the job');
    const before = Date.now();
    const app = await bootQueue(redis, {
      handlers: { slow: () => end.promise },
      concurrency: 7,
      watch: false,
    });
    const idle = await only(app);
    expect(idle).toMatchObject({ host: hostname(), pid: process.pid, role: 'both', state: 'running' });
    expect(idle.versions).toMatchObject({ godwit: version, node: process.versions.node });
    expect(idle.versions.server).toMatch(/^(Redis|Valkey) \d+\.\d+/);
    expect(idle.startedAt.getTime()).toBeGreaterThan(before - 5_000);
    expect(idle.startedAt.getTime()).toBeLessThan(Date.now() + 5_000);
    expect(idle.pools).toMatchObject([
      { queues: ['work'], paused: [], concurrency: 7, running: 0, jobs: [] },
    ]);

    await app.queue.add('slow', { secret: 'of the data' }, { id: '__proto__' });
    const busy = await only(app, ({ pools }) => pools[0]!.running === 1);
    const [job] = busy.pools[0]!.jobs;
    expect(job).toEqual({ queue: 'work', id: '__proto__', name: 'slow', attempt: 1, since: job!.since });
    expect(job!.since.getTime()).toBeGreaterThanOrEqual(before - 5_000);
    expect(JSON.stringify(busy)).not.toContain('secret');
    expect(busy.startedAt).toEqual(idle.startedAt);
    // The name that logs and job snapshots use for it.
    expect(busy.pools[0]!.workers).toEqual([(await app.queue.get('__proto__'))!.worker]);
    end.open();
    await only(app, ({ pools }) => pools[0]!.running === 0);
  });

  it.each(['redis', 'memory'] as const)('has only the workers of one queue, on %s', async (engine) => {
    const end = latch('the end of the jobs');
    const begun: string[] = [];
    const handlers = { '*': ({ queue }: { queue: string }) => (begun.push(queue), end.promise) };
    const before = Date.now();
    const app = await bootQueue(redis, {
      ...(engine === 'memory' && { root: { connection: 'memory' as const } }),
      handlers,
      queues: [{ name: 'a' }, { name: 'b' }, { name: 'idle' }],
      providers: [processorOf(['a', 'b'], handlers)],
      watch: false,
    });
    for (const name of ['work', 'a', 'b']) await app.queueOf(name).add('job', 1, { id: `of-${name}` });
    await until(() => begun.length === 3, PATIENT);
    const ofB = async () => inspectorOf(app).workers({ queue: 'b' });
    const [worker] = await until(async () => {
      const workers = await ofB();
      return workers[0]?.pools[0]?.running === 2 && workers;
    }, PATIENT);
    expect(worker).toMatchObject({ pid: process.pid, pools: [{ queues: ['a', 'b'] }] });
    expect(worker!.pools).toHaveLength(1);
    const [job, ...others] = worker!.pools[0]!.jobs;
    expect(job).toEqual({ queue: 'b', id: 'of-b', name: 'job', attempt: 1, since: job!.since });
    expect(job!.since.getTime()).toBeGreaterThanOrEqual(before - 5_000);
    expect(others).toEqual([]);
    expect(await inspectorOf(app).workers({ queue: 'idle' })).toEqual([]);
    expect(await inspectorOf(app).workers({ queue: 'of-another-application' })).toEqual([]);
    end.open();
  });

  it.each([
    [{ queue: '' }, 'a queue name is 1 to 128 characters'],
    [{ queues: ['a'] }, 'workers().queues is not an option; did you mean queue?'],
    ['media', 'workers() must be an object'],
  ])('refuses %o', async (options, text) => {
    const app = await bootQueue(redis, { watch: false });
    await expect(inspectorOf(app).workers(options as never)).rejects.toThrow(text);
  });

  it('has one record for each worker process, seen from one that only adds', async () => {
    const producer = await bootQueue(redis, { root: { role: 'producer' }, watch: false });
    expect(await inspectorOf(producer).workers()).toEqual([]);
    const queues = [{ name: 'other' }];
    const providers = [processorOf('other', { '*': () => 1 }, { concurrency: 2 })];
    const handlers = { '*': () => 1 };
    const one = await bootQueue(redis, { handlers, queues, providers, watch: false });
    const two = await bootQueue(redis, { handlers, root: { role: 'worker' }, watch: false });
    const both = await workersWhen(producer, (workers) => workers.length === 2);
    const shown = both.map(({ role, pools }) => [role, ...pools.flatMap((pool) => pool.queues).toSorted()]);
    expect(shown.map((words) => words.join(' ')).toSorted()).toEqual(['both other work', 'worker work']);
    expect(new Set(both.map(({ id }) => id)).size).toBe(2);
    await one.close();
    expect((await inspectorOf(producer).workers()).map(({ role }) => role)).toEqual(['worker']);
    await two.close();
    expect(await inspectorOf(producer).workers()).toEqual([]);
  });

  it('sorts by host and pid', async () => {
    const app = await bootQueue(redis, { handlers: { '*': () => 1 }, watch: false });
    const own = await only(app);
    const raw = (await redis.admin.hget(processKeys(redis.prefix).processInfo, own.id))!;
    const places = [
      ['zoo', 1],
      ['box', 20],
      ['box', 3],
    ] as const;
    const end = Date.now() + 60_000;
    for (const [host, pid] of places) {
      const id = `${host}-${pid}`;
      const info = JSON.stringify({ ...JSON.parse(raw), id, host, pid });
      await redis.admin.hset(processKeys(redis.prefix).processInfo, id, info);
      await redis.admin.zadd(processKeys(redis.prefix).processes, end, id);
    }
    const listed = (await inspectorOf(app).workers()).filter(({ id }) => id !== own.id);
    expect(listed.map(({ id }) => id)).toEqual(['box-3', 'box-20', 'zoo-1']);
    await redis.flush();
  });

  it('finds the process of a queue whose pool is left out of its report, because it has too many', async () => {
    const app = await bootQueue(redis, {
      handlers: { '*': () => 1 },
      queues: [{ name: 'last' }],
      imports: [QueueMetricsModule.forRoot({ path: false })],
      watch: false,
    });
    const own = await only(app);
    const { processes, processInfo } = processKeys(redis.prefix);
    const record = decodeProcess((await redis.admin.hget(processInfo, own.id))!)!;
    const names = [...Array.from({ length: 700 }, (_, i) => `queue-with-a-long-name-${i}`), 'last'];
    const pools = names.map((name) => ({ ...record.pools[0]!, queues: [name] }));
    await redis.admin.hset(processInfo, 'many', encodeProcess({ ...record, id: 'many', pools }));
    await redis.admin.zadd(processes, Date.now() + 60_000, 'many');

    const [found, ...others] = await inspectorOf(app).workers({ queue: 'last' });
    expect(others).toEqual([]);
    expect(found).toMatchObject({ id: 'many', pools: [] });
    expect(found!.moreQueues).toHaveLength(found!.morePools);
    const page = (await app.get(QueueMetrics).text()).split('\n');
    expect(page).toContain('godwit_queue_workers{queue="last"} 1');
    expect(page).toContain('godwit_queue_workers{queue="work"} 1');
    const { rules } = checkAlertsOptions(
      { rules: [{ rule: 'noWorkers', queues: ['last'] }], notify: () => undefined },
      'createAlerts()',
    );
    await app.queueOf('last').add('x', null);
    const source = { engine: app.queue['engine'], inspector: inspectorOf(app) };
    expect((await measure(source, rules, {})).readings).toMatchObject([{ queue: 'last', value: 0 }]);
    const [ordered] = await inspectorOf(app).processes.pause({ queue: 'last' });
    expect(ordered).toMatchObject({ id: 'many' });
    await redis.flush();
  });

  it('returns what a process has paused, until it resumes', async () => {
    const queues = [{ name: 'other' }];
    const providers = [processorOf('other', { '*': () => 1 })];
    // So long that only the change itself can have caused it.
    const app = await bootQueue(redis, {
      handlers: { '*': () => 1 },
      queues,
      providers,
      root: LONG_LEASE,
      watch: false,
    });
    const paused = ({ state, pools }: WorkerInfo) => [state, pools.flatMap((pool) => pool.paused).toSorted()];
    app.runtime.pause('other');
    const some = await only(app, ({ pools }) => pools.some((pool) => pool.paused.length > 0));
    expect(paused(some)).toEqual(['running', ['other']]);
    app.runtime.pause();
    expect(paused(await only(app, ({ state }) => state === 'paused'))).toEqual(['paused', ['other', 'work']]);
    app.runtime.resume();
    expect(paused(await only(app, ({ state }) => state === 'running'))).toEqual(['running', []]);
  });

  it('lists a process whose pools were paused before the start', async () => {
    const root = { ...LONG_LEASE, autoStart: false };
    const app = await bootQueue(redis, { handlers: { '*': () => 1 }, root, watch: false });
    app.runtime.pause();
    expect(await inspectorOf(app).workers()).toEqual([]);
    await app.runtime.start();
    expect(await only(app)).toMatchObject({ state: 'paused', pools: [{ paused: ['work'] }] });
  });

  it('shows a stopping process as draining while its jobs end, and no more once they have', async () => {
    const began = latch('the job');
    const end = latch('the end of the job');
    const watcher = await bootQueue(redis, { root: { role: 'producer' }, watch: false });
    const app = await bootQueue(redis, {
      handlers: { slow: () => (began.open(), end.promise) },
      root: { ...LONG_LEASE, shutdown: { timeout: '30s' } },
      watch: false,
    });
    await app.queue.add('slow', null, { id: 'a' });
    await began.wait(PATIENT);
    const first = await only(watcher);
    const stopped = app.runtime.stop();
    const draining = await only(watcher, ({ state }) => state === 'draining');
    expect(draining.pools).toMatchObject([{ running: 1, jobs: [{ id: 'a' }] }]);
    end.open();
    await stopped;
    expect(await inspectorOf(watcher).workers()).toEqual([]);

    await app.runtime.start();
    const second = await only(watcher);
    expect(second.id).not.toBe(first.id);
    expect(second.startedAt.getTime()).toBeGreaterThanOrEqual(first.startedAt.getTime());
    await app.runtime.stop();
    await app.runtime.stop();
    expect(await inspectorOf(watcher).workers()).toEqual([]);
  });

  it('is registered by timers if the connection cannot be used in a thread', async () => {
    const { Redis } = await import('ioredis');
    const url = redis.url;
    const app = await bootQueue(redis, {
      handlers: { '*': () => 1 },
      root: { connection: () => new Redis(url, { lazyConnect: true }), lease: { duration: '400ms' } },
      watch: false,
    });
    const { id } = await only(app);
    const end = async () => Number(await redis.admin.zscore(processKeys(redis.prefix).processes, id));
    const first = await end();
    await until(async () => (await end()) > first, PATIENT);
    app.runtime.pause();
    expect(await only(app, ({ state }) => state === 'paused')).toMatchObject({ id });
    await app.close();
    expect(await redis.keys()).toEqual([keyOf(redis, 'meta'), processKeys(redis.prefix).queues]);
  });

  it('names the jobs that run longest, and keeps the record small whatever their names', async () => {
    const end = latch('the end of the jobs');
    const name = '"'.repeat(255);
    const app = await bootQueue(redis, {
      handlers: { '*': () => end.promise },
      concurrency: 400,
      queue: { defaults: { attempts: 1 } },
      watch: false,
    });
    const add = (from: number, to: number) =>
      app.queue.addBulk(
        Array.from({ length: to - from }, (_, i) => {
          const id = String(from + i).padStart(255, '\\');
          return { name, data: null, options: { id } };
        }),
      );
    await add(0, 10);
    await only(app, ({ pools }) => pools[0]!.running === 10);
    await add(10, 300);
    const busy = await only(app, ({ pools }) => pools[0]!.running === 300);
    const [pool] = busy.pools;
    expect(pool!.jobs.length).toBeGreaterThan(10);
    expect(pool!.jobs.length).toBeLessThanOrEqual(50);
    const ids = pool!.jobs.map(({ id }) => Number(id.replaceAll('\\', '')));
    expect(ids.slice(0, 10).toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    const bytes = await redis.admin.hstrlen(processKeys(redis.prefix).processInfo, busy.id);
    expect(bytes).toBeLessThanOrEqual(MAX_RECORD_BYTES);
    end.open();
    await until(async () => (await app.queue.counts()).active === 0, PATIENT);
  });

  it('lists the rest if entries cannot be read, and logs that once', async () => {
    const app = await bootQueue(redis, { handlers: { '*': () => 1 }, watch: false });
    const { id } = await only(app);
    const { processes, processInfo } = processKeys(redis.prefix);
    await redis.admin.hset(processInfo, '__proto__', 'not\nJSON', 'other', '{"v":9}');
    await redis.admin.zadd(processes, Date.now() + 60_000, '__proto__', Date.now() + 60_000, 'other');
    for (let i = 0; i < 3; i++) {
      expect((await inspectorOf(app).workers()).map((worker) => worker.id)).toEqual([id]);
    }
    const told = app.logs.lines.filter(({ text }) => text.includes('cannot be read'));
    expect(told.map(({ level }) => level)).toEqual(['debug', 'debug']);
    expect(told.map(({ text }) => text).toSorted()).toEqual([
      'the record of process "__proto__" cannot be read: "not\\nJSON"',
      'the record of process "other" cannot be read: "{\\"v\\":9}"',
    ]);
    expect(app.logs.complaints.filter((text) => text.includes('registry'))).toEqual([]);
    await redis.flush();
  });

  it('can be returned over HTTP unchanged', async () => {
    @Controller()
    class Operators {
      constructor(private readonly inspector: QueueInspector) {}
      @Get('workers')
      workers() {
        return this.inspector.workers();
      }
    }
    const root = QueueModule.forRoot({ connection: redis.url, prefix: redis.prefix });
    const { url } = await bootApp({
      imports: [root, QueueModule.registerQueue({ name: 'work' })],
      providers: [processorOf('work', { '*': () => 1 })],
      controllers: [Operators],
      http: true,
    });
    const ask = async () => (await (await fetch(`${url}/workers`)).json()) as Record<string, unknown>[];
    const [worker] = await until(async () => {
      const workers = await ask();
      return workers.length > 0 && workers;
    }, PATIENT);
    expect(worker).toMatchObject({ pid: process.pid, state: 'running', pools: [{ queues: ['work'] }] });
    expect(new Date(worker!['startedAt'] as string).getTime()).toBeLessThan(Date.now() + 5_000);
  });
});

describe('QueueInspector.queues()', () => {
  it('returns the counts of each registered queue, whether it is paused, and how long the first job has waited', async () => {
    const queues = [{ name: 'other' }, { name: 'empty' }];
    const app = await bootQueue(redis, { queues, root: { role: 'producer' }, watch: false });
    await app.queueOf('other').add('one', null, { delay: '1h' });
    await app.queueOf('other').pause();
    await app.queue.addBulk([
      { name: 'one', data: null },
      { name: 'two', data: null, options: { priority: 3 } },
    ]);
    const [work, other, empty, ...rest] = await inspectorOf(app).queues();
    expect(rest).toEqual([]);
    const none = { waiting: 0, delayed: 0, active: 0, completed: 0, dead: 0, cancelled: 0 };
    expect(work).toMatchObject({ name: 'work', counts: { ...none, waiting: 2 }, paused: false });
    expect(work!.oldestWaitingMs).toBeGreaterThanOrEqual(0);
    expect(work!.oldestWaitingMs).toBeLessThan(60_000);
    expect(other).toEqual({
      name: 'other',
      counts: { ...none, delayed: 1 },
      paused: true,
      oldestWaitingMs: null,
    });
    expect(empty).toEqual({ name: 'empty', counts: none, paused: false, oldestWaitingMs: null });
  });

  it('lists queues that another application added jobs to or works on, after its own, until they are obliterated', async () => {
    const connection = redis.url;
    await using producer = createProducer({ connection, prefix: redis.prefix });
    await producer.add('tenant-2', 'one', null);
    await producer.add('tenant-1', 'one', null);
    const worker = await bootQueue(redis, {
      queues: [{ name: 'work' }],
      handlers: { one: () => 1 },
      watch: false,
    });
    const { get } = await bootApp({
      imports: [
        QueueModule.forRoot({ connection, prefix: redis.prefix }),
        QueueModule.registerQueue({ name: 'own' }),
      ],
    });
    const inspector = get(QueueInspector);
    const names = async () => (await inspector.queues()).map(({ name }) => name);
    await until(async () => (await names()).length === 4, PATIENT);
    expect(await names()).toEqual(['own', 'tenant-1', 'tenant-2', 'work']);
    expect(await inspector.queues(['tenant-1'])).toMatchObject([
      { name: 'tenant-1', counts: { waiting: 1 } },
    ]);
    await expect(inspector.queues(['tenant-3'])).rejects.toMatchObject({ code: 'GODWIT_UNKNOWN_QUEUE' });

    await producer.queue('tenant-1').obliterate();
    expect(await names()).toEqual(['own', 'tenant-2', 'work']);
    await producer.add('tenant-1', 'two', null);
    expect(await names()).toEqual(['own', 'tenant-1', 'tenant-2', 'work']);
    await worker.close();
  });

  it('costs one command for each queue that a process adds jobs to, and none for later adds', async () => {
    await using producer = createProducer({ connection: redis.url, prefix: redis.prefix });
    const { queues } = processKeys(redis.prefix);
    for (let i = 0; i < 3; i++) await producer.add('work', 'one', null);
    await redis.admin.del(queues);
    await producer.add('work', 'one', null);
    await producer.queue('work').addBulk([{ name: 'one', data: null }]);
    expect(await redis.admin.exists(queues)).toBe(0);
    await producer.add('other', 'one', null);
    expect(await redis.admin.zrange(queues, '0', '-1')).toEqual(['other']);
    expect(Number(await redis.admin.zscore(queues, 'other'))).toBeGreaterThan(1e12);
  });

  it('skips invalid queue names in the registry', async () => {
    await redis.admin.zadd(processKeys(redis.prefix).queues, 1, 'a b', 2, '', 3, 'fine');
    const { get } = await bootApp({
      imports: [QueueModule.forRoot({ connection: redis.url, prefix: redis.prefix })],
    });
    expect((await get(QueueInspector).queues()).map(({ name }) => name)).toEqual(['fine']);
  });

  it('is empty if no queue is registered', async () => {
    const { get } = await bootApp({
      imports: [QueueModule.forRoot({ connection: redis.url, prefix: redis.prefix })],
    });
    expect(await get(QueueInspector).queues()).toEqual([]);
    expect(await get(QueueInspector).workers()).toEqual([]);
  });
});
