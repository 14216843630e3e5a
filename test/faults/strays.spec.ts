import { expect, it } from 'vitest';
import type { JobAbortedError } from '#lib/errors.js';
import type { Job } from '#lib/job/job.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';
import { bootWorking } from './support/app.js';

const redis = useRedis();

it('runs a job that the store counts as held by a worker that does not know it, idle or busy', async () => {
  const app = await bootWorking({ connection: redis.url, prefix: redis.prefix, lease: { duration: '2s' } });
  const key = (kind: string) => `{${redis.prefix}:work}:${kind}`;
  await app.queue.add('first', null);
  await until(async () => app.runs.size === 1);
  const record = (await redis.keys()).find((name) => name.includes(':worker:'))!;
  const worker = record.slice(key('worker:').length);

  /** As if a store that lost its last writes still held the job as claimed by the worker. */
  const claimBehindItsBack = async (id: string) => {
    await app.queue.add('stray', null, { id, delay: '1h' });
    await redis.admin.zrem(key('delayed'), id);
    await redis.admin.sadd(key(`active:${worker}`), id);
  };
  await claimBehindItsBack('idle');
  await app.queue.add('next', null);
  await until(() => app.runs.has('idle'), { timeout: 15_000 });

  await claimBehindItsBack('busy');
  await until(
    async () => {
      await app.queue.add('more', null);
      return app.runs.has('busy');
    },
    { timeout: 15_000 },
  );
  await until(async () => (await app.queue.counts()).active === 0);
  expect([...app.runs.values()].every((times) => times === 1)).toBe(true);
});

it('aborts a run whose job the store counts as held by no worker', async () => {
  const gate = latch('the end of the run');
  const runs: Job[] = [];
  const app = await bootWorking(
    { connection: redis.url, prefix: redis.prefix, lease: { duration: '1s' } },
    async (job) => {
      runs.push(job);
      // Only the second run counts.
      if (runs.length === 1) await gate.promise;
    },
  );
  const key = (kind: string) => `{${redis.prefix}:work}:${kind}`;
  const { id } = await app.queue.add('job', null);
  await until(() => runs.length === 1);
  const { signal } = runs[0]!;
  const [worker] = await redis.admin.zrange(key('workers'), '0', '0');
  await redis.admin.srem(key(`active:${worker}`), id);
  // The answer to the next exchange says how many jobs the worker holds.
  await app.queue.add('job', null);
  await until(() => signal.aborted, { timeout: 15_000 });
  expect((signal.reason as JobAbortedError).reason).toBe('lease-lost');
  await app.queue.repair();
  await until(() => runs.filter((run) => run.id === id).length === 2, { timeout: 15_000 });
  gate.open();
  await until(async () => (await app.queue.counts()).active === 0);
});
