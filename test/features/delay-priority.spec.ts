import { setTimeout as pause } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { Job } from '#lib/job/job.js';
import { isBlocked } from '../support/blocked.js';
import { bootQueue, itOnRedis, PATIENT, recorder, type Handlers } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';

const redis = useRedis();
const HOUR = 3_600_000;

it('runs a delayed job when its time has come by the clock of Redis, not before', async () => {
  const { handlers } = recorder();
  const { queue, said, ended } = await bootQueue(redis, { handlers });
  const now = Date.now();
  const jobs = {
    delay: await queue.add('job', 1, { delay: 150 }),
    text: await queue.add('job', 1, { delay: '200ms' }),
    date: await queue.add('job', 1, { runAt: new Date(now + 250) }),
    number: await queue.add('job', 1, { runAt: now + 300 }),
  };
  for (const { id } of Object.values(jobs)) await ended(id);
  const at = (type: string, id: string) =>
    said.values.find((event) => event.type === type && event.jobId === id)!.at.getTime();
  expect(at('active', jobs.delay.id) - at('delayed', jobs.delay.id)).toBeGreaterThanOrEqual(150);
  expect(at('active', jobs.text.id) - at('delayed', jobs.text.id)).toBeGreaterThanOrEqual(200);
  expect(at('active', jobs.date.id)).toBeGreaterThanOrEqual(now + 250);
  expect(at('active', jobs.number.id)).toBeGreaterThanOrEqual(now + 300);
});

it('shows a delayed job as delayed, with the time it is due', async () => {
  const { queue, said } = await bootQueue(redis);
  const runAt = new Date(Date.now() + HOUR);
  const dated = await queue.add('job', 1, { runAt });
  expect(await queue.get(dated.id)).toMatchObject({ state: 'delayed', dueAt: runAt, attempt: 0 });

  const { id } = await queue.add('job', 1, { delay: '1h' });
  const event = await said.first((one) => one.jobId === id, PATIENT);
  expect(event).toMatchObject({ type: 'delayed', delayMs: HOUR });
  const { dueAt } = (await queue.get(id))!;
  expect(dueAt!.getTime() - event.at.getTime()).toBe(HOUR);
  expect(await queue.counts()).toMatchObject({ delayed: 2, waiting: 0 });

  // A job that is already due does not wait.
  const past = await queue.add('job', 1, { runAt: 0 });
  const zero = await queue.add('job', 1, { delay: 0 });
  expect(await queue.get(zero.id)).toMatchObject({ state: 'waiting', dueAt: null });
  await said.first((one) => one.jobId === past.id, PATIENT);
});

it('takes the due time by the clock of Redis, not by that of the process', async () => {
  const { ran, handlers } = recorder();
  const { queue, ended, said } = await bootQueue(redis, { handlers });
  const { now } = Date;
  // Two hours ahead, where the workers of BullMQ would run a job that is due in one hour.
  Date.now = () => now() + 2 * HOUR;
  try {
    const { id } = await queue.add('job', 'in an hour', { delay: HOUR });
    const soon = await queue.add('job', 'soon', { delay: 50 });
    expect((await ended(soon.id)).type).toBe('completed');
    const { at } = await said.first((event) => event.jobId === id, PATIENT);
    const { dueAt, createdAt } = (await queue.get(id))!;
    expect(dueAt!.getTime() - at.getTime()).toBe(HOUR);
    expect(Math.abs(createdAt!.getTime() - at.getTime())).toBeLessThan(60_000);
    expect(ran).toEqual(['soon']);
  } finally {
    Date.now = now;
  }
});

