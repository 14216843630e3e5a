import { describe, expect, it } from 'vitest';
import type { QueueEngine } from '#lib/contract/engine.js';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { QUEUE_ENGINE } from '#lib/decorators/metadata.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { Schedule } from '#lib/decorators/schedule.decorator.js';
import { QueueEvents } from '#lib/events/queue-events.js';
import { QueueInspector } from '#lib/inspect/queue-inspector.js';
import type { Job } from '#lib/job/job.js';
import { QueueModule } from '#lib/module/queue.module.js';
import { QueueRuntime } from '#lib/module/queue.runtime.js';
import { QueueProducer } from '#lib/producer/queue-producer.js';
import { createProducer } from '#lib/subpaths/standalone.js';
import { bootApp } from '../support/app.js';
import { bootQueue, keyOf, PATIENT, processorOf, scheduleIdsOf } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';

const redis = useRedis();

/** An application that registers no queue but `work`. */
async function boot(root: object = {}, connection: unknown = redis.url) {
  const { get, close } = await bootApp({
    imports: [
      QueueModule.forRoot({ connection, prefix: redis.prefix, ...root } as never),
      QueueModule.registerQueue({ name: 'work' }),
    ],
    providers: [processorOf('work', { '*': () => 'work' })],
  });
  return {
    close,
    get,
    producer: get(QueueProducer),
    runtime: get(QueueRuntime),
    inspector: get(QueueInspector),
    events: get(QueueEvents),
  };
}

describe.each(['redis', 'memory'] as const)('a queue whose name is known at run time (%s)', (kind) => {
  const open = (root?: object) => boot(root, kind === 'memory' ? 'memory' : redis.url);

  it('is used as any other, with the defaults of forRoot', async () => {
    const { producer, inspector, events } = await open({ defaults: { retention: '1h' } });
    const queue = producer.queue<{ welcome: { to: string } }>('tenant-42');
    expect(producer.queue('tenant-42')).toBe(queue);
    await queue.add('welcome', { to: 'ada' }, { id: 'a', delay: '1h' });
    expect(await queue.get('a')).toMatchObject({ state: 'delayed', queue: 'tenant-42' });
    await producer.add('tenant-42', 'welcome', { to: 'bob' });
    expect(await inspector.queues(['tenant-42'])).toMatchObject([{ counts: { waiting: 1, delayed: 1 } }]);
    expect(() => events.of('tenant-42')).not.toThrow();

    await queue.obliterate();
    expect((await inspector.queues()).map(({ name, counts }) => [name, counts.waiting])).toEqual([
      ['work', 0],
      ['tenant-42', 0],
    ]);
  });

  it('is worked on until its worker is stopped, and again by another worker', async () => {
    const { producer, runtime } = await open({ defaults: { retention: '1h' } });
    const queue = producer.queue('tenant-42');
    const handlers = {
      welcome: (job: Job) => `welcome ${String(job.data)}`,
      'report.*': (job: Job) => job.name,
    };
    const worker = await runtime.work('tenant-42', handlers, { concurrency: 2 });
    expect(worker.queue).toBe('tenant-42');
    expect(await queue.addAndWait('welcome', 'ada')).toBe('welcome ada');
    expect(await queue.addAndWait('report.daily', null)).toBe('report.daily');
    expect(runtime.concurrency('tenant-42')).toBe(2);
    expect(runtime.workers).toContainEqual({ queue: 'tenant-42', state: 'running' });
    await expect(runtime.work('tenant-42', handlers)).rejects.toThrow(
      `work('tenant-42') must be a queue that this process does not work on already; await stop() of its worker first`,
    );

    await Promise.all([worker.stop(), worker.stop()]);
    expect(runtime.workers.map((one) => one.queue)).toEqual(['work']);
    await queue.add('welcome', 'bob', { id: 'b' });
    await producer.queue('work').addAndWait('any', null);
    expect(await queue.get('b')).toMatchObject({ state: 'waiting' });

    await using again = await runtime.work('tenant-42', (job) => `${again.queue} ${job.name}`);
    expect(runtime.concurrency('tenant-42')).toBe(10);
    await until(async () => (await queue.get('b'))?.state === 'completed', PATIENT);
    expect(await queue.get('b')).toMatchObject({ result: 'tenant-42 welcome' });
  });

  it('lets a running job finish when its worker is stopped, and when the application is closed', async () => {
    const { producer, runtime, close } = await open({ defaults: { retention: '1h' } });
    const queue = producer.queue('tenant-42');
    const started = latch('the job runs');
    const finish = latch('the job may end');
    const handler = async () => {
      started.open();
      await finish.promise;
      return 'done';
    };
    const worker = await runtime.work('tenant-42', handler);
    const answer = queue.addAndWait('slow', null);
    await started.promise;
    const stopped = worker.stop();
    await expect(runtime.work('tenant-42', handler)).rejects.toMatchObject({ code: 'GODWIT_INVALID_OPTION' });
    const closed = runtime.stop();
    finish.open();
    expect(await answer).toBe('done');
    await Promise.all([stopped, closed]);
    await close();
    await expect(runtime.work('tenant-42', handler)).rejects.toMatchObject({ code: 'GODWIT_NOT_RUNNING' });
  });

  it('gets its worker when the others start', async () => {
    const { producer, runtime } = await open({ autoStart: false });
    await runtime.work('tenant-42', () => 'ran');
    const unwanted = await runtime.work('tenant-43', () => 'ran');
    await unwanted.stop();
    await runtime.start();
    expect(runtime.workers.map(({ queue }) => queue)).toEqual(['work', 'tenant-42']);
    expect(await producer.queue('tenant-42').addAndWait('one', null)).toBe('ran');
  });
});

