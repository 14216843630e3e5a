import { once } from 'node:events';
import { NEVER } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { UnrecoverableError, type JobAbortedError } from '#lib/errors.js';
import type { Job } from '#lib/job/job.js';
import type { QueueLimitChange } from '#lib/options/limit-changes.js';
import type { Queue } from '#lib/producer/queue.js';
import { bootQueue, Logs, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';

const redis = useRedis();

describe('a circuit breaker', () => {
  const breaker = { failures: 3, ratio: 0.5, window: '1m', openFor: '150ms' } as const;

  it('opens over all processes while runs fail, lets one job try it, and closes; jobs wait and lose no attempt', async () => {
    let isDown = true;
    const logs = new Logs();
    const handlers = {
      job: () => {
        if (isDown) throw new Error('503');
      },
    };
    const options = {
      handlers,
      queue: { limits: { breaker }, defaults: { attempts: 20, backoff: 1 } },
      logs,
    };
    const { queue, said } = await bootQueue(redis, { ...options, concurrency: 1 });
    await bootQueue(redis, { ...options, concurrency: 1, watch: false });
    await queue.addBulk(Array.from({ length: 30 }, () => ({ name: 'job', data: null })));
    const opened = await said.first(({ type }) => type === 'breakerOpened', PATIENT);
    expect(opened).toMatchObject({ queue: 'work', name: undefined, openForMs: 150 });
    const startsIn = (events: typeof said.values) => events.filter(({ type }) => type === 'active');
    const place = said.values.indexOf(opened);
    const before = startsIn(said.values.slice(0, place)).length;
    // Another process may be running a job when the breaker opens.
    expect(before).toBeLessThanOrEqual(5);
    const state = async () => (await queue.limits.list())[0]!.breaker!.state;
    await said.take(before + 1, ({ type }) => type === 'active', PATIENT);
    isDown = false;
    const closed = await said.first(({ type }) => type === 'breakerClosed', PATIENT);
    // By the clock of Redis.
    const probes = startsIn(said.values.slice(place, said.values.indexOf(closed)));
    const times = [opened, ...probes].map(({ at }) => at.getTime());
    expect(probes.length).toBeGreaterThan(0);
    for (const [i, time] of times.slice(1).entries()) expect(time - times[i]!).toBeGreaterThanOrEqual(150);
    await until(async () => (await queue.counts()).waiting + (await queue.counts()).delayed === 0, {
      ...PATIENT,
      what: () => 'all jobs run',
    });
    expect(await state()).toBe('closed');
    expect((await queue.counts()).dead).toBe(0);
    expect(said.values.filter(({ type }) => type === 'breakerOpened')).toHaveLength(1);
    expect(logs.lines.map(({ text }) => text).filter((text) => text.includes('circuit breaker'))).toEqual([
      "queue 'work': its circuit breaker opened, because too many runs fail; jobs wait",
      "queue 'work': its circuit breaker closed; jobs start again",
    ]);
  });

  it('is not kept open by jobs that have expired: they are no probes', async () => {
    let isDown = true;
    const { queue, said } = await bootQueue(redis, {
      queue: { limits: { breaker: { ...breaker, failures: 1, openFor: '1s' } }, defaults: { attempts: 1 } },
      handlers: {
        job: () => {
          if (isDown) throw new Error('503');
        },
      },
    });
    await queue.add('job', null);
    await said.first(({ type }) => type === 'breakerOpened', PATIENT);
    isDown = false;
    const late = { name: 'job', data: null, options: { expiresIn: 1 } };
    await queue.addBulk([...Array.from({ length: 30 }, () => late), { name: 'job', data: null }]);
    await said.first(({ type }) => type === 'breakerClosed', PATIENT);
    expect((await queue.counts()).dead).toBe(31);
  });

  it('counts only errors that isFailure selects, and none that another attempt cannot fix', async () => {
    const isFailure = (error: unknown) => {
      if ((error as Error).message === 'odd') throw new Error('cannot tell');
      return (error as Error).message !== '404';
    };
    const { queue, ended, said } = await bootQueue(redis, {
      queue: {
        limits: { names: { sync: { breaker: { ...breaker, failures: 2, openFor: '1h', isFailure } } } },
        defaults: { attempts: 1 },
      },
      handlers: {
        sync: ({ data }: Job<string>) => {
          throw data === 'final' ? new UnrecoverableError('final') : new Error(data);
        },
        other: () => undefined,
      },
    });
    const state = async () => (await queue.limits.list()).find(({ name }) => name === 'sync')!.breaker!.state;
    const run = async (data: string) => ended((await queue.add('sync', data)).id);
    for (const data of ['404', '404', 'final', 'final', '503']) await run(data);
    expect(await state()).toBe('closed');
    await run('odd');
    expect(await state()).toBe('open');
    await queue.add('sync', '503');
    await ended((await queue.add('other', null)).id);
    expect(await queue.counts()).toMatchObject({ waiting: 1, dead: 6 });
    await queue.limits.release({ name: 'sync' });
    expect(await state()).toBe('closed');
    await said.first(({ type }) => type === 'breakerClosed', PATIENT);
    await until(async () => (await queue.counts()).dead === 7, { ...PATIENT, what: () => 'the job runs' });
  });

  it('of a name counts no job with a group, which it does not hold back; nor does a retry budget', async () => {
    const retryBudget = { max: 1, per: '1h' } as const;
    const { queue, ended } = await bootQueue(redis, {
      queue: {
        limits: { names: { sync: { breaker: { ...breaker, failures: 1, openFor: '1h' }, retryBudget } } },
        defaults: { attempts: 3, backoff: 1 },
      },
      handlers: {
        sync: () => {
          throw new Error('503');
        },
      },
    });
    // Five retries at a rate of one an hour would not end.
    for (const group of ['a', 'b']) await ended((await queue.add('sync', null, { group })).id);
    const [, ofName] = await queue.limits.list();
    expect(ofName).toMatchObject({ name: 'sync', breaker: { state: 'closed' } });
  });

  it('is closed by a probe that fails with an error that is no failure: the service has answered', async () => {
    const isFailure = (error: unknown) => (error as Error).message !== '404';
    const { queue, said } = await bootQueue(redis, {
      queue: {
        limits: { breaker: { ...breaker, failures: 1, openFor: '100ms', isFailure } },
        defaults: { attempts: 1 },
      },
      handlers: {
        job: ({ data }: Job<string>) => {
          throw new Error(data);
        },
      },
    });
    await queue.add('job', '503');
    await said.first(({ type }) => type === 'breakerOpened', PATIENT);
    await queue.add('job', '404');
    const closed = await said.first(({ type }) => type === 'breakerClosed', PATIENT);
    expect(closed).toMatchObject({ queue: 'work' });
  });

  it('is refused at run time, like a retry budget, if no worker counts runs for it', async () => {
    const { queue } = await bootQueue(redis, {
      root: { limits: { api: { concurrency: 9 } } },
      queue: {
        uses: ['api'],
        limits: { retryBudget: { max: 5, per: '1s' }, names: { sync: { breaker } } },
      },
      handlers: { sync: () => undefined },
    });
    const rule = 'must be left out: workers count runs for it only if their code sets it';
    const retryBudget = { max: 1, per: '1s' } as const;
    const { limits } = queue;
    await expect(limits.set({ breaker: { failures: 3 } })).rejects.toThrow(`limits.set().breaker ${rule}`);
    await expect(limits.set({ retryBudget: { ...retryBudget, percent: 5 } })).rejects.toThrow(
      `limits.set().retryBudget.percent ${rule}`,
    );
    await expect(limits.set({ concurrency: 1, retryBudget }, { name: 'sync' })).rejects.toThrow(
      `limits.set().retryBudget ${rule}`,
    );
    await expect(limits.shared('api').set({ breaker: { failures: 3 } })).rejects.toThrow(
      `shared().set().breaker ${rule}`,
    );
    expect((await limits.list()).filter(({ isLive }) => isLive)).toEqual([]);
    await limits.set({ retryBudget });
    await limits.set({ breaker: { failures: 3 } }, { name: 'sync' });
    expect((await limits.list()).filter(({ isLive }) => isLive)).toHaveLength(2);
  });

  it.each<[string, (job: Job) => unknown]>([
    ['rejects', ({ signal }) => once(signal, 'abort').then(() => Promise.reject(signal.reason))],
    ['returns', ({ signal }) => once(signal, 'abort')],
    ['returns an Observable', () => NEVER],
  ])('counts a run once that took too long, if its handler %s when its signal aborts', async (_, job) => {
    const asked: string[] = [];
    const isFailure = (error: unknown) => asked.push((error as JobAbortedError).reason) > 0;
    const { queue, ended } = await bootQueue(redis, {
      queue: {
        limits: { breaker: { ...breaker, failures: 2, isFailure } },
        defaults: { attempts: 1, timeout: 50 },
      },
      handlers: { job },
    });
    expect(await ended((await queue.add('job', null)).id)).toMatchObject({ type: 'dead' });
    expect(asked).toEqual(['timeout']);
    expect((await queue.limits.list())[0]!.breaker!.state).toBe('closed');
  });
});

describe('an open circuit breaker', () => {
  const breaker = { failures: 1, openFor: '1h' } as const;
  /** The breaker of each of them, and how a person refers to it. */
  const OWNERS = {
    'the queue': { queue: { limits: { breaker } }, of: (queue: Queue) => queue.limits },
    'a name': {
      queue: { limits: { names: { job: { breaker } } } },
      of: ({ limits }: Queue) => ({
        set: (change: QueueLimitChange) => limits.set(change, { name: 'job' }),
        release: () => limits.release({ name: 'job' }),
      }),
    },
    'a shared limit': {
      root: { limits: { api: { breaker } } },
      queue: { uses: ['api'] },
      of: (queue: Queue) => queue.limits.shared('api'),
    },
  } as const;

  async function booted(owner: keyof typeof OWNERS) {
    const { of, queue: limited, ...root } = OWNERS[owner];
    let isDown = true;
    const logs = new Logs();
    const app = await bootQueue(redis, {
      ...root,
      queue: { ...limited, defaults: { attempts: 1 } },
      handlers: {
        job: () => {
          if (isDown) throw new Error('503');
        },
      },
      logs,
    });
    await app.queue.add('job', null);
    await app.said.first(({ type }) => type === 'breakerOpened', PATIENT);
    isDown = false;
    const { id } = await app.queue.add('job', null);
    return { ...app, logs, id, limit: of(app.queue) };
  }

  it.each(['the queue', 'a name', 'a shared limit'] as const)(
    'says that it closed when a person removes it from %s',
    async (owner) => {
      const { limit, said, ended, id } = await booted(owner);
      await limit.set({ breaker: null });
      const whose = { 'the queue': {}, 'a name': { name: 'job' }, 'a shared limit': { limit: 'api' } }[owner];
      expect(await said.first(({ type }) => type === 'breakerClosed', PATIENT)).toMatchObject(whose);
      expect(await ended(id)).toMatchObject({ type: 'completed' });
    },
  );

  it.each(['the queue', 'a name', 'a shared limit'] as const)(
    'starts a probe at once if a person sets a shorter openFor than is left (%s)',
    async (owner) => {
      const { limit, ended, id } = await booted(owner);
      await limit.set({ breaker: { failures: 1, openFor: '1m' } });
      expect(await ended(id)).toMatchObject({ type: 'completed' });
    },
  );

  it.each([
    ['the queue', 'its circuit breaker', {}, { limits: {} }],
    ['the queue', 'its circuit breaker', {}, { limits: { concurrency: 5 } }],
    ['a name', "the circuit breaker of 'job'", {}, {}],
    [
      'a shared limit',
      "the circuit breaker of the shared limit 'api'",
      { limits: { api: { concurrency: 5 } } },
      { uses: ['api'] },
    ],
  ] as const)('closes when a deploy removes it from the code of %s', async (owner, text, root, queue) => {
    const { said, ended, id, logs } = await booted(owner);
    await bootQueue(redis, { root, queue, handlers: { job: () => undefined }, watch: false, logs });
    await said.first(({ type }) => type === 'breakerClosed', PATIENT);
    expect(await ended(id)).toMatchObject({ type: 'completed' });
    expect(logs.lines.map((line) => line.text)).toContain(
      `queue 'work': ${text} is no longer in the code; jobs start again`,
    );
  });

  it('stays open when a deploy removes it from the code if it was set at run time too', async () => {
    const { queue, logs, limit } = await booted('the queue');
    await limit.set({ breaker: { failures: 2, openFor: '1h' } });
    await bootQueue(redis, { handlers: { job: () => undefined }, watch: false, logs });
    expect((await queue.limits.list())[0]).toMatchObject({ breaker: { state: 'open', failures: 2 } });
  });

  it.each([
    ['the queue', 'its circuit breaker'],
    ['a name', "the circuit breaker of 'job'"],
    ['a shared limit', "the circuit breaker of the shared limit 'api'"],
  ] as const)('is logged once when a person closes that of %s', async (owner, text) => {
    const { limit, ended, id, logs } = await booted(owner);
    await limit.release();
    await limit.release();
    expect(await ended(id)).toMatchObject({ type: 'completed' });
    await limit.set({ breaker: null });
    const lines = logs.lines.map((line) => line.text).filter((line) => line.includes('circuit breaker'));
    expect(lines).toEqual([
      `queue 'work': ${text} opened, because too many runs fail; jobs wait`,
      `queue 'work': ${text} was closed by a person; jobs start again`,
    ]);
  });
});

describe('a circuit breaker of a limit that queues share', () => {
  it('stops both queues while runs of one fail, and starts both once a job completes', async () => {
    let isDown = true;
    const asked: string[] = [];
    const isFailure = (error: unknown) => {
      asked.push((error as Error).message);
      return (error as Error).message !== '404';
    };
    const breaker = { failures: 2, openFor: '200ms', isFailure } as const;
    const logs = new Logs();
    const { queue, queueOf, runtime, said } = await bootQueue(redis, {
      root: { limits: { api: { breaker } } },
      queue: { uses: ['api'], defaults: { attempts: 20, backoff: 1 } },
      queues: [{ name: 'other', uses: ['api'] }],
      handlers: {
        job: ({ data }: Job<string>) => {
          if (isDown) throw new Error(data);
        },
      },
      concurrency: 1,
      logs,
    });
    await runtime.work('other', { job: () => undefined }, { concurrency: 1 });
    const state = async () => (await queue.limits.shared('api').state())!.breaker!.state;
    await queue.add('job', '404', { attempts: 1 });
    await said.first(({ type }) => type === 'dead', PATIENT);
    expect(await state()).toBe('closed');
    await queue.add('job', '503');
    expect(await said.first(({ type }) => type === 'breakerOpened', PATIENT)).toMatchObject({
      queue: 'work',
      name: undefined,
      limit: 'api',
      openForMs: 200,
    });
    expect(asked).toEqual(['404', '503', '503']);
    expect(await state()).not.toBe('closed');
    isDown = false;
    await queueOf('other').add('job', null);
    await said.first(({ type }) => type === 'breakerClosed', PATIENT);
    await until(
      async () => (await queue.counts()).delayed + (await queueOf('other').counts()).waiting === 0,
      {
        ...PATIENT,
        what: () => 'all jobs run',
      },
    );
    expect(await state()).toBe('closed');
    expect(logs.lines.map(({ text }) => text)).toContain(
      "queue 'work': the circuit breaker of the shared limit 'api' opened, because too many runs fail; jobs wait",
    );
    await queue.limits.shared('api').set({ breaker: null });
    expect((await queue.limits.shared('api').state())!.breaker).toBeNull();
  });
});

describe('what keeps a job waiting', () => {
  it('is returned with its time: holds, and groups that are paused', async () => {
    const { queue } = await bootQueue(redis, {
      root: { limits: { api: { concurrency: 1 } } },
      queue: { groups: {}, uses: ['api'] },
      watch: false,
    });
    const why = async (group?: string) =>
      (await queue.limits.holding({ name: 'job', ...(group && { group }) })).map(
        ({ of, reason, text }) => `${of}, ${reason}: ${text.replace(/\d+ min/, 'n min')}`,
      );
    expect(await why('a')).toEqual([]);
    await queue.limits.hold('1h');
    await queue.group('a').pause();
    // Workers declare the limit; this test has no worker.
    await queue.limits.shared('api').set({ concurrency: 1 });
    await queue.limits.shared('api').hold('1h');
    expect(await why('a')).toEqual([
      'queue, held: the queue is held for n min',
      "shared, held: the shared limit 'api' is held for n min",
      "group, paused: the group 'a' is paused",
    ]);
    expect(await why()).toHaveLength(2);
    expect(await queue.limits.listShared()).toMatchObject([{ of: 'shared', name: 'api' }]);
    expect((await queue.limits.holding({ name: 'job' }))[0]!.opensInMs).toBeGreaterThan(3_500_000);
  });

  it('is the rate and the concurrency that running jobs use, and is refused without a name', async () => {
    const end = latch('the end of the job');
    const { queue } = await bootQueue(redis, {
      queue: {
        limits: {
          concurrency: 1,
          names: { job: { rate: { max: 1, per: '1h' } }, other: { concurrency: 1 } },
        },
      },
      handlers: { job: () => end.promise },
      watch: false,
    });
    await queue.add('job', null);
    await until(async () => (await queue.counts()).active === 1, { ...PATIENT, what: () => 'the job runs' });
    const reasons = await queue.limits.holding({ name: 'job', group: null });
    expect(reasons).toMatchObject([
      { of: 'queue', reason: 'concurrency', opensInMs: null, text: '1 of 1 jobs of the queue run' },
      { of: 'name', name: 'job', reason: 'rate' },
    ]);
    for (const bad of [undefined, {}, { name: '' }, { name: 'a', group: '' }])
      await expect(queue.limits.holding(bad as never)).rejects.toMatchObject({
        code: expect.stringMatching(/^GODWIT_INVALID_/),
      });
    end.open();
  });
});

describe('a retry budget', () => {
  it('lets so many retries run at once and the others one by one, over all processes', async () => {
    const retries: number[] = [];
    const handlers = {
      job: (job: Job) => {
        if (job.attempt === 1) throw new Error('once');
        retries.push(performance.now());
      },
    };
    const options = {
      handlers,
      queue: { limits: { retryBudget: { max: 10, per: '200ms' } }, defaults: { attempts: 2, backoff: 1 } },
      watch: false,
    } as const;
    const { queue } = await bootQueue(redis, options);
    await bootQueue(redis, options);
    expect(await queue.limits.list()).toMatchObject([
      { retryBudget: { max: 10, perMs: 200, percent: null, delayMs: 0 } },
    ]);
    const begun = performance.now();
    await queue.addBulk(Array.from({ length: 40 }, () => ({ name: 'job', data: null })));
    await until(() => retries.length === 40, { ...PATIENT, what: () => `${retries.length} of 40 retries` });
    // 10 at once, and 30 more, one each 20 ms.
    expect(performance.now() - begun).toBeGreaterThanOrEqual(30 * 20);
    const first = retries.toSorted((a, b) => a - b);
    expect(first[20]! - begun).toBeGreaterThanOrEqual(10 * 20);
    expect((await queue.counts()).dead).toBe(0);
  });

  it('is not used up by retries that would come too late', async () => {
    let isDown = true;
    const { queue } = await bootQueue(redis, {
      handlers: {
        job: ({ attempt }: Job) => {
          if (isDown || attempt === 1) throw new Error('503');
        },
      },
      queue: {
        limits: { retryBudget: { max: 1, per: '400ms' } },
        defaults: { attempts: 9, backoff: 1, retention: '1h' },
      },
      watch: false,
    });
    const late = { name: 'job', data: null, options: { retryFor: '300ms' } } as const;
    await queue.addBulk(Array.from({ length: 200 }, () => late));
    await until(async () => (await queue.counts()).dead === 200, { ...PATIENT, what: () => 'all are dead' });
    isDown = false;
    await queue.add('job', null);
    await until(async () => (await queue.counts()).completed === 1, { ...PATIENT, what: () => 'a retry' });
    expect((await queue.counts()).dead).toBe(200);
  });

  it('allows a percentage of the first attempts more', async () => {
    const retried: string[] = [];
    const { queue } = await bootQueue(redis, {
      handlers: {
        job: ({ data, attempt }: Job<string>) => {
          if (attempt > 1) retried.push(data);
          else if (data !== 'good') throw new Error('once');
        },
      },
      queue: {
        limits: { retryBudget: { percent: 50, max: 1, per: '1h' } },
        defaults: { attempts: 2, backoff: 0 },
      },
      watch: false,
    });
    expect(await queue.limits.list()).toMatchObject([{ retryBudget: { max: 1, percent: 50 } }]);
    const add = (data: string, length: number) =>
      queue.addBulk(Array.from({ length }, () => ({ name: 'job', data })));
    await add('good', 6);
    await add('bad', 8);
    // 1, and half of the 14 first attempts.
    await until(() => retried.length === 8);
    await add('bad', 1);
    await until(async () => (await queue.counts()).delayed === 1);
    expect(retried).toHaveLength(8);
    // 1 and half of 15 first attempts: 8.5 in an hour. The waiting retry has the other half of the ninth.
    const { delayMs } = (await queue.limits.list())[0]!.retryBudget!;
    expect(Math.ceil(delayMs / 1_000)).toBe(Math.ceil((1.5 * 3_600) / 8.5));
  });
});
