import { hostname } from 'node:os';
import { describe, expect, it } from 'vitest';
import type { Job } from '#lib/index.js';
import { QueueInspector } from '#lib/inspect/queue-inspector.js';
import { UnrecoverableError } from '#lib/errors.js';
import { QueueModule } from '#lib/module/queue.module.js';
import { QueueMetrics, QueueMetricsModule } from '#lib/subpaths/prometheus.js';
import { bootQueue, PATIENT, processorOf } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';

const redis = useRedis();

const handlers = {
  ok: () => undefined,
  bad: () => {
    throw new UnrecoverableError('never');
  },
  flaky: ({ attempt }: { attempt: number }) => {
    if (attempt === 1) throw new Error('not yet');
  },
};

describe.each(['redis', 'memory'] as const)('forRoot({ history: true }) on %s', (kind) => {
  const connection = kind === 'memory' ? { connection: 'memory' as const } : {};
  const boot = () => bootQueue(redis, { handlers, root: { history: true, ...connection }, watch: false });

  it('counts jobs by minute and name, and writes the last counts when the workers stop', async () => {
    const app = await boot();
    const inspector = app.get(QueueInspector);
    await app.queue.addBulk(['ok', 'ok', 'bad'].map((name) => ({ name, data: null })));
    await app.queue.add('flaky', null, { attempts: 2, backoff: 0 });
    await app.queue.add('flaky', null, { id: 'same', delay: '1h' });
    await app.queue.add('flaky', null, { id: 'same', delay: '1h' });
    await until(async () => (await app.queue.stats()).total.processed === 3, PATIENT);
    await until(async () => (await app.queue.stats()).total.dead === 1, PATIENT);
    expect((await inspector.series('work')).total.completed).toBe(0);
    await app.runtime.stop();
    const { total, byName, points } = await inspector.series('work');
    expect(total).toMatchObject({ added: 5, completed: 3, failed: 2, dead: 1 });
    expect(total.run.count).toBe(5);
    // The second attempt did not wait in the line.
    expect(total.wait.count).toBe(4);
    expect(byName['ok']).toMatchObject({ added: 2, completed: 2, failed: 0, dead: 0 });
    expect(byName['bad']).toMatchObject({ added: 1, completed: 0, failed: 1, dead: 1 });
    expect(byName['flaky']).toMatchObject({ added: 2, completed: 1, failed: 1, dead: 0 });
    expect(points.reduce((sum, { completed }) => sum + completed, 0)).toBe(3);
    const ofName = await inspector.series('work', { name: 'bad' });
    expect([ofName.total.added, ofName.byHost]).toEqual([1, {}]);
  });

  it('counts runs by minute and host', async () => {
    const app = await boot();
    const inspector = app.get(QueueInspector);
    await app.queue.addBulk(['ok', 'ok', 'bad'].map((name) => ({ name, data: null })));
    await until(async () => (await app.queue.stats()).total.processed === 2, PATIENT);
    await until(async () => (await app.queue.stats()).total.dead === 1, PATIENT);
    await app.runtime.stop();
    const all = await inspector.series('work');
    const counts = { completed: 2, failed: 1, dead: 1, run: { count: 3 } };
    expect(Object.keys(all.byHost)).toEqual([hostname()]);
    expect(all.byHost[hostname()]).toMatchObject(counts);
    expect(all.byHost[hostname()]!.lastAt.getTime() % 60_000).toBe(0);
    const { total, byName, byHost, points } = await inspector.series('work', { host: hostname() });
    expect(total).toMatchObject({ ...counts, added: 0, wait: { count: 0, mean: null, p99: null } });
    expect(points.reduce((sum, { failed }) => sum + failed, 0)).toBe(1);
    expect([byName, byHost]).toEqual([{}, all.byHost]);
    expect((await inspector.series('work', { host: 'another' })).total.completed).toBe(0);
    await expect(inspector.series('work', { name: 'ok', host: 'a' })).rejects.toMatchObject({
      code: 'GODWIT_INVALID_OPTION',
    });
  });
});

