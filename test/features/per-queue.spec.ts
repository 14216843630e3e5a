import { expect, it } from 'vitest';
import type { Job } from '#lib/job/job.js';
import { Snooze } from '#lib/job/job.js';
import { bootQueue, itOnRedis, PATIENT, processorOf } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';

const redis = useRedis();

it('keeps as many log lines of a job as its queue says', async () => {
  const handlers = {
    '*': async (job: Job) => {
      for (const line of ['a', 'b', 'c', 'd']) await job.log(line);
    },
  };
  const app = await bootQueue(redis, {
    handlers,
    root: { logs: { max: 2 } },
    queue: { defaults: { retention: '1h' } },
    queues: [
      { name: 'most', logs: { max: 3 }, defaults: { retention: '1h' } },
      { name: 'none', logs: { max: 0 }, defaults: { retention: '1h' } },
    ],
    providers: [processorOf('most', handlers), processorOf('none', handlers)],
  });
  const linesOf = async (name: string) => {
    const queue = app.queueOf(name);
    const { id } = await queue.add('job', 1);
    const done = async () => ((await queue.get(id))?.state === 'completed' ? queue.get(id) : undefined);
    return (await until(done, PATIENT))!.logs.map(({ text }) => text);
  };
  expect(await linesOf('work')).toEqual(['c', 'd']);
  expect(await linesOf('most')).toEqual(['b', 'c', 'd']);
  expect(await linesOf('none')).toEqual([]);
});

it('gives each queue its own time at a stop, and ends with the last', async () => {
  const ended: string[] = [];
  const started = { quick: latch('quick started'), slow: latch('slow started') };
  const gate = latch('the slow job may end');
  const quick = async (job: Job) => {
    started.quick.open();
    await new Promise<void>((resolve) => job.signal.addEventListener('abort', () => resolve()));
    ended.push(`quick ${(job.signal.reason as { reason: string }).reason}`);
    gate.open();
  };
  const slow = async (job: Job) => {
    started.slow.open();
    await gate.wait(PATIENT);
    ended.push(`slow ${job.isDraining} ${job.signal.aborted}`);
  };
  const app = await bootQueue(redis, {
    root: { shutdown: { timeout: '1m', grace: '1s' } },
    queues: [{ name: 'quick', shutdown: { timeout: 0 } }, { name: 'slow' }],
    providers: [processorOf('quick', { '*': quick }), processorOf('slow', { '*': slow })],
  });
  await app.queueOf('quick').add('job', 1);
  await app.queueOf('slow').add('job', 1);
  await Promise.all([started.quick.wait(PATIENT), started.slow.wait(PATIENT)]);
  await app.runtime.stop();
  expect(ended).toEqual(['quick shutdown', 'slow true false']);
});

it('shows a handler that draining has begun, long before its signal aborts', async () => {
  const looked: boolean[] = [];
  const started = latch('started');
  const handlers = {
    job: async (job: Job) => {
      looked.push(job.isDraining);
      started.open();
      await until(() => job.isDraining, PATIENT);
      looked.push(job.signal.aborted);
      throw new Snooze('1h');
    },
  };
  const app = await bootQueue(redis, { handlers, root: { shutdown: { timeout: '1m' } } });
  const { id } = await app.queue.add('job', 1);
  await started.wait(PATIENT);
  await app.runtime.stop();
  expect(looked).toEqual([false, false]);
  expect(await app.queue.get(id)).toMatchObject({ state: 'delayed', attempt: 0 });
});

itOnRedis(
  'renews the leases of queues with different durations, each four times while it lasts',
  async () => {
    const gates = { short: latch('short'), long: latch('long') };
    const started = { short: latch('short started'), long: latch('long started') };
    const app = await bootQueue(redis, {
      root: { lease: { duration: '60s' } },
      queues: [{ name: 'short', lease: { duration: '400ms' } }, { name: 'long' }],
      providers: (['short', 'long'] as const).map((name) =>
        processorOf(name, {
          '*': async () => {
            started[name].open();
            await gates[name].wait(PATIENT);
          },
        }),
      ),
    });
    const leaseOf = async (name: string) =>
      Number((await redis.admin.zrange(`{${redis.prefix}:${name}}:workers`, '0', '0', 'WITHSCORES'))[1]);
    await app.queueOf('short').add('job', 1);
    await app.queueOf('long').add('job', 1);
    await Promise.all([started.short.wait(PATIENT), started.long.wait(PATIENT)]);
    const leases = { short: [await leaseOf('short')], long: [await leaseOf('long')] };
    const look = async () => {
      for (const name of ['short', 'long'] as const) {
        const lease = await leaseOf(name);
        if (lease !== leases[name].at(-1)) leases[name].push(lease);
      }
      return leases.short.at(-1)! > leases.short[0]! + 1_600;
    };
    // Several times as long as the lease lasts without a renewal.
    await until(look, PATIENT);
    // One beat after the claim and one when the thread of the heartbeat begins. The next comes after a quarter of 60 s.
    expect(leases.long.length).toBeLessThanOrEqual(3);
    gates.short.open();
    gates.long.open();
    await app.runtime.stop();
    expect(app.logs.complaints.filter((text) => /silent|lease/.test(text))).toEqual([]);
  },
);
