import type { Type } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { Schedule, type ScheduleOptions } from '#lib/decorators/schedule.decorator.js';
import type { Job } from '#lib/job/job.js';
import type { QueueModuleOptions } from '#lib/options/module-options.js';
import { bootQueue, keyOf, Logs, PATIENT, type QueueApp, scheduleIdsOf } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { collect, until } from '../support/wait.js';
import { Subject } from 'rxjs';

const redis = useRedis();

/**
 * A short lease, so that a renewal comes soon: one every two thirds of it. A declaration lasts two leases, and must
 * outlast a stall.
 */
const LEASE = { duration: '1500ms' } as const;
const DAILY: ScheduleOptions = { id: 'daily', cron: '0 7 * * *', tz: 'Europe/Berlin' };
const HOURLY: ScheduleOptions = { id: 'hourly', every: '1h' };

/** A processor of the queue `work` whose one handler has these schedules. */
function scheduled(schedules: readonly ScheduleOptions[], run: (job: Job) => unknown = () => {}): Type {
  @Processor('work')
  class Reports {
    @Handle('report')
    report(job: Job) {
      return run(job);
    }
  }
  const { prototype } = Reports;
  const descriptor = Object.getOwnPropertyDescriptor(prototype, 'report')!;
  for (const options of schedules) Schedule(options)(prototype, 'report', descriptor);
  return Reports;
}

/** A release of the application: the schedules that its code declares. */
function release(
  schedules: readonly ScheduleOptions[],
  root: QueueModuleOptions = {},
  logs = new Logs(),
): Promise<QueueApp> {
  return bootQueue(redis, {
    root: { lease: LEASE, ...root },
    providers: [scheduled(schedules)],
    logs,
    watch: false,
  });
}

const saidOf = (logs: Logs) =>
  logs.lines.map(({ text }) => text).filter((text) => text.startsWith('schedule'));
const declarations = () => redis.admin.zcard(keyOf(redis, 'declarers'));

describe('@Schedule', () => {
  it('runs its handler at the time, with its data', async () => {
    const ran = new Subject<Job>();
    const runs = collect(ran);
    await bootQueue(redis, {
      providers: [scheduled([{ id: 'tick', every: '1s', data: { of: 'tick' } }], (job) => ran.next(job))],
      watch: false,
    });
    const [first, second] = await runs.take(2, () => true, PATIENT);
    expect(first!.data).toEqual({ of: 'tick' });
    expect(first!.id).toMatch(/^tick@\d{4}-/);
    expect(second!.id).not.toBe(first!.id);
  });

  it('has ended if its end has passed when it is created, also with immediately', async () => {
    const past = Date.now() - 1_000;
    const app = await release([{ every: '1h', immediately: true, endAt: past }]);
    expect(await app.queue.schedules.get('report')).toMatchObject({ nextAt: null, fired: 0 });
    expect(await app.queue.counts()).toMatchObject({ waiting: 0, completed: 0 });
  });

  it('is listed by queue.schedules with its options; its id is the name of the job unless it has one', async () => {
    const app = await release([
      { every: '1h', overlap: 'skip' },
      { ...DAILY, data: [1], options: { attempts: 1 } },
    ]);
    expect(await scheduleIdsOf(app)).toEqual(['daily', 'report']);
    expect(await app.queue.schedules.get('report')).toMatchObject({
      rule: { every: '1h', overlap: 'skip' },
      template: { name: 'report', data: null },
      paused: false,
      fired: 0,
      owner: 'app',
    });
    expect(await app.queue.schedules.get('daily')).toMatchObject({
      rule: { cron: '0 7 * * *', tz: 'Europe/Berlin' },
      template: { name: 'report', data: [1], options: { attempts: 1 } },
    });
  });

  it('logs what was created, updated and removed, each once', async () => {
    const first = await release([DAILY, HOURLY]);
    expect(saidOf(first.logs).toSorted()).toEqual([
      "schedule 'daily' of queue 'work' created: 0 7 * * * in Europe/Berlin",
      "schedule 'hourly' of queue 'work' created: every 1h",
    ]);
    await first.close();
    const second = await release([{ ...DAILY, cron: '0 8 * * *' }]);
    expect(saidOf(second.logs)).toEqual([
      "schedule 'daily' of queue 'work' updated: 0 8 * * * in Europe/Berlin",
      "schedule 'hourly' of queue 'work' is no longer declared by any process: removed",
    ]);
    expect(await scheduleIdsOf(second)).toEqual(['daily']);
  });

  it('changes nothing if the decorator is unchanged: counters, next time and creation time stay over a stop', async () => {
    const first = await release([{ ...HOURLY, id: 'tick', every: '1s' }]);
    await until(async () => ((await first.queue.schedules.get('tick'))?.fired ?? 0) > 0, PATIENT);
    await first.close();
    const before = await redis.admin.hgetall(keyOf(redis, 'firings'));
    const created = await redis.admin.zscore(keyOf(redis, 'scheduleOrder'), 'tick');

    // Without workers nothing fires meanwhile.
    const second = await release([{ ...HOURLY, id: 'tick', every: '1s' }], { autoStart: false });
    expect(await redis.admin.hgetall(keyOf(redis, 'firings'))).toEqual(before);
    await second.runtime.start();
    expect(saidOf(second.logs)).toEqual([]);
    const after = (await second.queue.schedules.get('tick'))!;
    expect(after.fired).toBeGreaterThanOrEqual(Number(before['tick']!.split('\n')[1]));
    expect(after.createdAt.getTime()).toBe(Number(created));
  });

  it('stays paused if a person paused it, over a stop and over a change', async () => {
    const first = await release([DAILY, HOURLY]);
    await first.queue.schedules.pause('daily');
    await first.queue.schedules.pause('hourly');
    await first.close();
    const second = await release([DAILY, { ...HOURLY, every: '2h' }]);
    expect(await second.queue.schedules.get('daily')).toMatchObject({ paused: true, nextAt: null });
    expect(await second.queue.schedules.get('hourly')).toMatchObject({ paused: true, rule: { every: '2h' } });
  });

  it('makes up for a stop of the whole application according to `missed`', async () => {
    const tick: ScheduleOptions = { id: 'tick', every: '1s', missed: 'once' };
    const first = await release([tick]);
    await until(async () => ((await first.queue.schedules.get('tick'))?.fired ?? 0) > 0, PATIENT);
    await first.close();
    const { lastAt } = (await readTick()) ?? {};
    await until(async () => (await serverNow()) > lastAt! + 2_500, PATIENT);

    const second = await release([tick]);
    const next = await until(async () => {
      const now = await second.queue.schedules.get('tick');
      return now && now.lastAt!.getTime() > lastAt! ? now : undefined;
    }, PATIENT);
    // The last one of those that were missed, not each of them.
    expect(next.lastAt!.getTime()).toBeGreaterThanOrEqual(lastAt! + 2_000);
  });

  it('is not registered by a process that only adds jobs, nor before the workers start', async () => {
    const producer = await release([DAILY], { role: 'producer' });
    expect(await scheduleIdsOf(producer)).toEqual([]);
    const later = await release([DAILY], { autoStart: false });
    expect(await scheduleIdsOf(later)).toEqual([]);
    await later.runtime.start();
    expect(await scheduleIdsOf(later)).toEqual(['daily']);
    // Nor does it remove what others declare.
    await later.close();
    await release([], { role: 'producer' });
    expect(await scheduleIdsOf(producer)).toEqual(['daily']);
  });

  it('leaves nothing in Redis and sends no calls if no handler has a schedule', async () => {
    await release([]);
    const kinds = (await redis.keys()).map((key) => key.replace(/^\{.*\}:/, ''));
    expect(kinds.filter((kind) => /declar|schedule/.test(kind))).toEqual([]);
  });
});

