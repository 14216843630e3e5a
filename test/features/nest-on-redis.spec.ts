import { Injectable, type OnModuleInit } from '@nestjs/common';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { InjectQueue } from '#lib/decorators/inject-queue.decorator.js';
import { getQueueToken } from '#lib/decorators/metadata.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { SchemaViolationError } from '#lib/errors.js';
import { QueueEvents } from '#lib/events/queue-events.js';
import { defineJob, type JobOf } from '#lib/job/define-job.js';
import type { Job } from '#lib/job/job.js';
import { QueueProducer } from '#lib/producer/queue-producer.js';
import type { Queue } from '#lib/producer/queue.js';
import { QueueModule } from '#lib/module/queue.module.js';
import { QueueRuntime } from '#lib/module/queue.runtime.js';
import { bootApp } from '../support/app.js';
import { PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { collect, latch } from '../support/wait.js';

const redis = useRedis();
const welcome = defineJob(
  'email',
  'welcome',
  z.object({ to: z.string(), times: z.coerce.number().default(2) }),
);

@Processor(welcome)
class EmailProcessor {
  constructor(@InjectQueue('sms') private readonly sms: Queue) {}

  @Handle(welcome)
  async welcome(job: JobOf<typeof welcome>) {
    await this.sms.add('follow-up', job.data.to);
    return { sent: job.data.times };
  }
}

@Processor('sms')
class SmsProcessor {
  readonly followed = latch<string>('the follow-up');
  @Handle()
  any(job: Job<string>) {
    this.followed.open(`${job.name} ${job.data}`);
  }
}

function root() {
  return [
    QueueModule.forRootAsync({ useFactory: async () => ({ connection: redis.url, prefix: redis.prefix }) }),
    QueueModule.registerQueue({ name: 'email' }, { name: 'sms' }),
  ];
}

it('takes a job from the producer through both processors, with schema, result and events', async () => {
  const { get } = await bootApp({ imports: root(), providers: [EmailProcessor, SmsProcessor] });
  const said = collect(get(QueueEvents).of('email'));
  await get(QueueEvents).ready('email');
  await expect(get(QueueProducer).addAndWait(welcome, { to: 'ada' })).resolves.toEqual({ sent: 2 });
  await expect(get(SmsProcessor).followed.wait(PATIENT)).resolves.toBe('follow-up ada');
  expect((await said.take(3, () => true, PATIENT)).map((event) => event.type)).toEqual([
    'added',
    'active',
    'completed',
  ]);
  await expect(get(QueueProducer).add(welcome, { to: 7 as never })).rejects.toThrow(SchemaViolationError);
});

it('lets providers add jobs while they are initialised', async () => {
  @Injectable()
  class Greeter implements OnModuleInit {
    constructor(private readonly producer: QueueProducer) {}
    async onModuleInit() {
      await this.producer.add('sms', 'hello', 'from the start');
    }
  }
  const { get } = await bootApp({ imports: root(), providers: [Greeter, SmsProcessor, EmailProcessor] });
  await expect(get(SmsProcessor).followed.wait(PATIENT)).resolves.toBe('hello from the start');
});

it('stops and starts by hand, and adds in between', async () => {
  const { get } = await bootApp({ imports: root(), providers: [EmailProcessor, SmsProcessor] });
  await get(QueueRuntime).stop();
  const { id } = await get<Queue>(getQueueToken('sms')).add('later', 'on');
  expect((await get<Queue>(getQueueToken('sms')).get(id))?.state).toBe('waiting');
  await get(QueueRuntime).start();
  await expect(get(SmsProcessor).followed.wait(PATIENT)).resolves.toBe('later on');
});

it('finishes running jobs when the application closes, and keeps the others', async () => {
  const started = latch('the first job');
  const release = latch('its end');
  let finished = 0;
  @Processor('sms', { concurrency: 1 })
  class OneByOne {
    @Handle()
    async one() {
      started.open();
      await release.promise;
      finished += 1;
    }
  }
  const first = await bootApp({ imports: root(), providers: [OneByOne] });
  await first.get<Queue>(getQueueToken('sms')).addBulk([1, 2, 3].map((data) => ({ name: 'job', data })));
  await started.wait(PATIENT);
  const closing = first.close();
  release.open();
  await closing;
  expect(finished).toBe(1);

  const second = await bootApp({ imports: root() });
  await expect(second.get<Queue>(getQueueToken('sms')).counts()).resolves.toMatchObject({
    waiting: 2,
    active: 0,
  });
});

it('no longer recovers the jobs of other workers once it is closed', async () => {
  const busy = [latch('a first worker is busy'), latch('a second worker is busy')] as const;
  const release = latch('the end of both jobs');
  @Processor('sms', { concurrency: 1 })
  class OneByOne {
    @Handle()
    async one() {
      busy[busy[0].isOpen ? 1 : 0].open();
      await release.promise;
    }
  }
  const one = await bootApp({ imports: root(), providers: [OneByOne] });
  const sms = one.get<Queue>(getQueueToken('sms'));
  await sms.add('job', 1);
  await busy[0].wait(PATIENT);
  const other = await bootApp({ imports: root(), providers: [OneByOne] });
  await sms.add('job', 2);
  await busy[1].wait(PATIENT);
  // Each worker has claimed while the other held a lease, so each has planned a check. The end of the test finds what
  // is left.
  release.open();
  await one.close();
  await expect(other.get<Queue>(getQueueToken('sms')).counts()).resolves.toMatchObject({ waiting: 0 });
  await other.close();
});
