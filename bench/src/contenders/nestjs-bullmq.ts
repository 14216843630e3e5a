import {
  BullModule,
  OnQueueEvent,
  Processor,
  QueueEventsHost,
  QueueEventsListener,
  WorkerHost,
  getQueueToken,
} from '@nestjs/bullmq';
import { Module, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { Job, Queue } from 'bullmq';
import type { Contender, OpenOptions, Payload, Work } from '../contender.js';
import { PREFIX, jobDefaults, sessionOf, timeOf, untilHearing, workerSettings } from './bullmq-queues.js';

export const nestjsBullmq: Contender = {
  name: '@nestjs/bullmq',
  packages: ['@nestjs/bullmq', 'bullmq', '@nestjs/core', 'ioredis'],
  terms: ['BullModule with a decorated WorkerHost; for the rest as bullmq'],
  offers: ['acknowledged', 'retries', 'delays', 'schedules', 'results', 'events', 'rates'],
  async open(options: OpenOptions) {
    const { url, queues: names, watch, watchStarts } = options;
    const listeners = watch || watchStarts ? names.map((name) => listenerOf(name, options)) : [];
    const app = await NestFactory.createApplicationContext(appModule(options, listeners), {
      logger: ['error', 'warn'],
    });
    const queues = new Map(names.map((name) => [name, app.get<Queue>(getQueueToken(name))]));
    await Promise.all([...queues.values()].map((queue) => queue.waitUntilReady()));
    await Promise.all(
      listeners.map((listener, i) => untilHearing(app.get(listener).queueEvents, names[i]!, url)),
    );
    return sessionOf(
      (name) => queues.get(name)!,
      () => app.close(),
    );
  },
};

function appModule(options: OpenOptions, listeners: readonly Type[]): Type {
  const { url, queues, work } = options;
  @Module({
    imports: [
      BullModule.forRoot({ connection: { url }, prefix: PREFIX, defaultJobOptions: jobDefaults(options) }),
      ...queues.map((name) => BullModule.registerQueue({ name })),
    ],
    providers: [...(work ? queues.map((name) => processorOf(name, work, options)) : []), ...listeners],
  })
  class App {}
  return App;
}

function processorOf(queue: string, work: Work, options: OpenOptions): Type {
  @Processor(queue, workerSettings(work, options))
  class BenchProcessor extends WorkerHost {
    override async process(job: Job<Payload>): Promise<unknown> {
      return work.handle(job.data);
    }
  }
  return BenchProcessor;
}

function listenerOf(queue: string, { watch, watchStarts }: OpenOptions): Type<QueueEventsHost> {
  @QueueEventsListener(queue)
  class BenchListener extends QueueEventsHost {
    @OnQueueEvent('completed')
    onCompleted(): void {
      watch?.(queue);
    }

    @OnQueueEvent('active')
    onActive(_job: unknown, id: string): void {
      watchStarts?.(timeOf(id));
    }
  }
  return BenchListener;
}