describe('several processes', () => {
  it('ten that start at once create one, and log that once', async () => {
    const logs = new Logs();
    const apps = await Promise.all(Array.from({ length: 10 }, () => release([DAILY, HOURLY], {}, logs)));
    expect(await scheduleIdsOf(apps[0]!)).toEqual(['daily', 'hourly']);
    expect(saidOf(logs).toSorted()).toEqual([
      expect.stringContaining("'daily' of queue 'work' created"),
      expect.stringContaining("'hourly' of queue 'work' created"),
    ]);
    expect(await declarations()).toBe(10);
    await Promise.all(apps.map((app) => app.close()));
    expect(await declarations()).toBe(0);
  });

  it('two releases at once do not remove schedules of each other; those of only the old one go with its last process', async () => {
    const logs = new Logs();
    const [old, older] = [await release([DAILY, HOURLY], {}, logs), await release([DAILY, HOURLY], {}, logs)];
    const next = await release([DAILY, { ...HOURLY, id: 'new' }], {}, logs);
    const restarted = await release([DAILY, HOURLY], {}, logs);
    expect(await scheduleIdsOf(next)).toEqual(['daily', 'hourly', 'new']);
    await old.close();
    await older.close();
    // The renewals of both come in different calls.
    await renewals(2);
    expect(await scheduleIdsOf(next)).toEqual(['daily', 'hourly', 'new']);
    await restarted.close();
    await until(async () => !(await scheduleIdsOf(next)).includes('hourly'), PATIENT);
    expect(await scheduleIdsOf(next)).toEqual(['daily', 'new']);
    expect(saidOf(logs).filter((text) => text.includes('removed'))).toEqual([
      "schedule 'hourly' of queue 'work' is no longer declared by any process: removed",
    ]);
  });

  it('a release gets its own rule back once the release that changed the rule is gone', async () => {
    const stays = await release([HOURLY]);
    const tried = await release([{ ...HOURLY, every: '2h' }]);
    expect(await stays.queue.schedules.get('hourly')).toMatchObject({ rule: { every: '2h' } });
    await tried.close();
    await until(async () => {
      const { rule } = (await stays.queue.schedules.get('hourly'))!;
      return rule !== null && 'every' in rule && rule.every === '1h';
    }, PATIENT);
  });

  it('one without schedules removes those of the previous release, and then checks no more', async () => {
    const old = await release([HOURLY]);
    const next = await release([]);
    await renewals(1);
    expect(await scheduleIdsOf(next)).toEqual(['hourly']);
    await old.close();
    await until(async () => (await scheduleIdsOf(next)).length === 0, PATIENT);
    expect(await declarations()).toBe(0);
  });

  it('of another owner are not affected, also when they are gone', async () => {
    const shop = await release([HOURLY], { schedules: { owner: 'shop' } });
    await shop.close();
    const app = await release([DAILY]);
    await renewals(1);
    expect(await scheduleIdsOf(app)).toEqual(['daily', 'hourly']);
    expect((await app.queue.schedules.get('hourly'))?.owner).toBe('shop');
  });

  it('of another owner keep a schedule that both declare, while they live', async () => {
    const shop = await release([{ ...HOURLY, every: '2h' }], { schedules: { owner: 'shop' } });
    const app = await release([HOURLY]);
    expect(app.logs.complaints.filter((text) => text.startsWith('schedule'))).toEqual([
      "schedule 'hourly' of queue 'work' is declared by a live process of another owner; " +
        '@Schedule("hourly") of Reports.report was not registered',
    ]);
    expect(await shop.queue.schedules.get('hourly')).toMatchObject({ rule: { every: '2h' }, owner: 'shop' });
  });

  it('start and stop by hand: each start declares again', async () => {
    const app = await release([HOURLY]);
    await app.runtime.stop();
    expect(await declarations()).toBe(0);
    expect(await scheduleIdsOf(app)).toEqual(['hourly']);
    await app.queue.schedules.remove('hourly');
    await app.runtime.start();
    expect(await scheduleIdsOf(app)).toEqual(['hourly']);
    expect(await declarations()).toBe(1);
  });
});

