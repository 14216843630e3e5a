import { describe, expect, it } from 'vitest';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { Snooze, type Job } from '#lib/job/job.js';
import { bootQueue, isOver, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';

// What users of other queues expect when jobs are held back, changed, listed, cancelled or given back, beyond the specs
// of each feature.

const redis = useRedis();

describe('a place under a limit of concurrency', () => {
  it.each([
    ['snoozes', () => new Snooze('1h')],
    ['waits for its retry', () => new Error('no')],
  ])('is free while a job %s, of the queue and of its group', async (_what, failure) => {
    const app = await bootQueue(redis, {
      queue: { limits: { concurrency: 1 }, groups: { concurrency: 1 }, defaults: { backoff: '1h' } },
      handlers: {
        job: ({ data }: Job<number>) => {
          if (data === 1) throw failure();
        },
      },
    });
    await app.queue.add('job', 1, { id: 'first', group: 'a' });
    const { id } = await app.queue.add('job', 2, { group: 'a' });
    expect((await app.ended(id)).type).toBe('completed');
    expect(await app.queue.get('first')).toMatchObject({ state: 'delayed' });
  });

  it('is free once a running job was cancelled, and so is its key', async () => {
    const app = await bootQueue(redis, {
      queue: { limits: { concurrency: 1 } },
      handlers: {
        stuck: ({ signal }: Job) =>
          new Promise((_resolve, reject) => {
            signal.addEventListener('abort', () => reject(signal.reason as Error));
          }),
        job: () => undefined,
      },
    });
    const options = { unique: { key: 'k' } };
    const stuck = await app.queue.add('stuck', 1, options);
    await app.said.first(({ type }) => type === 'active', PATIENT);
    const next = await app.queue.add('job', 2);
    await app.queue.cancel(stuck.id, 'not needed');
    expect((await app.ended(stuck.id)).type).toBe('cancelled');
    expect((await app.ended(next.id)).type).toBe('completed');
    expect((await app.queue.add('job', 3, options)).duplicate).toBe(false);
  });
});

describe('a rate', () => {
  it('counts retries as well as first attempts', async () => {
    const app = await bootQueue(redis, {
      queue: { limits: { rate: { max: 2, per: '1h' } }, defaults: { attempts: 9, backoff: 1 } },
      handlers: { job: () => Promise.reject(new Error('no')) },
    });
    const { id } = await app.queue.add('job', 1);
    await app.said.take(2, ({ type }) => type === 'retrying', PATIENT);
    await until(async () => (await app.queue.limits.list())[0]?.left === 0, PATIENT);
    expect(await app.queue.get(id)).toMatchObject({ attempt: 2 });
    expect(await app.queue.counts()).toMatchObject({ active: 0, dead: 0 });
  });
});

describe('a job that is changed while it waits', () => {
  it('keeps the key it was added with', async () => {
    const { queue } = await bootQueue(redis, { watch: false });
    const options = { unique: { by: ['file'] } };
    const { id } = await queue.add('job', { file: 'a' }, options);
    await queue.update(id, { data: { file: 'b' } });
    expect(await queue.add('job', { file: 'a' }, options)).toMatchObject({ id, duplicate: true });
    expect((await queue.add('job', { file: 'b' }, options)).duplicate).toBe(false);
  });

  it('is under the limits of its group when it is promoted', async () => {
    const hold = latch();
    const app = await bootQueue(redis, {
      queue: { groups: { concurrency: 1 } },
      handlers: { job: () => hold.promise },
    });
    const ids = ['first', 'second'];
    for (const id of ids) await app.queue.add('job', null, { id, group: 'a', delay: '1h' });
    for (const id of ids) await app.queue.promote(id);
    await app.said.first(({ type }) => type === 'active', PATIENT);
    // A job of another group starts after both were looked at.
    await app.queue.add('job', null, { id: 'other', group: 'b' });
    await app.said.first(({ type, jobId }) => type === 'active' && jobId === 'other', PATIENT);
    expect((await app.queue.groups()).groups).toMatchObject([
      { name: 'a', running: 1, waiting: 1 },
      { name: 'b', running: 1, waiting: 0 },
    ]);
    hold.open();
    await until(isOver(app), PATIENT);
  });
});

describe('pages of a list', () => {
  it('neither repeat nor skip jobs although others leave between two pages', async () => {
    const { queue } = await bootQueue(redis, { watch: false });
    const ids = Array.from({ length: 9 }, (_, at) => `job-${at}`);
    await queue.addBulk(ids.map((id) => ({ name: 'job', data: null, options: { id } })));
    const first = await queue.jobs({ state: 'waiting', limit: 3 });
    const seen = first.jobs.map(({ id }) => id);
    // One of a page that was read, and one of a later page.
    await queue.remove('job-1');
    await queue.remove('job-7');
    for (let cursor = first.cursor; cursor !== null;) {
      const page = await queue.jobs({ state: 'waiting', limit: 3, cursor });
      seen.push(...page.jobs.map(({ id }) => id));
      cursor = page.cursor;
    }
    expect(seen).toEqual(ids.filter((id) => id !== 'job-7'));
  });
});

describe('a worker that stops', () => {
  it('gives back what it could not finish, without the loss of an attempt, at the head of the line', async () => {
    const hold = latch();
    const started = latch();
    const stopping = await bootQueue(redis, {
      root: { shutdown: { timeout: '50ms', grace: '50ms' } },
      handlers: {
        job: () => {
          started.open();
          return hold.promise;
        },
      },
      concurrency: 1,
      watch: false,
    });
    const { id } = await stopping.queue.add('job', 1, { attempts: 1 });
    await started.promise;
    await stopping.queue.add('job', 2);
    await stopping.close();
    hold.open();
    const order: string[] = [];
    const app = await bootQueue(redis, {
      handlers: {
        job: ({ data, attempt }: Job<number>) => void order.push(`${data}.${attempt}`),
      },
      concurrency: 1,
    });
    await until(isOver(app), PATIENT);
    expect(order).toEqual(['1.1', '2.1']);
    expect(await app.queue.get(id)).toBeNull();
  });
});

describe('a policy of a handler', () => {
  it('counts for jobs added without options; the options of an add win', async () => {
    @Processor('work')
    class Failing {
      @Handle('job', { attempts: 3, backoff: 1 })
      run() {
        throw new Error('no');
      }
    }
    const app = await bootQueue(redis, { queue: { defaults: { attempts: 1 } }, providers: [Failing] });
    const plain = await app.queue.add('job', 1);
    await app.ended(plain.id);
    expect(await app.queue.get(plain.id)).toMatchObject({ state: 'dead', attempt: 3 });
    const own = await app.queue.add('job', 2, { attempts: 2 });
    await app.ended(own.id);
    expect(await app.queue.get(own.id)).toMatchObject({ state: 'dead', attempt: 2 });
  });
});
