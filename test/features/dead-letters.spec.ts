import { describe, expect, it } from 'vitest';
import { UnrecoverableError } from '#lib/errors.js';
import type { Job } from '#lib/job/job.js';
import {
  bootQueue,
  brief,
  keyOf,
  PATIENT,
  type Handlers,
  type QueueApp,
  describeOnRedis,
  itOnRedis,
} from '../support/queue-app.js';
import { die, refused } from '../support/queue-states.js';
import { useRedis } from '../support/redis.js';
import { until } from '../support/wait.js';

const redis = useRedis();

const unrecoverable = () => {
  throw new UnrecoverableError('no such thing');
};

/** Jobs that died in this order. The queue is paused then, and their ids are their positions. */
async function withDead(app: QueueApp, ...names: string[]): Promise<void> {
  for (const [i, name] of names.entries()) {
    await app.queue.add(name, { n: i }, { id: String(i) });
    await app.ended(String(i));
  }
  await app.queue.pause();
}

const boot = () =>
  bootQueue(redis, {
    handlers: { die, unrecoverable },
    queue: { defaults: { attempts: 1 }, unknownJob: 'dead' },
    concurrency: 1,
  });

/** As if the job had died this long ago. */
async function age(id: string, ms: number): Promise<void> {
  await redis.admin.zadd(keyOf(redis, 'dead'), Date.now() - ms, id);
}

describe('every dead letter with its reason', () => {
  it('is listed, the oldest first, and stays', async () => {
    const app = await boot();
    const { queue } = app;
    await withDead(app, 'die', 'unrecoverable', 'nobody');
    const { jobs, cursor } = await queue.dead.list();
    expect(cursor).toBeNull();
    expect(jobs).toMatchObject([
      { id: '0', name: 'die', data: { n: 0 }, reason: 'retries-exhausted', attempt: 1, attempts: 1 },
      { id: '1', name: 'unrecoverable', reason: 'unrecoverable', failure: { message: 'no such thing' } },
      { id: '2', name: 'nobody', reason: 'no-handler', attempt: 0, failure: { name: 'UnrunnableJob' } },
    ]);
    const ends = await Promise.all(['0', '1', '2'].map(async (id) => (await queue.get(id))?.endedAt));
    expect(jobs.map(({ diedAt }) => diedAt)).toEqual(ends);
    expect(await queue.counts()).toMatchObject({ dead: 3 });
    expect(await queue.dead.list()).toEqual({ jobs, cursor: null });
  });

  itOnRedis('is found by reason, name and age', async () => {
    const app = await boot();
    const { dead } = app.queue;
    await withDead(app, 'die', 'unrecoverable', 'die', 'nobody');
    await age('0', 3_600_000);
    const ids = async (filter: Parameters<typeof dead.list>[0]) =>
      (await dead.list(filter)).jobs.map(({ id }) => id);
    expect(await ids({ reason: 'retries-exhausted' })).toEqual(['0', '2']);
    expect(await ids({ name: 'nobody' })).toEqual(['3']);
    expect(await ids({ olderThan: '10m' })).toEqual(['0']);
    expect(await ids({ newerThan: '10m', name: 'die' })).toEqual(['2']);
    expect(await ids({ reason: 'stalled' })).toEqual([]);
  });

  it('comes in pages that neither skip nor repeat jobs that stay', async () => {
    const app = await boot();
    const { dead } = app.queue;
    await withDead(app, ...Array.from({ length: 9 }, () => 'die'));
    const first = await dead.list({ limit: 4 });
    expect(first.jobs.map(({ id }) => id)).toEqual(['0', '1', '2', '3']);
    await app.queue.remove('3');
    await app.queue.remove('1');
    await dead.retry('5');
    const second = await dead.list({ limit: 3, cursor: first.cursor! });
    expect(second.jobs.map(({ id }) => id)).toEqual(['4', '6', '7']);
    const last = await dead.list({ limit: 3, cursor: second.cursor! });
    expect(last).toMatchObject({ jobs: [{ id: '8' }], cursor: null });
  });

  it('accepts only cursors that a page returned', async () => {
    const { queue } = await bootQueue(redis, { watch: false });
    const encoded = (...parts: unknown[]) => Buffer.from(JSON.stringify(parts)).toString('base64url');
    for (const cursor of [
      '',
      'x',
      '5-a',
      encoded(),
      encoded('dead', '5'),
      encoded('dead', 5, 'a'),
      encoded('dead', 'NaN', 'a'),
      encoded('dead', '1e3', 'a'),
      encoded('dead', '5', 'a', 'b'),
      5,
      null,
      {},
      '__proto__',
    ] as string[]) {
      expect(await refused(queue.dead.list({ cursor })), cursor).toMatchObject({
        code: 'GODWIT_INVALID_OPTION',
        message: expect.stringContaining('dead.list().cursor'),
      });
    }
    expect(await queue.dead.list({ cursor: encoded('dead', '5', 'a-b') })).toEqual({
      jobs: [],
      cursor: null,
    });
  });
});

