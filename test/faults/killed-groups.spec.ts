import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { atEnd } from '../support/cleanup.js';
import { QueueKeys } from '#lib/engine/keys.js';
import { bootQueue, itOnRedis, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { until } from '../support/wait.js';

const redis = useRedis({ leaves: ['active', 'worker', 'workers', 'processes'] });
const CHILD = fileURLToPath(new URL('./children/hanging-worker.cjs', import.meta.url));

const GROUPS = 1_000;

itOnRedis(
  'the places that killed processes had of a shared limit are free once their lease is over',
  async () => {
    let running = 0;
    let most = 0;
    const work = async () => {
      most = Math.max(most, ++running);
      await new Promise(setImmediate);
      running -= 1;
    };
    const uses = ['api'];
    const { queue, queueOf, runtime } = await bootQueue(redis, {
      root: { autoStart: false, lease: { duration: '1s' }, limits: { api: { concurrency: 3 } } },
      queue: { uses },
      queues: [{ name: 'other', uses }],
      handlers: { job: work },
      watch: false,
    });
    await queue.addBulk(Array.from({ length: 20 }, () => ({ name: 'job', data: null })));
    const child = spawn(process.execPath, [CHILD, redis.url, redis.prefix, '10', 'api'], { stdio: 'ignore' });
    atEnd(() => void child.kill('SIGKILL'));
    await until(async () => (await queue.counts()).active === 3, {
      ...PATIENT,
      what: () => 'the child has all places',
    });
    await queueOf('other').addBulk(Array.from({ length: 20 }, () => ({ name: 'job', data: null })));
    await runtime.start();
    await runtime.work('other', { job: work });
    const { shares } = new QueueKeys(redis.prefix, '').fixed;
    const heldUntil = async () => Number((await redis.admin.hget(shares, 'api'))!.split(' ')[2]);
    const first = await heldUntil();
    await until(async () => (await heldUntil()) > first + 1_000, {
      ...PATIENT,
      what: () => 'the child has renewed what it holds for longer than its lease',
    });
    expect(await queueOf('other').counts()).toMatchObject({ waiting: 20, active: 0 });
    child.kill('SIGKILL');
    await once(child, 'exit');
    const left = async () => {
      const counts = await Promise.all([queue, queueOf('other')].map((one) => one.counts()));
      return counts.reduce(
        (sum, { waiting, active, delayed, dead }) => sum + waiting + active + delayed + dead,
        0,
      );
    };
    await until(async () => (await left()) === 0, { timeout: 30_000, what: () => 'all jobs complete' });
    expect(most).toBeLessThanOrEqual(3);
    await until(async () => (await queue.limits.shared('api').state())!.running === 0, {
      ...PATIENT,
      what: () => 'all places are free',
    });
  },
  60_000,
);

// Other queues count the running jobs of a group. The count outlives a killed worker, so the group stands still.
itOnRedis(
  'groups whose jobs were held by killed processes go on, and nothing is lost, run twice at once, or left behind',
  async () => {
    const running = new Map<string, number>();
    const started: string[] = [];
    let most = 0;
    const { queue, runtime, said } = await bootQueue(redis, {
      root: { autoStart: false, lease: { duration: '1s' } },
      queue: { limits: { concurrency: 300 }, groups: { concurrency: 1 } },
      concurrency: 300,
      handlers: {
        job: async ({ group, id }: { group: string | null; id: string }) => {
          const now = (running.get(group!) ?? 0) + 1;
          running.set(group!, now);
          most = Math.max(most, now);
          started.push(id);
          await new Promise(setImmediate);
          running.set(group!, now - 1);
        },
      },
    });
    const jobs = Array.from({ length: 2 * GROUPS }, (_, i) => ({
      name: 'job',
      data: i,
      options: { group: `tenant ${i % GROUPS}` },
    }));
    await queue.addBulk(jobs);
    const children = [0, 1, 2].map(() => {
      const child = spawn(process.execPath, [CHILD, redis.url, redis.prefix, '150'], { stdio: 'ignore' });
      atEnd(() => void child.kill('SIGKILL'));
      return child;
    });
    const held = async () => (await queue.counts()).active;
    await until(async () => (await held()) === 300, {
      ...PATIENT,
      what: () => 'the children hold all slots',
    });
    for (const child of children) {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    await runtime.start();
    await said.take(2 * GROUPS, ({ type }) => type === 'completed', { timeout: 60_000 });
    expect(new Set(started).size).toBe(2 * GROUPS);
    expect(most).toBe(1);
    expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0, delayed: 0, dead: 0 });
    expect((await queue.audit()).violations).toEqual([]);
    expect(await queue.limits.list()).toMatchObject([{ of: 'queue', running: 0 }, { of: 'groups' }]);
  },
  90_000,
);
