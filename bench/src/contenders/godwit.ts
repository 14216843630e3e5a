import { Module, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Handle, Processor, QueueModule, QueueProducer, getQueueToken } from '../../../dist/index.js';
import type { Job, JobDefaults, Queue } from '../../../dist/index.js';
import type { Contender, OpenOptions, Payload, Retry, Work } from '../contender.js';

export const godwit: Contender = {
  name: 'godwit',
  packages: ['godwit', '@nestjs/core', 'ioredis'],
  terms: [
    'QueueModule with a decorated handler: acknowledged, at-least-once (a lease per worker, renewed by a thread; stalled jobs are recovered)',
    'completed jobs leave nothing; 3 attempts with exponential backoff, its default, everywhere; its event stream is on, as by default; concurrency as stated, per queue',
  ],
  offers: ['acknowledged', 'retries', 'delays', 'replicas'],
  async open(options: OpenOptions) {
    const app = await NestFactory.createApplicationContext(appModule(options), { logger: ['error', 'warn'] });
    const producer = app.get(QueueProducer);
    return {
      add: (queue, data, { delayMs } = {}) =>
        producer.add(queue, 'noop', data, delayMs === undefined ? {} : { delay: delayMs }),
      addBulk: (queue, batch, { delayMs } = {}) =>
        producer.addBulk(
          queue,
          batch.map((data) => ({ name: 'noop', data, ...(delayMs && { options: { delay: delayMs } }) })),
        ),
      async outstanding(queue) {
        const { waiting, active, delayed } = await app.get<Queue>(getQueueToken(queue)).counts();
        return waiting + active + delayed;
      },
      close: () => app.close(),
    };
  },
};

function appModule({ url, queues, durability, retry, work }: OpenOptions): Type {
  @Module({
    imports: [
      QueueModule.forRoot({ connection: { url }, prefix: 'bench', ...(durability && { durability }) }),
      ...queues.map((name) =>
        QueueModule.registerQueue({ name, ...(retry && { defaults: retrying(retry) }) }),
      ),
    ],
    providers: work ? queues.map((name) => processorOf(name, work)) : [],
  })
  class App {}
  return App;
}

function retrying({ attempts, backoff: type, delayMs: delay }: Retry) {
  return { attempts, backoff: { type, delay } } satisfies JobDefaults;
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
