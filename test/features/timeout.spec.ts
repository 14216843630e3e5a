import { expect, it } from 'vitest';
import { JobAbortedError, UnrecoverableError } from '#lib/errors.js';
import { type Job, Snooze } from '#lib/job/job.js';
import { bootQueue, PATIENT, processorOf, type Handlers } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';

const redis = useRedis();

it('aborts the signal of a run that takes too long, and counts a failed attempt', async () => {
  const reasons: unknown[] = [];
  const handlers: Handlers = {
    slow: async (job: Job) => {
      await new Promise((resolve) => job.signal.addEventListener('abort', resolve, { once: true }));
      reasons.push(job.signal.reason);
      job.signal.throwIfAborted();
    },
  };
  const { queue, ended, said, logs } = await bootQueue(redis, { handlers });
  const { id } = await queue.add('slow', 1, { timeout: 50, attempts: 2, backoff: 0 });
  expect(await ended(id)).toMatchObject({ type: 'dead', attempt: 2, reason: 'retries-exhausted' });

  expect(reasons).toHaveLength(2);
  for (const [i, reason] of reasons.entries()) {
    expect(reason).toBeInstanceOf(JobAbortedError);
    expect(reason).toMatchObject({
      code: 'GODWIT_JOB_ABORTED',
      reason: 'timeout',
      jobId: id,
      attempt: i + 1,
    });
    expect((reason as Error).message).toContain('it took longer than 50 ms');
  }
  expect(await said.first((event) => event.type === 'retrying')).toMatchObject({
    attempt: 1,
    error: { name: 'JobAbortedError' },
  });
  expect((await queue.get(id))!.failure).toMatchObject({ name: 'JobAbortedError', attempt: 2 });
  expect(
    logs.complaints.filter((text) => text.startsWith('job')),
    'it has heard its signal',
  ).toEqual([]);
});

it('frees the slot although the handler never returns', async () => {
  const release = latch('the end of the test');
  const handlers: Handlers = { stuck: () => release.promise, next: () => 'ran' };
  const { queue, ended, said } = await bootQueue(redis, { handlers, concurrency: 1 });
  const stuck = await queue.add('stuck', 1, { timeout: 50, attempts: 1 });
  const next = await queue.add('next', 1);
  expect(await ended(stuck.id)).toMatchObject({ type: 'dead', reason: 'retries-exhausted' });
  expect((await ended(next.id)).type).toBe('completed');
  const dead = await said.first((event) => event.type === 'dead');
  expect(dead).toMatchObject({ durationUs: expect.any(Number) });
  expect((dead as { durationUs: number }).durationUs).toBeGreaterThanOrEqual(49_000);
  release.open();
});

it.each([
  ['returns', () => 'too late'],
  [
    'fails',
    () => {
      throw new Error('too late');
    },
  ],
])('ignores what a handler %s after its timeout, and logs it', async (how, end) => {
  const release = latch('the late word');
  let runs = 0;
  const handlers: Handlers = {
    late: async () => {
      if (++runs > 1) return 'in time';
      await release.promise;
      return end();
    },
  };
  const { queue, ended, logs, said } = await bootQueue(redis, { handlers });
  const { id } = await queue.add('late', 1, { timeout: 50, attempts: 2, backoff: 0, retention: '1m' });
  await ended(id);
  release.open();
  const word = how === 'fails' ? 'failed' : 'returned';
  expect(await logs.complaint(/after its run was over/)).toMatch(
    new RegExp(`^job "${id}" of queue 'work': .*handle late, attempt 1, ${word} after its run was over`),
  );
  const { id: last } = await queue.add('late', 1);
  await ended(last);
  expect(await queue.get(id)).toMatchObject({ state: 'completed', result: 'in time', attempt: 2 });
  const ends = said.values.filter((event) => event.jobId === id && /completed|dead/.test(event.type));
  expect(ends).toHaveLength(1);
});

it('takes the limit from the job, else from its queue, and has none by default', async () => {
  const release = latch('the end of the run that is over');
  const others = latch('the end of the others');
  let long = 0;
  const handlers: Handlers = {
    stuck: () => release.promise,
    long: () => {
      long += 1;
      return others.promise;
    },
  };
  const { queue, ended, queueOf } = await bootQueue(redis, {
    handlers,
    queue: { defaults: { timeout: '50ms', attempts: 1 } },
    queues: [{ name: 'other' }],
    providers: [processorOf('other', handlers)],
  });
  const unlimited = await queueOf('other').add('long', 1);
  const byJob = await queue.add('long', 1, { timeout: '1m' });
  await until(() => long === 2, PATIENT);
  const byQueue = await queue.add('stuck', 1);
  expect((await ended(byQueue.id)).type).toBe('dead');
  expect(await queue.get(byJob.id)).toMatchObject({ state: 'active' });
  expect(await queueOf('other').get(unlimited.id)).toMatchObject({ state: 'active' });
  release.open();
  others.open();
  expect((await ended(byJob.id)).type).toBe('completed');
});

