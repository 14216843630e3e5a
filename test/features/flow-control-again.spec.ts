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

it.each(['redis', 'memory'] as const)(
  'all jobs of a group can be cancelled, removed and promoted (%s)',
  async (engine) => {
    const { queue } = await bootQueue(redis, {
      watch: false,
      queue: { groups: {} },
      ...(engine === 'memory' && { root: { connection: 'memory' } }),
    });
    const jobs = ['a', 'b'].flatMap((group) =>
      [0, 60_000].flatMap((delay) =>
        [1, 2].map(() => ({ name: 'x', data: null, options: { group, delay } })),
      ),
    );
    await queue.addBulk(jobs);
    const groups = async () => {
      const { jobs: left } = await queue.jobs({ state: ['waiting', 'delayed'] });
      return left.map(({ group, state }) => `${group} ${state}`).toSorted();
    };
    expect(await queue.promote({ group: 'a' })).toBe(2);
    expect(await queue.remove({ state: 'delayed', group: 'a' })).toBe(0);
    expect(await queue.remove({ state: 'waiting', group: 'a' })).toBe(4);
    expect(await groups()).toEqual(['b delayed', 'b delayed', 'b waiting', 'b waiting']);
    expect(await queue.remove({ state: 'waiting', group: 'c' })).toBe(0);
    expect(await queue.cancel({ group: 'b' })).toBe(4);
    expect(await groups()).toEqual([]);
    await expect(queue.cancel({ group: '' })).rejects.toThrow(
      'cancel().group must be a string of 1 to 256 bytes',
    );
    await expect(queue.cancel({ group: undefined } as object)).rejects.toThrow(
      'cancel().group must be a value',
    );
  },
);
