import { describe, expect, test } from 'vitest';
import { useRedis } from '../../../test/support/redis.js';
import { useServer } from '../../../test/support/server.js';
import { until } from '../../../test/support/wait.js';
import { moveJobs } from '../moving/move-jobs.js';
import { type Major, newSide, oldQueue, oldWorker } from './support/rig.js';

const server = useServer();
const redis = useRedis({ server, rights: 'all' });
const PATIENT = { timeout: 15_000 };
const HOUR = 3_600_000;

describe.each<Major>([5, 6])('from BullMQ %i', (major) => {
  test('jobs that wait, wait with a priority, or for their time end up handled here, each once', async () => {
    const from = oldQueue(major, server.url);
    const waiting = await from.addBulk(
      Array.from({ length: 230 }, (_, i) => ({ name: 'transcode', data: { file: `${i}.mp3` } })),
    );
    const urgent = await from.add('transcode', { file: 'urgent.mp3' }, { priority: 3 });
    const soon = await from.add('transcode', { file: 'soon.mp3' }, { delay: 1_000 });
    const late = await from.add('transcode', { file: 'late.mp3' }, { delay: HOUR, jobId: 'late' });
    const { audio, runs } = await newSide(redis);

    expect(await moveJobs(from, audio)).toEqual({ moved: 233, left: [] });
    expect(await from.getJobCounts()).toMatchObject({ waiting: 0, prioritized: 0, delayed: 0 });
    const expected = [...waiting.map(({ id }) => id!), urgent.id!, soon.id!];
    await until(() => runs.length >= expected.length, PATIENT);
    expect(new Set(runs)).toEqual(new Set(expected));
    expect(runs).toHaveLength(expected.length);
    expect(await audio.get('late')).toMatchObject({
      state: 'delayed',
      dueAt: new Date(late.timestamp + HOUR),
      attempts: 1,
    });
    // Nothing is left to move, and moving the same again would run nothing again.
    expect(await moveJobs(from, audio)).toEqual({ moved: 0, left: [] });
  });

  test('old workers that go on meanwhile run what is not moved: each job once, here or there', async () => {
    const from = oldQueue(major, server.url);
    const ids = (
      await from.addBulk(Array.from({ length: 600 }, () => ({ name: 'transcode', data: null })))
    ).map(({ id }) => id!);
    const { audio, runs } = await newSide(redis);
    const old: string[] = [];
    oldWorker(major, server.url, async (id) => {
      old.push(id);
    });
    await until(() => old.length > 20, PATIENT);
    const { left } = await moveJobs(from, audio);
    expect(left).toEqual([]);
    await until(() => old.length + runs.length >= ids.length, PATIENT);
    expect([...old, ...runs].toSorted()).toEqual(ids.toSorted());
    expect(await from.isPaused()).toBe(false);
  });

  test('a failed job goes on with the attempts it has left, one that failed for good only when asked', async () => {
    const from = oldQueue(major, server.url);
    const retried = await from.add('transcode', {}, { attempts: 4, backoff: { type: 'fixed', delay: HOUR } });
    const failed = await from.add('transcode', {}, { attempts: 1 });
    const worker = oldWorker(major, server.url, () => {
      throw new Error('no such codec');
    });
    await until(
      async () => (await from.getFailedCount()) === 1 && (await from.getDelayedCount()) === 1,
      PATIENT,
    );
    await worker.close();
    const { audio } = await newSide(redis, 'producer');
    expect(await moveJobs(from, audio)).toEqual({ moved: 1, left: [] });
    const job = await audio.get(retried.id!);
    expect(job).toMatchObject({ state: 'delayed', attempts: 3 });
    expect(Math.abs(job!.dueAt!.getTime() - Date.now() - HOUR)).toBeLessThan(60_000);
    expect(await audio.get(failed.id!)).toBeNull();
    expect((await moveJobs(from, audio, { states: ['failed'] })).moved).toBe(1);
    expect(await audio.get(failed.id!)).toMatchObject({ state: 'waiting', attempts: 1 });
  });

  test('what job schedulers made stays; the scheduler is removed, and declared here', async () => {
    const from = oldQueue(major, server.url);
    await from.upsertJobScheduler('daily', { pattern: '0 7 * * *' }, { name: 'report' });
    const { audio } = await newSide(redis, 'producer');
    const { moved, left } = await moveJobs(from, audio);
    expect(moved).toBe(0);
    expect(left).toEqual([expect.objectContaining({ why: 'it belongs to a job scheduler' })]);
    expect(await from.removeJobScheduler('daily')).toBe(true);
    expect(await from.getDelayedCount()).toBe(0);
  });

  test('both run on one Redis with their default prefixes, and neither touches the keys of the other', async () => {
    const { audio, runs } = await newSide({ url: server.url, prefix: redis.prefix });
    const from = oldQueue(major, server.url);
    await from.add('transcode', {}, { delay: HOUR });
    const old = async () => (await redis.admin.keys('bull:*')).toSorted();
    const before = await old();
    await audio.add('transcode', {}, { id: 'mine' });
    await until(() => runs.includes('mine'), PATIENT);
    await audio.obliterate({ force: true });
    expect(await old()).toEqual(before);
    const all = await redis.admin.keys('*');
    expect(all.filter((key) => !key.startsWith('bull:') && !key.includes(redis.prefix))).toEqual([]);
  });
});
