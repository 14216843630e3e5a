import { describe, expect, it } from 'vitest';
import type { QueueEngine } from '#lib/contract/engine.js';
import { realPause } from '#lib/contract/retry.js';
import { QUEUE_ENGINE } from '#lib/decorators/metadata.js';
import { QueueFullError, UnrecoverableError } from '#lib/errors.js';
import type { Job } from '#lib/job/job.js';
import type { MaxWaitingOptions } from '#lib/options/bounds.js';
import type { AddResult } from '#lib/producer/add-result.js';
import type { UniqueOptions } from '#lib/options/unique-options.js';
import { bootQueue, itOnRedis, PATIENT, recorder } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';
import { z } from 'zod';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { defineJob } from '#lib/job/define-job.js';
import { bootFaults, withQueues } from './fakes.js';
import { QueueModule } from '#lib/module/queue.module.js';

const redis = useRedis();

it('runs the last job with lifo first, before all waiting jobs', async () => {
  const { ran, handlers } = recorder();
  const app = await bootQueue(redis, { handlers, concurrency: 1 });
  await app.queue.pause();
  await app.queue.addBulk([1, 2].map((data) => ({ name: 'job', data })));
  await app.queue.addBulk([3, 4].map((data) => ({ name: 'job', data, options: { lifo: true } })));
  const last = await app.queue.add('job', 5, { priority: 1 });
  await app.queue.add('job', 6, { lifo: true, priority: 0 });
  await app.queue.resume();
  await app.ended(last.id);
  expect(ran).toEqual([6, 4, 3, 1, 2, 5]);
});

describe('adds that become one job', () => {
  const aggregate = { key: 'k', maxDelay: '1h', maxSize: 3 } as const;

  it('give the handler their data as a list, and return the result of each add', async () => {
    const { ran, handlers } = recorder();
    const app = await bootQueue(redis, { handlers });
    const first = await app.queue.add('job', { n: 1 }, { aggregate });
    expect(first).toMatchObject({ duplicate: false, aggregated: { size: 1, full: false } });
    expect(await app.queue.add('job', null, { aggregate })).toEqual({
      ...first,
      aggregated: { size: 2, full: false },
    });
    expect(await app.queue.get(first.id)).toMatchObject({ state: 'delayed', data: [{ n: 1 }, null] });
    const last = await app.queue.add('job', 'three', { aggregate });
    expect(last).toEqual({ ...first, aggregated: { size: 3, full: true } });
    await app.ended(first.id);
    expect(ran).toEqual([[{ n: 1 }, null, 'three']]);
  });

  it('are collected in bulk, by group and by name, whatever jobs wait', async () => {
    const { ran, handlers } = recorder();
    const app = await bootQueue(redis, {
      handlers: { ...handlers, other: handlers['job']! },
      queue: { maxWaiting: { limit: 1 } },
    });
    await app.queue.pause();
    await app.queue.add('job', 'waits');
    const item = (data: number, name = 'job', group?: string) => ({
      name,
      data,
      options: { aggregate, ...(group && { group }) },
    });
    const added = await app.queue.addBulk([
      ...[1, 2, 3, 4].map((data) => item(data)),
      item(5, 'other'),
      item(6, 'job', 'a'),
      item(7, 'job', 'a'),
    ]);
    expect(added.map(({ aggregated }) => [aggregated!.size, aggregated!.full])).toEqual([
      [1, false],
      [2, false],
      [3, true],
      [1, false],
      [1, false],
      [1, false],
      [2, false],
    ]);
    await app.queue.promote({});
    await app.queue.resume();
    await app.said.take(5, ({ type }) => type === 'completed', PATIENT);
    expect(ran.map((data) => JSON.stringify(data)).toSorted()).toEqual(
      ['"waits"', '[1,2,3]', '[4]', '[5]', '[6,7]'].toSorted(),
    );
  });

  it('are each validated, and the path of an issue names the item', async () => {
    const step = defineJob('work', 'step', z.object({ at: z.coerce.date() }));
    const ran: unknown[] = [];
    @Processor(step)
    class Steps {
      @Handle(step, { attempts: 1 })
      run(job: Job<{ at: Date }[]>) {
        ran.push(job.data.map(({ at }) => at.getTime()));
      }
    }
    const app = await bootQueue(redis, { providers: [Steps] });
    const add = (at: string) => app.producer.add(step, { at }, { aggregate: { ...aggregate, maxSize: 2 } });
    await add('2030-01-01');
    const { id } = await add('2031-01-01');
    await app.ended(id);
    expect(ran).toEqual([[Date.UTC(2030, 0), Date.UTC(2031, 0)]]);
    await expect(add('soon')).rejects.toMatchObject({ code: 'GODWIT_SCHEMA_VIOLATION' });
    const broken = await app.queue.add(
      'step',
      { at: '2030-01-01' },
      { aggregate: { ...aggregate, maxSize: 2 } },
    );
    await app.queue.add('step', { at: 'soon' }, { aggregate: { ...aggregate, maxSize: 2 } });
    await app.ended(broken.id);
    expect((await app.queue.get(broken.id))?.failure?.message).toContain('1.at');
  });
});

