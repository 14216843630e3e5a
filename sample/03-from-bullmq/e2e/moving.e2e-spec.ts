import { type JobSnapshot, type Queue, QueueModule, getQueueToken } from 'godwit';
import { expect, test } from 'vitest';
import { bootApp } from '../../../test/support/app.js';
import { useRedis } from '../../../test/support/redis.js';
import { moveJobs } from '../moving/move-jobs.js';
import type { OldJob, OldOptions, OldState } from '../moving/old-queue.js';
import { toGodwit } from '../moving/to-godwit.js';
import { FakeOldQueue, oldJob } from './support/fake-old-queue.js';

const redis = useRedis();
const HOUR = 3_600_000;

/** A queue that nobody works on, so that what was added can be looked at. */
async function newQueue(): Promise<Queue> {
  const { get } = await bootApp({
    imports: [
      QueueModule.forRoot({ connection: redis.url, prefix: redis.prefix, role: 'producer' }),
      QueueModule.registerQueue({ name: 'audio', maxPayloadBytes: 1_000 }),
    ],
  });
  return get<Queue>(getQueueToken('audio'));
}

async function moved(given: Partial<OldJob>, state: OldState): Promise<JobSnapshot> {
  const to = await newQueue();
  const from = new FakeOldQueue({ [state]: [oldJob({ id: '1', ...given })] });
  expect(await moveJobs(from, to, { states: [state] })).toEqual({ moved: 1, left: [] });
  return (await to.get('1'))!;
}

test('waiting jobs come in their order, under their ids, more than a page of them', async () => {
  const to = await newQueue();
  const ids = Array.from({ length: 250 }, (_, i) => `job-${i}`);
  const from = new FakeOldQueue({ waiting: ids.map((id) => oldJob({ id, data: { id } })) });
  expect(await moveJobs(from, to)).toEqual({ moved: 250, left: [] });
  expect(from.jobs.waiting).toEqual([]);
  const key = `{${redis.prefix}:audio}:wait`;
  expect(await redis.admin.lrange(key, 0, -1)).toEqual(ids);
  expect(await to.get('job-7')).toMatchObject({ name: 'transcode', data: { id: 'job-7' }, state: 'waiting' });
});

test('a delayed job keeps its time, also one that waits for a retry', async () => {
  const now = Date.now();
  const first = await moved({ timestamp: now - 1_000, delay: HOUR }, 'delayed');
  expect(first).toMatchObject({ state: 'delayed', dueAt: new Date(now - 1_000 + HOUR) });
  await redis.flush();
  const retry = await moved(
    { timestamp: now - 24 * HOUR, processedOn: now - 2_000, delay: HOUR, attemptsMade: 1 },
    'delayed',
  );
  expect(retry.dueAt).toEqual(new Date(now - 2_000 + HOUR));
});

test('one whose time has come while it was moved runs at once', async () => {
  const job = await moved({ timestamp: Date.now() - 2 * HOUR, delay: HOUR }, 'delayed');
  expect(['waiting', 'delayed']).toContain(job.state);
  expect(job.dueAt === null || job.dueAt.getTime() <= Date.now()).toBe(true);
});

test('attempts are those that are left, and one where nothing was said', async () => {
  const of = async (given: Partial<OldJob>, state: OldState = 'waiting') => {
    const { attempts } = await moved(given, state);
    await redis.flush();
    return attempts;
  };
  expect(await of({})).toBe(1);
  expect(await of({ opts: { attempts: 5 }, attemptsMade: 2 })).toBe(3);
  expect(await of({ opts: { attempts: 2 }, attemptsMade: 2 })).toBe(1);
  expect(await of({ opts: { attempts: 5 }, attemptsMade: 5 }, 'failed')).toBe(5);
});

test('the waits before the attempts that are left are those of BullMQ', () => {
  const of = (backoff: OldOptions['backoff'], attemptsMade = 0) =>
    toGodwit(oldJob({ id: '1', opts: { attempts: 4, backoff }, attemptsMade }), 'waiting', 0).backoff;
  expect(of(undefined)).toBe(0);
  expect(of(5_000)).toBe(5_000);
  expect(of({ type: 'fixed', delay: 100, jitter: 0.5 })).toEqual({ type: 'fixed', delay: 100, jitter: 0.5 });
  // 1 s, 2 s, 4 s there; after one run 2 s and 4 s are left.
  expect(of({ type: 'exponential', delay: 1_000 })).toEqual({
    type: 'exponential',
    delay: 1_000,
    max: 16_000,
  });
  expect(of({ type: 'exponential', delay: 1_000 }, 1)).toEqual({
    type: 'exponential',
    delay: 2_000,
    max: 16_000,
  });
  // Longer than the hour that would be the end here by default.
  expect(of({ type: 'exponential', delay: 2 * HOUR })).toMatchObject({ max: 32 * HOUR });
  expect(of({ type: 'own-strategy', delay: 1 })).toBeUndefined();
});