it('gives every run a signal that does not abort when the run ends on its own', async () => {
  const signals: AbortSignal[] = [];
  const handlers: Handlers = {
    fine: (job: Job) => void signals.push(job.signal),
    failing: (job: Job) => {
      signals.push(job.signal);
      throw new Error('no');
    },
  };
  const { queue, ended } = await bootQueue(redis, { handlers });
  const fine = await queue.add('fine', 1);
  const limited = await queue.add('fine', 1, { timeout: '1h' });
  const failing = await queue.add('failing', 1, { attempts: 2, backoff: 0, timeout: '1h' });
  for (const { id } of [fine, limited, failing]) await ended(id);
  expect(signals).toHaveLength(4);
  expect(new Set(signals).size).toBe(4);
  for (const signal of signals) {
    expect(signal).toBeInstanceOf(AbortSignal);
    expect(signal.aborted).toBe(false);
  }
});

it('aborts the signal with the reason shutdown, and gives back a run that obeys it without counting an attempt', async () => {
  const started = latch('the run');
  let reason: unknown;
  const handlers: Handlers = {
    polite: async (job: Job) => {
      started.open();
      await new Promise((resolve) => job.signal.addEventListener('abort', resolve, { once: true }));
      reason = job.signal.reason;
      throw job.signal.reason;
    },
  };
  const { queue, runtime, said, ended } = await bootQueue(redis, {
    handlers,
    root: { shutdown: { timeout: 0, grace: '10s' } },
  });
  const { id } = await queue.add('polite', 1, { attempts: 1 });
  await started.wait(PATIENT);
  await runtime.stop();
  expect(reason).toMatchObject({ code: 'GODWIT_JOB_ABORTED', reason: 'shutdown', jobId: id });
  expect(await said.first((event) => event.type === 'released', PATIENT)).toMatchObject({
    jobId: id,
    attempt: 1,
  });
  expect(await queue.get(id)).toMatchObject({ state: 'waiting', attempt: 0, failure: null });
  await queue.remove(id);
  expect((await ended(id)).type).toBe('removed');
});

it('keeps the outcome of a run that ends on purpose, also after it was told to stop', async () => {
  const started = [latch('the first run'), latch('the second run')];
  const aborted = (job: Job) =>
    new Promise((resolve) => job.signal.addEventListener('abort', resolve, { once: true }));
  const handlers: Handlers = {
    finishes: async (job: Job) => {
      started[0]!.open();
      await aborted(job);
    },
    'gives up': async (job: Job) => {
      started[1]!.open();
      await aborted(job);
      throw new UnrecoverableError('for good');
    },
  };
  const { queue, runtime, ended } = await bootQueue(redis, {
    handlers,
    root: { shutdown: { timeout: 0, grace: '10s' } },
  });
  const finishes = await queue.add('finishes', 1);
  const givesUp = await queue.add('gives up', 1);
  await Promise.all(started.map((one) => one.wait(PATIENT)));
  await runtime.stop();
  expect((await ended(finishes.id)).type).toBe('completed');
  expect(await ended(givesUp.id)).toMatchObject({ type: 'dead', reason: 'unrecoverable' });
});

it('makes a job that was not started in time dead as expired, without running it', async () => {
  const ran: string[] = [];
  const handlers: Handlers = { offer: (job: Job<string>) => void ran.push(job.data) };
  const { queue, ended } = await bootQueue(redis, { handlers });
  await queue.pause();
  const { id } = await queue.add('offer', 'stale', { expiresIn: 30 });
  // Counted from the earliest time at which the job can run, which is in the future.
  const delayed = await queue.add('offer', 'delayed', { expiresIn: 30, delay: '1h' });
  const fresh = await queue.add('offer', 'fresh', { expiresIn: '1h' });
  const { createdAt } = (await queue.get(id))!;
  await until(async () => (await timeOf()) > createdAt!.getTime() + 30, PATIENT);
  await queue.promote(delayed.id);
  await queue.resume();

  expect(await ended(id)).toMatchObject({ type: 'dead', attempt: 0, reason: 'expired' });
  expect((await queue.get(id))!.failure).toMatchObject({
    reason: 'expired',
    message: 'it was not started within 30 ms',
  });
  for (const one of [delayed, fresh]) expect((await ended(one.id)).type).toBe('completed');
  expect(ran.toSorted()).toEqual(['delayed', 'fresh']);
});

it('does not let a job expire between its attempts', async () => {
  // Long enough for the first attempt to begin in time, also on a machine that stalls.
  const expiresIn = 3_000;
  const handlers: Handlers = {
    flaky: async (job: Job) => {
      if (job.attempt > 1) return;
      await until(async () => (await timeOf()) > job.createdAt.getTime() + expiresIn, PATIENT);
      throw new Error('no');
    },
  };
  const { queue, ended } = await bootQueue(redis, { handlers });
  const { id } = await queue.add('flaky', 1, { expiresIn, backoff: 0 });
  expect(await ended(id)).toMatchObject({ type: 'completed', attempt: 2 });
});

it('does not let a snoozed job expire: it has started', async () => {
  const expiresIn = 3_000;
  let runs = 0;
  const handlers: Handlers = {
    later: async (job: Job) => {
      runs += 1;
      if (runs > 1) return;
      await until(async () => (await timeOf()) > job.createdAt.getTime() + expiresIn, PATIENT);
      throw new Snooze(1);
    },
  };
  const { queue, ended } = await bootQueue(redis, { handlers });
  const { id } = await queue.add('later', 1, { expiresIn });
  expect(await ended(id)).toMatchObject({ type: 'completed', attempt: 1 });
});

async function timeOf(): Promise<number> {
  const [seconds, micros] = await redis.admin.time();
  return Number(seconds) * 1000 + Number(micros) / 1000;
}
