import type { Type } from '@nestjs/common';
import { expect, it } from 'vitest';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { QueueEvents } from '#lib/events/queue-events.js';
import type { Job } from '#lib/job/job.js';
import { QueueProducer } from '#lib/producer/queue-producer.js';
import { QueueModule } from '#lib/module/queue.module.js';
import { bootApp } from '../support/app.js';
import { useRedis } from '../support/redis.js';
import { collect, until } from '../support/wait.js';

const redis = useRedis();
const QUEUES = Array.from({ length: 100 }, (_, i) => `queue-${i}`);

/** 100 queues with one processor each. Each processor reports what it ran. */
async function bootHundred() {
  const ran: string[] = [];
  const processors = QUEUES.map((name): Type => {
    @Processor(name)
    class OneOfMany {
      @Handle()
      run(job: Job) {
        ran.push(`${job.queue} ${job.name}`);
      }
    }
    return OneOfMany;
  });
  const root = QueueModule.forRoot({ connection: redis.url, prefix: redis.prefix });
  const queues = QueueModule.registerQueue(...QUEUES.map((name) => ({ name })));
  const { get } = await bootApp({ imports: [root, queues], providers: processors });
  const runOnAll = async (name: string) => {
    await Promise.all(QUEUES.map((queue) => get(QueueProducer).add(queue, name, null)));
    const wanted = QUEUES.map((queue) => `${queue} ${name}`).toSorted();
    await until(() => ran.length >= QUEUES.length, {
      timeout: 10_000,
      what: () => `100 jobs, got ${ran.length}`,
    });
    expect(ran.splice(0).toSorted()).toEqual(wanted);
  };
  return { get, runOnAll };
}

/** Roles of the open connections, read from the names that the library sets. */
async function roles(): Promise<string[]> {
  return (await redis.clients()).map(({ name }) => name!.split(':').at(-1)!).toSorted();
}

it('serves 100 queues with 100 processors over three connections', async () => {
  const { runOnAll } = await bootHundred();
  await runOnAll('first');
  // The heartbeat thread takes some time to start.
  await until(async () => (await roles()).includes('heartbeat'));
  await runOnAll('second');
  await expect.poll(roles, { timeout: 10_000 }).toEqual(['blocking', 'command', 'heartbeat']);
});

it('takes one more while somebody subscribes to the events of all of them', async () => {
  const { get, runOnAll } = await bootHundred();
  const said = collect(get(QueueEvents).all());
  await get(QueueEvents).ready();
  await runOnAll('heard');
  await said.take(100, (event) => event.type === 'completed', { timeout: 10_000 });
  await expect.poll(roles, { timeout: 10_000 }).toEqual(['blocking', 'command', 'events', 'heartbeat']);
  said.stop();
  await until(async () => (await redis.clients()).length === 3, { what: 'the fourth connection is closed' });
});