it('runs a delayed job at once when it is promoted, and no other', async () => {
  const { ran, handlers } = recorder();
  const { queue, ended } = await bootQueue(redis, { handlers });
  const other = await queue.add('job', 'other', { delay: '1h' });
  const { id } = await queue.add('job', 'promoted', { delay: '1h' });
  await queue.promote(id);
  expect((await ended(id)).type).toBe('completed');
  expect(ran).toEqual(['promoted']);
  expect(await queue.get(other.id)).toMatchObject({ state: 'delayed' });

  await expect(queue.promote('nobody')).rejects.toMatchObject({ code: 'GODWIT_JOB_NOT_FOUND' });
  await expect(queue.promote(id)).rejects.toMatchObject({ code: 'GODWIT_JOB_NOT_FOUND' });
  await queue.pause();
  const waiting = await queue.add('job', 'waiting');
  await expect(queue.promote(waiting.id)).rejects.toMatchObject({
    code: 'GODWIT_WRONG_STATE',
    message: `job "${waiting.id}" in queue 'work' is not delayed; only delayed jobs are promoted`,
  });
});

it('runs jobs without a priority first, then by priority, first in first out within each', async () => {
  const { ran, handlers } = recorder();
  const { queue, ended } = await bootQueue(redis, { handlers, concurrency: 1 });
  await queue.pause();
  const priorities = [2_097_151, 2, 1, undefined, 2, 0, 1, 3, undefined, 2];
  const jobs = [];
  for (const [i, priority] of priorities.entries()) {
    const data = `${priority ?? 0}-${i}`;
    jobs.push(await queue.add('job', data, priority === undefined ? {} : { priority }));
  }
  const bulk = await queue.addBulk(
    [1, 2].map((priority) => ({ name: 'job', data: `${priority}-bulk`, options: { priority } })),
  );
  expect(await queue.counts()).toMatchObject({ waiting: 12 });
  await queue.resume();
  for (const { id } of [...jobs, ...bulk]) await ended(id);
  expect(ran).toEqual([
    '0-3',
    '0-5',
    '0-8',
    '1-2',
    '1-6',
    '1-bulk',
    '2-1',
    '2-4',
    '2-9',
    '2-bulk',
    '3-7',
    '2097151-0',
  ]);
});

it('runs a thousand jobs without priorities in the order in which they were added', async () => {
  const { ran, handlers } = recorder();
  const { queue, ended } = await bootQueue(redis, { handlers, concurrency: 1 });
  const numbers = Array.from({ length: 1000 }, (_, i) => i);
  const jobs = await Promise.all(numbers.map((data) => queue.add('job', data)));
  await ended(jobs.at(-1)!.id);
  expect(ran).toEqual(numbers);
});

it('keeps the priority of a job over its delay and over its retries', async () => {
  const began: string[] = [];
  const gate = latch('the gate');
  // So slow that no job is claimed before a slot is free.
  const slow = () => pause(20);
  const handlers: Handlers = {
    gate: () => gate.promise.then(slow),
    job: async (job: Job<string>) => {
      began.push(`${job.data} ${job.attempt}`);
      await slow();
      if (job.data.endsWith('retry') && job.attempt === 1) throw new Error('again');
    },
  };
  const { queue, ended, said } = await bootQueue(redis, { handlers, concurrency: 1 });
  const blocker = await queue.add('gate', 0);
  await said.first((event) => event.type === 'active' && event.jobId === blocker.id, PATIENT);
  // All of them can be claimed while the only slot is taken.
  const delayed = await queue.add('job', '2 delayed', { priority: 2, delay: '1h' });
  const plain = await queue.add('job', '2 plain', { priority: 2 });
  const late = await queue.add('job', '3 plain', { priority: 3 });
  const retry = await queue.add('job', '1 retry', { priority: 1, backoff: 0 });
  const waits = await queue.add('job', '1 waiting retry', { priority: 1, backoff: '1h' });
  const last = await queue.add('job', '9', { priority: 9 });
  const end = await queue.add('job', '10', { priority: 10 });
  await queue.promote(delayed.id);
  gate.open();
  await ended(end.id);
  expect(began).toEqual([
    '1 retry 1',
    '1 waiting retry 1',
    '1 retry 2',
    '2 plain 1',
    '2 delayed 1',
    '3 plain 1',
    '9 1',
    '10 1',
  ]);

  // After its backoff it is again before jobs with a higher number.
  await queue.pause();
  began.length = 0;
  const behind = await queue.add('job', '5', { priority: 5 });
  await queue.promote(waits.id);
  await queue.resume();
  for (const { id } of [plain, late, retry, last, behind, waits]) await ended(id);
  expect(began).toEqual(['1 waiting retry 2', '5 1']);
});

