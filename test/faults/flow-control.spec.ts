import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { atEnd } from '../support/cleanup.js';
import { bootQueue, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { KEEPING, useServer } from '../support/server.js';
import { until } from '../support/wait.js';

const server = useServer({ args: KEEPING });
const redis = useRedis({ server, leaves: ['active', 'worker', 'workers', 'processes'] });
const CHILD = fileURLToPath(new URL('./children/hanging-worker.cjs', import.meta.url));

const JOBS = 400;
const GROUPS = 40;

it('keeps limits, groups and keys while Redis is killed again and again, and leaves no unused slot, line or key', async () => {
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

// What stranded 136,218 jobs of groupmq (Openpanel-dev/groupmq#14): jobs stalled while Redis was out of memory, a claim put them back, and
// their groups counted them as running for ever.
it('goes on with groups whose jobs stalled while Redis was out of memory', async () => {
  const stalled = 500;
  const runs = new Map<string, number>();
  const limited = { groups: { concurrency: 1 } };
  const { queue, runtime } = await bootQueue(redis, {
    root: { autoStart: false, lease: { duration: '1s' } },
    queue: limited,
    concurrency: 50,
    watch: false,
    handlers: { job: ({ id }) => void runs.set(id, (runs.get(id) ?? 0) + 1) },
  });
  const add = (count: number) =>
    queue.addBulk(
      Array.from({ length: count }, (_, i) => ({
        name: 'job',
        data: i,
        options: { group: `tenant ${i % stalled}` },
      })),
    );
  const ended = async () => {
    const { waiting, active } = await queue.counts();
    return waiting + active === 0;
  };
  await add(3 * stalled);
  const args = [CHILD, redis.url, redis.prefix, String(stalled), JSON.stringify(limited)];
  const child = spawn(process.execPath, args, { stdio: 'ignore' });
  atEnd(() => void child.kill('SIGKILL'));
  await until(async () => (await queue.counts()).active === stalled, {
    ...PATIENT,
    what: () => 'the child runs a job of each group',
  });
  await runtime.start();

  await redis.admin.config('SET', 'maxmemory', 1);
  atEnd(() => redis.admin.config('SET', 'maxmemory', 0));
  child.kill('SIGKILL');
  await once(child, 'exit');
  await expect(add(1)).rejects.toMatchObject({ reply: 'OOM', applied: 'no' });
  await until(ended, { timeout: 30_000, what: () => `${runs.size} jobs have run while there is no memory` });
  expect(runs.size).toBe(3 * stalled);

  await redis.admin.config('SET', 'maxmemory', 0);
  await add(stalled);
  await until(ended, { timeout: 30_000, what: () => `${runs.size} jobs have run` });
  expect(runs.size).toBe(4 * stalled);
  expect([...runs.values()].filter((times) => times > 1)).toEqual([]);
  expect((await queue.audit()).violations).toEqual([]);
  expect(await queue.groups()).toMatchObject({ groups: [] });
}, 120_000);
