import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { QueueInspector } from '#lib/inspect/queue-inspector.js';
import { runOn } from '../cli/support.js';
import { atEnd } from '../support/cleanup.js';
import { bootDashboard } from '../support/dashboard.js';
import { itOnRedis, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { until } from '../support/wait.js';

const redis = useRedis({ leaves: ['workers', 'worker', 'processes'] });
const CHILD = fileURLToPath(new URL('../faults/children/hanging-worker.cjs', import.meta.url));

itOnRedis(
  'a process that hangs as a whole is listed as silent until it goes on, and one that stops is not',
  async () => {
    const { app, api } = await bootDashboard(redis, { handlers: { job: () => {} } });
    const inspector = app.get(QueueInspector);
    const child = spawn(process.execPath, [CHILD, redis.url, redis.prefix, '3', '{}'], { stdio: 'ignore' });
    const exited = once(child, 'exit');
    atEnd(async () => {
      child.kill('SIGKILL');
      await exited;
    });
    const pids = async () => (await inspector.workers({ queue: 'work' })).map(({ pid }) => pid);
    const isListed = async () => (await pids()).includes(child.pid!);
    await until(isListed, { ...PATIENT, timeout: 45_000 });
    expect(await inspector.silentWorkers()).toEqual([]);

    child.kill('SIGSTOP');
    const [found] = await until(async () => {
      const silent = await inspector.silentWorkers({ queue: 'work' });
      return silent.length > 0 ? silent : undefined;
    }, PATIENT);
    expect(found).toMatchObject({ pid: child.pid, pools: [{ queues: ['work'] }] });
    expect(found!.silentMs).toBeGreaterThanOrEqual(0);
    expect(await inspector.silentWorkers({ queue: 'another' })).toEqual([]);
    expect(await isListed()).toBe(false);
    expect((await runOn(redis, 'workers')).out).toMatch(new RegExp(` ${child.pid} +silent \\d`));
    expect((await runOn(redis, 'running')).out).toMatch(
      /jobs of 1 silent process are left out; see godwit workers/,
    );
    expect(JSON.parse((await runOn(redis, 'running', '--json')).out)).toEqual([]);
    expect((await runOn(redis, 'doctor')).out).toMatch(
      new RegExp(`^warn +workers +.+:${child.pid} has been silent for \\d+ m?s: it was killed, hangs`, 'm'),
    );
    expect((await api('GET', 'overview')).body.attention).toContainEqual({
      level: 'warn',
      page: 'workers',
      text: expect.stringContaining(` · ${child.pid} has been silent for `),
    });
    expect((await api('GET', 'workers')).body.silent).toMatchObject([{ pid: child.pid }]);

    child.kill('SIGCONT');
    await until(isListed, PATIENT);
    expect(await inspector.silentWorkers()).toEqual([]);
    child.kill('SIGTERM');
    await exited;
    expect(await inspector.silentWorkers()).toEqual([]);
    expect(await isListed()).toBe(false);
  },
  90_000,
);