describe('dead letters replayed', () => {
  it('start again with all their attempts, one by its id or all that match a filter', async () => {
    let fail = true;
    const runs: string[] = [];
    const handlers: Handlers = {
      job: (job: Job) => {
        runs.push(`${job.id}:${job.attempt}`);
        if (fail) die();
      },
      other: die,
    };
    const { queue, ended, said } = await bootQueue(redis, {
      handlers,
      queue: { defaults: { attempts: 2, backoff: 0 } },
      concurrency: 1,
    });
    await queue.addBulk(['a', 'b', 'c'].map((id) => ({ name: 'job', data: null, options: { id } })));
    await queue.add('other', null, { id: 'd' });
    for (const id of ['a', 'b', 'c', 'd']) await ended(id);
    fail = false;
    runs.length = 0;
    expect(await queue.dead.retry('b')).toBeUndefined();
    expect(await queue.dead.retry({ name: 'job', limit: 1 })).toBe(1);
    expect((await queue.get('a'))?.state).not.toBe('dead');
    expect(await queue.dead.retry({ name: 'job' })).toBe(1);
    expect(await queue.dead.retry({ name: 'job' })).toBe(0);
    await said.take(3, (event) => event.type === 'completed', PATIENT);
    expect(runs).toEqual(['b:1', 'a:1', 'c:1']);
    expect(await queue.counts()).toMatchObject({ dead: 1 });
  });

  itOnRedis('that expired run however late it is: a person wants them run', async () => {
    const { queue, ended, said } = await bootQueue(redis, { handlers: { job: () => 'ran' } });
    await queue.pause();
    const options = { expiresIn: '30s', retention: '1h', timeout: '30s' };
    await queue.add('job', { text: 'line\nbreak "d":1}' }, { ...options, id: 'late' });
    await queue.add('job', null, { expiresIn: 1, id: 'hopeless' });
    // As if they had been added some time ago.
    const jobs = keyOf(redis, 'jobs');
    for (const id of ['late', 'hopeless']) {
      const [name, , ...rest] = (await redis.admin.hget(jobs, id))!.split('\n');
      const added = (Date.now() - 60_000).toString(36);
      await redis.admin.hset(jobs, id, [name, added, ...rest].join('\n'));
    }
    await queue.resume();
    expect(await ended('late')).toMatchObject({ type: 'dead', reason: 'expired' });
    expect(await ended('hopeless')).toMatchObject({ type: 'dead', reason: 'expired' });
    const { createdAt } = (await queue.get('late'))!;

    await queue.pause();
    expect(await queue.dead.retry({ reason: 'expired' })).toBe(2);
    const retriedAt = Date.now();
    await until(() => Date.now() > retriedAt + 5, PATIENT);
    await queue.resume();
    await said.take(2, (event) => event.type === 'completed', PATIENT);
    expect(await queue.get('late')).toMatchObject({
      state: 'completed',
      result: 'ran',
      data: { text: 'line\nbreak "d":1}' },
      createdAt,
    });
  });

  itOnRedis('are refused where there is nothing to replay', async () => {
    const app = await boot();
    const { queue } = app;
    await withDead(app, 'die');
    await queue.add('die', 1, { id: 'waiting' });
    expect(await refused(queue.dead.retry('nobody'))).toMatchObject({ code: 'GODWIT_JOB_NOT_FOUND' });
    expect(await refused(queue.dead.retry('waiting'))).toMatchObject({
      code: 'GODWIT_WRONG_STATE',
      message: `job "waiting" in queue 'work' is waiting; only dead jobs with a body are retried`,
    });
    await redis.admin.hset(keyOf(redis, 'jobs'), '0', '');
    expect(await refused(queue.dead.retry('0'))).toMatchObject({
      message: expect.stringContaining('is corrupt'),
    });
    expect(await queue.dead.retry({})).toBe(0);
    expect(await queue.dead.list()).toMatchObject({ jobs: [{ id: '0', name: '', data: undefined }] });
  });
});

