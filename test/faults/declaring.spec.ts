import { expect, it } from 'vitest';
import { freePort } from '../../tools/free-port.mjs';
import { startRedis } from '../../tools/redis.mjs';
import { atEnd } from '../support/cleanup.js';
import { bootQueue, keyOf, PATIENT, type QueueApp } from '../support/queue-app.js';
import { Reports } from '../support/hourly-report.js';
import { useRedis } from '../support/redis.js';
import { useServer } from '../support/server.js';
import { until } from '../support/wait.js';

// Registers the schedules of decorators while Redis is away, is full, or holds another type under their keys.
const server = useServer();
const redis = useRedis({ server });

const boot = (connection = redis.url) =>
  bootQueue(redis, {
    root: { connection, lease: { duration: '1s' } },
    providers: [Reports],
    watch: false,
  });
const isRegistered = ({ queue }: QueueApp) =>
  until(async () => (await queue.schedules.list()).length === 1, PATIENT);
const said = ({ logs }: QueueApp, part: string) =>
  logs.lines.filter(({ text }) => text.includes(part)).length;

it('starts without Redis, and registers the schedules once Redis is there', async () => {
  const port = await freePort();
  const app = await boot(`redis://127.0.0.1:${port}`);
  expect(await app.logs.complaint(/registered when Redis answers/)).toContain(
    "the schedules of queue 'work'",
  );
  const late = await startRedis({ private: true, port });
  atEnd(() => app.close().then(() => late.stop()));
  await isRegistered(app);
  await until(() => said(app, 'are registered now') === 1, PATIENT);
  expect(said(app, 'registered when Redis answers')).toBe(1);
  expect(said(app, "schedule 'report' of queue 'work' created")).toBe(1);
});

it('stops while Redis is away, before they were registered and after', async () => {
  const port = await freePort();
  const app = await boot(`redis://127.0.0.1:${port}`);
  const started = app.logs.lines.filter(({ text }) => text.startsWith('workers started: '));
  expect(started).toEqual([{ level: 'log', text: expect.stringMatching(/, not yet connected to Redis$/) }]);
  await app.runtime.stop();
  expect(app.runtime.state).toBe('stopped');

  const late = await startRedis({ private: true, port });
  atEnd(() => app.close().then(() => late.stop()));
  await until(() => app.runtime.start().then(() => app.queue.schedules.list()), PATIENT);
  await isRegistered(app);
  await late.stop();
  await app.runtime.stop();
  // The stop does not wait for it.
  await until(() => said(app, "withdrawing the schedules of queue 'work'") === 1, PATIENT);
  expect(app.logs.lines.filter(({ level }) => level === 'error').map(({ text }) => text)).toEqual([
    expect.stringMatching(
      /^Redis \(127\.0\.0\.1:\d+, database 0\) is not reachable yet; retrying\. Jobs start when it answers$/,
    ),
  ]);
});

it('at maxmemory they are refused with a message, and registered when there is room', async () => {
  await redis.admin.config('SET', 'maxmemory', 1);
  atEnd(() => redis.admin.config('SET', 'maxmemory', 0));
  const app = await boot();
  await app.logs.complaint(/the schedules of queue 'work' cannot be registered, retrying: .*maxmemory/);
  expect(await app.queue.schedules.list()).toEqual([]);
  await redis.admin.config('SET', 'maxmemory', 0);
  await isRegistered(app);
  await until(() => said(app, "schedule 'report' of queue 'work' created") === 1, PATIENT);
});

it('a key of another type is logged, stops nothing else, and has no effect once it is gone', async () => {
  await redis.admin.set(keyOf(redis, 'declaredSets'), 'not ours');
  const app = await boot();
  await app.logs.complaint(/the schedules of queue 'work' cannot be registered, retrying: .*WRONGTYPE/);
  expect(app.runtime.state).toBe('running');
  await redis.admin.del(keyOf(redis, 'declaredSets'));
  await isRegistered(app);
});
