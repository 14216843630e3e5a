import { describe, expect, it } from 'vitest';
import { GroupFullError } from '#lib/errors.js';
import type { Job } from '#lib/job/job.js';
import { bootQueue, isOver, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';

// Behaviour that users of other queues expect and no spec of a feature covers. The migration guide lists the differences.

const redis = useRedis();

describe('a key', () => {
  it('is held through retries, and is free once the job is dead or removed', async () => {
    const app = await bootQueue(redis, { handlers: { job: () => Promise.reject(new Error('no')) } });
    const options = { unique: { key: 'k' }, attempts: 2, backoff: '1h' };
    const { id } = await app.queue.add('job', 1, options);
    await app.said.first(({ type }) => type === 'retrying', PATIENT);
    expect(await app.queue.add('job', 2, options)).toMatchObject({ id, duplicate: true, state: 'delayed' });
    await app.queue.promote(id);
    expect((await app.ended(id)).type).toBe('dead');
    await app.queue.pause();
    const next = await app.queue.add('job', 3, options);
    expect(next.duplicate).toBe(false);
    await app.queue.remove(next.id);
    expect((await app.queue.add('job', 4, options)).duplicate).toBe(false);
  });

  it('that is throttled stays taken although the job is removed', async () => {
    const app = await bootQueue(redis, { watch: false });
    const options = { throttle: { key: 'k', ttl: '1h' } };
    const { id } = await app.queue.add('job', 1, options);
    await app.queue.remove(id);
    expect(await app.queue.add('job', 2, options)).toMatchObject({ id, duplicate: true });
  });

  it('may be taken by one waiting job while another one runs', async () => {
    const hold = latch();
    const app = await bootQueue(redis, { handlers: { job: () => hold.promise }, concurrency: 1 });
    const options = { unique: { key: 'k', states: ['waiting', 'delayed'] } } as const;
    await app.queue.add('job', 1, options);
    await app.said.first(({ type }) => type === 'active', PATIENT);
    const second = await app.queue.add('job', 2, options);
    expect(second.duplicate).toBe(false);
    expect(await app.queue.add('job', 3, options)).toMatchObject({ id: second.id, duplicate: true });
    hold.open();
    await app.ended(second.id);
  });

  it('that is debounced makes a new job once the one before has started', async () => {
    const hold = latch();
    const app = await bootQueue(redis, { handlers: { job: () => hold.promise } });
    const options = { debounce: { key: 'k', delay: '1h' } };
    const first = await app.queue.add('job', 1, options);
    await app.queue.promote(first.id);
    await app.said.first(({ type }) => type === 'active', PATIENT);
    const second = await app.queue.add('job', 2, options);
    expect(second).toMatchObject({ duplicate: false });
    expect(await app.queue.get(second.id)).toMatchObject({ state: 'delayed', data: 2 });
    hold.open();
    await app.ended(first.id);
  });

  it('gives the last data to the job that waits for its retry, so that two never run at once', async () => {
    const ran: string[] = [];
    const app = await bootQueue(redis, {
      handlers: {
        job: ({ data, attempt }: Job<string>) => {
          ran.push(`${data}.${attempt}`);
          if (data === 'a') throw new Error('no');
        },
      },
    });
    const options = { unique: { key: 'k', onDuplicate: 'keepLast' }, attempts: 2, backoff: '1h' } as const;
    const first = await app.queue.add('job', 'a', options);
    await app.said.first(({ type }) => type === 'retrying', PATIENT);
    expect(await app.queue.add('job', 'b', options)).toMatchObject({ id: first.id, replaced: true });
    await app.queue.promote(first.id);
    await app.ended(first.id);
    expect(ran).toEqual(['a.1', 'b.2']);
  });
});

describe('a rate that is set live', () => {
  it('replaces that of the code as a whole, not field by field', async () => {
    const { queue } = await bootQueue(redis, {
      queue: { limits: { rate: { max: 5, per: '1s', window: 'bucket', burst: 2 } } },
      handlers: { job: () => undefined },
      watch: false,
    });
    await queue.limits.set({ rate: { max: 7, per: '1h' } });
    const [info] = await queue.limits.list();
    expect(info).toMatchObject({ rate: { max: 7, perMs: 3_600_000, window: 'sliding' }, isLive: true });
  });

  it('needs no rate in the code, and holds the jobs in the line', async () => {
    const app = await bootQueue(redis, { handlers: { job: () => undefined } });
    await app.queue.limits.set({ rate: { max: 1, per: '1h' } });
    await app.queue.addBulk([1, 2, 3].map((data) => ({ name: 'job', data })));
    await app.said.take(1, ({ type }) => type === 'completed', PATIENT);
    expect(await app.queue.counts()).toMatchObject({ waiting: 2, delayed: 0, active: 0 });
    await app.queue.limits.clear();
    await until(isOver(app), PATIENT);
  });
});

describe('groups', () => {
  const inOrder = async (options: Parameters<typeof bootQueue>[1]) => {
    const order: string[] = [];
    const app = await bootQueue(redis, {
      handlers: { job: ({ group, data }: Job<number>) => void order.push(`${group ?? '-'}${data}`) },
      concurrency: 1,
      root: { autoStart: false },
      ...options,
    });
    return { ...app, order, app };
  };

  it('take turns with the jobs that have none, which share one turn', async () => {
    const { app, order, runtime } = await inOrder({});
    const jobs = ['a', 'a', 'a', undefined, undefined, undefined].map((group, data) => ({
      name: 'job',
      data,
      ...(group === undefined ? {} : { options: { group } }),
    }));
    await app.queue.addBulk(jobs);
    await runtime.start();
    await until(() => order.length === 6, PATIENT);
    const without = order.map((one, at) => (one.startsWith('-') ? at : -1)).filter((at) => at >= 0);
    // Neither all of them first, nor all last.
    expect(without[0]).toBeLessThan(3);
    expect(without[2]).toBeGreaterThan(3);
    expect(order.filter((one) => one.startsWith('-'))).toEqual(['-3', '-4', '-5']);
  });

  it('have priorities of their own', async () => {
    const { app, order, runtime } = await inOrder({});
    await app.queue.addBulk(
      [9, 1, 0].map((priority) => ({ name: 'job', data: priority, options: { group: 'a', priority } })),
    );
    await runtime.start();
    await until(() => order.length === 3, PATIENT);
    expect(order).toEqual(['a0', 'a1', 'a9']);
  });

  it('that would be too full refuse a bulk as a whole, and take retries', async () => {
    let failed = false;
    const app = await bootQueue(redis, {
      queue: { groups: { maxSize: 2 }, defaults: { backoff: 1 } },
      handlers: {
        job: () => {
          if (failed) return;
          failed = true;
          throw new Error('once');
        },
      },
    });
    await app.queue.pause();
    const jobs = (...groups: string[]) =>
      groups.map((group) => ({ name: 'job', data: null, options: { group } }));
    await expect(app.queue.addBulk(jobs('b', 'a', 'a', 'a'))).rejects.toThrow(GroupFullError);
    expect((await app.queue.counts()).waiting).toBe(0);
    await app.queue.addBulk(jobs('a', 'a'));
    await app.queue.resume();
    await until(isOver(app), PATIENT);
    expect((await app.queue.stats()).total).toMatchObject({ processed: 2, dead: 0 });
  });

  it('in strict order stop at a dead job with onDead block, until it is retried', async () => {
    const order: unknown[] = [];
    let broken = true;
    const app = await bootQueue(redis, {
      queue: { groups: { order: 'strict', onDead: 'block' }, defaults: { attempts: 1 } },
      handlers: {
        job: ({ group, data }: Job<number>) => {
          order.push(`${group}${data}`);
          if (broken && data === 0 && group === 'a') throw new Error('no');
        },
      },
    });
    const [first] = await app.queue.addBulk(
      [
        ['a', 0],
        ['a', 1],
        ['b', 0],
      ].map(([group, data]) => ({ name: 'job', data, options: { group: String(group) } })),
    );
    await until(() => order.length === 2, PATIENT);
    await app.ended(first!.id);
    expect(await app.queue.counts()).toMatchObject({ waiting: 1, dead: 1 });
    broken = false;
    await app.queue.dead.retry(first!.id);
    await until(isOver(app), PATIENT);
    expect(order.filter((one) => String(one).startsWith('a'))).toEqual(['a0', 'a0', 'a1']);
  });
});

describe('emptying a queue', () => {
  it('removes waiting jobs, with and without a priority, and keeps delayed jobs and schedules', async () => {
    const { queue } = await bootQueue(redis, { watch: false });
    await queue.addBulk([
      { name: 'job', data: 1 },
      { name: 'job', data: 2, options: { priority: 3 } },
      { name: 'job', data: 3, options: { delay: '1h' } },
      { name: 'job', data: 4, options: { group: 'a' } },
    ]);
    await queue.schedules.upsert('hourly', { every: '1h' }, { name: 'job' });
    expect(await queue.remove({ state: 'waiting' })).toBe(3);
    expect(await queue.counts()).toMatchObject({ waiting: 0, delayed: 1 });
    expect(await queue.schedules.list()).toHaveLength(1);
  });

  it('frees the keys of the removed jobs', async () => {
    const { queue } = await bootQueue(redis, { watch: false });
    const options = { unique: { key: 'k' } };
    await queue.add('job', 1, options);
    await queue.remove({ state: 'waiting' });
    expect((await queue.add('job', 2, options)).duplicate).toBe(false);
    await queue.obliterate();
    expect((await queue.add('job', 3, options)).duplicate).toBe(false);
  });
});

it('a completed job that is retried keeps its group, its key and its priority', async () => {
  const app = await bootQueue(redis, { handlers: { job: ({ data }: Job) => data } });
  const unique = { key: 'k' };
  const { id } = await app.queue.add('job', 1, { group: 'a', priority: 5, unique, retention: '1h' });
  await app.ended(id);
  await app.queue.pause();
  await app.queue.retry(id);
  expect(await app.queue.get(id)).toMatchObject({ state: 'waiting', group: 'a', priority: 5 });
  expect((await app.queue.groups()).groups).toMatchObject([{ name: 'a', waiting: 1 }]);
  expect(await app.queue.add('job', 2, { unique })).toMatchObject({ id, duplicate: true, state: 'waiting' });
  await app.queue.resume();
  await until(isOver(app), PATIENT);
});
