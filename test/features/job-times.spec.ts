import { expect, it } from 'vitest';
import type { Job } from '#lib/job/job.js';
import { bootQueue, PATIENT, type Handlers } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';

const redis = useRedis();

it('a job snapshot and its handler have the same times and numbers, under the same names', async () => {
  const gate = latch('the gate');
  const seen: Job[] = [];
  const handlers: Handlers = {
    job: async (job: Job) => {
      seen.push(job);
      await gate.promise;
    },
  };
  const { queue, ended } = await bootQueue(redis, { handlers, queue: { defaults: { retention: '1h' } } });
  const before = Date.now();
  await queue.add('job', 1, { id: 'a', priority: 3, delay: 20 });
  expect(await queue.get('a')).toMatchObject({ startedAt: null, endedAt: null });
  // The start is known once the process has reported it.
  await until(async () => (await queue.get('a'))?.startedAt != null, PATIENT);
  const [listed] = (await queue.jobs({ state: 'active' })).jobs;
  const [job] = seen;
  const numbers = { attempt: 1, stalls: 0, priority: 3, delay: 20 };
  expect(job).toMatchObject({ ...numbers, createdAt: listed!.createdAt });
  expect(listed).toMatchObject({ ...numbers, endedAt: null });
  const dueAt = new Date(listed!.createdAt!.getTime() + 20);
  expect([job!.dueAt, listed!.dueAt, job!.endedAt]).toEqual([dueAt, dueAt, null]);
  const startedAt = listed!.startedAt!.getTime();
  expect(startedAt).toBeGreaterThan(before);
  expect(Math.abs(job!.startedAt.getTime() - startedAt)).toBeLessThan(1_000);
  gate.open();
  await ended('a');
  const done = await queue.get('a');
  expect(Math.abs(done!.startedAt!.getTime() - startedAt)).toBeLessThan(1_000);
  expect(done!.endedAt!.getTime()).toBeGreaterThanOrEqual(done!.startedAt!.getTime());
  expect(Math.abs(job!.endedAt!.getTime() - done!.endedAt!.getTime())).toBeLessThan(1_000);
  expect(done!.dueAt).toEqual(dueAt);
});

it('counts return how many jobs there are of each name or priority, and how many were examined', async () => {
  const { queue } = await bootQueue(redis, { watch: false });
  await queue.addBulk([
    ...['a', 'a', '__proto__'].map((name) => ({ name, data: 1 })),
    { name: 'a', data: 1, options: { priority: 7 } },
    { name: 'b', data: 1, options: { delay: '1h', priority: 7 } },
  ]);
  const all = { examined: 4, isComplete: true };
  expect(await queue.counts({ by: 'name' })).toEqual({
    ...all,
    counts: Object.fromEntries([
      ['a', 3],
      ['__proto__', 1],
    ]),
  });
  expect(await queue.counts({ by: 'priority' })).toEqual({ ...all, counts: { 0: 3, 7: 1 } });
  expect(await queue.counts({ by: 'name', state: 'delayed' })).toMatchObject({
    counts: { b: 1 },
    examined: 1,
  });
  await queue.addBulk(Array.from({ length: 10_500 }, () => ({ name: 'a', data: 1 })));
  const some = await queue.counts({ by: 'name' });
  expect(some).toMatchObject({ examined: 10_000, isComplete: false, counts: { a: 9_999 } });
  for (const [options, message] of [
    [{}, 'counts().by must be one of'],
    [{ by: 'age' }, 'counts().by must be one of'],
    [{ by: 'name', state: 'lost' }, 'counts().state must be one of'],
  ] as const)
    await expect(queue.counts(options as never)).rejects.toThrow(message);
});
