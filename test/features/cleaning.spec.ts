import { describe, expect, it } from 'vitest';
import type { QueueEngine } from '#lib/contract/engine.js';
import { QUEUE_ENGINE } from '#lib/decorators/metadata.js';
import { UnrecoverableError } from '#lib/errors.js';
import type { Queue } from '#lib/producer/queue.js';
import { bootQueue, brief, itOnRedis, keyOf, PATIENT } from '../support/queue-app.js';
import { countsOf, gated, oneOfEach, refused } from '../support/queue-states.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';

const redis = useRedis();

describe('queue.remove, with a filter', () => {
  it('removes jobs of one state and leaves the others, with an event for each', async () => {
    const { gate, handlers } = gated();
    const { queue, said } = await bootQueue(redis, { handlers });
    await oneOfEach(queue);
    expect(await queue.remove({ state: 'waiting' })).toBe(2);
    expect(await queue.remove({ state: 'delayed' })).toBe(1);
    expect(await queue.counts()).toEqual(countsOf({ active: 1, completed: 1, dead: 1 }));
    expect(await queue.remove({ state: 'completed' })).toBe(1);
    expect(await queue.remove({ state: 'dead' })).toBe(1);
    expect(await queue.remove({ state: 'dead' })).toBe(0);
    expect(await queue.counts()).toEqual(countsOf({ active: 1 }));
    const removed = await said.take(5, (event) => event.type === 'removed', PATIENT);
    expect(new Set(removed.map((event) => brief(event)['reason']))).toEqual(new Set(['asked']));
    expect((await queue.audit()).violations).toEqual([]);
    gate.open();
  });

  itOnRedis('takes those that are old enough, at most as many as asked for', async () => {
    const { queue } = await bootQueue(redis, { watch: false });
    const ids = ['a', 'b', 'c', 'd'];
    await queue.addBulk(ids.map((id) => ({ name: 'job', data: null, options: { id } })));
    for (const id of ['a', 'b', 'c']) {
      const [name, at, ...rest] = (await redis.admin.hget(keyOf(redis, 'jobs'), id))!.split('\n');
      const added = (Number.parseInt(at!, 36) - 3_600_000).toString(36);
      await redis.admin.hset(keyOf(redis, 'jobs'), id, [name, added, ...rest].join('\n'));
    }
    expect(await queue.remove({ state: 'waiting', olderThan: '2h' })).toBe(0);
    expect(await queue.remove({ state: 'waiting', olderThan: '30m', limit: 2 })).toBe(2);
    expect((await queue.jobs({ state: 'waiting' })).jobs.map(({ id }) => id)).toEqual(['c', 'd']);
    expect(await queue.remove({ state: 'waiting', olderThan: '30m', limit: 2 })).toBe(1);
    expect(await queue.remove({ state: 'waiting', newerThan: '30m' })).toBe(1);
    expect(await queue.counts()).toMatchObject({ waiting: 0 });
  });

  it.each([
    ['nothing', undefined],
    ['no state', {}],
    ['a running state', { state: 'active' }],
    ['a hostile state', { state: '__proto__' }],
    ['null', { state: null }],
    ['no age', { state: 'dead', olderThan: 'old' }],
    ['a limit of 0', { state: 'dead', limit: 0 }],
    ['an unknown field', { state: 'dead', ids: ['a'] }],
    ['a reason for jobs that are not dead', { state: 'waiting', reason: 'expired' }],
    ['two lines of text', { state: 'waiting', contains: 'a\nb' }],
    ['a name with a line break', { state: 'waiting', name: 'a\nb' }],
    ['no field of the data', { state: 'waiting', where: {} }],
    ['a value that got lost', { state: 'waiting', where: { tenant: undefined } }],
  ])('refuses %s with a message, and removes nothing', async (_, options) => {
    const { queue } = await bootQueue(redis, { watch: false });
    await queue.add('job', 1);
    expect(await refused(queue.remove(options as never))).toMatchObject({
      code: expect.stringMatching(/^GODWIT_INVALID_/),
    });
    expect(await queue.counts()).toMatchObject({ waiting: 1 });
  });
});

