import { describe, expect, it } from 'vitest';
import type { Job } from '#lib/job/job.js';
import { bootQueue, PATIENT, processorOf } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { until } from '../support/wait.js';

// What users of other queues rely on with debounced and throttled adds, names by pattern, retry budgets, circuit breakers and
// dead jobs that are not kept, beyond the specs of each feature.

const redis = useRedis();

describe('a debounced add', () => {
  const debounce = { key: 'k', delay: '1h' } as const;

  it('makes one job of many adds in one tick and of a bulk, which runs once with the last data', async () => {
    const ran: unknown[] = [];
    const app = await bootQueue(redis, { handlers: { job: ({ data }: Job) => void ran.push(data) } });
    const first = await app.queue.add('job', 0, { debounce });
    await Promise.all(Array.from({ length: 50 }, (_, n) => app.queue.add('job', n, { debounce })));
    const [one, two] = await app.queue.addBulk(
      ['x', 'last'].map((data) => ({ name: 'job', data, options: { debounce } })),
    );
    expect([one!.id, two!.id]).toEqual([first.id, first.id]);
    expect(await app.queue.counts()).toMatchObject({ delayed: 1, waiting: 0 });
    await app.queue.promote(first.id);
    await app.ended(first.id);
    expect(ran).toEqual(['last']);
  });

  it('makes a new job once its job was removed, cancelled or is dead', async () => {
    const app = await bootQueue(redis, {
      handlers: {
        job: () => {
          throw new Error('no');
        },
      },
    });
    const options = { debounce, attempts: 1 };
    const removed = await app.queue.add('job', 1, options);
    await app.queue.remove(removed.id);
    const cancelled = await app.queue.add('job', 2, options);
    expect(cancelled.duplicate).toBe(false);
    await app.queue.cancel(cancelled.id, 'not needed');
    const dead = await app.queue.add('job', 3, options);
    expect(dead.duplicate).toBe(false);
    await app.queue.promote(dead.id);
    expect((await app.ended(dead.id)).type).toBe('dead');
    expect((await app.queue.add('job', 4, options)).duplicate).toBe(false);
  });
});

describe('a throttled add', () => {
  it.each([
    ['completed', (): void => undefined],
    [
      'dead',
      (): void => {
        throw new Error('no');
      },
    ],
  ] as const)('adds nothing in its time, also once its job is %s', async (end, job) => {
    const app = await bootQueue(redis, { handlers: { job, other: () => undefined } });
    const options = { throttle: { key: 'k', ttl: '1h' }, attempts: 1 } as const;
    const bulk = await app.queue.addBulk([1, 2].map((data) => ({ name: 'job', data, options })));
    const [first, second] = bulk;
    expect(second).toMatchObject({ id: first!.id, duplicate: true });
    expect((await app.ended(first!.id)).type).toBe(end);
    expect((await app.queue.add('job', 3, options)).duplicate).toBe(true);
    const other = await app.queue.add('other', 4, options);
    expect(other.duplicate).toBe(false);
  });
});

it('names with an id get the handler of their pattern, in retries and once dead jobs are retried', async () => {
  const ran: string[] = [];
  const app = await bootQueue(redis, {
    queues: [{ name: 'orders', defaults: { backoff: 0 } }],
    providers: [
      processorOf('orders', {
        'update:*': ({ name, attempt }: Job) => {
          ran.push(`${name}.${attempt}`);
          throw new Error('no');
        },
        'update:7': ({ name }: Job) => void ran.push(name),
      }),
    ],
  });
  const orders = app.queueOf('orders');
  const { id } = await orders.add('update:8', null, { attempts: 2 });
  await until(async () => (await orders.get(id))?.state === 'dead', PATIENT);
  await orders.dead.retry(id);
  await until(() => ran.length === 4, PATIENT);
  await orders.add('update:7', null);
  await until(() => ran.length === 5, PATIENT);
  expect(ran).toEqual(['update:8.1', 'update:8.2', 'update:8.1', 'update:8.2', 'update:7']);
  await until(async () => (await orders.get(id))?.state === 'dead', PATIENT);
  expect((await orders.dead.list({ name: 'update:8' })).jobs).toHaveLength(1);
});

