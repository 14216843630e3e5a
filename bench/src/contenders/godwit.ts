import { Module, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  Handle,
  Processor,
  QueueEvents,
  QueueModule,
  QueueProducer,
  getQueueToken,
} from '../../../dist/index.js';
import type { AddResult, Job, JobDefaults, JobOptions, Queue } from '../../../dist/index.js';
import type { AddOptions, Contender, OpenOptions, Payload, Retry, Work } from '../contender.js';

/** How many ended jobs are kept if results are kept, and for how long at most. */
const KEPT = { max: 1_000, retention: '1h' };

export const godwit: Contender = {
  name: 'godwit',
  packages: ['godwit', '@nestjs/core', 'ioredis'],
  terms: [
    'QueueModule with a decorated handler: acknowledged, at-least-once (a lease per worker, renewed by a thread; stalled jobs are recovered)',
    "groups.order: 'strict' where one job of a group runs at a time, which also holds back a group during a retry; limits.rate is sliding, its default",
    'completed jobs leave nothing, or the last 1,000 for an hour where results are kept; 3 attempts with exponential backoff, its default, everywhere; its event stream is on, as by default; concurrency as stated, per queue',
  ],
  offers: [
    'acknowledged',
    'retries',
    'delays',
    'schedules',
    'results',
    'events',
    'replicas',
    'groups',
    'turns',
    'rates',
  ],
  async open(options: OpenOptions) {
    const { queues, watch, watchStarts, groups } = options;
    const grouped = (data: Payload, more?: JobOptions): JobOptions | undefined =>
      groups ? { ...more, group: groups.of(data.n) } : more;
    const app = await NestFactory.createApplicationContext(appModule(options), { logger: ['error', 'warn'] });
    const producer = app.get(QueueProducer);
    const handle = (name: string) => app.get<Queue>(getQueueToken(name));
    if (watch || watchStarts) {
      const events = app.get(QueueEvents);
      for (const name of queues) {
        if (watch) events.ofType(name, 'completed').subscribe(() => watch(name));
        if (watchStarts) events.ofType(name, 'active').subscribe(({ at }) => watchStarts(at.getTime()));
      }
      await events.ready();
    }
    return {
      add: (queue, data, more) => producer.add(queue, 'noop', data, grouped(data, jobOptions(more))),
      addBulk(queue, batch, more) {
        const options = jobOptions(more);
        return producer.addBulk(
          queue,
          batch.map((data) => ({ name: 'noop', data, options: grouped(data, options) })),
        );
      },
      async schedule(queue, id, every, data) {
        const { nextAt } = await handle(queue).schedules.upsert(id, { every }, { name: 'noop', data });
        return nextAt!.getTime();
      },
      async resultOf(queue, added) {
        const job = await handle(queue).get((added as AddResult).id);
        return job?.result;
      },
      async outstanding(queue) {
        const { waiting, active, delayed } = await handle(queue).counts();
        return waiting + active + delayed;
      },
      close: () => app.close(),
    };
  },
};

function jobOptions({ delayMs: delay }: AddOptions = {}): JobOptions | undefined {
  return delay ? { delay } : undefined;
}

function appModule(options: OpenOptions): Type {
  const { url, queues, durability, retry, keepResults, groups, rate, leaseMs, work } = options;
  const defaults: JobDefaults = {
    ...(retry && retrying(retry)),
    ...(keepResults && { retention: KEPT.retention }),
  };
  const flow = {
    ...(groups?.isOneAtATime && { groups: { order: 'strict' as const } }),
    ...(rate && { limits: { rate: { max: rate.max, per: rate.perMs } } }),
  };
  @Module({
    imports: [
      QueueModule.forRoot({
        connection: { url },
        prefix: 'bench',
        ...(durability && { durability }),
        ...(keepResults && { completed: { max: KEPT.max } }),
        ...(leaseMs && { lease: { duration: leaseMs } }),
      }),
      ...queues.map((name) => QueueModule.registerQueue({ name, defaults, ...flow })),
    ],
    providers: work ? queues.map((name) => processorOf(name, work)) : [],
  })
  class App {}
  return App;
}

function retrying({ attempts, backoff: type, delayMs: delay }: Retry): JobDefaults {
  return { attempts, backoff: { type, delay } };
}

function processorOf(queue: string, { concurrency, handle }: Work): Type {
  @Processor(queue, { concurrency })
  class BenchProcessor {
    @Handle('noop')
    async run(job: Job<Payload>): Promise<unknown> {
      return handle(job.data);
    }
  }
  return BenchProcessor;
}
