import { describe, expect, it } from 'vitest';
import type { QueueEngine } from '#lib/contract/engine.js';
import { QUEUE_ENGINE } from '#lib/decorators/metadata.js';
import { GroupFullError } from '#lib/errors.js';
import { QueueRuntime } from '#lib/module/queue.runtime.js';
import { bootDashboard } from '../support/dashboard.js';
import type { Attention } from '#lib/subpaths/dashboard/views.js';
import { bootQueue, PATIENT } from '../support/queue-app.js';
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

describe('an act on many jobs that was interrupted', () => {
  it('needs attention until it is continued or stopped', async () => {
    const { queue, api, app } = await bootDashboard(redis);
    const engine = app.get<QueueEngine>(QUEUE_ENGINE);
    await queue.addBulk(Array.from({ length: 1_500 }, () => ({ name: 'a', data: null })));
    const rate = { max: 1, per: '1h' } as const;
    const { id } = await queue.bulkActs.start('remove', { state: 'waiting' }, { rate });
    const texts = async () =>
      ((await api('GET', 'overview')).body.attention as Attention[]).filter(({ page }) => page === 'jobs');
    await until(async () => (await queue.bulkActs.get(id))?.done === 1, PATIENT);
    expect(await texts()).toEqual([]);
    // As another process would have left it: silent for a minute.
    await until(async () => {
      const before = (await engine.bulkActs.list()).get(id)!;
      const record = JSON.parse(before) as { updatedAt: number };
      const after = { ...record, runner: 'gone', updatedAt: record.updatedAt - 60_000 };
      return engine.bulkActs.put({ id, queue: 'work', before, after: JSON.stringify(after) });
    }, PATIENT);
    expect(await texts()).toEqual([
      {
        level: 'warn',
        queue: 'work',
        page: 'jobs',
        text: expect.stringMatching(
          /^An act on many jobs \(remove\) was interrupted after [\d,]+ of 1,500 jobs\. Continue or stop it\.$/,
        ),
      },
    ]);
    expect((await api('POST', `queues/work/bulk/${id}/stop`)).status).toBe(200);
    expect(await texts()).toEqual([]);
  });
});

describe('a full queue', () => {
  it.each([
    ['reject', 'adds are rejected'],
    ['dropNew', 'new jobs are dropped'],
  ] as const)('needs attention, with onFull %s', async (onFull, happens) => {
    const { queue, api } = await bootDashboard(redis, { queue: { maxWaiting: { limit: 1, onFull } } });
    const full = async () =>
      ((await api('GET', 'overview')).body.attention as { text: string }[]).filter(({ text }) =>
        text.includes('full'),
      );
    expect(await full()).toEqual([]);
    const { id } = await queue.add('a', 1);
    const text = `It is full, so ${happens}: 1 waiting job, and maxWaiting is 1.`;
    expect(await full()).toEqual([{ level: 'bad', queue: 'work', page: 'queue', text }]);
    await queue.remove(id);
    expect(await full()).toEqual([]);
  });

  it('needs attention for 10 minutes after an add found no room, also in a process that does not know its options', async () => {
    const { api } = await bootDashboard(redis);
    const app = await bootQueue(redis, { queue: { maxWaiting: { limit: 1, onFull: 'dropOldest' } } });
    const found = async () => {
      const { attention } = (await api('GET', 'overview')).body as { attention: Attention[] };
      return attention.filter(({ text }) => /full|room/.test(text)).map(({ level, text }) => [level, text]);
    };
    await app.queue.add('a', 1);
    expect(await found()).toEqual([]);
    const { id } = await app.queue.add('a', 2);
    const full = 'It is full, so the oldest waiting jobs are removed: 1 waiting job, and maxWaiting is 1.';
    expect(await found()).toEqual([['bad', full]]);
    await app.queue.remove(id);
    const was = /^It had no room [\d.]+ m?s ago, so the oldest waiting jobs were removed: maxWaiting is 1\.$/;
    expect(await found()).toEqual([['warn', expect.stringMatching(was)]]);
    await redis.admin.hdel(`{${redis.prefix}:work}:meta`, 'full');
    await app.queue.group('a b').set({ maxSize: 1 });
    const add = () => app.queue.add('a', 1, { group: 'a b' });
    await add();
    await expect(add()).rejects.toThrow(GroupFullError);
    const group = 'Group "a b" is full, so adds are rejected: 1 waiting job, and maxSize is 1.';
    expect(await found()).toEqual([['bad', group]]);
  });
});

describe('a queue that cannot be read', () => {
  it('is named with its error, and the pages show the other queues', async () => {
    const { queue, queueOf, api } = await bootDashboard(redis, { queues: ['broken'] });
    await queue.schedules.upsert('daily', { every: '1d' }, { name: 'a' });
    await queueOf('broken').pause();
    const tag = `{${redis.prefix}:broken}:`;
    const namesIn = (list: unknown) =>
      (list as { name?: string; queue?: string }[]).map((one) => one.name ?? one.queue);
    const overview = async () => {
      const { status, body } = await api('GET', 'overview');
      return { status, queues: namesIn(body.queues), unreadable: body.unreadable };
    };
    expect(await overview()).toEqual({ status: 200, queues: ['work', 'broken'], unreadable: {} });
    const wrong = { broken: expect.stringMatching(/WRONGTYPE/) };
    for (const key of ['dead', 'limits']) {
      await redis.admin.set(tag + key, 'of another program');
      expect(await overview()).toMatchObject({ status: 200, unreadable: wrong });
      await redis.admin.del(tag + key);
    }
    await redis.admin.set(`${tag}dead`, 'of another program');
    expect((await overview()).queues).toEqual(['work']);
    expect((await api('GET', 'dead')).body).toMatchObject({
      examined: { work: { total: 0 } },
      unreadable: wrong,
    });
    await redis.admin.set(`${tag}scheduleOrder`, 'of another program');
    const { body } = await api('GET', 'schedules');
    expect([namesIn(body.schedules), body.unreadable]).toEqual([['work'], wrong]);
    await redis.admin.set(`${tag}minutes:${new Date().toISOString().slice(0, 13)}`, 'of another program');
    const series = await api('GET', 'series?hours=1');
    expect(series).toMatchObject({ status: 200, body: { byQueue: { work: {} }, unreadable: wrong } });
    expect(Object.keys(series.body.byQueue)).toEqual(['work']);
    expect((await api('GET', 'redis')).status).toBe(200);
  });
});
