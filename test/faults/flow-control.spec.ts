import { expect, it } from 'vitest';
import { bootQueue } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { KEEPING, useServer } from '../support/server.js';
import { until } from '../support/wait.js';

const server = useServer({ args: KEEPING });
const redis = useRedis({ server });

const JOBS = 400;
const GROUPS = 40;

it('keeps limits, groups and keys while Redis is killed again and again, and leaves no slot, line or key behind', async () => {
  const runs = new Map<string, number>();
  const running = new Map<string, number>();
  let most = 0;
  let mostOfGroup = 0;
  const { queue } = await bootQueue(redis, {
    root: { enqueueTimeout: '15s' },
    queue: { limits: { concurrency: 5 }, groups: { concurrency: 1 } },
    concurrency: 20,
    watch: false,
    handlers: {
      job: async ({ id, group }) => {
        runs.set(id, (runs.get(id) ?? 0) + 1);
        running.set(group!, (running.get(group!) ?? 0) + 1);
        const all = [...running.values()];
        most = Math.max(
          most,
          all.reduce((sum, count) => sum + count, 0),
        );
        mostOfGroup = Math.max(mostOfGroup, ...all);
        await new Promise(setImmediate);
        running.set(group!, running.get(group!)! - 1);
      },
    },
  });
  const add = () =>
    Promise.all(
      Array.from({ length: JOBS }, (_, i) =>
        queue.add('job', i, { group: `tenant ${i % GROUPS}`, unique: { key: `key ${i}` } }),
      ),
    );
  const ended = async () => {
    const { waiting, delayed, active } = await queue.counts();
    return waiting + delayed + active === 0;
  };
  for (const round of [1, 2, 3]) {
    const adding = add();
    await until(() => runs.size > (round - 1) * JOBS + 20, { timeout: 20_000, what: 'jobs run' });
    await server.kill9();
    await server.restart();
    // A key of the round before would make it a duplicate.
    const added = await adding;
    expect(added.filter(({ duplicate }) => duplicate)).toEqual([]);
    await until(ended, { timeout: 30_000, what: () => `${runs.size} jobs of round ${round} have run` });
    expect(runs.size).toBe(round * JOBS);
  }
  expect([...runs.values()].filter((times) => times > 1)).toEqual([]);
  expect(most).toBeLessThanOrEqual(5);
  expect(mostOfGroup).toBe(1);
  expect((await queue.audit()).violations).toEqual([]);
  expect(await queue.limits.list()).toMatchObject([{ of: 'queue', running: 0 }, { of: 'groups' }]);
  expect(await queue.groups()).toMatchObject({ groups: [] });
}, 120_000);
