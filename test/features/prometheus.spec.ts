import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CanActivate, INestApplication } from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-node';
import type { QueueEngine } from '#lib/contract/engine.js';
import { QUEUE_ENGINE } from '#lib/decorators/metadata.js';
import { UnrecoverableError } from '#lib/errors.js';
import { QueueInspector } from '#lib/inspect/queue-inspector.js';
import type { TracedEnd } from '#lib/options/telemetry.js';
import { otel } from '#lib/subpaths/otel.js';
import { QueueMetrics, QueueMetricsModule, type QueueMetricsOptions } from '#lib/subpaths/prometheus.js';
import { atEnd, temporaryFolder } from '../support/cleanup.js';
import { bootQueue, PATIENT, type QueueAppOptions } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { ROOT } from '../support/sources.js';
import { endOfTurn, latch, until } from '../support/wait.js';
import { promtool } from '../../tools/promtool.mjs';

const redis = useRedis();

const handlers = {
  ok: () => undefined,
  bad: () => {
    throw new UnrecoverableError('never');
  },
};

const boot = (metrics: QueueMetricsOptions = {}, options: QueueAppOptions = {}) =>
  bootQueue(redis, {
    handlers,
    watch: false,
    ...options,
    imports: [QueueMetricsModule.forRoot({ path: false, ...metrics })],
  });
type App = Awaited<ReturnType<typeof boot>>;

/** One job of each outcome. None of them takes time. */
async function work(app: App): Promise<void> {
  await app.queue.addBulk(['ok', 'ok', 'bad'].map((name) => ({ name, data: { text: 'of the data' } })));
  await app.queue.add('later "\\', null, { id: 'same', delay: '1h' });
  await app.queue.add('later "\\', null, { id: 'same', delay: '1h' });
  await until(async () => (await app.queue.stats()).total.processed === 2, PATIENT);
  await until(async () => (await app.queue.stats()).total.dead === 1, PATIENT);
}