describe('for all that a filter fits', () => {
  it('removes by name and text, wherever they are in a long line, and keeps the order of the others', async () => {
    const { queue } = await bootQueue(redis, { watch: false });
    const ids = Array.from({ length: 2_500 }, (_, i) => `${i % 5 === 0 ? 'ada' : 'bob'}-${i}`);
    await queue.addBulk(ids.map((id) => ({ name: id.slice(0, 3), data: 1, options: { id } })));
    expect(await queue.remove({ state: 'waiting', name: 'ada', limit: 3 })).toBe(3);
    expect(await queue.get('ada-15')).not.toBeNull();
    expect(await queue.remove({ state: 'waiting', name: 'ada' })).toBe(497);
    expect(await queue.remove({ state: 'waiting', contains: 'OB-24' })).toBe(
      ids.filter((id) => id.startsWith('bob-24')).length,
    );
    const left = ids.filter((id) => id.startsWith('bob-') && !id.startsWith('bob-24'));
    const { jobs } = await queue.jobs({ state: 'waiting', limit: 1_000 });
    expect(jobs.map(({ id }) => id)).toEqual(left.slice(0, 1_000));
    expect((await queue.audit()).violations).toEqual([]);
  });

  it('promotes delayed jobs and those between two attempts, and cancels what waits, is delayed or runs', async () => {
    const { gate, handlers } = gated();
    const { queue } = await bootQueue(redis, { handlers });
    await oneOfEach(queue);
    await queue.addBulk(
      Array.from({ length: 1_200 }, () => ({ name: 'done', data: 1, options: { delay: '1h' } })),
    );
    expect(await queue.promote({ name: 'none' })).toBe(0);
    expect(await queue.promote({ contains: 'delayed' })).toBe(1);
    expect(await queue.promote({})).toBe(1_200);
    expect(await queue.counts()).toMatchObject({ waiting: 1_203, delayed: 0 });
    await queue.add('done', 1, { id: 'later', delay: '1h' });
    expect(await queue.cancel({ state: 'delayed' }, 'no more')).toBe(1);
    expect(await queue.cancel({})).toBe(1_204);
    expect(await queue.counts()).toMatchObject({ waiting: 0, delayed: 0 });
    gate.open();
  });

  it('cancels a delayed job that is queued while the call works', async () => {
    const { queue } = await bootQueue(redis);
    await queue.add('job', 1, { id: 'waiting' });
    await queue.add('job', 1, { id: 'delayed', delay: '1h' });
    const promoted: Promise<unknown>[] = [];
    const onProgress = () => void promoted.push(queue.promote('delayed').catch(() => undefined));
    expect(await queue.cancel({}, 'no more', { onProgress })).toBe(2);
    await Promise.all(promoted);
    expect(await queue.counts()).toMatchObject({ waiting: 0, delayed: 0 });
  });

  it('cancels a running job that fails and waits for its next attempt while the call works', async () => {
    const failing = latch();
    const fail = () => failing.promise.then(() => Promise.reject(new Error('not this time')));
    const { queue, get } = await bootQueue(redis, { handlers: { fail } });
    await queue.add('fail', 1, { attempts: 2, backoff: '1h' });
    await until(async () => (await queue.counts()).active === 1, PATIENT);
    const { admin } = get<QueueEngine>(QUEUE_ENGINE);
    const jobs = admin.jobs.bind(admin);
    const jobsAfterFailure = async (...call: Parameters<typeof jobs>) => {
      if (call[1].state === 'active') {
        failing.open();
        await until(async () => (await queue.counts()).delayed === 1, PATIENT);
      }
      return jobs(...call);
    };
    Object.assign(admin, { jobs: jobsAfterFailure });
    expect(await queue.cancel({})).toBe(1);
    expect(await queue.counts()).toMatchObject({ waiting: 0, delayed: 0, active: 0 });
  });

  it('acts at a rate, evenly, on the jobs that were there when it began', async () => {
    const { queue } = await bootQueue(redis);
    await queue.pause();
    const delayed = { delay: '1h' } as const;
    const add = (count: number, options: object = {}) =>
      queue.addBulk(Array.from({ length: count }, () => ({ name: 'job', data: 1, options })));
    const rate = { max: 40, per: '1s' } as const;
    const paced = (onStep: () => unknown = () => {}) => {
      const steps: [done: number, ms: number][] = [];
      const began = performance.now();
      const onProgress = (done: number) => {
        steps.push([done, performance.now() - began]);
        onStep();
      };
      return { steps, pace: { rate, onProgress } };
    };
    await add(9, delayed);
    const promoting = paced();
    expect(await queue.promote({}, promoting.pace)).toBe(9);
    // Four at once, as 100 ms are a step: after 0, 100 and 200 ms.
    expect(promoting.steps.map(([done]) => done)).toEqual([4, 8, 9]);
    expect(promoting.steps[2]![1]).toBeGreaterThanOrEqual(190);
    await add(4, delayed);
    const cancelling = paced();
    expect(await queue.cancel({}, 'no more', cancelling.pace)).toBe(13);
    expect(cancelling.steps.map(([done]) => done)).toEqual([4, 8, 12, 13]);
    await add(6);
    const removing = paced();
    expect(await queue.remove({ state: 'waiting', limit: 5 }, removing.pace)).toBe(5);
    expect(removing.steps.map(([done]) => done)).toEqual([4, 5]);
    expect(await queue.counts()).toMatchObject({ waiting: 1, delayed: 0 });
    expect((await queue.audit()).violations).toEqual([]);
  });

  it('at a rate stops when the signal aborts, also while it waits', async () => {
    const { queue } = await bootQueue(redis);
    await queue.pause();
    await queue.addBulk([1, 2, 3].map((data) => ({ name: 'job', data, options: { delay: '1h' } })));
    const rate = { max: 1, per: '1h' } as const;
    const pace = () => {
      const stop = new AbortController();
      return { rate, signal: stop.signal, onProgress: () => stop.abort() };
    };
    expect(await queue.promote({}, pace())).toBe(1);
    expect(await queue.cancel({}, 'no more', pace())).toBe(1);
    expect(await queue.remove({ state: 'delayed' }, pace())).toBe(1);
    expect(await queue.counts()).toMatchObject({ waiting: 1, delayed: 0 });
    expect(await queue.remove({ state: 'delayed' }, { signal: AbortSignal.abort() })).toBe(0);
  });

  it('at a rate does not touch jobs that are added while it works', async () => {
    const { queue } = await bootQueue(redis);
    await queue.pause();
    const add = (count: number) =>
      queue.addBulk(Array.from({ length: count }, () => ({ name: 'job', data: 1 })));
    await add(10_100);
    let isFirst = true;
    let adding: Promise<unknown> | undefined;
    const began = performance.now();
    const onProgress = () => {
      // The first 10,000 ids are known by now; the others are read after them.
      if (!isFirst || performance.now() - began < 300) return;
      isFirst = false;
      adding = add(50);
    };
    const done = await queue.remove(
      { state: 'waiting', name: 'job' },
      { onProgress, rate: { max: 10_000, per: '1s' } },
    );
    await adding;
    expect(isFirst).toBe(false);
    expect(done).toBe(10_100);
    expect(await queue.counts()).toMatchObject({ waiting: 50 });
  });

  it.each([
    ['remove', ({ queue }) => queue.remove({ state: 'waiting' }, { rate: 5 } as never), 'pace.rate'],
    ['cancel', ({ queue }) => queue.cancel({}, 'no', { rate: { max: 5 } } as never), 'pace.rate.per'],
    ['promote', ({ queue }) => queue.promote({}, { onProgress: 1 } as never), 'pace.onProgress'],
    ['remove', ({ queue }) => queue.remove({ state: 'waiting' }, { speed: 1 } as never), 'pace.speed'],
    ['remove', ({ queue }) => queue.remove({ state: 'waiting' }, null as never), 'pace'],
  ] as const satisfies [string, (app: { queue: Queue }) => Promise<unknown>, string][])(
    '%s changes nothing with a wrong pace (%#)',
    async (verb, call, place) => {
      const { queue } = await bootQueue(redis, { watch: false });
      await queue.add('job', 1);
      await queue.add('job', 1, { delay: '1h' });
      expect((await refused(call({ queue })))['message']).toContain(`${verb}().${place}`);
      expect(await queue.counts()).toMatchObject({ waiting: 1, delayed: 1 });
    },
  );

  it('acts on those with a value in their data, in every state', async () => {
    const { queue } = await bootQueue(redis, {
      handlers: { fail: () => Promise.reject(new UnrecoverableError('no')) },
    });
    const of = (tenant: number, n: number, options?: object) =>
      queue.addBulk(
        Array.from({ length: n }, () => ({ name: 'job', data: { tenant }, options: { ...options } })),
      );
    await queue.addBulk([1, 1, 2].map((tenant) => ({ name: 'fail', data: { tenant } })));
    await until(async () => (await queue.counts()).dead === 3, PATIENT);
    await queue.pause();
    await of(1, 150);
    await of(2, 5);
    await of(1, 3, { delay: '1h' });
    await of(2, 2, { delay: '1h' });
    expect(await queue.promote({ where: { tenant: 2 } })).toBe(2);
    expect(await queue.cancel({ where: { tenant: 1 } }, 'it has left')).toBe(153);
    expect(await queue.remove({ state: 'waiting', where: { tenant: 2 }, limit: 4 })).toBe(4);
    expect(await queue.dead.retry({ where: { tenant: 1 } })).toBe(2);
    expect(await queue.dead.retry({ contains: 'none' })).toBe(0);
    expect(await queue.remove({ state: 'dead', where: { tenant: 1 } })).toBe(0);
    expect(await queue.remove({ state: 'dead', where: { tenant: 2 } })).toBe(1);
    expect(await queue.counts()).toMatchObject({ waiting: 5, delayed: 0, dead: 0 });
    expect((await queue.audit()).violations).toEqual([]);
  });

  it.each([
    ['cancel', { state: 'dead' }, 'cancel().state'],
    ['cancel', [], 'cancel()'],
    ['promote', { state: 'waiting' }, 'promote().state'],
    ['promote', { ids: [] }, 'promote().ids'],
  ] as const)('%s refuses %j', async (verb, filter, place) => {
    const { queue } = await bootQueue(redis, { watch: false });
    await queue.add('job', 1, { delay: '1h' });
    expect(
      (await refused((queue[verb] as (which: never) => Promise<unknown>)(filter as never)))['message'],
    ).toContain(place);
    expect(await queue.counts()).toMatchObject({ delayed: 1 });
  });
});

