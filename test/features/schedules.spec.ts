import { describe, expect, it } from 'vitest';
import type { Job } from '#lib/job/job.js';
import type { ScheduleRule } from '#lib/options/schedule-options.js';
import { bootQueue, keyOf, Logs, PATIENT, type QueueApp } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';

const redis = useRedis();
const HOUR = 3_600_000;
const MINUTE = 60_000;

const handlers = { tick: () => undefined };
/** Ids of the jobs that were made, in their order. */
const made = (app: QueueApp) =>
  app.said.values.filter(({ type }) => type === 'added' || type === 'delayed').map(({ jobId }) => jobId!);
const iso = (ms: number) => new Date(ms).toISOString();

/** An interval of an hour whose last occurrence was half an hour ago. */
function hourly(now = Date.now()): { rule: ScheduleRule; at: (hoursAgo: number) => number } {
  const last = Math.floor(now / 1000) * 1000 - 30 * MINUTE;
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

  it('does not wait for runs: also while every slot is taken', async () => {
    const gate = latch('the end of the runs');
    const app = await bootQueue(redis, { handlers: { hold: () => gate.promise }, concurrency: 1 });
    await app.queue.schedules.upsert('beat', { every: '1s' }, { name: 'hold' });
    await until(() => made(app).length >= 4, PATIENT);
    expect(app.said.values.filter(({ type }) => type === 'active')).toHaveLength(1);
    await app.queue.schedules.remove('beat');
    gate.open();
  });

  it('is known to a process all of whose slots are taken, though the schedule is made elsewhere', async () => {
    const gate = latch('the end of the run');
    const logs = new Logs();
    const busy = await bootQueue(redis, { handlers: { hold: () => gate.promise }, concurrency: 1, logs });
    const { id } = await busy.queue.add('hold', null);
    await busy.said.first(({ type, jobId }) => type === 'active' && jobId === id, PATIENT);
    const other = await bootQueue(redis, { root: { role: 'producer' }, watch: false, logs });
    await other.queue.schedules.upsert('beat', { every: '1s' }, { name: 'hold' });
    await busy.said.first(({ jobId }) => jobId!.startsWith('beat@'), PATIENT);
    await other.queue.schedules.remove('beat');
    gate.open();
  });

  it('spreads jobs by jitter, each by what its id says', async () => {
    const app = await bootQueue(redis, { handlers });
    const rule = { every: '1s', jitter: '1h' } as const;
    await app.queue.schedules.upsert('spread', rule, { name: 'tick' });
    const [first, second] = await app.said.take(2, ({ type }) => type === 'delayed', PATIENT);
    await app.queue.schedules.remove('spread');
    const delay = async (id: string) => {
      const { dueAt } = (await app.queue.get(id))!;
      return dueAt!.getTime() - Date.parse(id.split('@')[1]!);
    };
    const delays = [await delay(first!.jobId!), await delay(second!.jobId!)];
    for (const one of delays) expect(one).toBeLessThan(HOUR);
    expect(delays[0]).not.toBe(delays[1]);
  });

  it('goes on past a record that cannot be read, and says so once', async () => {
    const app = await bootQueue(redis, { handlers });
    const { nextAt } = await app.queue.schedules.upsert('beat', { every: '1s' }, { name: 'tick' });
    const records = keyOf(redis, 'schedule');
    await redis.admin.hset(records, 'hand', '{"cron":"* * * * *"}', 'newer', '{"v":2}');
    await redis.admin.zadd(keyOf(redis, 'schedules'), 1, 'hand', nextAt!.getTime(), 'newer');
    await until(() => made(app).length >= 3, PATIENT);
    await app.queue.schedules.remove('beat');
    const said = app.logs.complaints.filter((text) => text.includes('cannot be read here'));
    expect(said.map((text) => /schedule "(\w+)"/.exec(text)![1]).toSorted()).toEqual(['hand', 'newer']);
  });
});