describe('QueueMetrics', () => {
  it('counts what this process adds and runs, and reads the state of all queues', async () => {
    const app = await boot();
    await work(app);
    const lines = (await app.get(QueueMetrics).text()).split('\n');
    for (const line of [
      'godwit_jobs_added_total{queue="work",name="ok",result="added"} 2',
      'godwit_jobs_added_total{queue="work",name="later \\"\\\\",result="duplicate"} 1',
      'godwit_runs_total{queue="work",name="ok",outcome="completed"} 2',
      'godwit_runs_total{queue="work",name="bad",outcome="dead"} 1',
      'godwit_jobs_dead_total{queue="work",name="bad",reason="unrecoverable"} 1',
      'godwit_run_duration_seconds_count{queue="work",name="ok"} 2',
      'godwit_run_duration_seconds_bucket{queue="work",name="ok",le="900"} 2',
      'godwit_wait_duration_seconds_count{queue="work",name="ok"} 2',
      'godwit_running_jobs{queue="work"} 0',
      'godwit_worker_slots{pool="work"} 10',
      'godwit_redis_up{role="command"} 1',
      'godwit_queue_jobs{queue="work",state="dead"} 1',
      'godwit_queue_jobs{queue="work",state="delayed"} 1',
      'godwit_queue_paused{queue="work"} 0',
      'godwit_collect_success 1',
      'godwit_exchange_jobs_sum{direction="claimed"} 3',
    ])
      expect(lines).toContain(line);
    expect(lines.join()).not.toContain('of the data');
    expect(lines.filter((line) => line.startsWith('godwit_build_info'))).toHaveLength(1);
  });

  it('counts adds that a full queue or group rejects or drops, once each, also after a wait for room', async () => {
    const full = (onFull: 'reject' | 'wait' | 'dropNew' | 'dropOldest') => ({
      name: onFull,
      maxWaiting: { limit: 1, onFull, ...(onFull === 'wait' && { timeout: 100 }) },
    });
    const app = await boot(
      {},
      {
        queues: [
          ...(['reject', 'wait', 'dropNew', 'dropOldest'] as const).map(full),
          { name: 'grouped', groups: { maxSize: 1 } },
        ],
      },
    );
    const add = (queue: string, options = {}) => app.queueOf(queue).add('job', null, options);
    for (const queue of ['reject', 'wait', 'dropNew', 'dropOldest'])
      await Promise.allSettled([add(queue), add(queue), add(queue)]);
    await expect(app.queueOf('reject').addBulk([{ name: 'job', data: 1 }])).rejects.toThrow(
      'nothing was changed',
    );
    const group = { group: 'g' };
    await Promise.allSettled([add('grouped', group), add('grouped', group), add('grouped')]);
    await expect(add('grouped', group)).rejects.toThrow('nothing was changed');
    let lines = (await app.get(QueueMetrics).text()).split('\n');
    const counts = lines.filter((line) => /^godwit_jobs_added_total.*result="(full|dropped)"/.test(line));
    expect(counts.map((line) => line.replace(/.*queue="(\w+)".*result="(\w+)"} /, '$1 $2 '))).toEqual([
      'reject full 3',
      'wait full 2',
      'dropNew dropped 2',
      'dropOldest dropped 2',
      'grouped full 2',
    ]);
    const removed = () => lines.filter((line) => line.startsWith('godwit_waiting_jobs_dropped_total'));
    expect(removed()).toEqual([]);
    await add('dropOldest');
    await add('dropOldest');
    lines = (await app.get(QueueMetrics).text()).split('\n');
    expect(removed()).toEqual(['godwit_waiting_jobs_dropped_total{queue="dropOldest"} 2']);
  });

  it('counts jobs that an idle worker claims when its doorbell rings', async () => {
    const app = await boot();
    for (let job = 0; job < 5; job++) await app.queue.addAndWait('ok', null, { timeout: '20s' });
    const lines = (await app.get(QueueMetrics).text()).split('\n');
    expect(lines).toContain('godwit_exchange_jobs_sum{direction="claimed"} 5');
  });

  it('begins the counters of alerts with 0, because Prometheus ignores the first value of a series', async () => {
    const app = await boot();
    await app.queue.add('ok', null);
    const lines = async () => (await app.get(QueueMetrics).text()).split('\n');
    await until(
      async () => (await lines()).includes('godwit_runs_total{queue="work",name="ok",outcome="completed"} 1'),
      PATIENT,
    );
    for (const line of [
      'godwit_stalls_total{queue="work"} 0',
      'godwit_runs_total{queue="work",name="ok",outcome="dead"} 0',
      'godwit_runs_total{queue="work",name="ok",outcome="retrying"} 0',
    ])
      expect(await lines()).toContain(line);
    app.get(QueueMetrics).work.stalled('work', 10, 0);
    expect(await lines()).toContain('godwit_stalls_total{queue="work"} 10');
  });

  it('counts jobs that die because their worker was lost, and so do the history and telemetry', async () => {
    const ends: TracedEnd[] = [];
    const telemetry = Object.assign(otel(), {
      ended: (_queue: string, _name: string, end: TracedEnd) => void ends.push(end),
    });
    const lease = { duration: '300ms', maxStalls: 0 } as const;
    const producer = await bootQueue(redis, { root: { lease, role: 'producer' } });
    await producer.queue.add('ok', null);
    await producer
      .get<QueueEngine>(QUEUE_ENGINE)
      .exchange('work', { worker: 'ghost', seq: 1, leaseMs: 300, want: 1, maySuspect: true, settled: [] });
    const app = await boot({}, { root: { lease, history: true, telemetry } });
    await until(async () => (await app.queue.counts()).dead === 1, PATIENT);
    await until(() => ends.length > 0, PATIENT);
    expect(ends).toMatchObject([{ outcome: 'dead', reason: 'stalled', hasRun: false }]);
    const lines = (await app.get(QueueMetrics).text()).split('\n');
    expect(lines).toContain('godwit_stalls_total{queue="work"} 1');
    expect(lines).toContain('godwit_jobs_dead_total{queue="work",name="",reason="stalled"} 1');
    await app.close();
    const { total } = await producer.get(QueueInspector).series('work');
    expect(total).toMatchObject({ dead: 1, completed: 0 });
  });

  it('shows limits of queues, names and those that queues share', async () => {
    const breaker = { failures: 1, openFor: '1h' } as const;
    const app = await boot(
      {},
      {
        root: { limits: { api: { concurrency: 4 } } },
        queue: {
          uses: ['api'],
          defaults: { attempts: 1 },
          limits: { rate: { max: 9, per: '1h' }, names: { fails: { breaker }, slow: { concurrency: 3 } } },
        },
        handlers: {
          fails: () => {
            throw new Error('503');
          },
        },
      },
    );
    await app.queue.add('fails', null);
    await until(async () => (await app.queue.stats()).total.dead === 1, PATIENT);
    await app.queue.limits.hold('1h', { name: 'slow' });
    const lines = (await app.get(QueueMetrics).text()).split('\n');
    for (const line of [
      'godwit_limit_max{queue="work",limit="queue",kind="rate"} 9',
      'godwit_limit_used{queue="work",limit="queue",kind="rate"} 1',
      'godwit_limit_max{queue="work",limit="name:slow",kind="concurrency"} 3',
      'godwit_limit_max{queue="",limit="shared:api",kind="concurrency"} 4',
      'godwit_limit_held_seconds{queue="work",limit="queue"} 0',
      'godwit_breaker_open{queue="work",limit="name:fails"} 1',
    ])
      expect(lines).toContain(line);
    const held = (limit: string) =>
      Number(
        lines
          .find((line) => line.startsWith(`godwit_limit_held_seconds{queue="work",limit="${limit}"}`))!
          .split(' ')[1],
      );
    for (const limit of ['name:fails', 'name:slow']) {
      expect(held(limit)).toBeGreaterThan(3_500);
      expect(held(limit)).toBeLessThanOrEqual(3_600);
    }
  });

  it('shows how many groups are ready or rest, without names that have limits, and none without groups', async () => {
    const app = await boot(
      {},
      {
        handlers: undefined,
        queue: { limits: { rate: { max: 1, per: '1h' }, names: { slow: { concurrency: 1 } } } },
      },
    );
    const lines = async () => (await app.get(QueueMetrics).text()).split('\n');
    expect((await lines()).filter((line) => line.startsWith('godwit_groups'))).toEqual([]);
    await app.queue.addBulk(
      ['a', 'a', 'b', 'c'].map((group) => ({ name: 'ok', data: null, options: { group } })),
    );
    await app.queue.add('slow', null);
    const text = await new QueueMetrics({ inspector: app.get(QueueInspector), global: true }).text();
    expect(text).toContain('godwit_groups{queue="work",state="ready"} 3\n');
    expect(text).toContain('godwit_groups{queue="work",state="resting"} 0\n');
    expect(text).toContain('godwit_groups{queue="work",state="stopped"} 0\n');
  });

  it('shows how late schedules are, while no process fires them', async () => {
    const app = await boot({}, { handlers: undefined });
    const lag = async () => {
      const text = await new QueueMetrics({ inspector: app.get(QueueInspector), global: true }).text();
      const found = /^godwit_schedule_lag_seconds\{queue="work"\} (.*)$/m.exec(text)?.[1];
      return found === undefined ? undefined : Number(found);
    };
    expect(await lag()).toBeUndefined();
    await app.queue.schedules.upsert('hourly', { every: '1h' }, { name: 'ok' });
    expect(await lag()).toBe(0);
    await app.queue.schedules.upsert('often', { every: '1s' }, { name: 'ok' });
    await until(async () => ((await lag()) ?? 0) > 0.2, PATIENT);
    await app.queue.schedules.pause('often');
    expect(await lag()).toBe(0);
  });

  it('names the trace of the newest run in each bucket, with godwit/otel and in OpenMetrics', async () => {
    const tracerProvider = new BasicTracerProvider({
      sampler: {
        shouldSample: (_c, _t, _n, _k, { 'godwit.job.name': name }) => ({ decision: name === 'ok' ? 2 : 0 }),
      },
    });
    const app = await boot({}, { root: { telemetry: otel({ tracerProvider, meterProvider: false }) } });
    await work(app);
    const metrics = app.get(QueueMetrics);
    expect(await metrics.text()).not.toContain('trace_id');
    const open = (await metrics.text('application/openmetrics-text')).split('\n');
    const traced = open.filter((line) => line.includes('trace_id'));
    expect(traced.length).toBeGreaterThan(0);
    for (const line of traced)
      expect(line).toMatch(
        /^godwit_run_duration_seconds_bucket\{queue="work",name="ok",le="[^"]+"\} \d+ # \{trace_id="[0-9a-f]{32}"\} [\d.e-]+ \d+(\.\d+)?$/,
      );
  });

  it('shows which jobs run, and for how long', async () => {
    const end = latch('the end of the job');
    const started = latch();
    const slow = () => (started.open(), end.promise);
    const app = await boot({}, { handlers: { slow } });
    await app.queue.add('slow', null);
    await started.wait(PATIENT);
    const text = await app.get(QueueMetrics).text();
    expect(text).toContain('godwit_running_jobs{queue="work"} 1\n');
    expect(Number(/godwit_oldest_run_seconds\{queue="work"\} (.*)/.exec(text)![1])).toBeGreaterThan(0);
    end.open();
  });

  it('leaves out the state of the queues if it is turned off', async () => {
    const app = await boot({ global: false });
    const text = await app.get(QueueMetrics).text();
    expect(text).not.toContain('godwit_queue_jobs');
    expect(text).not.toContain('godwit_collect_success');
    expect(text).toContain('godwit_build_info');
  });

  it.each(['prom-client', '@prometheus-io/client'])('is part of a registry of %s', async (client) => {
    const { Registry } = (await import(client)) as typeof import('prom-client');
    const app = await boot();
    await work(app);
    const registry = new Registry();
    app.get(QueueMetrics).toRegistry(registry);
    const text = await registry.metrics();
    expect(text).toContain('godwit_runs_total{queue="work",name="ok",outcome="completed"} 2');
    expect(text).toContain('godwit_run_duration_seconds_bucket{queue="work",name="ok",le="+Inf"} 2');
    expect(text).toContain('# TYPE godwit_run_duration_seconds histogram');
    expect(text).toContain('godwit_queue_jobs{queue="work",state="dead"} 1');
  });

  it.each(['prom-client', '@prometheus-io/client'])(
    'adds up no state of the queues in a cluster, with %s',
    async (client) => {
      const { Registry, AggregatorRegistry } = (await import(client)) as typeof import('prom-client');
      const app = await boot();
      await work(app);
      await app.queue.pause();
      const registry = new Registry();
      app.get(QueueMetrics).toRegistry(registry);
      const pages = [await registry.getMetricsAsJSON(), await registry.getMetricsAsJSON()];
      const lines = (await AggregatorRegistry.aggregate(pages).metrics()).split('\n');
      for (const line of [
        'godwit_queue_jobs{queue="work",state="dead"} 1',
        'godwit_queue_paused{queue="work"} 1',
        'godwit_collect_success 1',
        'godwit_redis_up{role="command"} 1',
        'godwit_runs_total{queue="work",name="ok",outcome="completed"} 4',
        'godwit_worker_slots{pool="work"} 20',
      ])
        expect(lines).toContain(line);
      expect(lines.find((line) => line.startsWith('godwit_build_info'))).toMatch(/ 1$/);
    },
  );

  it('is a page that promtool accepts, in both formats', async ({ skip }) => {
    const app = await boot();
    await work(app);
    const metrics = app.get(QueueMetrics);
    const open = await metrics.text('application/openmetrics-text;version=1.0.0,text/plain;q=0.5');
    expect(open).toMatch(/# TYPE godwit_runs counter\n/);
    expect(open).toMatch(/le="900\.0"/);
    expect(open.endsWith('\n# EOF\n')).toBe(true);
    const program = promtool();
    if (program === undefined) return skip('promtool cannot be installed here');
    const { status, stdout, stderr } = spawnSync(program, ['check', 'metrics'], {
      input: await metrics.text(),
      encoding: 'utf8',
    });
    expect([status, stdout, stderr]).toEqual([0, '', '']);
  });
});

