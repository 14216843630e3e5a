import { describe, expect, it } from 'vitest';
import type { Job } from '#lib/job/job.js';
import type { ScheduleRule } from '#lib/options/schedule-options.js';
import {
  bootQueue,
  describeOnRedis,
  itOnRedis,
  keyOf,
  Logs,
  PATIENT,
  type QueueApp,
} from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';

const redis = useRedis();
const HOUR = 3_600_000;
const MINUTE = 60_000;

const handlers = { tick: () => undefined };
/** Ids of the jobs that were made, in order. */
const made = (app: QueueApp) =>
  app.said.values.filter(({ type }) => type === 'added' || type === 'delayed').map(({ jobId }) => jobId!);
const iso = (ms: number) => new Date(ms).toISOString();

/** An interval of an hour whose last occurrence was half an hour ago. */
function hourly(): { rule: ScheduleRule; at: (hoursAgo: number) => number } {
  const last = Math.floor(Date.now() / 1000) * 1000 - 30 * MINUTE;
  return { rule: { every: '1h', startAt: last - 100 * HOUR }, at: (hoursAgo) => last - hoursAgo * HOUR };
}

describe('firing', () => {
  it('makes one job for each occurrence, however many processes serve the queue', async () => {
    const logs = new Logs();
    const apps = [];
    for (let i = 0; i < 3; i++) apps.push(await bootQueue(redis, { handlers, logs, watch: i === 0 }));
    const { queue, said } = apps[0]!;
    const rule = { every: '1s', missed: 'all' } as const;
    const { nextAt } = await queue.schedules.upsert('beat', rule, { name: 'tick', data: { of: 'beat' } });
    expect(nextAt!.getTime() % 1000).toBe(0);
    await said.take(4, ({ type }) => type === 'completed', PATIENT);
    await queue.schedules.remove('beat');
    const ids = made(apps[0]!);
    expect(ids).toEqual(ids.map((_, i) => `beat@${iso(nextAt!.getTime() + i * 1000)}`));
    const added = said.values.filter(({ type }) => type === 'added');
    expect(added[0]).toMatchObject({ name: 'tick' });
    for (const [i, { at }] of added.entries())
      expect(at.getTime()).toBeGreaterThanOrEqual(nextAt!.getTime() + i * 1000);
    expect(logs.complaints.filter((text) => text.includes('schedule'))).toEqual([]);
  });

  it('makes jobs by cron to the second, with the data and options of the template', async () => {
    const jobs: Job[] = [];
    const app = await bootQueue(redis, { handlers: { tick: (job) => void jobs.push(job) } });
    const options = { attempts: 1, retention: '1m', priority: 3 } as const;
    const template = { name: 'tick', data: { a: ['ü', 1] }, options };
    await app.queue.schedules.upsert('secondly', { cron: '* * * * * *' }, template);
    const { jobId } = await app.said.first(({ type }) => type === 'completed', PATIENT);
    const snapshot = await app.queue.get(jobId!);
    expect(jobs[0]!.data).toEqual({ a: ['ü', 1] });
    expect(snapshot).toMatchObject({ state: 'completed', attempts: 1, data: { a: ['ü', 1] } });
    expect(jobId).toMatch(/^secondly@\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.000Z$/);
    expect(await app.queue.schedules.get('secondly')).toMatchObject({ paused: false, ended: false });
    await app.queue.schedules.remove('secondly');
  });

  it('does not wait for runs, also while every slot is taken', async () => {
    const gate = latch('the end of the runs');
    const app = await bootQueue(redis, { handlers: { hold: () => gate.promise }, concurrency: 1 });
    await app.queue.schedules.upsert('beat', { every: '1s' }, { name: 'hold' });
    await until(() => made(app).length >= 4, PATIENT);
    expect(app.said.values.filter(({ type }) => type === 'active')).toHaveLength(1);
    await app.queue.schedules.remove('beat');
    gate.open();
  });

  it('also works in a process whose slots are all taken, for a schedule created elsewhere', async () => {
    const gate = latch('the end of the run');
    const logs = new Logs();
    const busy = await bootQueue(redis, { handlers: { hold: () => gate.promise }, concurrency: 1, logs });
    const { id } = await busy.queue.add('hold', null);
    await busy.said.first(({ type, jobId }) => type === 'active' && jobId === id, PATIENT);
    const other = await bootQueue(redis, { root: { role: 'producer' }, watch: false, logs });
    await other.queue.schedules.upsert('beat', { every: '1s' }, { name: 'hold' });
    const { type } = await busy.said.first(({ jobId }) => jobId!.startsWith('beat@'), PATIENT);
    expect(type).toBe('added');
    await other.queue.schedules.remove('beat');
    gate.open();
  });

  it('spreads jobs by jitter, each by its id', async () => {
    const app = await bootQueue(redis, { handlers });
    // So long that neither of two jobs is due before the test has looked at it.
    const rule = { every: '1s', jitter: '24h' } as const;
    await app.queue.schedules.upsert('spread', rule, { name: 'tick' });
    const [first, second] = await app.said.take(2, ({ type }) => type === 'delayed', PATIENT);
    await app.queue.schedules.remove('spread');
    const delay = async (id: string) => {
      const { dueAt } = (await app.queue.get(id))!;
      return dueAt!.getTime() - Date.parse(id.split('@')[1]!);
    };
    const delays = [await delay(first!.jobId!), await delay(second!.jobId!)];
    for (const one of delays) expect(one).toBeLessThan(24 * HOUR);
    expect(delays[0]).not.toBe(delays[1]);
  });

  itOnRedis('goes on past a record that cannot be read, and says so once', async () => {
    const app = await bootQueue(redis, { handlers });
    const { nextAt } = await app.queue.schedules.upsert('beat', { every: '1s' }, { name: 'tick' });
    const records = keyOf(redis, 'schedules');
    await redis.admin.hset(records, 'hand', '{"cron":"* * * * *"}', 'newer', '{"v":2}');
    await redis.admin.zadd(keyOf(redis, 'upcoming'), 1, 'hand', nextAt!.getTime(), 'newer');
    await until(() => made(app).length >= 3, PATIENT);
    await app.queue.schedules.remove('beat');
    const said = app.logs.complaints.filter((text) => text.includes('cannot read its record'));
    const ids = said.map((text): string => /schedule "(\w+)"/.exec(text)![1]!);
    expect(ids.toSorted()).toEqual(['hand', 'newer']);
  });
});