describe('a filter with a field that is undefined', () => {
  const FIELDS = ['name', 'contains', 'where', 'olderThan', 'newerThan', 'limit'];
  type Act = (queue: Queue, filter: object, pace?: object) => Promise<unknown>;
  type Case = readonly [place: string, fields: readonly string[], act: Act, filter?: object];
  const acts: readonly Case[] = [
    ['cancel()', [...FIELDS, 'state'], (queue, filter, pace) => queue.cancel(filter, 'why', pace)],
    ['promote()', FIELDS, (queue, filter, pace) => queue.promote(filter, pace)],
    [
      'remove()',
      [...FIELDS, 'reason'],
      (queue, filter, pace) => queue.remove(filter as { state: 'dead' }, pace),
      { state: 'dead' },
    ],
    ['dead.retry()', [...FIELDS, 'reason'], (queue, filter, pace) => queue.dead.retry(filter, pace)],
    ...(['cancel', 'promote', 'retry', 'remove'] as const).map(
      (kind) =>
        [
          'bulkActs.start().filter',
          FIELDS,
          (queue: Queue, filter: object) => queue.bulkActs.start(kind, filter),
          kind === 'remove' ? { state: 'waiting' } : {},
        ] as const,
    ),
  ];

  it('is refused by every act that changes jobs, and the jobs stay', async () => {
    const { gate, handlers } = gated();
    const { queue } = await bootQueue(redis, { handlers });
    await oneOfEach(queue);
    const before = await queue.counts();
    for (const [place, fields, act, filter] of acts)
      for (const field of fields)
        for (const more of [{}, { name: 'done' }])
          for (const pace of [undefined, { rate: { max: 1, per: '1s' } }]) {
            const error = await refused(act(queue, { ...filter, ...more, [field]: undefined }, pace));
            expect(error, `${place}.${field}`).toMatchObject({
              code: 'GODWIT_INVALID_OPTION',
              path: `${place}.${field}`,
              message: `${place}.${field} must be a value, or left out to match all jobs, got undefined`,
            });
          }
    expect(await queue.counts()).toEqual(before);
    expect(await queue.bulkActs.list()).toEqual([]);
    gate.open();
  });

  it('is refused too if the whole filter is undefined, or a state that remove needs', async () => {
    const { queue } = await bootQueue(redis, { watch: false });
    await queue.pause();
    await queue.add('job', 1);
    const none = undefined as never;
    expect((await refused(queue.cancel(none)))['code']).toBe('GODWIT_INVALID_JOB_ID');
    expect((await refused(queue.promote(none)))['code']).toBe('GODWIT_INVALID_JOB_ID');
    expect((await refused(queue.remove(none)))['code']).toBe('GODWIT_INVALID_JOB_ID');
    for (const [call, path] of [
      [queue.dead.retry(none), 'dead.retry()'],
      [queue.bulkActs.start('cancel', undefined), 'bulkActs.start().filter'],
      [queue.as('ada').bulkActs.start('cancel', undefined), 'bulkActs.start().filter'],
    ] as const)
      expect(await refused(call)).toMatchObject({ code: 'GODWIT_INVALID_OPTION', path });
    expect((await refused(queue.remove({ state: none })))['message']).toBe(
      'remove().state must be one of waiting, delayed, completed, dead, cancelled, got undefined',
    );
    expect(await queue.counts()).toMatchObject({ waiting: 1 });
  });

  it('is read by lists as if the field was left out', async () => {
    const { queue } = await bootQueue(redis, { watch: false });
    await queue.pause();
    await queue.add('job', 1);
    const none = { name: undefined, contains: undefined, where: undefined, cursor: undefined } as object;
    expect((await queue.jobs({ state: 'waiting', ...none })).jobs).toHaveLength(1);
    expect(await queue.dead.list({ reason: undefined, ...none } as object)).toEqual({
      jobs: [],
      cursor: null,
    });
  });
});