describeOnRedis('dead letters removed', () => {
  it('leave only an event when they are removed, one by its id or all that match a filter', async () => {
    const app = await boot();
    const { queue, said } = app;
    await withDead(app, 'die', 'unrecoverable', 'die', 'die');
    await age('0', 3_600_000);
    expect(await queue.remove('3')).toBeUndefined();
    expect(await queue.remove({ state: 'dead', olderThan: '10m' })).toBe(1);
    expect(await queue.remove({ state: 'dead', reason: 'retries-exhausted' })).toBe(1);
    const removed = await said.take(3, (event) => event.type === 'removed', PATIENT);
    expect(removed.map(brief)).toEqual(
      ['3', '0', '2'].map((jobId) => ({ type: 'removed', jobId, name: 'die', reason: 'asked' })),
    );
    expect(await queue.counts()).toMatchObject({ dead: 1, waiting: 0 });
    expect(await queue.get('0')).toBeNull();
    expect((await queue.audit()).violations).toEqual([]);
    expect(await queue.add('die', 1, { id: '0' })).toMatchObject({ duplicate: false });
  });
});

describe('an invalid filter', () => {
  it.each([
    ['nothing', undefined, 'an object'],
    ['null', null, 'an object'],
    ['a list', ['a'], 'an object'],
    ['an unknown field', { ids: ['a'] }, 'ids'],
    ['an unknown reason', { reason: 'bored' }, 'reason'],
    ['a name with a line break', { name: 'a\nb' }, 'U+000A'],
    ['no age', { olderThan: 'yesterday' }, 'olderThan'],
    ['a negative age', { newerThan: -1 }, 'newerThan'],
    ['a limit of 0', { limit: 0 }, 'limit'],
    ['a hostile field', JSON.parse('{"__proto__":{"limit":5}}'), '__proto__'],
  ])('%s is refused with a message and changes nothing', async (_, filter, said) => {
    const app = await boot();
    const { dead } = app.queue;
    await withDead(app, 'die');
    expect((await refused(dead.retry(filter as never)))['message']).toContain(said);
    expect((await dead.list()).jobs).toHaveLength(1);
  });
});

describe('many dead letters at a rate', () => {
  const rate = { max: 40, per: '1s' } as const;

  it('are queued evenly, those that match when the call begins, and progress is reported', async () => {
    const app = await boot();
    const { queue } = app;
    await withDead(app, ...Array.from({ length: 9 }, () => 'die'));
    // They die again while the call runs.
    await queue.resume();
    const steps: [retried: number, ms: number][] = [];
    const began = performance.now();
    const onProgress = (retried: number) => void steps.push([retried, performance.now() - began]);
    expect(await queue.dead.retry({ name: 'die' }, { rate, onProgress })).toBe(9);
    // Four at a time, in steps of 100 ms: after 0, 100 and 200 ms.
    expect(steps.map(([retried]) => retried)).toEqual([4, 8, 9]);
    expect(steps[2]![1]).toBeGreaterThanOrEqual(190);
    await until(async () => (await queue.counts()).dead === 9, PATIENT);
  });

  it('stay dead once the signal aborts, also while the call waits', async () => {
    const app = await boot();
    const { queue } = app;
    await withDead(app, 'die', 'die', 'die');
    const stop = new AbortController();
    const slow = { max: 1, per: '1h' } as const;
    const done = queue.dead.retry({}, { rate: slow, signal: stop.signal, onProgress: () => stop.abort() });
    expect(await done).toBe(1);
    expect(await queue.counts()).toMatchObject({ waiting: 1, dead: 2 });
    expect(await queue.dead.retry({}, { signal: stop.signal })).toBe(0);
    expect(await queue.dead.retry({ limit: 1 }, { rate: slow })).toBe(1);
  });

  it.each([
    [{ rate: 50 }, 'dead.retry().pace.rate must be an object'],
    [{ rate: { max: 5 } }, 'dead.retry().pace.rate.per must be a duration'],
    [{ rate: { max: 0, per: '1s' } }, 'dead.retry().pace.rate.max must be an integer from 1'],
    [{ onProgress: true }, 'dead.retry().pace.onProgress must be a function'],
    [{ signal: {} }, 'dead.retry().pace.signal must be'],
    [{ speed: 1 }, 'dead.retry().pace.speed'],
  ])('are not touched if the pace is %j', async (pace, message) => {
    const app = await boot();
    await withDead(app, 'die');
    await expect(app.queue.dead.retry({}, pace as never)).rejects.toThrow(message);
    expect(await app.queue.counts()).toMatchObject({ waiting: 0, dead: 1 });
  });
});