describe('a job with a key', () => {
  it('is added once until it has ended; a duplicate add returns which job has the key', async () => {
    const hold = latch();
    const app = await bootQueue(redis, { handlers: { job: () => hold.promise } });
    const add = (data: object, unique: UniqueOptions) => app.queue.add('job', data, { unique });
    const first = await add({ order: { id: 7 }, n: 1 }, { by: ['order.id'] });
    expect(first).toMatchObject({ duplicate: false });
    await app.said.first(({ type }) => type === 'active', PATIENT);
    expect(await add({ order: { id: 7 }, n: 2 }, { by: ['order.id'] })).toEqual({
      ...first,
      duplicate: true,
      state: 'active',
    });
    expect(await add({ order: { id: 8 } }, { by: ['order.id'] })).toMatchObject({ duplicate: false });
    const refused = add({ order: { id: 7 } }, { by: ['order.id'], onDuplicate: 'error' });
    await expect(refused).rejects.toMatchObject({
      code: 'GODWIT_DUPLICATE_JOB',
      jobId: first.id,
      state: 'active',
    });
    hold.open();
    await app.ended(first.id);
    await until(async () => !(await add({ order: { id: 7 } }, { by: ['order.id'] })).duplicate, PATIENT);
  });

  it('shares the key with jobs of other names only if it says so, also in one tick and in a bulk', async () => {
    const { queue } = await bootQueue(redis);
    const unique = { key: 'k' };
    const [a, b, c] = await Promise.all([
      queue.add('a', 1, { unique }),
      queue.add('a', 2, { unique }),
      queue.add('b', 3, { unique }),
    ]);
    expect([a.duplicate, b.duplicate, c.duplicate]).toEqual([false, true, false]);
    expect(b.id).toBe(a.id);
    const replace = { key: 'wide', scope: 'queue', onDuplicate: 'replace' } as const;
    const added = await queue.addBulk([
      { name: 'x', data: 1, options: { unique: replace } },
      { name: 'y', data: 2, options: { unique: replace } },
      { name: 'z', data: 3 },
    ]);
    expect(added.map(({ duplicate, replaced }) => [duplicate, replaced])).toEqual([
      [false, undefined],
      [true, undefined],
      [false, undefined],
    ]);
    expect(await queue.get(added[0]!.id)).toMatchObject({ name: 'x', data: 1, state: 'waiting' });
    expect(await queue.add('y', 3, { unique: replace })).toMatchObject({ id: added[0]!.id, duplicate: true });
    expect(await queue.get(added[0]!.id)).toMatchObject({ name: 'x', data: 1 });
    const again = await queue.addBulk([{ name: 'x', data: 4, options: { unique: replace } }]);
    expect(again).toMatchObject([{ id: added[0]!.id, duplicate: true, replaced: true, state: 'waiting' }]);
    expect(await queue.get(added[0]!.id)).toMatchObject({ data: 4 });
  });

  it('is throttled by time, and debounced to the last data', async () => {
    const ran: unknown[] = [];
    const app = await bootQueue(redis, { handlers: { job: ({ data }) => void ran.push(data) } });
    const throttle = { key: 't', ttl: '1h' };
    const first = await app.queue.add('job', 'throttled', { throttle });
    await app.ended(first.id);
    const again = await app.queue.add('job', 'not run', { throttle });
    expect(again).toEqual({ ...first, duplicate: true });
    const debounce = { key: 'd', delay: 250, maxWait: '1m' };
    const one = await app.queue.add('job', 1, { debounce });
    await app.queue.add('job', 2, { debounce });
    expect(await app.queue.add('job', 3, { debounce })).toEqual({
      ...one,
      duplicate: true,
      state: 'delayed',
      replaced: true,
    });
    await app.ended(one.id);
    expect(ran).toEqual(['throttled', 3]);
  });

  it('runs the last one after the one that runs, whether that completes or fails', async () => {
    const ran: unknown[] = [];
    const holds = [latch(), latch(), latch()];
    const app = await bootQueue(redis, {
      handlers: {
        job: async ({ data }) => {
          ran.push(data);
          await holds[ran.length - 1]!.promise;
          if (data === 1) throw new UnrecoverableError('no');
        },
      },
    });
    const unique = { key: 'k', onDuplicate: 'keepLast' } as const;
    const add = (data: number) => app.queue.add('job', data, { unique });
    const first = await add(1);
    await until(() => ran.length === 1, PATIENT);
    const [second, more] = await app.queue.addBulk(
      [2, 2.5].map((data) => ({ name: 'job', data, options: { unique } })),
    );
    expect(second).toMatchObject({ duplicate: false });
    const replaced = { id: second!.id, duplicate: true, replaced: true, state: 'delayed' };
    expect([more, await add(3)]).toMatchObject([replaced, replaced]);
    for (const moved of [app.queue.promote(second!.id), app.queue.update(second!.id, { delay: '1h' })])
      await expect(moved).rejects.toThrow(
        /^job "[^"]+" in queue 'work' is waiting for the end of the job that has/,
      );
    expect(await app.queue.promote({})).toBe(0);
    holds[0]!.open();
    expect((await app.ended(first.id)).type).toBe('dead');
    await until(() => ran.length === 2, PATIENT);
    const third = await add(4);
    expect(third).toMatchObject({ duplicate: false });
    holds[1]!.open();
    await app.ended(second!.id);
    holds[2]!.open();
    await app.ended(third.id);
    expect(ran).toEqual([1, 3, 4]);
    expect((await app.queue.audit()).violations).toEqual([]);
  });

  it('runs the last one at once if the one before was cancelled, and failed before its worker knew', async () => {
    const runs: unknown[] = [];
    const failing = latch();
    const { queue } = await bootQueue(redis, {
      handlers: {
        job: async ({ data }) => {
          runs.push(data);
          await failing.promise;
          if (data === 1) throw new Error('not this time');
        },
      },
      watch: false,
    });
    const options = { unique: { key: 'k', onDuplicate: 'keepLast' }, attempts: 2, backoff: '1h' } as const;
    const { id } = await queue.add('job', 1, options);
    await until(() => runs.length === 1, PATIENT);
    await queue.add('job', 2, options);
    await queue.cancel(id);
    failing.open();
    await until(() => runs.length === 2, { ...PATIENT, what: () => 'the last one runs' });
    expect(runs).toEqual([1, 2]);
  });

  it('runs the last one at once if the one before was cancelled after its claim, and before it started', async () => {
    let probe: () => unknown = () => undefined;
    const runs: unknown[] = [];
    const { queue } = await bootQueue(redis, {
      concurrency: 1,
      handlers: { job: ({ data }) => (data === 'gate' ? probe() : data === 0 || runs.push(data)) },
      watch: false,
    });
    const options = { unique: { key: 'k', onDuplicate: 'keepLast' } } as const;
    const fast = Array.from({ length: 300 }, () => ({ name: 'job', data: 0 }));
    // On a slow machine, the job may have gone back before it is cancelled.
    for (let answer: unknown; answer !== 'signalled';) {
      await queue.obliterate({ force: true });
      await queue.pause();
      await queue.addBulk([...fast, { name: 'job', data: 'gate' }]);
      const { id } = await queue.add('job', 1, options);
      await queue.addBulk(fast);
      const probed = latch();
      probe = async () => {
        await queue.add('job', 2, options);
        answer = await queue.cancel(id);
        probed.open();
        // Meanwhile the worker gives back the jobs that it has claimed ahead.
        await realPause(100);
      };
      await queue.resume();
      await probed.promise;
    }
    await until(() => runs.length > 0, { ...PATIENT, what: () => 'the last one runs' });
    expect(runs).toEqual([2]);
  });

  it('lets the last one run although the process stopped right after the previous one', async () => {
    const hold = latch();
    const app = await bootQueue(redis, { handlers: { job: () => hold.promise } });
    const unique = { key: 'k', onDuplicate: 'keepLast' } as const;
    const first = await app.queue.add('job', 1, { unique });
    await app.said.first(({ type }) => type === 'active', PATIENT);
    const second = await app.queue.add('job', 2, { unique });
    hold.open();
    await app.close();
    const other = await bootQueue(redis, { handlers: { job: () => undefined } });
    await until(async () => (await other.queue.get(second.id)) === null, PATIENT);
    expect(await other.queue.get(first.id)).toBeNull();
  });

  itOnRedis(
    'lets the last one run although a worker died with the one before, within an upkeep',
    async () => {
      const app = await bootQueue(redis);
      const unique = { key: 'k', onDuplicate: 'keepLast' } as const;
      const first = await app.queue.add('job', 1, { unique });
      const engine = app.get<QueueEngine>(QUEUE_ENGINE);
      const call = { worker: 'killed', seq: 1, leaseMs: 8_000, want: 1, maySuspect: true, settled: [] };
      await engine.exchange('work', call);
      const second = await app.queue.add('job', 2, { unique });
      // The worker settles the job, and dies before it can free the key.
      const run = {
        id: first.id,
        name: 'job',
        attempt: 1,
        durationUs: 1,
        outcome: { kind: 'completed' },
      } as const;
      await engine.exchange('work', { ...call, seq: 2, want: 0, settled: [run] });
      expect((await app.queue.get(second.id))?.state).toBe('delayed');
      const other = await bootQueue(redis, {
        handlers: { job: () => undefined },
        root: { upkeep: { interval: '1s' } },
      });
      await until(async () => (await other.queue.get(second.id)) === null, PATIENT);
      await redis.flush();
    },
  );
});

