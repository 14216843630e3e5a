import { getEventListeners } from 'node:events';
import { expect, it } from 'vitest';
import { QueueKeys } from '#lib/engine/keys.js';
import { JobFailedError, UnrecoverableError, WaitTimeoutError } from '#lib/errors.js';
import type { Job } from '#lib/job/job.js';
import { bootQueue, itOnRedis, PATIENT, processorOf, type Handlers } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';
import { countsOf } from '../support/queue-states.js';

const redis = useRedis();

it('keeps nothing of a completed job, or keeps its result for its retention', async () => {
  const handlers: Handlers = { sum: (job: Job<number[]>) => job.data.reduce((a, b) => a + b, 0) };
  const { queue, ended } = await bootQueue(redis, { handlers });
  const gone = await queue.add('sum', [1, 2]);
  const kept = await queue.add('sum', [1, 2, 3], { retention: '1h' });
  await Promise.all([ended(gone.id), ended(kept.id)]);
  expect(await queue.get(gone.id)).toBeNull();
  expect(await queue.get(kept.id)).toMatchObject({ state: 'completed', result: 6 });
  expect(await queue.counts()).toEqual(countsOf({ completed: 1 }));
});

it('forgets a completed job when its retention is over, also in an idle queue', async () => {
  let fail = true;
  const handlers: Handlers = {
    report: async (job: Job<string>) => {
      await job.log(job.data);
      await job.progress(job.data);
      if (job.data === 'monday' && fail) {
        fail = false;
        throw new Error('once');
      }
      return job.data;
    },
  };
  const { queue, said } = await bootQueue(redis, {
    handlers,
    queue: { defaults: { retention: 40, backoff: 0 } },
  });
  const over = async () => (await queue.get('report')) === null;
  await queue.add('report', 'monday', { id: 'report' });
  await said.first((event) => event.type === 'completed', PATIENT);
  await until(over, PATIENT);
  expect(await queue.counts()).toMatchObject({ completed: 0 });

  // The same id, a day later: another job, which inherits nothing.
  await queue.pause();
  expect(await queue.add('report', 'tuesday', { id: 'report' })).toMatchObject({ duplicate: false });
  expect(await queue.get('report')).toMatchObject({
    state: 'waiting',
    data: 'tuesday',
    result: null,
    failure: null,
    progress: null,
    logs: [],
  });
  await queue.resume();
  await said.take(2, (event) => event.type === 'completed', PATIENT);
  await until(over, PATIENT);
  const [added] = await queue.addBulk([
    { name: 'report', data: 'wednesday', options: { id: 'report', delay: '1h' } },
  ]);
  expect(added).toMatchObject({ duplicate: false });
  expect(await queue.get('report')).toMatchObject({ state: 'delayed', data: 'wednesday' });
});