it('lets a due job run elsewhere at once if the process that knows of it has no slot', async () => {
  const gate = latch('the end of the long job');
  const busy = latch('the long job');
  const ran: string[] = [];
  const handlers = (process: string): Handlers => ({
    long: async () => {
      busy.open();
      await gate.promise;
    },
    job: (job: Job<number>) => void ran.push(`${process} ${job.data}`),
  });
  const one = await bootQueue(redis, { handlers: handlers('one'), concurrency: 1 });
  // Its only slot is taken when it learns of the retry, and no other worker learns of it.
  const two = await bootQueue(redis, { handlers: handlers('two'), concurrency: 1, watch: false });
  two.runtime.pause();
  await one.queue.add('long', 0);
  await busy.wait(PATIENT);
  two.runtime.resume();
  const times: number[] = [];
  for (let round = 0; round < 20; round++) {
    const began = performance.now();
    const { id } = await one.queue.add('job', round, { delay: 100 });
    await one.ended(id);
    times.push(performance.now() - began - 100);
  }
  expect(ran).toEqual(Array.from({ length: 20 }, (_, round) => `two ${round}`));
  // A job without a bell would be found at the next look, seconds later. A busy machine may be slow.
  expect(times.filter((ms) => ms > 750).length, times.map(Math.round).join(' ')).toBeLessThan(3);
  gate.open();
});

it.each(['is paused in its process', 'is stopped'] as const)(
  'runs a delayed job in time if a process that knew of it %s',
  async (how) => {
    const ran: string[] = [];
    const handlers = (process: string): Handlers => ({ job: () => void ran.push(process) });
    const apps = [];
    for (const name of ['a', 'b', 'c', 'd', 'e']) {
      apps.push(await bootQueue(redis, { handlers: handlers(name), concurrency: 1, watch: false }));
    }
    const [first, ...others] = apps;
    const times: number[] = [];
    for (let round = 0; round < 3; round++) {
      const before = ran.length;
      const { id } = await first!.queue.add('job', round, { delay: 400 });
      const dueAt = performance.now() + 400;
      const gone = others[round]!;
      if (how === 'is stopped') await gone.close();
      else gone.runtime.pause();
      // How long the worker takes to close does not count for the job.
      const since = Math.max(dueAt, performance.now());
      await until(() => ran.length > before, PATIENT);
      times.push(performance.now() - since);
      await until(async () => (await first!.queue.get(id)) === null, PATIENT);
    }
    expect(times.filter((ms) => ms > 750).length, times.map(Math.round).join(' ')).toBeLessThan(2);
  },
);

itOnRedis(
  'moves what is due to the line while its queue is paused, or its process, and has no slot for it',
  async () => {
    const { ran, handlers } = recorder();
    const { queue, runtime } = await bootQueue(redis, { handlers, watch: false });
    await queue.pause();
    await queue.add('job', 'paused for all', { delay: 100 });
    await until(async () => (await queue.counts()).waiting === 1, { timeout: 4_000 });
    expect(ran).toEqual([]);
    await queue.resume();
    await until(() => ran.length === 1, PATIENT);
    await queue.add('job', 'paused here', { delay: 2_000 });
    // It must know of the job before it is paused: the bell has woken it, and it sleeps again.
    await until(async () => (await redis.admin.zcard(`{${redis.prefix}:work}:doorbell`)) === 0, PATIENT);
    await isBlocked(redis);
    runtime.pause();
    await until(async () => (await queue.counts()).waiting === 1, { timeout: 6_000 });
    runtime.resume();
    await until(() => ran.length === 2, PATIENT);
  },
);
