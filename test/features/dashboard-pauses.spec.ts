import { describe, expect, it } from 'vitest';
import { QueueRuntime } from '#lib/module/queue.runtime.js';
import { bootDashboard } from '../support/dashboard.js';
import { PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { until } from '../support/wait.js';

const redis = useRedis();

describe('the overview and the page of a job', () => {
  it('show that each process has paused a queue, or that no process works on it', async () => {
    const { queue, queueOf, api, app } = await bootDashboard(redis, {
      handlers: { a: () => 1 },
      queues: ['idle'],
      root: { lease: { duration: '1s' } },
    });
    const runtime = app.get(QueueRuntime);
    const texts = async () =>
      ((await api('GET', 'overview')).body.attention as { queue?: string; text: string }[])
        .filter((one) => one.queue !== undefined)
        .map(({ text }) => text);
    const place = async () => (await api('GET', 'queues/work')).body.pausedPlace as string | null;
    expect(await place()).toBeNull();
    runtime.pause('work');
    await until(async () => (await place()) !== null, PATIENT);
    expect(await texts()).toEqual([]);
    const { id } = await queue.add('a', 1);
    const { id: idle } = await queueOf('idle').add('a', 1);
    expect(await texts()).toEqual([
      'It is paused in the only process that works on it, and has 1 waiting job.',
      'No process works on it, and it has 1 waiting job.',
    ]);
    expect((await api('GET', `queues/work/jobs/${id}`)).body.waitsFor).toEqual([
      'the queue is paused in the only process that works on it',
    ]);
    expect((await api('GET', `queues/idle/jobs/${idle}`)).body.waitsFor).toEqual([
      'no process works on the queue',
    ]);
    runtime.resume('work');
    await until(async () => (await queue.counts()).waiting === 0, PATIENT);
    await until(async () => (await place()) === null, PATIENT);
  });
});
