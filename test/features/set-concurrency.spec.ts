import { Module } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { InvalidOptionError, UnknownQueueError } from '#lib/errors.js';
import { QueueInspector } from '#lib/inspect/queue-inspector.js';
import type { ProcessorOptions } from '#lib/options/worker-options.js';
import { bootQueue, itOnRedis, PATIENT, processorOf } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';

const redis = useRedis();
const jobs = (count: number) => Array.from({ length: count }, (_, data) => ({ name: 'job', data }));

class Config {
  get(key: string): unknown {
    return { MEDIA: 3, TEXT: '3' }[key];
  }
}
@Module({ providers: [Config], exports: [Config] })
class ConfigModule {}
@Module({ imports: [ConfigModule], exports: [ConfigModule] })
class SharedModule {}

const work = { job: () => undefined };
const media = (options: object) => processorOf('media', work, options as ProcessorOptions);
const boot = (options: object, worker?: object) =>
  bootQueue(redis, {
    queues: [{ name: 'media', ...(worker && { worker }) }],
    imports: [SharedModule],
    providers: [media(options)],
    watch: false,
  });

/** The single fault that stops the application. */
const fault = async (options: object, worker?: object) => {
  const error = await boot(options, worker).then(
    () => undefined,
    (thrown: { faults: string[] }) => thrown,
  );
  return error!.faults;
};

describe('concurrency of a processor', () => {
  it('comes from a provider of its module, or from a module that it imports', async () => {
    const { runtime } = await boot({
      concurrency: async (config: Config) => config.get('MEDIA'),
      inject: [Config],
    });
    expect(runtime.concurrency('media')).toBe(3);
  });

  it('comes from the registration of the queue', async () => {
    const { runtime, logs } = await boot({}, { concurrency: 7 });
    expect(runtime.concurrency('media')).toBe(7);
    expect(logs.lines.map(({ text }) => text)).toContainEqual(
      expect.stringContaining('media (concurrency 7)'),
    );
    expect((await boot({ concurrency: 7 }, { concurrency: 7 })).runtime.concurrency('media')).toBe(7);
  });

  it('is undefined for a missing optional provider', async () => {
    const concurrency = (none?: unknown) => (none === undefined ? 2 : 1);
    const { runtime } = await boot({ concurrency, inject: [{ token: 'NONE', optional: true }] });
    expect(runtime.concurrency('media')).toBe(2);
  });

  const place = `@Processor('media') of TestProcessor`;

  it.each([
    [
      { concurrency: (config: Config) => config.get('TEXT'), inject: [Config] },
      undefined,
      `the result of ${place}.concurrency() must be an integer from 1 to 10000, got "3" (string)`,
    ],
    [
      { concurrency: () => 1, inject: ['MISSING'] },
      undefined,
      `${place}.concurrency(): MISSING cannot be injected; provide it in the module of the processor, or import a module that exports it`,
    ],
    [
      {
        concurrency: () => {
          throw new Error('no configuration');
        },
      },
      undefined,
      `${place}.concurrency(): no configuration`,
    ],
    [
      { inject: [Config] },
      undefined,
      expect.stringContaining(`${place}.inject must be left out if concurrency is not a function`),
    ],
    [
      { concurrency: 4 },
      { concurrency: 5 },
      `the processors of queue 'media' share one pool, but have different values for concurrency: TestProcessor 4 and registerQueue('media').worker 5; set it in one of them`,
    ],
    [
      {},
      { concurrency: 0 },
      `registerQueue('media').worker.concurrency must be an integer from 1 to 10000, got 0 (number)`,
    ],
  ])('refuses %o with registration %o', async (options, worker, text) => {
    expect(await fault(options, worker)).toEqual([text]);
  });
});