test('a moved job stays known for as long as it could be moved again, or as BullMQ would have kept it', () => {
  const of = (removeOnComplete: unknown) =>
    toGodwit(oldJob({ id: '1', opts: { removeOnComplete } }), 'waiting', 60_000).retention;
  expect([of(undefined), of(true), of(100), of({ count: 5 }), of({ age: 30 })]).toEqual(
    Array(5).fill(60_000),
  );
  expect(of({ age: 3_600 })).toBe(HOUR);
});

test('a priority is the same number', async () => {
  const to = await newQueue();
  const from = new FakeOldQueue({
    prioritized: [
      oldJob({ id: 'second', opts: { priority: 7 } }),
      oldJob({ id: 'first', opts: { priority: 2 } }),
    ],
  });
  await moveJobs(from, to);
  expect(await redis.admin.zrange(`{${redis.prefix}:audio}:prioritized`, '0', '-1')).toEqual([
    'first',
    'second',
  ]);
});

test('said twice it moves nothing twice, where it was broken off after an add', async () => {
  const to = await newQueue();
  const from = new FakeOldQueue({ waiting: [oldJob({ id: '1' }), oldJob({ id: '2' })] });
  from.refuseRemoval = true;
  await expect(moveJobs(from, to)).rejects.toThrow('no more removals');
  expect(from.paused).toBe(false);
  expect(from.jobs.waiting).toHaveLength(2);
  from.refuseRemoval = false;
  expect(await moveJobs(from, to)).toEqual({ moved: 2, left: [] });
  expect(await to.counts()).toMatchObject({ waiting: 2 });
  expect(from.jobs.waiting).toEqual([]);
});

test('it pauses the old queue while it works, and leaves one that was paused so', async () => {
  const to = await newQueue();
  const from = new FakeOldQueue({ waiting: [oldJob({ id: '1' })] });
  await moveJobs(from, to);
  expect(from.acts).toEqual(['pause', 'remove 1', 'resume']);
  const paused = new FakeOldQueue({ waiting: [oldJob({ id: '2' })] });
  paused.paused = true;
  await moveJobs(paused, to);
  expect(paused.acts).toEqual(['remove 2']);
});

test('a dry run counts and changes nothing', async () => {
  const to = await newQueue();
  const from = new FakeOldQueue({ waiting: Array.from({ length: 101 }, (_, i) => oldJob({ id: `${i}` })) });
  expect(await moveJobs(from, to, { dryRun: true })).toEqual({ moved: 101, left: [] });
  expect(from.acts).toEqual([]);
  expect(await to.counts()).toMatchObject({ waiting: 0 });
});

test('what cannot be moved stays, with the reason, and the rest goes', async () => {
  const to = await newQueue();
  await to.add('something-else', { other: true }, { id: 'taken' });
  const from = new FakeOldQueue({
    waiting: [
      oldJob({ id: 'child', parentKey: 'bull:films:1' }),
      oldJob({ id: 'repeat:daily:1', repeatJobKey: 'daily' }),
      null,
      oldJob({ id: 'taken' }),
      oldJob({ id: 'large', data: { text: 'x'.repeat(2_000) } }),
      oldJob({ id: 'line\nbreak' }),
      oldJob({ id: '__proto__' }),
      oldJob({ id: 'good' }),
    ],
  });
  const { moved: count, left } = await moveJobs(from, to);
  expect(count).toBe(2);
  expect(left).toEqual([
    { id: 'child', why: 'it is part of a flow' },
    { id: 'repeat:daily:1', why: 'it belongs to a job scheduler' },
    { id: '', why: 'it has no body' },
    { id: 'taken', why: 'another job has the id "taken" here' },
    { id: 'large', why: expect.stringContaining('maxPayloadBytes') },
    { id: 'line\nbreak', why: expect.stringContaining('control character') },
  ]);
  expect(from.jobs.waiting.map((job) => job?.id)).toEqual([
    'child',
    'repeat:daily:1',
    undefined,
    'taken',
    'large',
    'line\nbreak',
  ]);
  expect(await to.get('__proto__')).toMatchObject({ name: 'transcode' });
});

test('failed jobs are moved only where they are named', async () => {
  const to = await newQueue();
  const from = new FakeOldQueue({ failed: [oldJob({ id: '1', attemptsMade: 1 })] });
  expect((await moveJobs(from, to)).moved).toBe(0);
  expect((await moveJobs(from, to, { states: ['failed'] })).moved).toBe(1);
});