describe('QueueMetricsModule', () => {
  let app: INestApplication | undefined;
  afterEach(() => app?.close());

  class Closed implements CanActivate {
    canActivate() {
      return false;
    }
  }

  async function serve(options: QueueMetricsOptions, platform: 'express' | 'fastify' = 'express') {
    const { Test } = await import('@nestjs/testing');
    const { QueueModule } = await import('#lib/module/queue.module.js');
    const module = await Test.createTestingModule({
      imports: [
        QueueModule.forRoot({ connection: redis.url, prefix: redis.prefix }),
        QueueModule.registerQueue({ name: 'work' }),
        QueueMetricsModule.forRoot(options),
      ],
    }).compile();
    app =
      platform === 'express'
        ? module.createNestApplication({ logger: false })
        : module.createNestApplication(new FastifyAdapter() as never, { logger: false });
    app.setGlobalPrefix('api');
    app.useGlobalInterceptors({ intercept: (_context, next) => next.handle() });
    await app.listen(0, '127.0.0.1');
    return app.getUrl();
  }

  /** Express of Nest 11 puts the parameters in another order. */
  const typeAndParameters = ({ headers }: Response) => headers.get('content-type')?.split('; ').toSorted();

  it.each(['express', 'fastify'] as const)(
    'serves the page on %s, under the global prefix',
    async (platform) => {
      const url = await serve({}, platform);
      const response = await fetch(`${url}/api/metrics`);
      expect(response.status).toBe(200);
      expect(typeAndParameters(response)).toEqual(['charset=utf-8', 'text/plain', 'version=0.0.4']);
      expect(await response.text()).toContain('godwit_queue_jobs{queue="work",state="waiting"} 0');
      const open = await fetch(`${url}/api/metrics`, { headers: { accept: 'application/openmetrics-text' } });
      expect(typeAndParameters(open)).toEqual([
        'application/openmetrics-text',
        'charset=utf-8',
        'version=1.0.0',
      ]);
    },
  );

  it('has guards and a path of its own, or no page', async () => {
    const url = await serve({ path: 'internal/numbers', guards: [Closed] });
    expect((await fetch(`${url}/api/internal/numbers`)).status).toBe(403);
    expect((await fetch(`${url}/api/metrics`)).status).toBe(404);
  });

  it('refuses wrong options', () => {
    expect(() => QueueMetricsModule.forRoot({ path: 'a b' })).toThrow(/forRoot\(\)\.path must be a path/);
    expect(() => QueueMetricsModule.forRoot({ guards: {} as never })).toThrow(/guards must be a list/);
    expect(() => QueueMetricsModule.forRoot({ path: false, guards: [Closed] })).toThrow(
      /forRoot\(\)\.path must be a path if guards is given: .*, got false/,
    );
    expect(() => QueueMetricsModule.forRoot({ global: 1 as never })).toThrow(/global must be true or false/);
  });
});

