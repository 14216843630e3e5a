import { isDeepStrictEqual } from 'node:util';
import { describe, expect, it } from 'vitest';
import { Handle, type Job } from '#lib/index.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { runOn } from '../cli/support.js';
import { bootDashboard } from '../support/dashboard.js';
import { bootQueue, keyOf, PATIENT } from '../support/queue-app.js';
import { die } from '../support/queue-states.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';

// The reasons that the dashboard and the command give for a job that does not start.
const redis = useRedis();

const cli = async (id: string) => (await runOn(redis, 'job', 'work', id)).out;

describe('a job of a group in strict order', () => {
  it('says which job of the group must end first, and what to do about a dead one', async () => {
    const { queue, api } = await bootDashboard(redis, {
      handlers: { die, retry: die, ok: () => 1 },
      queue: { groups: { order: 'strict', onDead: 'block' } },
      root: { lease: { duration: '1s' } },
    });
    await queue.add('die', 1, { id: 'dead-1', group: 'a', attempts: 1 });
    await queue.add('retry', 1, { id: 'late-1', group: 'b', attempts: 2, backoff: 3_600_000 });
    await until(async () => (await queue.counts()).delayed + (await queue.counts()).dead === 2, PATIENT);
    await queue.add('ok', 1, { id: 'next-a', group: 'a' });
    await queue.add('ok', 1, { id: 'next-b', group: 'b' });
    await until(async () => (await api('GET', 'queues/work')).body.consumers === 1, PATIENT);
    const reason = async (id: string) => (await api('GET', `queues/work/jobs/${id}`)).body.waitsFor;
    const dead =
      "the group 'a' runs one job at a time, and job 'dead-1' holds it: it is dead, so retry or remove it";
    expect(await reason('next-a')).toEqual([dead]);
    expect(await cli('next-a')).toContain(`waits because  ${dead}`);
    expect(await reason('next-b')).toEqual([
      "the group 'b' runs one job at a time, and job 'late-1' holds it: it waits for its next attempt",
    ]);
    expect((await queue.group('a').state()).holder).toBe('dead-1');
    expect((await runOn(redis, 'groups', 'work')).out).toMatch(/^group a .* stopped by dead-1$/m);
    // A job that must end first is not held back by itself.
    await queue.pause();
    await queue.promote('late-1');
    expect(await reason('late-1')).toEqual(['the queue is paused']);
    await queue.remove('dead-1');
    expect((await queue.group('a').state()).holder).toBeNull();
    expect(await reason('next-a')).toEqual(['the queue is paused']);
  });
});

describe('a job that costs more than a rate has left', () => {
  it('says so, and the cost is part of the job', async () => {
    const { queue, api } = await bootDashboard(redis, {
      handlers: { ok: () => 1 },
      queue: {
        limits: {
          rate: { max: 10, per: '1h' },
          names: { ok: { rate: { max: 100, per: '1h', window: 'fixed' } } },
        },
      },
    });
    await until(async () => (await api('GET', 'queues/work')).body.consumers === 1, PATIENT);
    await queue.add('ok', 1, { cost: 7 });
    await until(async () => (await queue.limits.list())[0]!.left === 3, PATIENT);
    await queue.add('ok', 1, { id: 'large', cost: 4 });
    const why = 'the rate of the queue has 3 of 10 left, and the job costs 4';
    expect((await api('GET', 'queues/work/jobs/large')).body.waitsFor).toEqual([why]);
    expect(await cli('large')).toContain(`waits because  ${why}`);
    expect((await queue.get('large'))!.cost).toBe(4);
    const reasons = async (cost?: number) => queue.limits.holding({ name: 'ok', ...(cost && { cost }) });
    expect(await reasons(4)).toEqual([
      { of: 'queue', name: null, reason: 'rate', opensInMs: null, text: why },
    ]);
    const behind = why.replace('the job', "job 'large' before it");
    expect([await reasons(3), await reasons()]).toMatchObject([[{ text: behind }], [{ text: behind }]]);
    await queue.add('ok', 1, { id: 'small' });
    expect(await cli('small')).toContain(`waits because  ${behind}`);
    await queue.limits.hold('1h', { name: 'ok' });
    const ofGroup = await queue.limits.holding({ name: 'ok', group: 'a' });
    expect([await reasons(), ofGroup]).toMatchObject([[{ of: 'name', reason: 'held' }], []]);
    await queue.limits.release({ name: 'ok' });
    // A cost above a lowered `max` needs all of it.
    await queue.limits.set({ rate: { max: 3, per: '1h' } });
    await queue.limits.set({ rate: null }, { name: 'ok' });
    expect(await reasons(4)).toMatchObject([{ opensInMs: expect.any(Number) }]);
    // A bucket below zero refills to zero first.
    await queue.limits.set({ rate: { max: 20, per: '1h', burst: 20 } });
    expect(await reasons(15)).toEqual([]);
  });

  it.each([
    ['the queue', { limits: { rate: { max: 5, per: '1h' } } }, [], [null]],
    ["the group 'a'", { groups: { rate: { max: 5, per: '1h' } } }, ['b', null], ['a']],
  ] as const)(
    'holds back those behind it by the rate of %s, and no others',
    async (of, limited, free, held) => {
      const { queue } = await bootQueue(redis, { handlers: { job: () => 1 }, queue: limited });
      await queue.add('job', 1, { cost: 3, ...('groups' in limited && { group: 'a' }) });
      await until(async () => (await queue.counts()).active + (await queue.counts()).waiting === 0, PATIENT);
      await queue.add('job', 1, { id: 'large', cost: 4, ...('groups' in limited && { group: 'a' }) });
      const text = `the rate of ${of} has 2 of 5 left, and job 'large' before it costs 4`;
      for (const group of held)
        expect(await queue.limits.holding({ name: 'other', group, cost: 2 })).toMatchObject([{ text }]);
      for (const group of free) expect(await queue.limits.holding({ name: 'other', group })).toEqual([]);
    },
  );
});