it('shows a job in every state, with every field', async () => {
  const gate = latch('the gate');
  const began = latch('the run');
  const handlers: Handlers = {
    work: async (job: Job) => {
      if (job.attempt === 1) throw new RangeError('once');
      await job.progress({ percent: 50 });
      await job.log('half way');
      began.open();
      await gate.promise;
      return { ok: true };
    },
    die: () => {
      throw new UnrecoverableError('never');
    },
  };
  const { queue, ended, said } = await bootQueue(redis, { handlers });
  await queue.pause();
  const options = { attempts: 4, backoff: '1h', retention: '1h' };
  const attempt = (name: string, message: string) => ({
    attempt: 1,
    at: expect.any(Date),
    worker: expect.stringMatching(/./),
    durationUs: expect.any(Number),
    name,
    message,
    stack: expect.stringContaining('at '),
  });
  const { id } = await queue.add('work', { a: 1 }, options);
  const fresh = {
    id,
    queue: 'work',
    name: 'work',
    state: 'waiting',
    data: { a: 1 },
    attempt: 0,
    attempts: 4,
    priority: 0,
    group: null,
    cost: 1,
    headers: {},
    delay: 0,
    stalls: 0,
    createdAt: expect.any(Date),
    dueAt: null,
    endedAt: null,
    failure: null,
    failures: [],
    progress: null,
    logs: [],
    result: null,
    durationUs: null,
    cancelReason: null,
    startedAt: null,
    worker: null,
  };
  expect(await queue.get(id)).toEqual(fresh);

  await queue.resume();
  await said.first((event) => event.type === 'retrying', PATIENT);
  const failed = {
    ...fresh,
    attempt: 1,
    failure: {
      name: 'RangeError',
      message: 'once',
      stack: expect.stringContaining('results-wait'),
      attempt: 1,
      at: expect.any(Date),
    },
    failures: [attempt('RangeError', 'once')],
  };
  expect(await queue.get(id)).toEqual({ ...failed, state: 'delayed', dueAt: expect.any(Date) });

  await queue.promote(id);
  await began.wait(PATIENT);
  const running = {
    ...failed,
    attempt: 2,
    progress: { percent: 50 },
    logs: [{ attempt: 2, text: 'half way' }],
  };
  // The start is known once the process has reported it.
  const startedAt = expect.toSatisfy((at) => at === null || at instanceof Date);
  const worker = expect.stringMatching(/./);
  expect(await queue.get(id)).toEqual({ ...running, state: 'active', worker, startedAt });

  gate.open();
  await ended(id);
  const done = (await queue.get(id))!;
  expect(done).toEqual({
    ...running,
    state: 'completed',
    startedAt: expect.any(Date),
    endedAt: expect.any(Date),
    result: { ok: true },
    durationUs: expect.any(Number),
  });
  expect(done.durationUs).toBeGreaterThan(0);
  expect(done.endedAt!.getTime()).toBeGreaterThanOrEqual(done.failure!.at.getTime());
  expect(done.createdAt!.getTime()).toBeLessThanOrEqual(done.failure!.at.getTime() + 1);

  const dead = await queue.add('die', null);
  await ended(dead.id);
  const grave = (await queue.get(dead.id))!;
  expect(grave).toEqual({
    ...fresh,
    id: dead.id,
    name: 'die',
    state: 'dead',
    data: null,
    attempt: 1,
    attempts: 3,
    endedAt: grave.failure!.at,
    failure: {
      name: 'UnrecoverableError',
      message: 'never',
      stack: expect.any(String),
      attempt: 1,
      reason: 'unrecoverable',
      at: expect.any(Date),
    },
    failures: [attempt('UnrecoverableError', 'never')],
  });
  expect(await queue.get('nobody')).toBeNull();
});

const waits = (events: boolean) => {
  const title = events ? 'with events' : 'without events, by the state of the job';
  const options = { queue: { events, unknownJob: 'dead' as const }, watch: events };

  it(`waits for the result of a job, ${title}`, async () => {
    const handlers: Handlers = {
      double: (job: Job<number>) => job.data * 2,
      nothing: () => undefined,
      flaky: (job: Job) => {
        if (job.attempt === 1) throw new Error('not yet');
        return 'at last';
      },
    };
    const { queue, producer } = await bootQueue(redis, { ...options, handlers });
    await expect(queue.addAndWait('double', 21)).resolves.toBe(42);
    await expect(producer.addAndWait<number>('work', 'double', 4, { retention: '1h' })).resolves.toBe(8);
    await expect(queue.addAndWait('nothing', 1)).resolves.toBeUndefined();
    await expect(queue.addAndWait('flaky', 1, { backoff: 0 })).resolves.toBe('at last');
    const many = await Promise.all([1, 2, 3, 4, 5].map((n) => queue.addAndWait<number>('double', n)));
    expect(many).toEqual([2, 4, 6, 8, 10]);
    expect((await queue.counts()).completed, 'results are kept for those whose events were lost').toBe(9);
  });

  it(`rejects when the job dies, is removed or takes too long, ${title}`, async () => {
    const gate = latch('the gate');
    const handlers: Handlers = {
      die: () => {
        throw new TypeError('no luck');
      },
      slow: () => gate.promise,
    };
    const { queue } = await bootQueue(redis, { ...options, handlers });
    const died = await queue
      .addAndWait('die', 1, { id: 'd', attempts: 2, backoff: 0 })
      .catch((error) => error);
    expect(died).toBeInstanceOf(JobFailedError);
    expect(died).toMatchObject({
      code: 'GODWIT_JOB_FAILED',
      queue: 'work',
      jobId: 'd',
      reason: 'retries-exhausted',
      message: `job "d" in queue 'work' died (retries-exhausted): no luck`,
      cause: { name: 'TypeError', message: 'no luck' },
    });
    const unknown = queue.addAndWait('nobody', 1);
    await expect(unknown).rejects.toMatchObject({ code: 'GODWIT_JOB_FAILED', reason: 'no-handler' });

    const late = await queue.addAndWait('slow', 1, { waitTimeout: 200, id: 's' }).catch((error) => error);
    expect(late).toBeInstanceOf(WaitTimeoutError);
    expect(late).toMatchObject({
      code: 'GODWIT_WAIT_TIMEOUT',
      jobId: 's',
      message: expect.stringContaining('did not end within 200 ms'),
    });
    // The job goes on. So short a wait may end before the job has begun.
    await until(async () => (await queue.get('s'))?.state === 'active', PATIENT);
    gate.open();
    await until(async () => (await queue.get('s'))?.state === 'completed', PATIENT);
  });

  it(`resolves at once for an id that has ended already, and waits for one that has not, ${title}`, async () => {
    const gate = latch('the gate');
    let runs = 0;
    const handlers: Handlers = {
      once: async () => {
        runs += 1;
        await gate.promise;
        return 'the only result';
      },
      die: () => {
        throw new UnrecoverableError('for good');
      },
    };
    const { queue } = await bootQueue(redis, { ...options, handlers });
    const held = { idHeldBy: ['completed', 'dead'] } as const;
    await queue.add('once', 1, { id: 'x', retention: '1h' });
    const waiting = [2, 3].map((n) => queue.addAndWait('once', n, { id: 'x', ...held }));
    await until(async () => (await queue.get('x'))?.state === 'active', PATIENT);
    gate.open();
    expect(await Promise.all(waiting)).toEqual(['the only result', 'the only result']);
    expect(await queue.addAndWait('once', 4, { id: 'x', ...held })).toBe('the only result');
    expect(runs).toBe(1);

    await queue.add('die', 1, { id: 'y' });
    await until(async () => (await queue.get('y'))?.state === 'dead', PATIENT);
    await expect(queue.addAndWait('die', 1, { id: 'y', ...held })).rejects.toMatchObject({
      reason: 'unrecoverable',
    });
  });
};
waits(true);
waits(false);

