import { expect, it } from 'vitest';
import type { Job } from '#lib/job/job.js';
import { useBrowser } from '../support/browser.js';
import { bootDashboard } from '../support/dashboard.js';
import { bootQueue, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';

const redis = useRedis();
const open = useBrowser();

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

it('the fairness is listed with the limits and shown on the page of the queue, with the running jobs', async () => {
  const end = latch('the end of the job');
  const { queue, url } = await bootDashboard(redis, {
    handlers: { job: () => end.promise },
    queue: { groups: { fairness: 'in-flight' } },
  });
  await queue.add('job', null, { group: 'acme' });
  await until(async () => (await queue.counts()).active === 1, PATIENT);
  expect(await queue.limits.list()).toMatchObject([
    { of: 'queue', fairness: null },
    { of: 'groups', fairness: 'in-flight' },
  ]);
  expect(await queue.group('acme').state()).toMatchObject({ fairness: 'in-flight', running: 1 });
  const { page, faults } = await open(`${url}queues/work`);
  const row = (text: string) => page.getByRole('row').filter({ hasText: text });
  await row('each group').getByText('in-flight: the group with the fewest running jobs').waitFor();
  expect(await row('group acme').getByRole('cell').nth(2).textContent()).toBe('1');
  expect(faults).toEqual([]);
  end.open();
});