describe('a queue whose name is known at run time', () => {
  it('runs inside the hooks of forRoot', async () => {
    const seen: string[] = [];
    const wrap = async (job: Job, next: () => Promise<unknown>) => {
      seen.push(job.name);
      await next();
    };
    const { producer, runtime } = await boot({ wrap });
    await runtime.work('tenant-42', () => 1);
    await producer.queue('tenant-42').addAndWait('one', null);
    expect(seen).toEqual(['one']);
  });

  it('is no longer checked for silent workers once its worker has stopped', async () => {
    const lease = { duration: '1s' } as const;
    const hold = latch();
    const busy = await boot({ lease });
    const app = await boot({ lease });
    const names = ['tenant-42', 'tenant-43'];
    const checked: string[] = [];
    const engine = app.get<QueueEngine>(QUEUE_ENGINE);
    const overdue = engine.overdue.bind(engine);
    engine.overdue = (queue, ms) => {
      checked.push(queue);
      return overdue(queue, ms);
    };
    for (const name of names) {
      await busy.runtime.work(name, () => hold.promise);
      await app.producer.queue(name).add('one', null);
      await until(async () => (await app.producer.queue(name).counts()).active === 1, PATIENT);
    }
    const [left] = await Promise.all(names.map((name) => app.runtime.work(name, () => 1)));
    await until(() => names.every((name) => checked.includes(name)), PATIENT);
    await left!.stop();
    checked.length = 0;
    await until(() => checked.length > 3, PATIENT);
    expect(checked).not.toContain('tenant-42');
    hold.open();
  });

  it('gets the limits of its code, and loses the schedules that its processor had', async () => {
    @Processor('work')
    class Nightly {
      @Schedule({ cron: '0 3 * * *', tz: 'UTC' })
      @Handle('nightly')
      nightly() {}
    }
    const limited = (max: number) => ({ limits: { rate: { max, per: '1h' as const } } });
    const before = await bootQueue(redis, { queue: limited(1), providers: [Nightly], watch: false });
    expect(await scheduleIdsOf(before)).toEqual(['nightly']);
    await before.close();
    const app = await bootQueue(redis, { queue: limited(2), watch: false });
    expect(await app.queue.limits.list()).toMatchObject([{ rate: { max: 1 } }]);
    const worker = await app.runtime.work('work', () => 1);
    expect(await app.queue.limits.list()).toMatchObject([{ rate: { max: 2 } }]);
    expect(await scheduleIdsOf(app)).toEqual([]);
    await worker.stop();
    await app.close();

    const next = await bootQueue(redis, { queue: limited(3), root: { autoStart: false }, watch: false });
    await next.runtime.work('work', () => 1);
    await next.runtime.start();
    expect(await next.queue.limits.list()).toMatchObject([{ rate: { max: 3 } }]);
  });

  it('is not accepted with wrong arguments, and nothing is changed', async () => {
    const { producer, runtime } = await boot();
    const code = 'GODWIT_INVALID_OPTION';
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    await expect(runtime.work('t', proxy)).rejects.toMatchObject({ code });
    expect(() => producer.queue('a b')).toThrow(
      expect.objectContaining({ code: 'GODWIT_INVALID_QUEUE_NAME' }),
    );
    await expect(runtime.work('a b', () => 1)).rejects.toMatchObject({ code: 'GODWIT_INVALID_QUEUE_NAME' });
    for (const handlers of [undefined, null, 7, 'one', [() => 1], new Map(), {}])
      await expect(runtime.work('t', handlers as never)).rejects.toMatchObject({ code });
    await expect(runtime.work('t', { one: 'two' as never })).rejects.toThrow(
      `work('t')['one'] must be a function that takes a job, and no generator, got "two" (string)`,
    );
    const generator = async function* () {};
    await expect(runtime.work('t', { one: generator })).rejects.toThrow(
      /work\('t'\)\['one'\] .* no generator/,
    );
    await expect(runtime.work('t', generator)).rejects.toThrow(/work\('t'\) .* no generator/);
    await expect(runtime.work('t', () => 1, { concurrency: 0 })).rejects.toThrow(/work\('t'\)\.concurrency/);
    await expect(runtime.work('t', { 'a.*': () => 1, '*.a': () => 2 })).rejects.toMatchObject({ code });
    await expect(runtime.work('work', () => 1)).rejects.toMatchObject({ code });
    expect(runtime.workers.map(({ queue }) => queue)).toEqual(['work']);
  });

  it('is refused by a process with the role producer, and by one without a forRoot that it could follow', async () => {
    const { runtime } = await boot({ role: 'producer' });
    await expect(runtime.work('t', () => 1)).rejects.toThrow(/role is not 'producer'/);
    const other = await bootApp({
      imports: [QueueModule.forRoot('other', { connection: redis.url, prefix: redis.prefix })],
    });
    expect(() => other.get(QueueProducer).queue('t')).toThrow(/no forRoot\(\) without a key/);
  });

  it('is refused if a newer version has written it, by producers and workers', async () => {
    const { producer, runtime } = await boot();
    await redis.admin.hset(keyOf(redis, 'meta').replace(':work}', ':newer}'), 'format', 99);
    const code = 'GODWIT_QUEUE_FORMAT';
    await expect(producer.queue('newer').add('one', null)).rejects.toMatchObject({ code });
    await expect(
      producer.queue('newer').schedules.upsert('hourly', { every: '1h' }, { name: 'one' }),
    ).rejects.toMatchObject({ code });
    await expect(producer.queue('newer').add('one', null)).rejects.toMatchObject({ code });
    await expect(runtime.work('newer', () => 1)).rejects.toMatchObject({ code });
    expect(runtime.workers.map(({ queue }) => queue)).toEqual(['work']);
    await using alone = createProducer({ connection: redis.url, prefix: redis.prefix });
    await alone.add('work', 'one', null);
    await expect(alone.add('newer', 'one', null)).rejects.toMatchObject({ code });
    expect(await redis.admin.exists(keyOf(redis, 'wait').replace(':work}', ':newer}'))).toBe(0);
  });
});