it('rejects with a reason when the job completed and its result is not stored, and gives what it has', async () => {
  const gate = latch('the gate');
  const handlers: Handlers = {
    large: () => 'x'.repeat(3_000),
    odd: () => ({ n: 5n }),
    slow: () => gate.promise.then(() => 'done'),
    nothing: () => undefined,
  };
  const { queue, ended } = await bootQueue(redis, { handlers, queue: { maxPayloadBytes: 2_000 } });
  const outcome = (name: string, options: object) =>
    queue.addAndWait(name, 1, options).catch((error: unknown) => error);
  const notKept = { code: 'GODWIT_RESULT_NOT_KEPT', queue: 'work' };
  for (const [id, why] of [
    ['large', /takes 3002 bytes, more than maxPayloadBytes/],
    ['odd', /result\.n is a BigInt/],
  ] as const) {
    const expected = { ...notKept, jobId: id, message: expect.stringMatching(why) };
    expect(await outcome(id, { id })).toMatchObject(expected);
    // The job is already there and is kept, with all that is known of it.
    expect(await outcome(id, { id })).toMatchObject(expected);
    expect(await queue.get(id)).toMatchObject({ state: 'completed', result: null });
  }
  expect(await outcome('nothing', { id: 'n' })).toBeUndefined();
  expect(await outcome('nothing', { id: 'n' })).toBeUndefined();

  // Added before by a producer that does not keep results.
  await queue.add('slow', 1, { id: 'there' });
  const waiting = outcome('slow', { id: 'there' });
  await until(async () => (await queue.get('there'))?.state === 'active', PATIENT);
  gate.open();
  await ended('there');
  expect(await waiting).toMatchObject({
    code: expect.stringMatching(/^GODWIT_(RESULT_NOT_KEPT|JOB_NOT_FOUND)$/),
    jobId: 'there',
  });
});

it('rejects when the awaited job is removed', async () => {
  const { queue, said } = await bootQueue(redis);
  const waiting = queue.addAndWait('never', 1, { id: 'r' }).catch((error: unknown) => error);
  await said.first((event) => event.type === 'added', PATIENT);
  await queue.remove('r');
  expect(await waiting).toMatchObject({ code: 'GODWIT_JOB_FAILED', reason: 'removed' });
});

