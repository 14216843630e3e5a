import { expect, it } from 'vitest';
import type { Job } from '#lib/job/job.js';
import { UnrecoverableError } from '#lib/errors.js';
import { atEnd } from '../support/cleanup.js';
import { bootQueue, keyOf, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { useServer } from '../support/server.js';
import { until } from '../support/wait.js';

const redis = useRedis({ server: useServer() });
const MB = 1_048_576;
const LARGE = 'x'.repeat(MB - 100);

/** Redis refuses adds beyond this limit until the end of the test. */
async function allow(bytes: number): Promise<void> {
  await redis.admin.config('SET', 'maxmemory', bytes);
  atEnd(() => redis.admin.config('SET', 'maxmemory', 0));
}

async function bytesOf(kind: string): Promise<number> {
  return (await redis.admin.memory('USAGE', keyOf(redis, kind), 'SAMPLES', 0)) ?? 0;
}

it('progress of 1 MB in each of 400 jobs does not fill the memory', async () => {
  let done = 0;
  const app = await bootQueue(redis, {
    root: { defaults: { retention: '1h' } },
    handlers: {
      '*': async (job: Job) => {
        await job.progress(LARGE);
        done += 1;
      },
    },
    watch: false,
  });
  await allow(300 * MB);
  for (let i = 0; i < 400; i += 50)
    await app.queue.addBulk(Array.from({ length: 50 }, () => ({ name: 'job', data: i })));
  await until(() => done === 400, { timeout: 60_000, what: 'all jobs' });
  expect(await bytesOf('progress')).toBeLessThan(66 * MB);
  expect(await bytesOf('progress')).toBeGreaterThan(40 * MB);
  expect(await bytesOf('events')).toBeLessThan(96 * MB);
  await app.queue.add('job', 1);
  await until(() => done === 401, PATIENT);
});

it('dead jobs of 1 MB each do not fill the memory', async () => {
  const app = await bootQueue(redis, {
    root: { dead: { maxBytes: 32 * MB } },
    handlers: {
      '*': () => {
        throw new UnrecoverableError('unwanted');
      },
    },
    concurrency: 4,
    watch: false,
  });
  await allow(130 * MB);
  let last = '';
  for (let i = 0; i < 200; i++) {
    const { id } = await app.queue.add('job', LARGE);
    last = id;
    if (i % 20 === 0)
      await until(async () => (await app.queue.counts()).waiting === 0, { ...PATIENT, what: 'the workers' });
  }
  await until(async () => (await app.queue.get(last))?.state === 'dead', PATIENT);
  await until(async () => (await app.queue.counts()).dead <= 32, PATIENT);
  expect((await app.queue.counts()).dead).toBeGreaterThan(25);
  expect((await app.queue.get(last))?.state).toBe('dead');
});
