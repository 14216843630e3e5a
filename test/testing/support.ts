import type { ModuleMetadata, Provider } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { getQueueToken } from '#lib/decorators/metadata.js';
import type { ProcessorQueues } from '#lib/decorators/processor.decorator.js';
import type { QueueOptions } from '#lib/options/module-options.js';
import type { Queue } from '#lib/producer/queue.js';
import { QueueModule } from '#lib/module/queue.module.js';
import {
  QueueTesting,
  QueueTestingModule,
  type QueueTestingOptions,
  type TestQueue,
} from '#lib/subpaths/testing.js';
import { atEnd } from '../support/cleanup.js';
import { processorOf, type Handlers } from '../support/queue-app.js';

export const NOON = new Date('2026-01-01T12:00:00Z');

interface BenchOptions extends Pick<ModuleMetadata, 'imports'> {
  readonly root?: QueueTestingOptions;
  readonly queues?: readonly QueueOptions[];
  /** By queue, then by job name; `*` for every other. */
  readonly handlers?: Readonly<Record<string, Handlers>>;
  readonly of?: ProcessorQueues;
  readonly providers?: readonly Provider[];
}

interface Bench {
  readonly module: TestingModule;
  readonly testing: QueueTesting;
  /** The queue `work` as tests see it, and as the application does. */
  readonly work: TestQueue;
  readonly queue: Queue;
  readonly queueOf: (name: string) => Queue;
}

/** A module with the queue `work` on the store of a test. Only the test itself closes it, as few people do. */
export async function setBench(options: BenchOptions = {}): Promise<Bench> {
  const { root, queues = [], handlers = {}, providers = [], imports = [] } = options;
  const module = await Test.createTestingModule({
    imports: [
      QueueTestingModule.forRoot({ now: NOON, ...root }),
      QueueModule.registerQueue({ name: 'work' }, ...queues),
      ...imports,
    ],
    providers: [...providers, ...Object.entries(handlers).map(([queue, given]) => processorOf(queue, given))],
  })
    .setLogger(false as never)
    .compile();
  await module.init();
  if (root?.autoStart) atEnd(() => module.close());
  const testing = module.get(QueueTesting);
  const queueOf = (name: string) => module.get<Queue>(getQueueToken(name), { strict: false });
  return { module, testing, work: testing.queue('work'), queue: queueOf('work'), queueOf };
}