describe('a retry budget that is used up', () => {
  it('holds back no first attempt, and no job that you retry yourself', async () => {
    const ran: string[] = [];
    const app = await bootQueue(redis, {
      queue: { limits: { retryBudget: { max: 1, per: '1h' } }, defaults: { attempts: 2, backoff: 0 } },
      handlers: {
        job: ({ data, attempt }: Job<string>) => {
          ran.push(`${data}.${attempt}`);
          if (data !== 'good') throw new Error('no');
        },
      },
      concurrency: 1,
    });
    const first = await app.queue.add('job', 'a');
    expect((await app.ended(first.id)).type).toBe('dead');
    const second = await app.queue.add('job', 'b');
    await until(async () => (await app.queue.get(second.id))?.state === 'delayed', PATIENT);
    expect((await app.queue.get(second.id))!.dueAt!.getTime()).toBeGreaterThan(Date.now() + 1_000_000);
    const third = await app.queue.add('job', 'good');
    expect((await app.ended(third.id)).type).toBe('completed');
    await app.queue.dead.retry(first.id);
    await until(() => ran.filter((run) => run === 'a.1').length === 2, PATIENT);
    expect(ran.slice(0, 4)).toEqual(['a.1', 'a.2', 'b.1', 'good.1']);
  });
});

describe('a circuit breaker that is open', () => {
  it('holds jobs that are promoted, lets them be changed and cancelled, and costs them no attempt', async () => {
    const ran: string[] = [];
    const app = await bootQueue(redis, {
      queue: { limits: { breaker: { failures: 1, ratio: 0.01, openFor: '1h' } }, defaults: { attempts: 1 } },
      handlers: {
        job: ({ data, attempt }: Job<string>) => {
          ran.push(`${data}.${attempt}`);
          if (data === 'bad') throw new Error('503');
        },
      },
    });
    const delayed = await app.queue.add('job', 'old', { delay: '1h' });
    const unwanted = await app.queue.add('job', 'unwanted', { delay: '1h' });
    await app.queue.add('job', 'bad');
    await app.said.first(({ type }) => type === 'breakerOpened', PATIENT);
    await app.queue.promote(delayed.id);
    await app.queue.promote(unwanted.id);
    expect(await app.queue.cancel(unwanted.id, 'not needed')).toBe('cancelled');
    expect(await app.queue.update(delayed.id, { data: 'new' })).toMatchObject({ state: 'waiting' });
    const [holding] = await app.queue.limits.holding({ name: 'job' });
    expect(holding).toMatchObject({ reason: 'breaker', of: 'queue' });
    expect(ran).toEqual(['bad.1']);
    await app.queue.limits.release();
    expect((await app.ended(delayed.id)).type).toBe('completed');
    expect(ran).toEqual(['bad.1', 'new.1']);
  });
});

it('a dead job of a queue that keeps none is gone, is reported by an event, and frees its id', async () => {
  const app = await bootQueue(redis, {
    queue: { dead: { max: 0 }, defaults: { attempts: 1 } },
    handlers: {
      job: () => {
        throw new Error('no');
      },
    },
  });
  for (const data of [1, 2]) {
    // oxlint-disable-next-line no-await-in-loop -- the second add follows the death of the first job
    expect((await app.queue.add('job', data, { id: 'one' })).duplicate).toBe(false);
    // oxlint-disable-next-line no-await-in-loop
    await until(() => app.said.values.filter(({ type }) => type === 'dead').length === data, PATIENT);
  }
  await until(async () => (await app.queue.get('one')) === null, PATIENT);
  expect((await app.queue.counts()).dead).toBe(0);
});