describe('setConcurrency', () => {
  const slow = async (concurrency: number) => {
    const gates: (() => void)[] = [];
    let most = 0;
    let now = 0;
    const app = await bootQueue(redis, {
      concurrency,
      handlers: {
        job: async () => {
          now += 1;
          most = Math.max(most, now);
          await new Promise<void>((resolve) => gates.push(resolve));
          now -= 1;
        },
      },
    });
    return {
      ...app,
      gates,
      get now() {
        return now;
      },
      /** The most that ran at once since the last call. */
      peak: () => [most, (most = now)][0],
    };
  };

  it('starts more at once when it is raised', async () => {
    const app = await slow(2);
    await app.queue.addBulk(jobs(8));
    await until(() => app.now === 2, PATIENT);
    app.runtime.setConcurrency('work', 5);
    expect(app.runtime.concurrency('work')).toBe(5);
    await until(() => app.now === 5, PATIENT);
    expect(app.logs.lines.at(-1)).toEqual({ level: 'log', text: "queue 'work': concurrency 5, before 2" });
    app.gates.splice(0).forEach((open) => open());
    await until(() => app.now === 3, PATIENT);
    app.gates.splice(0).forEach((open) => open());
    await app.said.take(8, ({ type }) => type === 'completed', PATIENT);
    expect(app.peak()).toBe(5);
  });

  it('lets running jobs end when it is lowered, and claims none until there is room', async () => {
    const app = await slow(4);
    await app.queue.addBulk(jobs(9));
    await until(() => app.now === 4, PATIENT);
    app.runtime.setConcurrency('work', 1);
    for (let left = 3; left >= 1; left--) {
      app.gates.shift()!();
      await until(() => app.now === left, PATIENT);
    }
    app.peak();
    for (let i = 0; i < 6; i++) {
      await until(() => app.gates.length === 1, PATIENT);
      app.gates.shift()!();
    }
    await app.said.take(9, ({ type }) => type === 'completed', PATIENT);
    expect(app.peak()).toBe(1);
  });

  it('gives back claimed jobs that have not started', async () => {
    let isFast = true;
    const gate = latch('the slow jobs may end');
    const app = await bootQueue(redis, {
      concurrency: 2,
      handlers: { job: () => (isFast ? undefined : gate.promise) },
    });
    await app.queue.addBulk(jobs(3_000));
    // Fast jobs are claimed before a slot is free.
    await app.said.take(500, ({ type }) => type === 'completed', PATIENT);
    isFast = false;
    app.runtime.setConcurrency('work', 1);
    await until(async () => (await app.queue.counts()).active <= 2, PATIENT);
    gate.open();
    await app.said.take(3_000, ({ type }) => type === 'completed', PATIENT);
    expect(app.logs.complaints.filter((text) => /silent|lease/.test(text))).toEqual([]);
  });

  it('applies to all queues that share the slots, and across a stop', async () => {
    const app = await bootQueue(redis, {
      queues: [{ name: 'a' }, { name: 'b' }],
      providers: [processorOf(['a', 'b'], { '*': () => undefined })],
    });
    app.runtime.setConcurrency('b', 3);
    expect(app.runtime.concurrency('a')).toBe(3);
    await app.runtime.stop();
    app.runtime.setConcurrency('a', 4);
    await app.runtime.start();
    expect(app.runtime.concurrency('b')).toBe(4);
    expect(app.logs.lines.map(({ text }) => text)).toContainEqual(
      expect.stringContaining('a before b (concurrency 4)'),
    );
  });

  itOnRedis('is in the record of the process', async () => {
    const app = await bootQueue(redis, { handlers: work });
    app.runtime.setConcurrency('work', 3);
    const seen = async () => (await app.get(QueueInspector).workers())[0]?.pools[0]?.concurrency;
    await until(async () => (await seen()) === 3, PATIENT);
  });

  it('refuses an invalid number, and queues without a processor', async () => {
    const { runtime } = await bootQueue(redis, { handlers: work, queues: [{ name: 'other' }] });
    expect(() => runtime.setConcurrency('work', 0)).toThrow(
      "setConcurrency('work') must be at least 1; to run no jobs, use QueueRuntime.pause('work'), got 0 (number)",
    );
    for (const wrong of [-1, 1.5, 10_001, '4' as never])
      expect(() => runtime.setConcurrency('work', wrong)).toThrow(InvalidOptionError);
    expect(() => runtime.setConcurrency('other', 2)).toThrow('a queue that this process has a processor for');
    expect(() => runtime.setConcurrency('none', 2)).toThrow(UnknownQueueError);
    expect(() => runtime.concurrency('none')).toThrow(UnknownQueueError);
    expect(runtime.concurrency('work')).toBe(10);
  });
});