describe('queue.obliterate', () => {
  it('lets event subscribers continue without a gap, and waits for none of them', async () => {
    const { queue, said, events } = await bootQueue(redis);
    await queue.addBulk(Array.from({ length: 20 }, (_, data) => ({ name: 'job', data })));
    const seen = await said.take(20, () => true, PATIENT);
    const gaps: unknown[] = [];
    const watching = events.status$.subscribe((status) => void (status.state === 'gap' && gaps.push(status)));
    await queue.pause();
    await queue.obliterate();
    const { id } = await queue.add('job', 'after');
    // At once, not when the reader next compares numbers.
    const next = await said.first((event) => 'jobId' in event && event.jobId === id, { timeout: 4_000 });
    expect(Number(next.eventId)).toBe(Number(seen.at(-1)!.eventId) + 2);
    const later: string[] = [];
    const resumed = events
      .of('work', { since: seen.at(-1)!.eventId })
      .subscribe((event) => void later.push(event.eventId));
    await until(() => later.includes(next.eventId), PATIENT);
    expect(later).toEqual([next.eventId]);
    resumed.unsubscribe();
    watching.unsubscribe();
    expect(gaps.filter((gap) => (gap as { missed: unknown }).missed === null)).toEqual([]);
  });

  it('forced while a job runs brings nothing back, whatever outcome its worker sends', async () => {
    const { gate, handlers } = gated();
    const { queue, logs } = await bootQueue(redis, { handlers });
    await queue.add('active', 1, { id: 'active', retention: '1h' });
    await until(async () => (await queue.get('active'))?.state === 'active', PATIENT);
    await queue.obliterate({ force: true });
    gate.open();
    await logs.complaint(/the lease ended|given to another worker/);
    expect(await queue.get('active')).toBeNull();
    expect(await queue.counts()).toEqual(countsOf());
    expect((await queue.audit()).violations).toEqual([]);
    expect((await redis.keys()).filter((key) => key.includes(':stats:'))).toEqual([]);
  });
});