describe('a queue that takes only so many waiting jobs', () => {
  const boot = (maxWaiting: MaxWaitingOptions) => bootQueue(redis, { queue: { maxWaiting } });
  const outcomes = (adds: Promise<AddResult>[]) =>
    Promise.all(
      adds.map((add) =>
        add.then(
          ({ dropped = false }) => (dropped ? 'dropped' : 'added'),
          ({ code }) => code,
        ),
      ),
    );

  it('rejects what is too many, exactly, from many producers at once, and a bulk as a whole', async () => {
    const apps = await Promise.all([boot({ limit: 10 }), boot({ limit: 10 }), boot({ limit: 10 })]);
    const adds = apps.flatMap(({ queue }) => Array.from({ length: 20 }, (_, n) => queue.add('job', n)));
    const found = await outcomes(adds);
    expect(found.filter((one) => one === 'added')).toHaveLength(10);
    expect(found.filter((one) => one === 'GODWIT_QUEUE_FULL')).toHaveLength(50);
    const { queue } = apps[0]!;
    expect(await queue.counts()).toMatchObject({ waiting: 10 });
    await expect(queue.add('job', 1)).rejects.toMatchObject({
      queue: 'work',
      waiting: 10,
      limit: 10,
      applied: 'no',
    });
    await queue.add('job', 1, { delay: '1h' });
    await queue.remove({ state: 'waiting', limit: 3 });
    const bulk = (n: number) => Array.from({ length: n }, (_, data) => ({ name: 'job', data }));
    await expect(queue.addBulk(bulk(4))).rejects.toMatchObject({ code: 'GODWIT_QUEUE_FULL', waiting: 7 });
    expect(await queue.addBulk(bulk(3))).toHaveLength(3);
  });

  it('rejects exclusive adds of one tick whose key is taken, although others of the tick do not fit', async () => {
    const { queue, queueOf } = await bootQueue(redis, {
      queue: { maxWaiting: { limit: 3 } },
      queues: [{ name: 'grouped', groups: { maxSize: 1 } }],
    });
    const exclusive = { unique: { key: 'k', onDuplicate: 'error' } } as const;
    await queue.add('job', 0, exclusive);
    const adds = [{}, exclusive, {}, {}].map((options) => queue.add('job', 1, options));
    expect(await outcomes(adds)).toEqual(['added', 'GODWIT_DUPLICATE_JOB', 'added', 'GODWIT_QUEUE_FULL']);
    const grouped = queueOf('grouped');
    await grouped.add('job', 0, { ...exclusive, group: 'a' });
    const options = [{ group: 'b' }, { group: 'a' }, { group: 'c', ...exclusive }, { group: 'c' }];
    expect(await outcomes(options.map((one) => grouped.add('job', 1, one)))).toEqual([
      'added',
      'GODWIT_GROUP_FULL',
      'GODWIT_DUPLICATE_JOB',
      'added',
    ]);
  });

  it.each(['reject', 'dropNew'] as const)(
    'says which adds of one tick are duplicates although the others do not fit: %s',
    async (onFull) => {
      const { queue } = await boot({ limit: 3, onFull });
      const unique = (key: string) => ({ unique: { key, onDuplicate: 'replace' } }) as const;
      await Promise.all([queue.add('job', 0, { id: 'a' }), queue.add('job', 0, unique('k'))]);
      const all = [unique('k'), {}, { id: 'a' }, {}, { id: 'b' }, unique('l'), { delay: '1h' }, { id: 'a' }];
      const found = await Promise.allSettled(all.map((options) => queue.add('job', 1, options)));
      const full = onFull === 'reject' ? 'full' : 'dropped';
      expect(
        found.map((one) => {
          if (one.status === 'rejected') return (one.reason as QueueFullError).waiting === 3 && 'full';
          const { duplicate, replaced, dropped } = one.value;
          return replaced ? 'replaced' : duplicate ? 'duplicate' : dropped ? 'dropped' : 'added';
        }),
      ).toEqual(['replaced', 'added', 'duplicate', full, full, full, 'added', 'duplicate']);
      expect(await queue.counts()).toMatchObject({ waiting: 3, delayed: 1 });
    },
  );

  it('lets a bulk wait for room that has more jobs than may wait, but not more that need room', async () => {
    const { queue } = await boot({ limit: 2, onFull: 'wait', timeout: '10s' });
    const first = await queue.add('job', 1);
    await queue.add('job', 1, { id: 'a' });
    const later = { name: 'job', data: 2, options: { delay: '1h' } };
    const adding = queue.addBulk([
      later,
      later,
      { name: 'job', data: 2 },
      { ...later, options: { id: 'a' } },
    ]);
    await Promise.all([adding.catch(() => undefined), queue.remove(first.id)]);
    expect((await adding).map(({ duplicate }) => duplicate)).toEqual([false, false, false, true]);
  });

  it('adds the jobs of one tick that fit if the queue and a group are full', async () => {
    const { queue } = await bootQueue(redis, {
      queue: { maxWaiting: { limit: 4 }, groups: { by: 'g', concurrency: 1, maxSize: 1 } },
    });
    const add = (g: string) => queue.add('job', { g });
    await add('A');
    expect(await outcomes(['Z', 'A', 'B', 'C', 'D', 'E'].map(add))).toEqual([
      'added',
      'GODWIT_GROUP_FULL',
      'added',
      'added',
      'GODWIT_QUEUE_FULL',
      'GODWIT_QUEUE_FULL',
    ]);
  });

  it('lets an add wait for room, until its timeout', async () => {
    const holds = Array.from({ length: 4 }, () => latch());
    let ran = 0;
    const app = await bootQueue(redis, {
      queue: { maxWaiting: { limit: 1, onFull: 'wait', timeout: '10s' } },
      queues: [{ name: 'short', maxWaiting: { limit: 1, onFull: 'wait', timeout: 50 } }],
      handlers: { job: () => holds[ran++]!.promise },
      concurrency: 1,
    });
    const short = app.queueOf('short');
    await app.queue.add('job', 1);
    await app.said.first(({ type }) => type === 'active', PATIENT);
    await app.queue.add('job', 2);
    let isAdded = false;
    const waiting = app.queue.add('job', 3).then(() => (isAdded = true));
    expect(await app.queue.counts()).toMatchObject({ active: 1, waiting: 1 });
    expect(isAdded).toBe(false);
    for (const hold of holds) hold.open();
    await waiting;
    await until(() => ran === 3, PATIENT);
    await short.add('job', 1);
    await expect(short.add('job', 2)).rejects.toMatchObject({ code: 'GODWIT_QUEUE_FULL' });
    await expect(short.addBulk([1, 2].map((data) => ({ name: 'job', data })))).rejects.toThrow('1 job waits');
  });

  it('tries until the timeout is over, not until a try before it', async () => {
    const { queue } = await boot({ limit: 1, onFull: 'wait', timeout: 300 });
    await queue.pause();
    await queue.add('job', 1);
    const begin = performance.now();
    await expect(queue.add('job', 2)).rejects.toMatchObject({ code: 'GODWIT_QUEUE_FULL' });
    expect(performance.now() - begin).toBeGreaterThanOrEqual(299);
  });

  it('rejects addAndWait if there is no room within its waitTimeout, and adds nothing later', async () => {
    const { queue } = await boot({ limit: 1, onFull: 'wait', timeout: '10s' });
    await queue.pause();
    const first = await queue.add('job', 1);
    await expect(queue.addAndWait('job', 2, { waitTimeout: '1s' })).rejects.toThrow(QueueFullError);
    await queue.remove(first.id);
    await queue.add('job', 3);
    expect((await queue.jobs({ state: 'waiting' })).jobs.map(({ data }) => data)).toEqual([3]);
  });

  it('ends the wait for room when the signal aborts', async () => {
    const { queue } = await boot({ limit: 1, onFull: 'wait', timeout: '1h' });
    await queue.pause();
    await queue.add('job', 1, { signal: new AbortController().signal });
    const controller = new AbortController();
    const { signal } = controller;
    const one = queue.add('job', 2, { signal });
    const all = queue.addBulk([{ name: 'job', data: 3, options: { signal } }]);
    setTimeout(() => controller.abort(new Error('the request is over')), 60);
    await Promise.all([one, all].map((adding) => expect(adding).rejects.toThrow('the request is over')));
    await expect(queue.add('job', 4, { signal })).rejects.toThrow('the request is over');
    await expect(queue.add('job', 5, { signal: 1 as never })).rejects.toThrow(
      'add().options.signal must be an AbortSignal',
    );
    expect(await queue.counts()).toMatchObject({ waiting: 1 });
  });

  it('drops the new jobs, or the oldest', async () => {
    const other = await bootQueue(redis, {
      queue: { maxWaiting: { limit: 2, onFull: 'dropOldest' } },
      queues: [{ name: 'new', maxWaiting: { limit: 2, onFull: 'dropNew' } }],
    });
    const queue = other.queueOf('new');
    const adds = [1, 2, 3].map((n) => queue.add('job', n));
    expect(await outcomes(adds)).toEqual(['added', 'added', 'dropped']);
    const bulk = await queue.addBulk([4, 5].map((data) => ({ name: 'job', data })));
    expect(bulk.map(({ dropped, duplicate }) => `${dropped} ${duplicate}`)).toEqual([
      'true false',
      'true false',
    ]);
    expect(await queue.get(bulk[0]!.id)).toBeNull();
    const [first] = await Promise.all([1, 2, 3].map((n) => other.queue.add('job', n)));
    expect(await other.queue.counts()).toMatchObject({ waiting: 2 });
    expect(await other.said.first(({ type }) => type === 'removed', PATIENT)).toMatchObject({
      jobId: first!.id,
      reason: 'dropped',
    });
    const options = { priority: 1 };
    const jobs = [{}, { options }, {}, {}].map((more) => ({ name: 'job', data: null, ...more }));
    const kept = (await other.queue.addBulk(jobs)).map((one) => one.dropped !== true);
    expect(kept).toEqual([false, false, true, true]);
  });

  it('says how many jobs a refused call adds, and how many wait after the adds that had room', async () => {
    const { queue } = await boot({ limit: 2 });
    await queue.pause();
    const bulk = [1, 2, 3].map((data) => ({ name: 'job', data }));
    await expect(queue.addBulk(bulk)).rejects.toThrow(
      '0 jobs wait and this call adds 3, and at most 2 may wait; nothing was changed, add fewer jobs at once or raise maxWaiting.limit',
    );
    const [, , third] = await Promise.allSettled([1, 2, 3].map((n) => queue.add('job', n)));
    expect(third).toMatchObject({
      reason: {
        waiting: 2,
        message: expect.stringContaining(
          '2 jobs wait, and at most 2 may wait; nothing was changed, add later or raise maxWaiting.limit',
        ),
      },
    });
  });

  it('rejects addAndWait and runNow at once if no other job can be dropped', async () => {
    const { queue } = await bootQueue(redis, { queue: { maxWaiting: { limit: 1, onFull: 'dropOldest' } } });
    await queue.add('job', 1, { group: 'a' });
    expect(await queue.add('job', 2)).toMatchObject({ dropped: true });
    await expect(queue.addAndWait('job', 3)).rejects.toThrow(QueueFullError);
    await queue.schedules.upsert('hourly', { every: '1h' }, { name: 'job' });
    await expect(queue.schedules.runNow('hourly')).rejects.toThrow(QueueFullError);
    expect(await queue.counts()).toMatchObject({ waiting: 1 });
  });

  async function pausedWithKeptJob(onFull: 'dropOldest' | 'dropNew') {
    const { queue, ended } = await bootQueue(redis, {
      queue: { maxWaiting: { limit: 1, onFull }, defaults: { retention: '1h' } },
      handlers: { job: () => 1 },
    });
    const { id } = await queue.add('job', 1);
    await ended(id);
    await queue.pause();
    return { queue, id };
  }

  it('runs a kept job again if no other job can be dropped', async () => {
    const { queue, id } = await pausedWithKeptJob('dropOldest');
    await queue.add('job', 2, { group: 'a' });
    await queue.retry(id);
    expect(await queue.get(id)).toMatchObject({ state: 'waiting' });
  });

  it('rejects calls that need the new job instead of dropping it: addAndWait, runNow, and a retry of a completed job', async () => {
    const { queue, id } = await pausedWithKeptJob('dropNew');
    await queue.add('job', 2);
    await expect(queue.addAndWait('job', 3)).rejects.toThrow(QueueFullError);
    await expect(queue.retry(id)).rejects.toThrow(QueueFullError);
    await queue.schedules.upsert('hourly', { every: '1h' }, { name: 'job' });
    await expect(queue.schedules.runNow('hourly')).rejects.toThrow(QueueFullError);
    expect(await queue.get(id)).toMatchObject({ state: 'completed' });
    expect(await queue.add('job', 4)).toMatchObject({ dropped: true });
    await queue.resume();
    await expect(queue.addAndWait('job', 5)).resolves.toBe(1);
    await queue.retry(id);
  });

  it.each([
    [{}, 'maxWaiting.limit must be an integer from 1 to 1000000000, got undefined'],
    [{ limit: 0 }, 'maxWaiting.limit must be an integer from 1 to 1000000000, got 0'],
    [
      { limit: 1, onFull: 'block' },
      "maxWaiting.onFull must be one of 'reject', 'wait', 'dropNew', 'dropOldest'",
    ],
    [{ limit: 1, timeout: '1s' }, "maxWaiting.timeout must be left out unless onFull is 'wait'"],
  ])('stops the application for %j', async (maxWaiting, message) => {
    const module = withQueues([], {});
    const queue = { name: 'work', maxWaiting: maxWaiting as MaxWaitingOptions };
    const imports = [...(module.imports ?? []), QueueModule.registerQueue(queue)];
    expect((await bootFaults({ ...module, imports })).join()).toContain(message);
  });
});
