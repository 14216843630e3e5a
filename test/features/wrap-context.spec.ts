import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate as pause } from 'node:timers/promises';
import {
  Inject,
  Injectable,
  Scope,
  UseInterceptors,
  type CallHandler,
  type ExecutionContext,
  type NestInterceptor,
} from '@nestjs/common';
import { ClsModule, ClsService } from 'nestjs-cls';
import { defer, tap } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { getQueueToken, JOB_REF } from '#lib/decorators/metadata.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import type { Job } from '#lib/job/job.js';
import type { WrapHook } from '#lib/options/worker-options.js';
import { QueueModule } from '#lib/module/queue.module.js';
import { bootApp } from '../support/app.js';
import { useRedis } from '../support/redis.js';
import { bootQueue, PATIENT, type QueueApp, type QueueAppOptions } from '../support/queue-app.js';
import { until } from '../support/wait.js';

const redis = useRedis();

const boot = (wrap: WrapHook, options: QueueAppOptions) => bootQueue(redis, { ...options, root: { wrap } });

describe('the async context of a hook', () => {
  it('is visible in the handler, after its awaits, in interceptors and in streams, for one job only', async () => {
    const storage = new AsyncLocalStorage<string>();
    const seen: string[] = [];
    const see = (place: string, job: Pick<Job, 'id'>) =>
      seen.push(`${place} ${storage.getStore() === job.id ? 'its own' : `that of ${storage.getStore()}`}`);
    @Injectable()
    class Looking implements NestInterceptor {
      intercept(context: ExecutionContext, next: CallHandler) {
        const [job] = context.getArgs<[Job]>();
        see('interceptor', job);
        return next.handle().pipe(tap(() => see('values', job)));
      }
    }
    @Processor('work', { concurrency: 50 })
    class Works {
      @Handle('plain')
      async plain(job: Job) {
        see('handler', job);
        await pause();
        see('later', job);
      }
      @Handle('stream')
      stream(job: Job) {
        return defer(async () => {
          await pause();
          see('stream', job);
        });
      }
      @UseInterceptors(Looking)
      @Handle('enhanced')
      async enhanced(job: Job) {
        await pause();
        see('enhanced', job);
        return 1;
      }
    }
    const app = await boot((job, next) => storage.run(job.id, next), { providers: [Works] });
    const names = ['plain', 'stream', 'enhanced'];
    await app.queue.addBulk(Array.from({ length: 60 }, (_, i) => ({ name: names[i % 3]!, data: null })));
    await app.said.take(60, (event) => event.type === 'completed', PATIENT);
    const counts: Record<string, number> = {};
    for (const line of seen) counts[line] = (counts[line] ?? 0) + 1;
    expect(counts).toEqual({
      'handler its own': 20,
      'later its own': 20,
      'stream its own': 20,
      'interceptor its own': 20,
      'enhanced its own': 20,
      'values its own': 20,
    });
  });

  it('is visible in providers created for a job, their constructors included', async () => {
    const storage = new AsyncLocalStorage<string>();
    const seen: string[] = [];
    @Injectable({ scope: Scope.REQUEST })
    class Tenant {
      readonly made = storage.getStore();
      constructor(@Inject(JOB_REF) readonly job: Job) {}
    }
    @Processor('work', { concurrency: 50 })
    class Works {
      constructor(private readonly tenant: Tenant) {}
      @Handle()
      async run({ id }: Job) {
        await pause();
        seen.push(`${id} ${this.tenant.made} ${this.tenant.job.id} ${storage.getStore()}`);
      }
    }
    const app = await boot((job, next) => storage.run(job.id, next), { providers: [Works, Tenant] });
    const ids = Array.from({ length: 50 }, (_, i) => `job-${i}`);
    await app.queue.addBulk(ids.map((id) => ({ name: 'x', data: null, options: { id } })));
    await app.said.take(50, (event) => event.type === 'completed', PATIENT);
    expect(seen.toSorted()).toEqual(ids.map((id) => `${id} ${id} ${id} ${id}`).toSorted());
  });

  it('may come from providers that forRootAsync injects, such as the ClsService of nestjs-cls', async () => {
    @Injectable()
    class Orders {
      readonly seen: string[] = [];
      constructor(private readonly cls: ClsService<{ jobId: string }>) {}
      async note(id: string) {
        await pause();
        this.seen.push(`${id} ${this.cls.get('jobId')}`);
      }
    }
    @Processor('work')
    class Works {
      constructor(private readonly orders: Orders) {}
      @Handle()
      run(job: Job) {
        return this.orders.note(job.id);
      }
    }
    const { get } = await bootApp({
      imports: [
        ClsModule.forRoot({ global: true }),
        QueueModule.forRootAsync({
          inject: [ClsService],
          useFactory: (cls: ClsService<{ jobId: string }>) => ({
            connection: redis.url,
            prefix: redis.prefix,
            wrap: (job: Job, next: () => Promise<unknown>) =>
              cls.run(() => {
                cls.set('jobId', job.id);
                return next();
              }),
          }),
        }),
        QueueModule.registerQueue({ name: 'work' }),
      ],
      providers: [Orders, Works],
    });
    const queue = get<QueueApp['queue']>(getQueueToken('work'));
    const ids = Array.from({ length: 20 }, (_, i) => `order-${i}`);
    await queue.addBulk(ids.map((id) => ({ name: 'x', data: null, options: { id } })));
    const { seen } = get(Orders);
    await until(() => seen.length === ids.length, PATIENT);
    expect(seen.toSorted()).toEqual(ids.map((id) => `${id} ${id}`).toSorted());
  });
});
