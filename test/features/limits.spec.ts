import { describe, expect, it, vi } from 'vitest';
import type { QueueEngine } from '#lib/contract/engine.js';
import { QUEUE_ENGINE } from '#lib/decorators/metadata.js';
import { GroupFullError, InvalidOptionError } from '#lib/errors.js';
import { RateLimited, type Job } from '#lib/job/job.js';
import { bootQueue, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';

const redis = useRedis();

/** The most starts within any time as long as `per`. */
function densest(times: readonly number[], per: number): number {
  let most = 0;
  for (let first = 0, last = 0; last < times.length; last++) {
    while (times[last]! - times[first]! >= per) first += 1;
    most = Math.max(most, last - first + 1);
  }
  return most;
}

describe('a rate', () => {
  it('holds in every window over two processes', async () => {
    const handlers = { job: () => undefined };
    const limits = { rate: { max: 40, per: '400ms' } } as const;
    const one = await bootQueue(redis, { handlers, queue: { limits } });
    const two = await bootQueue(redis, { handlers, queue: { limits }, watch: false });
    const begun = Date.now();
    await one.queue.addBulk(Array.from({ length: 160 }, () => ({ name: 'job', data: null })));
    const events = await one.said.take(160, ({ type }) => type === 'active', PATIENT);
    const ms = Date.now() - begun;
    // By the clock of Redis. Events of one claim have the same time.
    expect(
      densest(
        events.map(({ at }) => at.getTime()).toSorted((a, b) => a - b),
        400,
      ),
    ).toBeLessThanOrEqual(40);
    expect(ms).toBeGreaterThan(3 * 400);
    expect(await two.queue.limits.list()).toMatchObject([
      { of: 'queue', name: null, rate: { max: 40, perMs: 400, window: 'sliding' }, isLive: false },
    ]);
  });

  it('is changed live, and the value in the code applies again once that is cleared', async () => {
    const { queue, logs } = await bootQueue(redis, {
      handlers: { job: () => undefined },
      queue: { limits: { rate: { max: 1, per: '1h' } } },
    });
    await queue.addBulk(Array.from({ length: 3 }, () => ({ name: 'job', data: null })));
    await until(async () => (await queue.counts()).waiting === 2, {
      timeout: 5_000,
      what: () => 'one job starts',
    });
    const lines = logs.lines.map(({ text }) => text).filter((text) => text.includes('limits delay its jobs'));
    expect(lines).toEqual([
      expect.stringMatching(/queue 'work': limits delay its jobs; the next may start in \d+ ms/),
    ]);
    await queue.limits.set({ rate: null });
    await until(async () => (await queue.counts()).waiting === 0, {
      timeout: 5_000,
      what: () => 'all jobs start',
    });
    await queue.limits.clear();
    expect(await queue.limits.list()).toMatchObject([{ rate: { max: 1 }, isLive: false }]);
  });

  it('is removed with the code', async () => {
    const first = await bootQueue(redis, {
      handlers: { job: () => undefined },
      queue: { limits: { rate: { max: 1, per: '1h' }, names: { mail: { concurrency: 1 } } } },
      watch: false,
    });
    expect(await first.queue.limits.list()).toHaveLength(2);
    await first.close();
    const second = await bootQueue(redis, { handlers: { job: () => undefined }, watch: false });
    expect(await second.queue.limits.list()).toMatchObject([{ of: 'queue', rate: null }]);
  });

  it('is written by a process that only adds jobs if no worker has written it', async () => {
    const groups = { maxSize: 1, concurrency: 2 };
    const { queue, close } = await bootQueue(redis, {
      queue: { groups },
      root: { role: 'producer' },
      watch: false,
    });
    await queue.add('job', null, { group: 'a' });
    await expect(queue.add('job', null, { group: 'a' })).rejects.toThrow(GroupFullError);
    await close();
    const worker = await bootQueue(redis, {
      queue: { groups: { concurrency: 3 } },
      handlers: { job: () => undefined },
      watch: false,
    });
    await bootQueue(redis, {
      queue: { groups, limits: { concurrency: 9 } },
      root: { role: 'producer' },
      watch: false,
    });
    expect(await worker.queue.limits.list()).toMatchObject([
      { of: 'queue', concurrency: 9 },
      { of: 'groups', maxSize: null, concurrency: 3 },
    ]);
  });

  it('can be held, and the hold can be ended early', async () => {
    const { queue, said } = await bootQueue(redis, {
      handlers: { job: () => undefined, page: () => undefined },
    });
    await queue.limits.hold('1h');
    await queue.limits.hold('1h', { name: 'page' });
    const group = queue.group('a');
    await queue.addBulk(['page', 'job'].map((name) => ({ name, data: 1 })));
    const held = async (name: string) => (await queue.limits.holding({ name })).map(({ of }) => of);
    expect([await held('job'), await held('page')]).toEqual([['queue'], ['queue', 'name']]);
    expect(await queue.counts()).toMatchObject({ waiting: 2 });
    await queue.limits.release();
    await group.release();
    expect(await said.first(({ type }) => type === 'completed', PATIENT)).toMatchObject({ name: 'job' });
    expect([await held('job'), await held('page')]).toEqual([[], ['name']]);
    expect(await queue.counts()).toMatchObject({ waiting: 1 });
    await queue.limits.release({ name: 'page' });
    await said.take(2, ({ type }) => type === 'completed', PATIENT);
  });

  it('is corrected by what a job has really cost', async () => {
    const { queue, said } = await bootQueue(redis, {
      handlers: { job: (job: Job) => job.charge(70) },
      queue: { limits: { rate: { max: 100, per: '1h' } } },
    });
    await queue.add('job', null, { cost: 20 });
    await said.take(1, ({ type }) => type === 'completed', PATIENT);
    expect(await queue.limits.list()).toMatchObject([{ left: 30 }]);
  });

  it('is corrected by the second call if the first one failed', async () => {
    const { queue, said, get } = await bootQueue(redis, {
      handlers: {
        job: async (job: Job) => {
          await expect(job.charge(60)).rejects.toThrow('away');
          await job.charge(70);
        },
      },
      queue: { limits: { rate: { max: 100, per: '1h' } } },
    });
    const { limits } = get<QueueEngine>(QUEUE_ENGINE);
    vi.spyOn(limits, 'charge').mockRejectedValueOnce(new Error('away'));
    await queue.add('job', null, { cost: 20 });
    await said.take(1, ({ type }) => type === 'completed', PATIENT);
    expect(await queue.limits.list()).toMatchObject([{ left: 30 }]);
  });

  it.each([['queue'], ['name'], ['group']] as const)(
    'is held for the %s by a handler that throws RateLimited; no attempt is counted',
    async (scope) => {
      const attempts: number[] = [];
      const { queue, said, logs } = await bootQueue(redis, {
        handlers: {
          job: (job: Job) => {
            attempts.push(job.attempt);
            if (attempts.length === 1) throw new RateLimited('1h', { scope });
          },
        },
      });
      const of = (name: string, group: string) => ({ name, ...(scope === 'group' && { group }) });
      await queue.add('job', null, scope === 'group' ? { group: 'a' } : {});
      await said.first(({ type }) => type === 'released', PATIENT);
      const stopped = {
        queue: 'no job of the queue',
        name: 'no job of name "job"',
        group: 'no job of group "a"',
      }[scope];
      expect(logs.lines.map(({ text }) => text)).toContainEqual(
        expect.stringContaining(`its handler threw RateLimited: ${stopped} starts for 3600000 ms`),
      );
      const [holding, ...others] = await queue.limits.holding(of('job', 'a'));
      expect(holding).toMatchObject({ of: scope, reason: 'held' });
      expect(holding!.opensInMs).toBeGreaterThan(3_500_000);
      expect(others).toEqual([]);
      expect(await queue.limits.holding(of('other', 'b'))).toHaveLength(scope === 'queue' ? 1 : 0);
      if (scope === 'group') await queue.group('a').release();
      else await queue.limits.release(scope === 'name' ? { name: 'job' } : {});
      await said.first(({ type }) => type === 'completed', PATIENT);
      expect(attempts).toEqual([1, 1]);
    },
  );
});

describe('aging', () => {
  it('lets a job that has waited overtake jobs with a higher priority', async () => {
    const order: unknown[] = [];
    const { queue, said } = await bootQueue(redis, {
      handlers: { job: (job: Job) => void order.push(job.data) },
      queue: { limits: { aging: { every: '1ms' } } },
      concurrency: 1,
    });
    await queue.pause();
    await queue.add('job', 'low', { priority: 1 });
    const added = Date.now();
    await until(async () => Date.now() > added + 30, { timeout: 5_000, what: () => 'time passes' });
    await queue.add('job', 'late', { priority: 60_000 });
    await queue.add('job', 'plain');
    await queue.resume();
    await said.take(3, ({ type }) => type === 'completed', PATIENT);
    expect(order).toEqual(['low', 'plain', 'late']);
  });
});

/**
 * A handler of `job` that takes some turns of the event loop. Counts how many ran at once at most, and how many have
 * ended.
 */
function busy() {
  let running = 0;
  const seen = {
    most: 0,
    ended: 0,
    handlers: {
      job: async () => {
        running += 1;
        seen.most = Math.max(seen.most, running);
        for (let i = 0; i < 5; i++) await new Promise(setImmediate);
        running -= 1;
        seen.ended += 1;
      },
    },
  };
  return seen;
}

describe('a concurrency', () => {
  it('holds over all processes', async () => {
    const seen = busy();
    const { handlers } = seen;
    const limits = { concurrency: 3 };
    const one = await bootQueue(redis, { handlers, concurrency: 10, queue: { limits } });
    await bootQueue(redis, { handlers, concurrency: 10, queue: { limits }, watch: false });
    await one.queue.addBulk(Array.from({ length: 200 }, () => ({ name: 'job', data: null })));
    await one.said.take(200, ({ type }) => type === 'completed', PATIENT);
    expect(seen.most).toBe(3);
    expect((await one.queue.audit()).violations).toEqual([]);
  });

  it('of one name leaves the others alone', async () => {
    const hold = latch('the mail may end');
    const { queue, said } = await bootQueue(redis, {
      handlers: { mail: () => hold.promise, page: () => undefined },
      queue: { limits: { names: { mail: { concurrency: 1 } } } },
    });
    await queue.addBulk(['mail', 'mail', 'page', 'page'].map((name) => ({ name, data: null })));
    await said.take(2, ({ type }) => type === 'completed', PATIENT);
    expect(await queue.counts()).toMatchObject({ active: 1, waiting: 1 });
    hold.open();
    await said.take(4, ({ type }) => type === 'completed', PATIENT);
  });
});

describe('limits that queues share', () => {
  const uses = ['api'];
  const jobs = (count: number) => Array.from({ length: count }, () => ({ name: 'job', data: null }));

  it('let at most as many jobs of all queues and processes start as the rate allows', async () => {
    const starts: number[] = [];
    const handlers = { job: () => void starts.push(performance.now()) };
    const root = { limits: { api: { rate: { max: 30, per: '300ms' } } } } as const;
    const boot = () =>
      bootQueue(redis, {
        handlers,
        root,
        queue: { uses },
        queues: [{ name: 'other', uses }],
        imports: [],
        watch: false,
      });
    const one = await boot();
    await boot();
    const runtime = one.runtime;
    await runtime.work('other', handlers);
    const begun = performance.now();
    await one.queue.addBulk(jobs(60));
    await one.queueOf('other').addBulk(jobs(60));
    await until(() => starts.length === 120, {
      ...PATIENT,
      what: () => `${starts.length} of 120 jobs start`,
    });
    // A start may be late, on a busy machine by a long time, but never early: 30 more may start after each 300 ms. Redis and this
    // process round the time to ms.
    const early = starts
      .toSorted((a, b) => a - b)
      .filter((at, i) => at - begun < 300 * Math.floor(i / 30) - 2);
    expect(early).toEqual([]);
    expect(performance.now() - begun).toBeGreaterThan(3 * 300);
    expect(await one.queue.limits.list()).toMatchObject([
      { of: 'queue' },
      { of: 'shared', name: 'api', rate: { max: 30, perMs: 300 }, isLive: false },
    ]);
  });

  it('let at most concurrency jobs run at once, also when changed live, and wake the queue that waits', async () => {
    const seen = busy();
    const { handlers } = seen;
    const root = { limits: { api: { concurrency: 3 } } };
    const app = await bootQueue(redis, {
      handlers,
      root,
      queue: { uses },
      queues: [{ name: 'other', uses }],
      watch: false,
    });
    await app.runtime.work('other', handlers);
    await app.queue.addBulk(jobs(50));
    await app.queueOf('other').addBulk(jobs(50));
    await until(() => seen.ended === 100, { ...PATIENT, what: () => `${seen.ended} of 100 jobs end` });
    expect(seen.most).toBe(3);
    const api = app.queue.limits.shared('api');
    await until(async () => (await api.state())?.running === 0, {
      ...PATIENT,
      what: () => 'all places are free',
    });
    seen.most = 0;
    await api.set({ concurrency: 1 });
    await app.queue.addBulk(jobs(5));
    await app.queueOf('other').addBulk(jobs(5));
    await until(() => seen.ended === 110, { ...PATIENT, what: () => `${seen.ended} of 110 jobs end` });
    expect(seen.most).toBe(1);
    await api.clear();
    expect(await api.state()).toMatchObject({ concurrency: 3, isLive: false });
    expect(await app.queue.limits.shared('nobody').state()).toBeNull();
  });

  it('are held back by a handler for all queues, and count what jobs cost', async () => {
    let asked = 0;
    const said: string[] = [];
    const handlers = {
      job: async (job: Job) => {
        asked += 1;
        if (asked === 1) throw new RateLimited('1h', { limit: 'api' });
        said.push(job.queue);
        await job.charge(8);
      },
    };
    const root = { limits: { api: { rate: { max: 10, per: '1h' } } } } as const;
    const app = await bootQueue(redis, {
      handlers,
      root,
      queue: { uses },
      queues: [{ name: 'other', uses }],
      watch: false,
    });
    await app.runtime.work('other', handlers);
    await app.queue.add('job', null, { cost: 2 });
    const api = app.queue.limits.shared('api');
    await until(async () => (await api.state())!.heldForMs > 0, {
      ...PATIENT,
      what: () => 'the limit is held',
    });
    await app.queueOf('other').add('job', null);
    expect(said).toEqual([]);
    await api.clear();
    await api.hold('2h');
    await api.release();
    await app.queue.limits.shared('api').set({ rate: { max: 1_000, per: '1h' } });
    await until(() => said.length === 2, { ...PATIENT, what: () => 'both jobs run' });
    await expect(app.queue.add('job', null, { cost: 11 })).rejects.toThrow(InvalidOptionError);
    await until(async () => (await api.state())!.left === 1_000 - 2 - 16, {
      ...PATIENT,
      what: () => 'the cost is counted',
    });
  });
});

describe('groups', () => {
  it('take turns if one of them has many more jobs', async () => {
    const order: string[] = [];
    const { queue, said, runtime } = await bootQueue(redis, {
      handlers: { job: (job: Job) => void order.push(job.group!) },
      concurrency: 1,
      root: { autoStart: false },
    });
    await queue.addBulk(
      Array.from({ length: 300 }, () => ({ name: 'job', data: null, options: { group: 'big' } })),
    );
    await queue.addBulk(
      ['a', 'b', 'c'].flatMap((group) => [0, 1].map(() => ({ name: 'job', data: null, options: { group } }))),
    );
    await runtime.start();
    await said.take(306, ({ type }) => type === 'completed', PATIENT);
    const last = Math.max(...['a', 'b', 'c'].map((group) => order.lastIndexOf(group)));
    expect(last).toBeLessThan(12);
  });

  it.each([
    ['with a limit', { concurrency: 2 }, undefined],
    ['with waiting jobs', { by: 'of' }, { of: 'tenant-7' }],
  ])(
    '%s: a limit or hold of a job name is refused, as it would hold no job back',
    async (_, groups, data) => {
      const { queue } = await bootQueue(redis, {
        handlers: { job: () => undefined },
        queue: { groups, limits: { concurrency: 1 } },
      });
      await queue.limits.hold('1h');
      if (data) await queue.add('job', data);
      if (data) await until(async () => (await queue.groups()).groups.length === 1, PATIENT);
      const rule = 'left out with groups: a job waits in one line, got "job"';
      await expect(queue.limits.set({ concurrency: 1 }, { name: 'job' })).rejects.toThrow(
        `limits.set().name must be ${rule}`,
      );
      await expect(queue.limits.hold('1s', { name: 'job' })).rejects.toThrow(
        `limits.hold().name must be ${rule}`,
      );
      expect((await queue.limits.list()).filter(({ of }) => of === 'name')).toEqual([]);
    },
  );

  it('come from the data', async () => {
    const { queue } = await bootQueue(redis, { queue: { groups: { by: 'account.id' } }, watch: false });
    const { id } = await queue.add('job', { account: { id: 7 } });
    expect(await queue.get(id)).toMatchObject({ group: '7', state: 'waiting' });
    await expect(queue.add('job', { account: {} })).rejects.toThrow(InvalidOptionError);
    expect((await queue.groups()).groups).toMatchObject([{ of: 'group', name: '7', waiting: 1 }]);
  });

  it('run one job after another in strict order, also through retries', async () => {
    const order: string[] = [];
    let failed = false;
    const { queue, said } = await bootQueue(redis, {
      handlers: {
        job: (job: Job<number>) => {
          order.push(`${job.group}${job.data}`);
          if (job.group === 'a' && job.data === 1 && !failed) {
            failed = true;
            throw new Error('once');
          }
        },
      },
      queue: { groups: { order: 'strict' }, defaults: { backoff: 50 } },
    });
    await queue.addBulk(
      [0, 1, 2, 3].flatMap((data) => ['a', 'b'].map((group) => ({ name: 'job', data, options: { group } }))),
    );
    await said.take(8, ({ type }) => type === 'completed', PATIENT);
    expect(order.filter((one) => one.startsWith('a'))).toEqual(['a0', 'a1', 'a1', 'a2', 'a3']);
    expect(order.filter((one) => one.startsWith('b'))).toEqual(['b0', 'b1', 'b2', 'b3']);
  });

  it('that are full refuse their own job, and no other of the same tick', async () => {
    const { queue } = await bootQueue(redis, {
      queue: { groups: { maxSize: 2 } },
      handlers: { job: () => undefined },
      watch: false,
    });
    await queue.pause();
    const add = (group: string) => queue.add('job', null, { group });
    const results = await Promise.allSettled([add('a'), add('a'), add('a'), add('b')]);
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
    const error: unknown = await add('a').catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(GroupFullError);
    expect(error).toMatchObject({
      code: 'GODWIT_GROUP_FULL',
      group: 'a',
      waiting: 2,
      limit: 2,
      applied: 'no',
    });
    const bulk = ['b', 'b', 'b', 'c'].map((name) => ({ name: 'job', data: null, options: { group: name } }));
    await expect(queue.addBulk(bulk)).rejects.toThrow(
      'group "b" has 1 waiting job and may have 2, and this call adds 3; nothing was changed, add fewer jobs at once or raise groups.maxSize',
    );
  });

  it('can be paused, weighted and limited one by one', async () => {
    const { queue, said } = await bootQueue(redis, { handlers: { job: () => undefined } });
    const tenant = queue.group('tenant 7');
    await tenant.pause();
    await queue.add('job', null, { group: 'tenant 7' });
    await queue.add('job', null, { group: 'other' });
    await said.take(1, ({ type }) => type === 'completed', PATIENT);
    expect(await tenant.state()).toMatchObject({ paused: true, waiting: 1, isLive: true });
    await tenant.set({ weight: 2 });
    await tenant.resume();
    await said.take(2, ({ type }) => type === 'completed', PATIENT);
    await tenant.clear();
    expect(await tenant.state()).toMatchObject({ paused: false, weight: 1, isLive: false });
  });
});

describe('bad limits', () => {
  const boot = async (queue: object) =>
    bootQueue(redis, { queue: queue as never, watch: false }).then(
      () => [],
      (error: { faults?: string[]; message: string }) => error.faults ?? [error.message],
    );

  it.each([
    [{ limits: { aging: { by: 2 } } }, "registerQueue('work').limits.aging.every must be a duration"],
    [
      { limits: { aging: { every: '1m', by: 0 } } },
      "registerQueue('work').limits.aging.by must be an integer",
    ],
    [{ limits: { rate: { max: 1 } } }, "registerQueue('work').limits.rate.per must be a duration"],
    [{ limits: { rate: { max: 0, per: '1s' } } }, "registerQueue('work').limits.rate.max must be an integer"],
    [
      { limits: { rate: { max: 1, per: '1s', window: 'sliding', burst: 2 } } },
      "limits.rate.burst must be at most max (1) with window 'sliding'",
    ],
    [
      { limits: { rate: { max: 1, per: '1s', window: 'fixed', burst: 1 } } },
      "limits.rate.burst must be left out with window 'fixed'",
    ],
    [{ limits: { concurrency: 0 } }, "registerQueue('work').limits.concurrency must be an integer from 1"],
    [{ limits: { names: { a: { rate: 5 } } } }, "registerQueue('work').limits.names.a.rate must be"],
    [
      { limits: { names: { a: {} } } },
      "registerQueue('work').limits.names.a must be an object with rate, concurrency, breaker or retryBudget, got {}",
    ],
    [{ limits: { names: { 'a.*': { concurrency: 1 } } } }, 'must be the exact name of jobs, without *'],
    [
      { limits: { names: { a: { concurrency: 1 } } }, groups: {} },
      'limits.names must be left out with groups',
    ],
    [{ groups: { order: 'strict', concurrency: 2 } }, 'groups.concurrency must be left out with order'],
    [{ groups: { order: 'strict', fairness: 'in-flight' } }, 'groups.fairness must be left out with order'],
    [{ groups: { fairness: 'flight' } }, "groups.fairness must be one of 'turns', 'in-flight'"],
    [{ groups: { onDead: 'block' } }, "groups.onDead must be left out without order 'strict'"],
    [{ groups: { by: 'a..b' } }, 'groups.by must be the path of a field'],
    [
      { groups: {}, maxWaiting: { limit: 5, onFull: 'dropOldest' } },
      "maxWaiting.onFull must be not 'dropOldest' with groups",
    ],
    [
      { uses: ['openai'] },
      "registerQueue('work').uses[0] must be one of the limits of forRoot(): there are none",
    ],
    [{ limits: { breaker: {} } }, "registerQueue('work').limits.breaker.failures must be an integer from 1"],
    [
      { limits: { breaker: { failures: 1, ratio: 2 } } },
      'limits.breaker.ratio must be a number from 0.01 to 1',
    ],
    [
      { limits: { breaker: { failures: 1, window: 1 } } },
      'limits.breaker.window must be a duration from 100',
    ],
    [{ limits: { breaker: { failures: 1, probes: 0 } } }, 'limits.breaker.probes must be an integer from 1'],
    [{ limits: { breaker: { failures: 1, isFailure: 5 } } }, 'limits.breaker.isFailure must be a function'],
    [{ limits: { names: { a: { breaker: { failures: 1, openFor: 'x' } } } } }, 'names.a.breaker.openFor'],
    [{ limits: { retryBudget: { max: 5 } } }, 'limits.retryBudget.per must be a duration'],
    [
      { limits: { retryBudget: { max: 5, per: '1s', percent: 0 } } },
      'limits.retryBudget.percent must be a number from 0.01 to 100',
    ],
    [{ limits: { retryBudget: { per: '1s' } } }, 'limits.retryBudget.max must be an integer'],
    [{ groups: { breaker: { failures: 1 } } }, "registerQueue('work').groups"],
    [{ uses: 'openai' }, "registerQueue('work').uses must be a list of names"],
    [{ groups: { maxSize: 0 } }, 'groups.maxSize must be an integer from 1'],
  ])('%j', async (queue, text) => {
    expect(await boot(queue)).toEqual([expect.stringContaining(text)]);
  });

  it('at the call are refused with their rule', async () => {
    const { queue } = await bootQueue(redis, {
      queue: { limits: { rate: { max: 10, per: '1s' } }, groups: { order: 'strict' } },
      watch: false,
    });
    const faults = [
      () => queue.add('job', null, { cost: 11 }),
      () => queue.add('job', null, { cost: 0 }),
      () => queue.add('job', null, { group: 'x'.repeat(257) }),
      () => queue.add('job', null, { group: 'a\nb' }),
      () => queue.add('job', null, { group: '' }),
      () => queue.add('job', null, { group: 'a', lifo: true }),
      () => queue.limits.set({ concurrency: -1 }),
      () => queue.limits.set({ rate: { max: 1, per: 'soon' as never } }),
      () => queue.limits.hold('0ms'),
      () => queue.limits.release({ group: 'a' } as never),
      () => queue.add('job', null, { debounce: { key: 'a', delay: 1 } }),
      async () => queue.group('\u0000'),
      () => queue.group('a').set({ weight: 0 }),
      () => queue.group('a').set({ concurrency: 2 }),
      () => queue.groups({ cursor: 'x' }),
    ];
    for (const fault of faults) await expect(fault(), String(fault)).rejects.toThrow(InvalidOptionError);
    await expect(queue.add('job', null, { cost: 11 })).rejects.toThrow(
      'add().options.cost must be at most 10, limits.rate.max of the queue, got 11 (number)',
    );
    await queue.group('a').set({ concurrency: null, weight: 2 });
    expect(() => new RateLimited('soon' as never)).toThrow(InvalidOptionError);
    expect(() => new RateLimited('1s', { scope: 'job' as never })).toThrow(InvalidOptionError);
    const refused: [unknown, string][] = [
      [{ scope: 'name', limit: 'api' }, 'RateLimited().scope must be left out with a limit'],
      [{ scopes: 'name' }, 'RateLimited().scopes is not an option; did you mean scope?'],
      [null, 'RateLimited() must be given an object of options, got null'],
    ];
    for (const [options, text] of refused)
      expect(() => new RateLimited('1s', options as object)).toThrow(text);
    expect(await queue.counts()).toMatchObject({ waiting: 0 });
  });
});
