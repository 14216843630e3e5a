import { expect, it } from 'vitest';
import { useRedis } from '../support/redis.js';
import { until } from '../support/wait.js';
import { bootWorking } from './support/app.js';

const redis = useRedis();

it('runs a job that the store counts as held by a worker that knows nothing of it, while that is idle and while it is busy', async () => {
  const app = await bootWorking({ connection: redis.url, prefix: redis.prefix, lease: { duration: '2s' } });
  const key = (kind: string) => `{${redis.prefix}:work}:${kind}`;
  await app.queue.add('first', null);
  await until(async () => app.runs.size === 1);
  const record = (await redis.keys()).find((name) => name.includes(':worker:'))!;
  const worker = record.slice(key('worker:').length);

  /** As if a store that has lost its last writes still knew the job as claimed by the worker. */
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
