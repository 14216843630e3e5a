import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { QueueInspector } from '#lib/inspect/queue-inspector.js';
import { QueueMetrics } from '#lib/subpaths/prometheus.js';
import { runOn } from '../cli/support.js';
import { atEnd } from '../support/cleanup.js';
import { bootDashboard } from '../support/dashboard.js';
import { itOnRedis, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { until } from '../support/wait.js';

const redis = useRedis({ leaves: ['workers', 'worker', 'active', 'processes'] });
const CHILD = fileURLToPath(new URL('../faults/children/hanging-worker.cjs', import.meta.url));

it('a process whose event loop was blocked is shown by the command, on the dashboard and in the metrics', async () => {
  const { app, api, queue } = await bootDashboard(redis, {
    root: { lease: { duration: '1s' } },
    queues: ['other'],
    handlers: {
      compute: () => {
        for (const end = performance.now() + 700; performance.now() < end;);
      },
    },
  });
  // The first delay is measured from the first tick on, which the first job may keep from coming.
  await queue.add('compute', 1);
  await until(async () => (await queue.counts()).active + (await queue.counts()).waiting === 0, PATIENT);
  await queue.add('compute', 2);
  const workers = () => app.get(QueueInspector).workers();
  const [found] = await until(async () => {
    const all = await workers();
    return all.some(({ blockedMs }) => blockedMs >= 500) ? all : undefined;
  }, PATIENT);
  expect(found!.blockedMs).toBeLessThan(60_000);
  const metrics = new QueueMetrics({ inspector: app.get(QueueInspector), global: true, local: false });
  const text = await metrics.text();
  const seconds = /^godwit_queue_event_loop_blocked_seconds\{queue="work"\} (.*)$/m.exec(text);
  expect(Number(seconds![1])).toBeGreaterThanOrEqual(0.5);
  expect(text).toContain('godwit_queue_event_loop_blocked_seconds{queue="other"} 0\n');
  const { body } = await api('GET', 'overview');
  expect(body.attention).toContainEqual({
    level: 'warn',
    page: 'workers',
    text: expect.stringMatching(/^The event loop of .+ · \d+ was blocked for .+ in the last minute\.$/),
  });
  expect((await api('GET', 'workers')).body.workers).toMatchObject([{ blockedMs: expect.any(Number) }]);
  expect((await runOn(redis, 'workers')).out).toMatch(/ blocked \d+ m?s /);
  expect((await runOn(redis, 'doctor')).out).toMatch(
    /^warn +workers +the event loop of .+:\d+ was blocked for \d+ m?s in the last minute: /m,
  );
});

itOnRedis(
  'a process whose event loop is blocked is shown while it is blocked',
  async () => {
    const { app, queue } = await bootDashboard(redis);
    const child = spawn(process.execPath, [CHILD, redis.url, redis.prefix, '3', '{}'], { stdio: 'ignore' });
    const exited = once(child, 'exit');
    atEnd(async () => {
      child.kill('SIGKILL');
      await exited;
    });
    const workers = () => app.get(QueueInspector).workers();
    await until(async () => (await workers()).length === 1, { ...PATIENT, timeout: 45_000 });
    await queue.add('job', 'loop');
    // It never ends, so only the heartbeat thread can report it.
    for (const least of [500, 1_500])
      await until(async () => (await workers()).some(({ blockedMs }) => blockedMs >= least), PATIENT);
    expect((await workers())[0]).toMatchObject({ pid: child.pid, state: 'running' });
  },
  90_000,
);