describeOnRedis('what was missed while no process was there', () => {
  /** A schedule whose application was down for 5.5 hours, and comes back. */
  async function afterStop(more: Partial<ScheduleRule>) {
    const logs = new Logs();
    const before = await bootQueue(redis, { handlers, logs, watch: false });
    const { rule, at } = hourly();
    await before.queue.schedules.upsert('hourly', { ...rule, ...more } as ScheduleRule, { name: 'tick' });
    await before.close();
    // The record in Redis if no process ran since.
    await redis.admin.zadd(keyOf(redis, 'upcoming'), at(5), 'hourly');
    const after = await bootQueue(redis, { handlers, logs });
    await until(
      async () => (await after.queue.schedules.get('hourly'))!.nextAt!.getTime() === at(-1),
      PATIENT,
    );
    const { fired } = (await after.queue.schedules.get('hourly'))!;
    await until(() => made(after).length === fired, PATIENT);
    return { made: made(after).map((id) => id.split('@')[1]), at: (hoursAgo: number) => iso(at(hoursAgo)) };
  }

  it('is made up once, for the last occurrence, by default', async () => {
    const { made: ids, at } = await afterStop({});
    expect(ids).toEqual([at(0)]);
  });

  it('is not made up with skip', async () => {
    expect((await afterStop({ missed: 'skip' })).made).toEqual([]);
  });

  it('is made up for each with all', async () => {
    const { made: ids, at } = await afterStop({ missed: 'all' });
    expect(ids).toEqual([5, 4, 3, 2, 1, 0].map(at));
  });

  it('is made up with all for the last maxMissed, if there are more', async () => {
    const { made: ids, at } = await afterStop({ missed: 'all', maxMissed: 2 });
    expect(ids).toEqual([1, 0].map(at));
  });
});

describe('a run that is not over when the next occurrence comes', () => {
  it('continues with skip: no other job is added until it has ended', async () => {
    const gate = latch('the end of the run');
    const app = await bootQueue(redis, { handlers: { hold: () => gate.promise } });
    await app.queue.schedules.upsert('beat', { every: '1s', overlap: 'skip' }, { name: 'hold' });
    const first = await app.said.first(({ type }) => type === 'active', PATIENT);
    const nextAt = async () => (await app.queue.schedules.get('beat'))!.nextAt!.getTime();
    const then = await nextAt();
    await until(async () => (await nextAt()) >= then + 2_000, PATIENT);
    expect(made(app)).toEqual([first.jobId]);
    gate.open();
    await until(() => made(app).length >= 2, PATIENT);
    await app.queue.schedules.remove('beat');
  });

  it('is cancelled with replace, and one that waits is removed', async () => {
    const aborted: string[] = [];
    const hold = (job: Job) =>
      new Promise<void>((_, reject) => {
        job.signal.addEventListener('abort', () => {
          aborted.push(job.id);
          reject(job.signal.reason as Error);
        });
      });
    const root = { lease: { duration: '1s' } };
    const app = await bootQueue(redis, { handlers: { hold }, concurrency: 1, root });
    await app.queue.schedules.upsert('beat', { every: '1s', overlap: 'replace' }, { name: 'hold' });
    const first = await app.said.first(({ type }) => type === 'active', PATIENT);
    const end = await app.ended(first.jobId!);
    expect(end).toMatchObject({ type: 'cancelled', reason: 'replaced' });
    expect(aborted[0]).toBe(first.jobId);
    await app.queue.schedules.remove('beat');

    await app.queue.pause();
    await app.queue.schedules.upsert('waits', { every: '1s', overlap: 'replace' }, { name: 'hold' });
    // A job of the schedule before may have waited too, while the run that it replaced was about to end.
    const removed = await app.said.first(
      ({ type, jobId }) => type === 'removed' && jobId!.startsWith('waits@'),
      PATIENT,
    );
    expect(removed).toMatchObject({ reason: 'replaced', name: 'hold' });
    await app.queue.schedules.remove('waits');
  });
});
