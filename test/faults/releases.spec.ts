import { describe, expect, it } from 'vitest';
import type { ScheduleOptions } from '#lib/decorators/schedule.decorator.js';
import { spawnApp, type AppProcess } from './support/spawn.js';
import { bootQueue, keyOf, PATIENT, scheduleIdsOf } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { useServer } from '../support/server.js';
import { until } from '../support/wait.js';

// Releases of an application as separate processes that start, overlap and end as in a deployment.
const server = useServer();
// The state that a killed process leaves in Redis.
const redis = useRedis({ server, leaves: ['declarers', 'active', 'worker', 'workers'] });

type Declared = ScheduleOptions & { readonly name: string };

/** Declarations live twice as long. That is enough for a process that starts slowly because of others. */
const LEASE_MS = 2_000;
// None of them fires during a test: it compares what is stored before and after.
const ANNUAL: Declared = { id: 'annual', name: 'quick', cron: '0 7 1 1 *' };
const LEAP: Declared = { id: 'leap', name: 'quick', every: '1461d' };
const NEW: Declared = { id: 'new', name: 'quick', every: '1000d' };

const start = (schedules: readonly Declared[]): Promise<AppProcess> =>
  spawnApp({
    root: {
      connection: redis.url,
      prefix: redis.prefix,
      lease: { duration: LEASE_MS },
      shutdown: { timeout: '3s', grace: '100ms' },
    },
    concurrency: 1,
    schedules,
  });

/** An application that only reads. */
const observe = () => bootQueue(redis, { root: { role: 'producer' }, watch: false });
const saidOf = (apps: readonly AppProcess[]) =>
  apps
    .flatMap((app) => app.all('log'))
    .map(({ text }) => text)
    .filter((text) => text.startsWith('schedule '));

async function stop(app: AppProcess): Promise<void> {
  app.kill('SIGTERM');
  await app.exit();
}

