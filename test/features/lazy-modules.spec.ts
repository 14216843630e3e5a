import { Injectable, Module, type OnModuleDestroy } from '@nestjs/common';
import { LazyModuleLoader, ModuleRef } from '@nestjs/core';
import { expect, it } from 'vitest';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { HandleBatch } from '#lib/decorators/handle-batch.decorator.js';
import { OnJob } from '#lib/decorators/on-job.decorator.js';
import { OnQueueEvent } from '#lib/decorators/on-queue-event.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { Schedule } from '#lib/decorators/schedule.decorator.js';
import { QUEUE_ENGINE } from '#lib/decorators/metadata.js';
import type { QueueEngine } from '#lib/contract/engine.js';
import { BootstrapError } from '#lib/errors.js';
import type { Job } from '#lib/job/job.js';
import { QueueModule } from '#lib/module/queue.module.js';
import { QueueRegistry } from '#lib/module/queue.registry.js';
import type { JobEvent } from '#lib/worker/job-listeners.js';
import { bootQueue, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';

const redis = useRedis();

it('runs the jobs of a processor whose module was loaded lazily', async () => {
  const runs: string[] = [];
  @Processor('late')
  class Late {
    @Handle()
    one() {
      runs.push('one');
    }
  }
  @Module({ providers: [Late] })
  class LateModule {}
  const app = await bootQueue(redis, { queues: [{ name: 'late' }], watch: false });
  await app.queueOf('late').add('one', null);
  await app.get(LazyModuleLoader).load(() => LateModule);
  await until(() => runs.length === 1, PATIENT);
  // Once, however often it is loaded.
  await app.get(LazyModuleLoader).load(() => LateModule);
  await app.queueOf('late').add('one', null);
  await until(() => runs.length === 2, PATIENT);
  expect(app.runtime.workers).toEqual([{ queue: 'late', state: 'running' }]);
});

it('adds handlers of a lazily loaded module to the existing pool, and logs what does not work', async () => {
  const runs: string[] = [];
  @Processor('work')
  class Late {
    @Handle('two')
    two() {
      runs.push('two');
    }
    @Schedule({ cron: '0 3 * * *', tz: 'UTC' })
    @Handle('nightly')
    nightly() {}
    @OnQueueEvent('completed')
    heard() {}
  }
  @Module({ providers: [Late] })
  class LateModule {}
  const app = await bootQueue(redis, { handlers: { one: () => void runs.push('one') }, watch: false });
  await app.get(LazyModuleLoader).load(() => LateModule);
  await app.queue.addBulk([
    { name: 'two', data: null },
    { name: 'one', data: null },
  ]);
  await until(() => runs.length === 2, PATIENT);
  expect(runs.toSorted()).toEqual(['one', 'two']);
  const said = app.logs.complaints.filter((text) => text.includes('loaded lazily'));
  expect(said).toEqual([
    expect.stringMatching(/^Late was loaded lazily, so its @OnQueueEvent/),
    expect.stringMatching(/^Late was loaded lazily and has @Schedule/),
  ]);
});

it('goes on with the listeners and batches that exist', async () => {
  const heard: string[] = [];
  const batches: number[] = [];
  @Processor('work')
  class Early {
    @HandleBatch('b', { size: 2, minSize: 2, timeout: '1m' })
    batch(jobs: Job<number>[]) {
      batches.push(jobs.length);
      return jobs.map(() => null);
    }
    @OnJob(['active', 'completed'])
    hear({ type, job }: JobEvent) {
      heard.push(`${job.data} ${type}`);
    }
  }
  @Processor('late')
  class Late {
    @Handle()
    one() {}
  }
  @Module({ providers: [Late] })
  class LateModule {}
  const options = { providers: [Early], queues: [{ name: 'late' }], watch: false };
  const app = await bootQueue(redis, options);
  await app.queue.add('b', 1);
  await until(() => heard.length === 1, PATIENT);
  await app.get(LazyModuleLoader).load(() => LateModule);
  await app.queue.add('b', 2);
  await until(() => heard.length >= 4, PATIENT);
  expect(heard.toSorted()).toEqual(['1 active', '1 completed', '2 active', '2 completed']);
  expect(batches).toEqual([2]);
});

it('keeps a lease that is shorter than those of the queues before', async () => {
  const gate = latch();
  const started = latch();
  @Processor('late')
  class Late {
    @Handle()
    async long() {
      started.open();
      await gate.promise;
    }
  }
  const queue = { name: 'late', lease: { duration: '1s' } } as const;
  @Module({ imports: [QueueModule.registerQueue(queue)], providers: [Late] })
  class LateModule {}
  const app = await bootQueue(redis, { handlers: { one: () => 1 }, watch: false });
  await app.get(LazyModuleLoader).load(() => LateModule);
  await app.producer.queue('late').add('long', null);
  await started.promise;
  const engine = app.get<QueueEngine>(QUEUE_ENGINE);
  const leftMs: number[] = [];
  const end = performance.now() + 2_500;
  await until(async () => {
    const [lease] = await engine.overdue('late', 60_000);
    leftMs.push(lease!.endsInMs);
    return performance.now() > end;
  }, PATIENT);
  gate.open();
  expect(Math.min(...leftMs)).toBeGreaterThan(0);
});

it('load() refuses a lazily loaded processor that conflicts', async () => {
  @Processor('work')
  class Again {
    @Handle('one')
    one() {}
  }
  @Module({ providers: [Again] })
  class AgainModule {}
  const app = await bootQueue(redis, { handlers: { one: () => undefined }, watch: false });
  await expect(app.get(LazyModuleLoader).load(() => AgainModule)).rejects.toThrow(BootstrapError);
});

it('refuses options of a queue that the application has already started with its name alone', async () => {
  @Processor('late')
  class Late {
    @Handle('one')
    one() {}
  }
  @Module({
    imports: [QueueModule.registerQueue({ name: 'late', maxPayloadBytes: 9 })],
    providers: [Late],
  })
  class LateModule {}
  const app = await bootQueue(redis, { queues: [{ name: 'late' }], watch: false });
  await expect(app.get(LazyModuleLoader).load(() => LateModule)).rejects.toThrow(
    "queue 'late' is registered twice with different options: {} and { maxPayloadBytes: 9 }",
  );
});

it('refuses these options also in a module without a processor', async () => {
  @Module({ imports: [QueueModule.registerQueue({ name: 'work', maxPayloadBytes: 9 })] })
  class OptionsModule {}
  @Module({})
  class OtherModule {}
  const app = await bootQueue(redis, { watch: false });
  const loader = app.get(LazyModuleLoader);
  await expect(loader.load(() => OptionsModule)).rejects.toThrow(
    "queue 'work' is registered twice with different options: {} and { maxPayloadBytes: 9 }",
  );
  await loader.load(() => OtherModule);
});

it('ends its runs before a provider that it got with ModuleRef.get is destroyed', async () => {
  const order: string[] = [];
  const started = latch();
  const gate = latch();
  @Injectable()
  class Database implements OnModuleDestroy {
    onModuleDestroy() {
      order.push('database closed');
    }
  }
  @Processor('work')
  class Fetching {
    constructor(private readonly modules: ModuleRef) {}
    @Handle()
    async one() {
      started.open();
      await gate.promise;
      this.modules.get(Database);
      order.push('job ended');
    }
  }
  @Module({ providers: [Database, Fetching] })
  class FetchingModule {}
  const app = await bootQueue(redis, { imports: [FetchingModule], watch: false });
  await app.queue.add('one', null);
  await started.promise;
  const closing = app.close();
  await until(() => app.runtime.state === 'draining', PATIENT);
  gate.open();
  await closing;
  expect(order).toEqual(['job ended', 'database closed']);
});

it('knows the options of a queue that a lazily loaded module registers after its name was used', async () => {
  @Module({ imports: [QueueModule.registerQueue({ name: 'late' })] })
  class LateModule {}
  const app = await bootQueue(redis, { watch: false });
  const registry = app.get(QueueRegistry);
  app.producer.queue('late');
  expect(registry.isRegistered('late')).toBe(false);
  await app.get(LazyModuleLoader).load(() => LateModule);
  expect(registry.isRegistered('late')).toBe(true);
});
