import { BullModule, Processor, WorkerHost, getQueueToken } from '@nestjs/bullmq';
import { Module, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { DefaultJobOptions, Job, Queue } from 'bullmq';
import type { Contender, OpenOptions, Payload, Retry, Work } from '../contender.js';

export const nestjsBullmq: Contender = {
  name: '@nestjs/bullmq',
  packages: ['@nestjs/bullmq', 'bullmq', '@nestjs/core', 'ioredis'],
  terms: [
    'BullModule with a decorated WorkerHost: acknowledged, at-least-once (a lock per job, renewed; stalled jobs are recovered)',
    'removeOnComplete: true; 1 attempt, its default, where retries are not mentioned; its event stream is on, as by default; concurrency as stated, per queue',
  ],
  offers: ['acknowledged', 'retries'],
  async open(options: OpenOptions) {
    const app = await NestFactory.createApplicationContext(appModule(options), { logger: ['error', 'warn'] });
    const queues = new Map(options.queues.map((name) => [name, app.get<Queue>(getQueueToken(name))]));
    const queue = (name: string): Queue => queues.get(name)!;
    await Promise.all([...queues.values()].map((q) => q.waitUntilReady()));
    return {
      add: (name, data) => queue(name).add('noop', data),
      addBulk: (name, batch) => queue(name).addBulk(batch.map((data) => ({ name: 'noop', data }))),
      async outstanding(name) {
        const counts = await queue(name).getJobCounts('waiting', 'active', 'delayed', 'prioritized');
        return Object.values(counts).reduce((sum, count) => sum + count, 0);
      },
      close: () => app.close(),
    };
  },
};

function retrying({ attempts, backoff: type, delayMs: delay }: Retry): DefaultJobOptions {
  return { attempts, backoff: { type, delay, jitter: 0.2 } };
}

function appModule({ url, queues, retry, work }: OpenOptions): Type {
  const defaultJobOptions = { removeOnComplete: true, ...(retry && retrying(retry)) };
  @Module({
    imports: [
      BullModule.forRoot({ connection: { url }, prefix: 'bench', defaultJobOptions }),
      ...queues.map((name) => BullModule.registerQueue({ name })),
    ],
    providers: work ? queues.map((name) => processorOf(name, work)) : [],
  })
  class App {}
  return App;
}

function processorOf(queue: string, { concurrency, handle }: Work): Type {
  @Processor(queue, { concurrency })
  class BenchProcessor extends WorkerHost {
    override async process(job: Job<Payload>): Promise<unknown> {
      return handle(job.data);
    }
  }
  return BenchProcessor;
}
