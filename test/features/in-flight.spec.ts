import { expect, it } from 'vitest';
import type { Job } from '#lib/job/job.js';
import { bootQueue, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { latch } from '../support/wait.js';

const redis = useRedis();

it('long jobs of a group do not take the workers of two processes from the other groups', async () => {
  const started: string[] = [];
  const end = latch('the end of the long jobs');
  const handlers = {
    job: async ({ group }: Job) => {
      started.push(group!);
      if (group === 'slow') await end.promise;
    },
  };
  const options = { handlers, queue: { groups: { fairness: 'in-flight' } }, concurrency: 3 } as const;
  const { queue, said } = await bootQueue(redis, options);
  await bootQueue(redis, { ...options, watch: false });
  const jobs = (group: string, count: number) =>
    Array.from({ length: count }, () => ({ name: 'job', data: null, options: { group } }));
  await queue.addBulk([...jobs('slow', 20), ...jobs('a', 40), ...jobs('b', 40)]);
  // With turns, the long jobs would have all six slots after six turns.
  await said.take(80, ({ type }) => type === 'completed', PATIENT);
  const others = started.flatMap((group, i) => (group === 'slow' ? [] : i));
  const slow = started.slice(0, others.at(-8)).filter((group) => group === 'slow');
  expect(slow).toHaveLength(2);
  end.open();
  await said.take(20, ({ type }) => type === 'completed', PATIENT);
});