// Each test starts processes, perhaps beside many others.
describe('releases', { timeout: 180_000 }, () => {
  it('ten instances that start at once create each schedule once, and each occurrence runs once', async () => {
    const tick: Declared = { id: 'tick', name: 'quick', every: '1s' };
    const apps = await Promise.all(Array.from({ length: 10 }, () => start([ANNUAL, tick])));
    const app = await observe();
    expect(await scheduleIdsOf(app)).toEqual(['annual', 'tick']);
    expect(saidOf(apps).toSorted()).toEqual([
      "schedule 'annual' of queue 'work' created: 0 7 1 1 * in UTC",
      "schedule 'tick' of queue 'work' created: every 1s",
    ]);
    await until(async () => (await app.queue.schedules.get('tick'))!.fired >= 3, PATIENT);
    const ran = () => apps.flatMap((one) => one.all('started')).map(({ id }) => id);
    // A process that is told to stop may give back a job that it has claimed.
    await until(() => ran().length >= 3, PATIENT);
    await Promise.all(apps.map(stop));
    expect(new Set(ran()).size).toBe(ran().length);
  });

  it('a rolling restart: the schedules of both releases exist throughout, and those of the old one are removed at the end', async () => {
    const app = await observe();
    const old = await Promise.all([start([ANNUAL, LEAP]), start([ANNUAL, LEAP])]);
    await app.queue.schedules.pause('annual');
    const next: AppProcess[] = [];
    for (const one of old) {
      // oxlint-disable-next-line no-await-in-loop
      next.push(await start([ANNUAL, NEW]));
      // oxlint-disable-next-line no-await-in-loop
      expect(await scheduleIdsOf(app)).toEqual(['annual', 'leap', 'new']);
      // oxlint-disable-next-line no-await-in-loop
      await stop(one);
    }
    await until(async () => !(await scheduleIdsOf(app)).includes('leap'), PATIENT);
    expect(await scheduleIdsOf(app)).toEqual(['annual', 'new']);
    expect((await app.queue.schedules.get('annual'))!.paused).toBe(true);
    const said = (what: string) => saidOf([...old, ...next]).filter((text) => text.includes(what));
    // A process reports after it has acted.
    await until(() => said('removed').length > 0, PATIENT);
    expect(said('removed')).toEqual([
      "schedule 'leap' of queue 'work' is no longer declared by any process: removed",
    ]);
    expect(said('created')).toHaveLength(3);
    await Promise.all(next.map(stop));
    expect(await scheduleIdsOf(app)).toEqual(['annual', 'new']);
  });

  it('a release that is killed counts as gone after two leases; the next one then removes what only it had', async () => {
    const app = await observe();
    const old = await start([ANNUAL, LEAP]);
    old.kill('SIGKILL');
    await old.exit();
    const [, ends] = await redis.admin.zrange(keyOf(redis, 'declarers'), '0', '-1', 'WITHSCORES');
    const next = await start([ANNUAL]);
    expect(await scheduleIdsOf(app)).toContain('annual');
    await until(async () => !(await scheduleIdsOf(app)).includes('leap'), PATIENT);
    const [seconds = 0, micros = 0] = await redis.admin.time();
    expect(seconds * 1_000 + micros / 1_000).toBeGreaterThan(Number(ends));
    // A process reports after it has acted.
    await until(() => saidOf([next]).length > 0, PATIENT);
    expect(saidOf([next])).toEqual([
      "schedule 'leap' of queue 'work' is no longer declared by any process: removed",
    ]);
    await stop(next);
  });

  it('a release that is killed and restarted unchanged finds everything unchanged', async () => {
    const app = await observe();
    const old = await start([ANNUAL, LEAP]);
    const before = await redis.admin.hgetall(keyOf(redis, 'firings'));
    old.kill('SIGKILL');
    await old.exit();
    const next = await start([ANNUAL, LEAP]);
    // After the declaration of the killed process has expired.
    await until(async () => (await redis.admin.zcard(keyOf(redis, 'declarers'))) === 1, PATIENT);
    expect(await redis.admin.hgetall(keyOf(redis, 'firings'))).toEqual(before);
    expect(await scheduleIdsOf(app)).toEqual(['annual', 'leap']);
    expect(saidOf([next])).toEqual([]);
    await stop(next);
  });

  it('a process that was stopped for longer than its declaration declares again when it continues', async () => {
    const app = await observe();
    const [frozen, other] = [await start([ANNUAL, LEAP]), await start([ANNUAL])];
    frozen.kill('SIGSTOP');
    await until(async () => !(await scheduleIdsOf(app)).includes('leap'), PATIENT);
    frozen.kill('SIGCONT');
    await until(async () => (await scheduleIdsOf(app)).includes('leap'), PATIENT);
    expect(await scheduleIdsOf(app)).toEqual(['annual', 'leap']);
    await Promise.all([stop(frozen), stop(other)]);
  });

  it('Redis that is stopped for longer than declarations live loses nothing', async () => {
    const app = await observe();
    const [one, two] = [await start([ANNUAL, LEAP]), await start([ANNUAL, NEW])];
    const before = await redis.admin.hgetall(keyOf(redis, 'firings'));
    await redis.admin.call('DEBUG', 'SLEEP', String((LEASE_MS * 3) / 1_000));
    const late = await redis.admin.zrange(keyOf(redis, 'declarers'), '0', '-1', 'WITHSCORES');
    // Every process has renewed its declaration since.
    await until(async () => {
      const now = await redis.admin.zrange(keyOf(redis, 'declarers'), '0', '-1', 'WITHSCORES');
      return now.length === 4 && [1, 3].every((i) => Number(now[i]) > Number(late[3]));
    }, PATIENT);
    expect(await scheduleIdsOf(app)).toEqual(['annual', 'leap', 'new']);
    expect(await redis.admin.hgetall(keyOf(redis, 'firings'))).toEqual(before);
    await Promise.all([stop(one), stop(two)]);
  });
});