it.each(['redis', 'memory'] as const)(
  'a queue with a hold and an open circuit breaker says which of them ends later (%s)',
  async (engine) => {
    const { queue, logs } = await bootQueue(redis, {
      handlers: { bad: () => Promise.reject(new Error('no answer')) },
      queue: { limits: { breaker: { failures: 1, openFor: '1h' } } },
      watch: false,
      ...(engine === 'memory' && { root: { connection: 'memory' } }),
    });
    await queue.add('bad', 1);
    await until(() => logs.lines.some(({ text }) => text.includes('circuit breaker opened')), PATIENT);
    const why = async () => (await queue.limits.holding({ name: 'bad' })).map(({ reason }) => reason);
    expect(await why()).toEqual(['breaker']);
    await queue.limits.hold('10m');
    expect(await why()).toEqual(['breaker']);
    await queue.limits.hold('2h');
    expect(await why()).toEqual(['held']);
  },
);

it.each(['redis', 'memory'] as const)(
  'a queue with a hold and a used-up rate says when the next job may start (%s)',
  async (engine) => {
    const { queue } = await bootQueue(redis, {
      handlers: { job: () => 1 },
      queue: { limits: { rate: { max: 1, per: '1h' } } },
      watch: false,
      ...(engine === 'memory' && { root: { connection: 'memory' } }),
    });
    await queue.add('job', 1);
    await until(async () => (await queue.counts()).active + (await queue.counts()).waiting === 0, PATIENT);
    await queue.limits.hold('10m');
    expect((await queue.limits.list())[0]!.nextInMs).toBeGreaterThan(3_000_000);
    const why = async () => (await queue.limits.holding({ name: 'job' })).map(({ reason }) => reason);
    expect(await why()).toEqual(['rate']);
    await queue.limits.hold('2h');
    expect(await why()).toEqual(['held']);
    expect((await queue.limits.list())[0]!.nextInMs).toBeGreaterThan(7_000_000);
  },
);

it('godwit limits shows when a queue with a hold and a used-up rate starts the next job', async () => {
  const { queue } = await bootQueue(redis, {
    handlers: { job: () => 1 },
    queue: { limits: { rate: { max: 1, per: '1h' } } },
    watch: false,
  });
  await queue.add('job', 1);
  await until(async () => (await queue.limits.list())[0]!.left === 0, PATIENT);
  await queue.limits.hold('10m');
  const shown = async () => (await runOn(redis, 'limits', 'work')).out;
  expect(await shown()).toMatch(/^the queue .* next in /m);
  await queue.limits.hold('2h');
  expect(await shown()).toMatch(/^the queue .* held for /m);
});

describe('a job of keepLast', () => {
  it('has no time while it waits for the end of the other job, and says so', async () => {
    const gate = latch('the gate');
    const { queue, api } = await bootDashboard(redis, { handlers: { sync: () => gate.promise } });
    const unique = { key: 'k', onDuplicate: 'keepLast' } as const;
    const first = await queue.add('sync', 1, { unique });
    await until(async () => (await queue.get(first.id))?.state === 'active', PATIENT);
    const { id } = await queue.add('sync', 2, { unique });
    const why = 'another job with its unique key has not ended';
    expect((await api('GET', `queues/work/jobs/${id}`)).body).toMatchObject({
      state: 'delayed',
      dueAt: null,
      waitsFor: [why],
    });
    expect((await api('GET', 'queues/work/jobs?state=delayed')).body.jobs).toMatchObject([
      { id, dueAt: null },
    ]);
    expect(await queue.get(id)).toMatchObject({ state: 'delayed', dueAt: null });
    expect(await queue.update(id, { data: 3 })).toEqual({ id, state: 'delayed', dueAt: null });
    expect(await cli(id)).toContain(`waits because  ${why}`);
    expect((await runOn(redis, 'jobs', 'work', '--state', 'delayed')).out).toMatch(
      / waits for the end of the job with its unique key$/m,
    );
    gate.open();
  });
});