it('measures no run that is given back at a stop', async () => {
  const begun = latch('three runs');
  let count = 0;
  const begin = () => (count += 1) === 3 && begun.open();
  const stopped = ({ signal }: Job) =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
  const app = await bootQueue(redis, {
    handlers: {
      stops: (job) => (begin(), stopped(job)),
      fails: (job) => (begin(), stopped(job).catch(() => Promise.reject(new Error('cut off')))),
      hangs: ({ signal }) => (
        begin(),
        new Promise((end) => signal.addEventListener('abort', () => setTimeout(end, 500)))
      ),
    },
    root: { history: true, shutdown: { timeout: '50ms', grace: '100ms' } },
    watch: false,
  });
  await app.queue.addBulk(['stops', 'fails', 'hangs'].map((name) => ({ name, data: null })));
  await begun.wait(PATIENT);
  await app.runtime.stop();
  const { total } = await app.get(QueueInspector).series('work');
  expect(total).toMatchObject({ completed: 0, failed: 0, dead: 0, run: { count: 0 } });
  expect((await app.queue.counts()).waiting).toBe(3);
});

it('counts the names of a pattern, and the pool keeps none of them', async () => {
  const ok = () => undefined;
  const app = await bootQueue(redis, {
    handlers: { 'id.*': ok, '*': ok },
    root: { history: true },
    watch: false,
  });
  const names = ['other', ...Array.from({ length: 100 }, (_, n) => `id.${n}`)];
  await app.queue.addBulk(names.map((name) => ({ name, data: null })));
  await until(async () => (await app.queue.stats()).total.processed === names.length, PATIENT);
  const pool = (app.runtime as unknown as { pools: Map<string, object> }).pools.get('work')!;
  const sizes = Object.values(pool).map((field) => (field instanceof Set ? field.size : 0));
  expect(Math.max(...sizes)).toBe(0);
  await app.runtime.stop();
  const { byName } = await app.get(QueueInspector).series('work');
  expect(byName['id.99']).toMatchObject({ added: 1, completed: 1 });
  expect(byName['other']).toMatchObject({ added: 1, completed: 0 });
  expect(byName['']).toMatchObject({ added: 0, completed: 1 });
});

it('writes nothing without it', async () => {
  const app = await bootQueue(redis, { handlers, watch: false });
  await app.queue.add('ok', null);
  await until(async () => (await app.queue.stats()).total.processed === 1, PATIENT);
  await app.runtime.stop();
  expect((await redis.keys()).filter((key) => key.includes(':minutes:'))).toEqual([]);
});

it('counts queues of several stores, and metrics do so too', async () => {
  const app = await bootQueue(redis, {
    handlers,
    watch: false,
    root: { history: true },
    queues: [{ name: 'there', configKey: 'other' } as never],
    providers: [processorOf('there', handlers)],
    imports: [
      QueueModule.forRoot('other', { connection: 'memory' }),
      QueueMetricsModule.forRoot({ path: false }),
    ],
  });
  await app.queue.add('ok', null);
  await app.queueOf('there').add('ok', null);
  await app.queueOf('there').schedules.upsert('now', { every: '1h', immediately: true }, { name: 'ok' });
  await until(async () => (await app.queueOf('there').stats()).total.processed === 2, PATIENT);
  await until(async () => (await app.queue.stats()).total.processed === 1, PATIENT);
  await app.runtime.stop();
  const inspector = app.get(QueueInspector);
  expect((await inspector.series('work')).total).toMatchObject({ added: 1, completed: 1 });
  expect((await inspector.series('there')).total).toMatchObject({ added: 2, completed: 2 });
  const text = await app.get(QueueMetrics).text();
  expect(text).toContain('godwit_runs_total{queue="there",name="ok",outcome="completed"} 2\n');
  expect(text).toMatch(/godwit_exchange_jobs_count\{direction="settled"\} [1-9]/);
});
