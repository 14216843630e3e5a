import { expect, it } from 'vitest';
import { OnJob } from '#lib/decorators/on-job.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import type { JobEventOf } from '#lib/worker/job-listeners.js';
import { bootQueue, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { until } from '../support/wait.js';

const redis = useRedis();

it('runs all jobs of a name that only the new release of a rolling deploy handles', async () => {
  const ids = Array.from({ length: 40 }, (_, i) => `new-${i}`);
  const old = await bootQueue(redis, { handlers: { known: () => 1 } });
  for (const id of ids) await old.queue.add('renamed', 1, { id, retention: '1h', priority: 3 });
  await old.queue.add('known', 1, { id: 'known', retention: '1h' });
  // No handler exists yet: no job is dead, all wait, and the log says so once.
  await until(async () => (await old.queue.counts()).delayed === 40, PATIENT);
  await old.logs.complaint(
    /no @Handle\('renamed'\) .*\(is the class in providers\?\).*wait for a process that has one/,
  );
  expect(old.logs.complaints.filter((text) => text.includes('renamed'))).toHaveLength(1);
  const recent = await bootQueue(redis, { handlers: { known: () => 1, renamed: () => 2 } });
  // The old process claims about half of the jobs each time, and delays them again. That takes six rounds or more.
  await until(async () => (await recent.queue.counts()).completed === 41, { timeout: 45_000 });
  expect(await recent.queue.counts()).toMatchObject({ waiting: 0, delayed: 0, active: 0, dead: 0 });
});

it('is claimed at most a few times a second, and is dead if no process handles it in time', async () => {
  const { queue, ended, said } = await bootQueue(redis, {
    handlers: { known: () => 1 },
    queue: { unknownJobTimeout: '2s' },
  });
  const { id } = await queue.add('nobody', 1);
  expect(await ended(id)).toMatchObject({ type: 'dead', attempt: 0, reason: 'no-handler' });
  const rounds = said.values.filter((event) => event.type === 'active').length;
  expect(rounds).toBeGreaterThan(1);
  expect(rounds).toBeLessThan(16);
});

it('is dead in time also if no process lives that long', async () => {
  const options = { handlers: { known: () => 1 }, queue: { unknownJobTimeout: '3s' } };
  const first = await bootQueue(redis, options);
  const { id } = await first.queue.add('nobody', 1);
  const since = performance.now();
  let died = false;
  for (let app = first; !died; app = await bootQueue(redis, options)) {
    const state = async () => (await app.queue.get(id))?.state;
    const until1s = performance.now() + 1_200;
    await until(async () => (died = (await state()) === 'dead') || performance.now() > until1s, PATIENT);
    await app.close();
  }
  expect(performance.now() - since).toBeGreaterThan(2_900);
});

it('is not dead while a live process handles its name, although others do not', async () => {
  const queue = { unknownJobTimeout: '2s' };
  const other = await bootQueue(redis, { handlers: { known: () => 1 }, queue });
  const able = await bootQueue(redis, { handlers: { known: () => 1, late: () => 2 }, queue, watch: false });
  // The process lives, but claims no job now.
  able.runtime.pause('work');
  const { id } = await other.queue.add('late', 1, { retention: '1h' });
  const claims = () => other.said.values.filter((event) => event.type === 'active').length;
  const since = performance.now();
  await until(() => claims() >= 6 && performance.now() - since > 4_500, { timeout: 30_000 });
  expect((await other.queue.get(id))?.state).not.toBe('dead');
  able.runtime.resume('work');
  expect(await other.ended(id)).toMatchObject({ type: 'completed' });
});

it('is a failed attempt if the queue sets that', async () => {
  const told: unknown[] = [];
  @Processor('work')
  class Listening {
    @OnJob('failed')
    failed({ job, error, delayMs }: JobEventOf<'failed'>) {
      told.push([job.attempt, job.attempts, error.name, delayMs]);
    }
  }
  const { queue, ended } = await bootQueue(redis, {
    handlers: { known: () => 1 },
    providers: [Listening],
    queue: { unknownJob: 'retry', defaults: { attempts: 2, backoff: 0 } },
  });
  const { id } = await queue.add('nobody', 1);
  expect(await ended(id)).toMatchObject({ type: 'dead', reason: 'no-handler' });
  expect(await queue.get(id)).toMatchObject({ attempt: 2, failure: { name: 'UnrunnableJob', attempt: 2 } });
  await until(() => told.length >= 2, PATIENT);
  expect(told).toEqual([
    [1, 2, 'UnrunnableJob', 0],
    [2, 2, 'UnrunnableJob', null],
  ]);
});

it('may still expire while it waits', async () => {
  const { queue, ended } = await bootQueue(redis, { handlers: { known: () => 1 } });
  const { id } = await queue.add('nobody', 1, { expiresIn: '1s' });
  expect(await ended(id)).toMatchObject({ type: 'dead', reason: 'expired' });
});
