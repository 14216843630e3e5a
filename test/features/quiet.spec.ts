import { describe, expect, it } from 'vitest';
import { UnknownQueueError } from '#lib/errors.js';
import { QueueInspector } from '#lib/inspect/queue-inspector.js';
import { bootQueue, PATIENT, processorOf } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';

const redis = useRedis();
const jobs = (count: number) => Array.from({ length: count }, (_, data) => ({ name: 'job', data }));

/** One process that works on two queues. */
const two = () =>
  bootQueue(redis, {
    queues: [{ name: 'a' }, { name: 'b' }],
    providers: [processorOf('a', { '*': () => undefined }), processorOf('b', { '*': () => undefined })],
    watch: false,
  });

describe('quiet()', () => {
  it('lets running jobs end, gives the others back, and another process runs them', async () => {
    const gate = latch('the slow jobs may end');
    let isFast = true;
    const ran: string[] = [];
    const app = await bootQueue(redis, {
      concurrency: 2,
      handlers: {
        job: async ({ id }) => {
          if (!isFast) await gate.promise;
          ran.push(id);
        },
      },
    });
    await app.queue.addBulk(jobs(2_000));
    // Fast jobs are claimed before a slot is free.
    await app.said.take(500, ({ type }) => type === 'completed', PATIENT);
    isFast = false;
    app.runtime.quiet();
    await until(async () => (await app.queue.counts()).active <= 2, PATIENT);
    const { active, waiting } = await app.queue.counts();
    const before = ran.length;
    gate.open();
    await until(async () => (await app.queue.counts()).active === 0, PATIENT);
    expect(ran.length).toBe(before + active);
    expect((await app.queue.counts()).waiting).toBe(waiting);

    const others: string[] = [];
    await bootQueue(redis, { handlers: { job: ({ id }) => void others.push(id) }, watch: false });
    await until(() => ran.length + others.length === 2_000, PATIENT);
    expect(new Set([...ran, ...others]).size).toBe(2_000);
    expect(others).toHaveLength(waiting);
  });

  it('is not ended by resume, nor by stop and start, while producers go on', async () => {
    const app = await two();
    app.runtime.quiet();
    app.runtime.resume();
    app.runtime.resume('a');
    expect(app.runtime.workers.map(({ state }) => state)).toEqual(['quiet', 'quiet']);
    await app.runtime.stop();
    await app.runtime.start();
    app.runtime.resume();
    expect(app.runtime.workers.map(({ state }) => state)).toEqual(['quiet', 'quiet']);
    await app.producer.add('a', 'job', null);
    const other = await two();
    await until(async () => (await other.producer.queue('a').counts()).waiting === 0, PATIENT);
    const texts = app.logs.lines.map(({ text }) => text);
    expect(texts).toContain('this process claims no more jobs until it ends');
    expect(texts).toContainEqual(expect.stringContaining('a (concurrency 10, paused)'));
  });

  it('of one queue leaves the others running, and is shown with its process', async () => {
    const app = await two();
    const shown = async () => {
      const [worker] = await app.get(QueueInspector).workers();
      return worker && [worker.state, worker.pools.map(({ paused, quiet }) => ({ paused, quiet }))];
    };
    const [none, a, b] = [
      { paused: [], quiet: [] },
      { paused: ['a'], quiet: ['a'] },
      { paused: ['b'], quiet: [] },
    ];
    const shows = (wanted: unknown) =>
      until(async () => JSON.stringify(await shown()) === JSON.stringify(wanted), PATIENT);
    app.runtime.quiet('a');
    await shows(['running', [a, none]]);
    app.runtime.pause('b');
    await shows(['paused', [a, b]]);
    app.runtime.quiet();
    await shows(['quiet', [a, { paused: ['b'], quiet: ['b'] }]]);
    expect(() => app.runtime.quiet('c')).toThrow(UnknownQueueError);
  });

  it('of all queues includes a queue that the process begins to work on later', async () => {
    const app = await two();
    app.runtime.quiet();
    await app.runtime.work('late', () => undefined);
    await app.producer.queue('late').add('job', null);
    expect(app.runtime.workers.at(-1)).toEqual({ queue: 'late', state: 'quiet' });
    expect((await app.producer.queue('late').counts()).waiting).toBe(1);
  });
});