/** A source without queues. */
const NOTHING = {
  registered: [] as string[],
  namesOf: async () => [] as string[],
  look: () => Promise.reject(new Error('no queue')),
  limitsOf: () => Promise.reject(new Error('no queue')),
  sharedLimits: async () => ({ queue: '', limits: [], groups: { ready: 0, resting: 0, stopped: 0 } }),
  scheduleLags: async () => [],
  workers: async () => [],
};

describe('a Redis that does not answer', () => {
  const away = () => Promise.reject(new Error('away'));
  it('costs the page the metrics of the queues, and no more', async () => {
    const broken = { ...NOTHING, registered: ['work'], namesOf: away, look: away, workers: away };
    const text = await new QueueMetrics({ inspector: broken, global: true }).text();
    expect(text).toContain('godwit_collect_success 0\n');
    expect(text).not.toContain('godwit_queue_jobs');
    expect(text).toContain('godwit_build_info');
  });

  it('does not end the process if it fails while the page is read', async () => {
    const heard = vi.fn<() => void>();
    process.on('unhandledRejection', heard);
    atEnd(() => void process.off('unhandledRejection', heard));
    const look = () => endOfTurn().then(away);
    const inspector = { ...NOTHING, namesOf: async () => ['other'], sharedLimits: away, look };
    await new QueueMetrics({ inspector, global: true }).text();
    for (let i = 0; i < 5; i++) await endOfTurn();
    expect(heard).not.toHaveBeenCalled();
  });

  it.each([
    ['counts', 'dead', ['work']],
    ['limits', 'limits', ['work', 'broken']],
    ['schedules', 'upcoming', ['work', 'broken']],
  ])('costs the page only the %s of a queue that cannot be read, and says which', async (_, name, left) => {
    const limits = { concurrency: 5 };
    const app = await boot({}, { queues: [{ name: 'broken', limits }], handlers: undefined });
    const key = `{${redis.prefix}:broken}:${name}`;
    const queues = async () => {
      const page = await new QueueMetrics({ inspector: app.get(QueueInspector), global: true }).text();
      const success = /^godwit_collect_success (.*)$/m.exec(page)![1];
      return [
        success,
        ...[...page.matchAll(/^godwit_queue_paused\{queue="(.*)"\}/gm)].map(([, name]) => name),
      ];
    };
    expect(await queues()).toEqual(['1', 'work', 'broken']);
    await redis.admin.set(key, 'of another program');
    expect(await queues()).toEqual(['0', ...left]);
    expect(await app.logs.complaint(/metrics of queue broken are missing/)).toContain('WRONGTYPE');
    await redis.admin.del(key);
    expect(await queues()).toEqual(['1', 'work', 'broken']);
  });

  it('is asked once for each queue without jobs and limits', async () => {
    const names = Array.from({ length: 60 }, (_, i) => `idle-${i}`);
    const app = await boot({}, { queues: names.map((name) => ({ name })), handlers: undefined });
    const page = () => new QueueMetrics({ inspector: app.get(QueueInspector), global: true }).text();
    const calls = async (command: string) => {
      const stats = await redis.admin.info('commandstats');
      return Number(new RegExp(`^cmdstat_${command}:calls=(\\d+)`, 'm').exec(stats)?.[1] ?? 0);
    };
    await page();
    const before = [await calls('evalsha'), await calls('eval')];
    expect((await page()).match(/^godwit_queue_paused\{/gm)).toHaveLength(61);
    const asked = (await calls('evalsha')) + (await calls('eval')) - before[0]! - before[1]!;
    expect(asked).toBeGreaterThanOrEqual(61);
    // The limits that queues share, heartbeats and upkeep make calls too.
    expect(asked).toBeLessThan(2 * 61);
  });

  it('is read once for pages of the same second', async () => {
    let asked = 0;
    const counting = { ...NOTHING, namesOf: async () => (asked++, []) };
    const metrics = new QueueMetrics({ inspector: counting, global: true });
    await Promise.all([metrics.text(), metrics.text()]);
    await metrics.text();
    expect(asked).toBe(1);
  });
});

describe('the files for Grafana and Prometheus', () => {
  const fileOf = (name: string) => readFileSync(join(ROOT, 'grafana', name), 'utf8');
  const known = new QueueMetrics({ inspector: {} as never, global: true })
    .everyMetric()
    .flatMap(({ name, type }) =>
      type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
    );

  it.each(['godwit.json', 'alerts.yml'])('%s names only metrics that exist', (name) => {
    const text = fileOf(name);
    const expressions =
      name === 'alerts.yml'
        ? [text]
        : [...text.matchAll(/"(?:expr|query|definition)": "((?:[^"\\]|\\.)*)"/g)].map(([, one]) => one!);
    const named = new Set(expressions.join('\n').match(/\bgodwit_\w+/g));
    expect(named.size).toBeGreaterThan(6);
    expect([...named].filter((one) => !known.includes(one))).toEqual([]);
  });

  it('the dashboard shows every metric but those of the page itself', () => {
    const text = fileOf('godwit.json') + fileOf('alerts.yml');
    const families = new Set(known.map((name) => name.replace(/_(bucket|sum|count)$/, '')));
    const missing = [...families].filter((name) => !text.includes(name));
    expect(missing).toEqual(['godwit_collect_duration_seconds']);
  });

  it('the dashboard lists processes that serve only the state of all queues, and those without it', async () => {
    const { list } = JSON.parse(fileOf('godwit.json')).templating as {
      list: { name: string; definition: string }[];
    };
    const { definition } = list.find(({ name }) => name === 'job')!;
    const counts = { waiting: 1, active: 0, delayed: 0, completed: 0, dead: 0, cancelled: 0 };
    const info = { name: 'work', counts, paused: false, oldestWaitingMs: 0 };
    const look = async () => ({ info, isLimited: false });
    const inspector = { ...NOTHING, registered: ['work'], look };
    for (const global of [true, false]) {
      const page = await new QueueMetrics({ inspector, global, local: !global }).text();
      const families = [...page.matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name!);
      expect(families.filter((name) => definition.includes(name))).toHaveLength(1);
    }
  });

  it('the documentation has every metric, with its type', () => {
    const page = readFileSync(join(ROOT, 'docs/operating/metrics.md'), 'utf8');
    const rows = [...page.matchAll(/^\| (`godwit_.*?) \| ([a-z, ]+) \|/gm)].flatMap(([, names, types]) =>
      [...names!.matchAll(/`(\w+)`/g)].map(([, name], i) => {
        const each = types!.split(', ');
        return `${name} ${each[i] ?? each[0]}`;
      }),
    );
    const metrics = new QueueMetrics({ inspector: {} as never, global: true }).everyMetric();
    expect(rows.toSorted()).toEqual(metrics.map(({ name, type }) => `${name} ${type}`).toSorted());
  });

  it('the rules are accepted by promtool', ({ skip }) => {
    const program = promtool();
    if (program === undefined) return skip('promtool cannot be installed here');
    const { status, stdout } = spawnSync(program, ['check', 'rules', join(ROOT, 'grafana', 'alerts.yml')], {
      encoding: 'utf8',
    });
    expect([status, stdout]).toEqual([0, expect.stringContaining('12 rules found')]);
  });

  it('the rules fire for a queue although another application has one of the same name', ({ skip }) => {
    const program = promtool();
    if (program === undefined) return skip('promtool cannot be installed here');
    const file = join(temporaryFolder(), 'test.yml');
    const series = (text: string, values: string) => ({ series: text, values });
    const summaries = {
      GodwitNoConsumer: 'Jobs wait in queue email and no process works on it',
      GodwitQueueFull: 'Queue email or a group of it is full: 3 jobs per second are rejected or dropped',
      GodwitEventLoopBlocked:
        'In a process that works on queue email, code blocks the event loop for up to 1.5s; godwit workers names the process',
      GodwitBreakerOpen:
        'A circuit breaker has been open for 5 minutes, because too many runs failed: name:welcome email',
    };
    const expected = Object.entries(summaries).map(([alertname, summary]) => {
      const severity = alertname === 'GodwitNoConsumer' ? 'critical' : 'warning';
      const more = alertname === 'GodwitBreakerOpen' ? { limit: 'name:welcome' } : {};
      const labels = { severity, job: 'shop', queue: 'email', ...more };
      return {
        eval_time: '10m',
        alertname,
        exp_alerts: [{ exp_labels: labels, exp_annotations: { summary } }],
      };
    });
    const test = {
      rule_files: [join(ROOT, 'grafana', 'alerts.yml')],
      tests: [
        {
          interval: '1m',
          input_series: [
            series('godwit_queue_jobs{job="shop",queue="email",state="waiting"}', '5x20'),
            series('godwit_queue_workers{job="shop",queue="email"}', '0x20'),
            series('godwit_queue_jobs{job="billing",queue="email",state="waiting"}', '5x20'),
            series('godwit_queue_workers{job="billing",queue="email"}', '2x20'),
            series('godwit_jobs_added_total{job="shop",queue="email",name="a",result="full"}', '0+60x20'),
            series('godwit_waiting_jobs_dropped_total{job="shop",queue="email"}', '0+120x20'),
            series('godwit_waiting_jobs_dropped_total{job="billing",queue="email"}', '0x20'),
            series('godwit_queue_event_loop_blocked_seconds{job="shop",queue="email"}', '1.5x20'),
            series('godwit_queue_event_loop_blocked_seconds{job="billing",queue="email"}', '0.5x20'),
            series('godwit_breaker_open{job="shop",queue="email",limit="name:welcome"}', '1x20'),
            series('godwit_breaker_open{job="shop",queue="email",limit="queue"}', '0x20'),
          ],
          alert_rule_test: expected,
        },
      ],
    };
    writeFileSync(file, JSON.stringify(test));
    const { status, stdout, stderr } = spawnSync(program, ['test', 'rules', file], { encoding: 'utf8' });
    expect([status, stdout + stderr]).toEqual([0, expect.stringContaining('SUCCESS')]);
  });
});