describe('a job without a handler', () => {
  it('says so while it is put off', async () => {
    const { queue, api } = await bootDashboard(redis, { handlers: { a: () => 1 } });
    const { id } = await queue.add('unknown', 1);
    await until(async () => (await queue.get(id))?.state === 'delayed', PATIENT);
    const why = 'no process has a handler for its name (their logs say so), or its handler put it off';
    // Now and then a worker has the job for a moment.
    const waitsFor = async () => (await api('GET', `queues/work/jobs/${id}`)).body.waitsFor as string[];
    await until(async () => (await waitsFor()).join() === why, PATIENT);
    await until(async () => (await cli(id)).includes(`waits because  ${why}`), PATIENT);
    const later = await queue.add('a', 1, { delay: '1h' });
    const inReport =
      /^warn +queue work +1 delayed job named unknown: no process has a handler for this name, /m;
    const report = await until(async () => {
      const { out } = await runOn(redis, 'doctor');
      return inReport.test(out) ? out : undefined;
    }, PATIENT);
    expect(report).not.toContain('named a:');
    const text =
      '1 delayed job named unknown: no process has a handler for this name, or the handler put them off.';
    const found = { level: 'warn', queue: 'work', page: 'delayed', text };
    // The overview reads such jobs every 15 seconds.
    const attention = await until(
      async () => {
        const all = (await api('GET', 'overview')).body.attention as { page?: string }[];
        const own = all.filter(({ page }) => page === 'delayed');
        return own.length > 0 ? own : undefined;
      },
      { timeout: 20_000 },
    );
    expect(attention).toEqual([found]);
    expect((await api('GET', `queues/work/jobs/${later.id}`)).body.waitsFor).toEqual([]);
  });
});

describe('a job without any limit', () => {
  it('says that all slots are in use', async () => {
    const gate = latch('the gate');
    @Processor('work', { concurrency: 2 })
    class Work {
      @Handle()
      run(_: Job) {
        return gate.promise;
      }
    }
    const { queue, api } = await bootDashboard(redis, {
      providers: [Work],
      root: { lease: { duration: '1s' } },
    });
    await queue.addBulk([1, 2, 3].map((data) => ({ name: 'a', data, options: { id: `job-${data}` } })));
    const waiting = async () => (await queue.jobs({ state: 'waiting' })).jobs.map(({ id }) => id);
    await until(async () => (await waiting()).length === 1, PATIENT);
    const [id] = await waiting();
    const reason = async () => (await api('GET', `queues/work/jobs/${id}`)).body.waitsFor as string[];
    await until(async () => (await reason())[0] === 'all 2 slots are in use', PATIENT);
    await queue.limits.set({ concurrency: 2 });
    expect(await reason()).toEqual(['2 of 2 jobs of the queue run']);
    gate.open();
  });
});

describe('an active job whose worker is gone', () => {
  it('says so, and a worker with a longer lease than usual is not gone', async () => {
    const gate = latch('the gate');
    const { queue, api } = await bootDashboard(redis, {
      handlers: { a: () => gate.promise },
      root: { lease: { duration: '1h' } },
    });
    const { id } = await queue.add('a', 1);
    const isLost = async () => (await api('GET', `queues/work/jobs/${id}`)).body.isLost as boolean;
    await until(async () => (await queue.get(id))?.state === 'active', PATIENT);
    expect(await isLost()).toBe(false);
    expect(await cli(id)).not.toContain('gone silent');
    expect((await runOn(redis, 'doctor')).out).not.toContain('went silent');
    const { worker } = (await queue.get(id))!;
    // As after a kill, but this worker lives and soon renews its lease, so each look first lets it end.
    const whenSilent = <Answer>(look: () => Promise<Answer>, says: (answer: Answer) => boolean) =>
      until(async () => {
        await redis.admin.zadd(keyOf(redis, 'workers'), 'XX', 1, worker!);
        return says(await look());
      }, PATIENT);
    await whenSilent(isLost, (lost) => lost);
    const gone = {
      level: 'bad',
      queue: 'work',
      page: 'workers',
      text: '1 worker went silent, and nobody has taken back the jobs. Start a process that works on it.',
    };
    const overview = async () => (await api('GET', 'overview')).body.attention as unknown[];
    await whenSilent(overview, (attention) => attention.some((one) => isDeepStrictEqual(one, gone)));
    const line = /^lost +its worker has gone silent; another one takes the job back$/m;
    await whenSilent(
      () => cli(id),
      (out) => line.test(out),
    );
    await whenSilent(
      () => runOn(redis, 'doctor'),
      ({ out }) => out.includes('1 worker went silent'),
    );
    gate.open();
  });
});

describe('the slots of the overview', () => {
  it('count once if queues share them', async () => {
    @Processor(['work', 'other'], { concurrency: 3 })
    class Work {
      @Handle()
      run(_: Job) {
        return 1;
      }
    }
    const { api } = await bootDashboard(redis, { providers: [Work], queues: ['other'] });
    const read = async () =>
      (await api('GET', 'overview')).body as { slots: number; queues: { slots: number }[] };
    await until(async () => (await read()).slots > 0, PATIENT);
    const { slots, queues } = await read();
    expect({ slots, each: queues.map((one) => one.slots) }).toEqual({ slots: 3, each: [3, 3] });
  });
});
