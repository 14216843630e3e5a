import { expect, it } from 'vitest';
import type { Job } from '#lib/job/job.js';
import { bootQueue, type Handlers } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';

const redis = useRedis();

/** Tells in which order jobs began. */
function recorder(): { ran: unknown[]; handlers: Handlers } {
  const ran: unknown[] = [];
  return { ran, handlers: { job: (job: Job) => void ran.push(job.data) } };
}

it('runs the last job with lifo first, before all that wait', async () => {
  const { ran, handlers } = recorder();
  const app = await bootQueue(redis, { handlers, concurrency: 1 });
  await app.queue.pause();
  await app.queue.addBulk([1, 2].map((data) => ({ name: 'job', data })));
  await app.queue.addBulk([3, 4].map((data) => ({ name: 'job', data, options: { lifo: true } })));
  const last = await app.queue.add('job', 5, { priority: 1 });
  await app.queue.add('job', 6, { lifo: true, priority: 0 });
  await app.queue.resume();
  await app.ended(last.id);
  expect(ran).toEqual([6, 4, 3, 1, 2, 5]);
});
