import { expect, it } from 'vitest';
import type { Job } from '#lib/job/job.js';
import { bootQueue } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';

const redis = useRedis();

it('a job of a bulk that another of it replaces keeps its group and its other options', async () => {
  const { queue } = await bootQueue(redis, { watch: false });
  const pair = [1, 2].map((data) => ({
    name: 'x',
    data,
    options: { group: `g${data}`, priority: data, unique: { key: 'k', onDuplicate: 'replace' } } as const,
  }));
  const [first, second] = await queue.addBulk(pair);
  expect(second).toEqual({ ...first, duplicate: true, state: 'waiting', replaced: true });
  expect(await queue.get(first!.id)).toMatchObject({ data: 2, group: 'g1', priority: 1 });
});

it('a job that has cost nothing gives back its whole cost', async () => {
  const { queue, ended } = await bootQueue(redis, {
    queue: { limits: { rate: { max: 10, per: '1h', window: 'fixed' } } },
    handlers: { job: (job: Job) => job.charge(0) },
  });
  expect(await ended((await queue.add('job', null, { cost: 4 })).id)).toMatchObject({ type: 'completed' });
  expect(await queue.limits.list()).toMatchObject([{ left: 10 }]);
});