describe('changes by a person', () => {
  const BY_HAND = { every: '3h' } as const;

  it('a schedule made with upsert is never touched', async () => {
    const first = await release([DAILY]);
    await first.queue.schedules.upsert('mine', BY_HAND, { name: 'report' });
    await first.close();
    const second = await release([]);
    expect(await scheduleIdsOf(second)).toEqual(['mine']);
    expect((await second.queue.schedules.get('mine'))?.owner).toBeNull();
  });

  it('upsert over one of a decorator takes it over: it is neither changed nor removed, and that is logged', async () => {
    const first = await release([HOURLY]);
    expect((await first.queue.schedules.upsert('hourly', BY_HAND, { name: 'report' })).outcome).toBe(
      'updated',
    );
    await first.close();
    const second = await release([HOURLY]);
    expect(await second.queue.schedules.get('hourly')).toMatchObject({ rule: BY_HAND, owner: null });
    expect(second.logs.complaints.filter((text) => text.startsWith('schedule'))).toEqual([
      "schedule 'hourly' of queue 'work' was created with schedules.upsert(), so @Schedule(\"hourly\") of Reports.report " +
        'was not registered; remove it with schedules.remove(), or give the decorator another id',
    ]);
    await second.close();
    expect(await scheduleIdsOf(await release([DAILY]))).toEqual(['daily', 'hourly']);
  });

  it('one that was removed by hand is gone until a process starts', async () => {
    const first = await release([HOURLY]);
    await first.queue.schedules.remove('hourly');
    await renewals(2);
    expect(await scheduleIdsOf(first)).toEqual([]);
    expect(await scheduleIdsOf(await release([HOURLY]))).toEqual(['hourly']);
  });

  it('obliterate removes the declarations too; living processes declare again', async () => {
    const app = await release([HOURLY]);
    await app.queue.obliterate();
    await until(async () => (await scheduleIdsOf(app)).length === 1, PATIENT);
    expect(await declarations()).toBe(1);
  });
});

/** Resolves once every declaration was renewed this many times. */
async function renewals(times: number): Promise<void> {
  const key = keyOf(redis, 'declarers');
  for (let i = 0; i < times; i++) {
    const before = new Map(pairs(await redis.admin.zrange(key, '0', '-1', 'WITHSCORES')));
    // oxlint-disable-next-line no-await-in-loop
    await until(async () => {
      const now = pairs(await redis.admin.zrange(key, '0', '-1', 'WITHSCORES'));
      return now.every(([who, ends]) => Number(ends) > Number(before.get(who) ?? 0));
    }, PATIENT);
  }
}

function pairs(flat: string[]): [string, string][] {
  return Array.from({ length: flat.length / 2 }, (_, i) => [flat[i * 2]!, flat[i * 2 + 1]!]);
}

async function readTick(): Promise<{ lastAt: number } | undefined> {
  const state = await redis.admin.hget(keyOf(redis, 'firings'), 'tick');
  return state === null ? undefined : { lastAt: Number(state.split('\n')[2]) };
}

async function serverNow(): Promise<number> {
  const [seconds = 0, micros = 0] = await redis.admin.time();
  return seconds * 1000 + Math.floor(micros / 1000);
}