it('waits for a job of a further queue without waiting for the read of the others to end', async () => {
  const names = Array.from({ length: 8 }, (_, i) => `queue-${i}`);
  const { queueOf } = await bootQueue(redis, {
    queues: names.map((name) => ({ name })),
    handlers: { '*': () => undefined },
    providers: names.map((name) => processorOf(name, { '*': (job) => job.data })),
  });
  const took: number[] = [];
  for (const name of names) {
    const since = performance.now();
    expect(await queueOf(name).addAndWait('job', name)).toBe(name);
    took.push(performance.now() - since);
  }
  // The state is read after 250 ms. A busy machine may be late, but not each time.
  expect(Math.min(...took)).toBeLessThan(200);
});

itOnRedis(
  'keeps the result for all who wait for one id, and takes the id for a new run ten seconds later',
  async () => {
    let runs = 0;
    const handlers: Handlers = { once: () => (runs += 1) };
    const { queue } = await bootQueue(redis, { handlers });
    expect(await queue.addAndWait('once', 1, { id: 'x' })).toBe(1);
    expect(await queue.add('once', 1, { id: 'x' })).toMatchObject({ duplicate: true, state: 'completed' });
    expect(await queue.addAndWait('once', 1, { id: 'x' })).toBe(1);
    // As if it had completed this long ago.
    const { results } = new QueueKeys(redis.prefix, 'work').fixed;
    const [at, record] = (await redis.admin.hget(results, 'x'))!.split('\n');
    await redis.admin.hset(results, 'x', `${Number(at) - 10_000}\n${record}`);
    expect(await queue.addAndWait('once', 1, { id: 'x' })).toBe(2);
  },
);

it('returns details on request, also that another job held the id', async () => {
  const gate = latch('the gate');
  const { queue } = await bootQueue(redis, { handlers: { job: () => gate.promise.then(() => 'done') } });
  const options = { id: 'x', detail: true } as const;
  const first = queue.addAndWait('job', 1, options);
  await until(async () => (await queue.get('x'))?.state === 'active', PATIENT);
  const second = queue.addAndWait('job', 1, options);
  // The call must find the first one running.
  const third = await queue.add('job', 1, { id: 'x' });
  expect(third).toMatchObject({ duplicate: true, state: 'active' });
  gate.open();
  const answer = { id: 'x', queue: 'work', name: 'job', duplicate: false, result: 'done' };
  expect(await first).toEqual(answer);
  expect(await second).toEqual({
    ...answer,
    duplicate: true,
    state: expect.stringMatching(/active|completed/),
  });
  for (const wrong of [{ detail: 1 }, { retention: null }])
    await expect(queue.addAndWait('job', 1, wrong as never)).rejects.toThrow(
      `addAndWait().options.${Object.keys(wrong)[0]} must be`,
    );
});

it('ends a wait when its signal aborts, and the job continues', async () => {
  const gate = latch('the gate');
  const { queue, ended } = await bootQueue(redis, { handlers: { job: () => gate.promise } });
  const reason = new Error('the client has gone');
  const abort = new AbortController();
  const waiting = queue.addAndWait('job', 1, { id: 'x', signal: abort.signal });
  await until(async () => (await queue.get('x'))?.state === 'active', PATIENT);
  abort.abort(reason);
  await expect(waiting).rejects.toBe(reason);
  gate.open();
  expect(await ended('x')).toMatchObject({ type: 'completed' });
  // Aborted before the call: nothing is added.
  await expect(queue.addAndWait('job', 1, { id: 'y', signal: abort.signal })).rejects.toBe(reason);
  expect(await queue.get('y')).toBeNull();
  const wrong = queue.addAndWait('job', 1, { signal: {} as never });
  await expect(wrong).rejects.toThrow('addAndWait().options.signal must be an AbortSignal');
});

it('adds one listener to a signal for all waits, as Node warns of more than ten', async () => {
  const { queue } = await bootQueue(redis, {
    handlers: { job: () => new Promise(() => {}) },
    concurrency: 20,
  });
  const abort = new AbortController();
  const waits = Array.from({ length: 12 }, () => queue.addAndWait('job', 1, { signal: abort.signal }));
  const ends = Promise.allSettled(waits);
  expect(getEventListeners(abort.signal, 'abort')).toHaveLength(1);
  const reason = new Error('all');
  abort.abort(reason);
  expect(new Set(await ends)).toEqual(new Set(waits.map(() => ({ status: 'rejected', reason }))));
});
