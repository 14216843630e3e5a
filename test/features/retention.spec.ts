import { describe, expect, it } from 'vitest';
import type { Job } from '#lib/job/job.js';
import { bootQueue, describeOnRedis, keyOf, PATIENT } from '../support/queue-app.js';
import { die, refused } from '../support/queue-states.js';
import { useRedis } from '../support/redis.js';
import { useServer } from '../support/server.js';
import { until } from '../support/wait.js';

const redis = useRedis();
const often = { upkeep: { interval: 100 } } as const;

describeOnRedis('handler results stored on request with a TTL per queue and per job', () => {
  it('are kept as long as the queue says, or the job itself, and then are gone', async () => {
    const { queue, ended } = await bootQueue(redis, {
      handlers: { job: (job: Job) => ({ got: job.data }) },
      queue: { defaults: { retention: '1h' } },
    });
    await queue.add('job', 1, { id: 'as the queue says' });
    await queue.add('job', 2, { id: 'longer', retention: '2h' });
    await queue.add('job', 3, { id: 'not at all', retention: 0 });
    for (const id of ['as the queue says', 'longer', 'not at all']) await ended(id);
    expect(await queue.get('as the queue says')).toMatchObject({ state: 'completed', result: { got: 1 } });
    expect(await queue.get('longer')).toMatchObject({ result: { got: 2 } });
    expect(await queue.get('not at all')).toBeNull();
    const untilOf = async (id: string) => Number(await redis.admin.zscore(keyOf(redis, 'completed'), id));
    const endOf = async (id: string) => (await queue.get(id))!.endedAt!.getTime();
    expect((await untilOf('as the queue says')) - (await endOf('as the queue says'))).toBe(3_600_000);
    expect((await untilOf('longer')) - (await endOf('longer'))).toBe(7_200_000);
  });

  it('count as gone as soon as their retention is over, before they are deleted', async () => {
    const { queue, ended } = await bootQueue(redis, { handlers: { job: () => 'well' } });
    await queue.add('job', 1, { id: 'a', retention: '1h' });
    await ended('a');
    await redis.admin.zadd(keyOf(redis, 'completed'), Date.now() - 1_000, 'a');
    expect(await queue.get('a')).toBeNull();
    expect(await queue.counts()).toMatchObject({ completed: 0 });
    expect(await refused(queue.remove('a'))).toMatchObject({ code: 'GODWIT_JOB_NOT_FOUND' });
    expect(await queue.add('job', 2, { id: 'a' })).toMatchObject({ duplicate: false });
    await ended('a');
  });

  describe('and without a retention', () => {
    const own = useRedis({ server: useServer() });

    it('nothing is stored, and a batch costs as many commands however many jobs are in it', async () => {
      const { queue, said } = await bootQueue(own, {
        handlers: { job: () => ({ large: 'x'.repeat(100) }) },
      });
      const jobs = Array.from({ length: 200 }, (_, data) => ({ name: 'job', data }));
      await queue.addBulk(jobs);
      await said.take(200, (event) => event.type === 'completed', PATIENT);
      const keys = (await own.keys()).map((key) => key.replace(/^\{.*\}:/, ''));
      expect(keys.filter((key) => ['completed', 'results', 'jobs', 'failures'].includes(key))).toEqual([]);
      const stats = await own.admin.info('commandstats');
      const calls = (command: string) =>
        Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
      // The commands that keeping needs are not called at all. HDEL, which deletes the bodies, is called once for a
      // batch.
      expect(calls('zrem') + calls('zcount')).toBeLessThanOrEqual(calls('evalsha') + calls('eval'));
      expect(calls('hdel')).toBeLessThanOrEqual(calls('evalsha') + calls('eval'));
    });
  });
});

describe('retention by number', () => {
  it('keeps a maximum number of completed jobs, those whose retention ends last', async () => {
    const { queue, ended } = await bootQueue(redis, {
      handlers: { job: () => 'well' },
      queue: { completed: { max: 2 } },
      concurrency: 1,
    });
    for (const [id, retention] of [
      ['a', '2h'],
      ['b', '1h'],
      ['c', '3h'],
      ['d', '4h'],
    ] as const) {
      await queue.add('job', 1, { id, retention });
      await ended(id);
    }
    expect(await queue.counts()).toMatchObject({ completed: 2 });
    const kept = await Promise.all(['a', 'b', 'c', 'd'].map(async (id) => (await queue.get(id))?.state));
    expect(kept).toEqual([undefined, undefined, 'completed', 'completed']);
  });
});

describeOnRedis('the janitor', () => {
  describe('the trimming of jobs is', () => {
    const own = useRedis({ server: useServer() });

    it('not done by a process that only adds', async () => {
      const { queue } = await bootQueue(redis, { root: { ...often, role: 'producer' }, watch: false });
      await bootQueue(own, { root: often, handlers: { job: () => 1 }, watch: false });
      await redis.admin.zadd(keyOf(redis, 'completed'), 1, 'old');
      // This process would have done it by the time a worker has done it several times elsewhere.
      for (let times = 0; times < 5; times++) {
        await own.admin.zadd(keyOf(own, 'completed'), 1, 'old');
        await until(async () => (await own.admin.exists(keyOf(own, 'completed'))) === 0, PATIENT);
      }
      expect(await redis.admin.zcard(keyOf(redis, 'completed'))).toBe(1);
      expect(await queue.counts()).toMatchObject({ completed: 0 });
    });
  });

  it('trims idle queues: completed jobs, dead jobs and events by age, without any call', async () => {
    const { queueOf, queue, ended } = await bootQueue(redis, {
      root: { ...often, dead: { age: '1h' }, events: { age: '1h' } },
      handlers: { job: () => 'well', die },
      queues: [{ name: 'elsewhere' }],
      queue: { defaults: { attempts: 1 } },
    });
    await queue.add('job', 1, { id: 'a', retention: '1h' });
    await queue.add('die', 1, { id: 'b' });
    await queueOf('elsewhere').add('job', 1, { id: 'c' });
    await Promise.all([ended('a'), ended('b')]);
    // As if an hour had passed.
    await redis.admin.zadd(keyOf(redis, 'completed'), Date.now() - 1, 'a');
    await redis.admin.zadd(keyOf(redis, 'dead'), Date.now() - 3_600_001, 'b');
    await redis.admin.hset(keyOf(redis, 'results', 'elsewhere'), 'c', '1\n{}');
    const events = keyOf(redis, 'events', 'elsewhere');
    const [entry] = await redis.admin.xrange(events, '-', '+');
    await redis.admin.del(events);
    await redis.admin.xadd(events, entry![0], 'at', Date.now() - 3_600_001, ...entry![1].slice(2));
    const jobs = keyOf(redis, 'jobs');
    await until(
      async () => (await redis.admin.hlen(jobs)) === 0 && (await redis.admin.xlen(events)) === 0,
      PATIENT,
    );
    expect(
      await redis.admin.exists(keyOf(redis, 'completed'), keyOf(redis, 'dead'), keyOf(redis, 'results')),
    ).toBe(0);
    expect(await queueOf('elsewhere').counts()).toMatchObject({ waiting: 1 });
  });

  it('removes many jobs in small steps, one after another', async () => {
    const { queue } = await bootQueue(redis, { root: often, handlers: { job: () => 1 }, watch: false });
    const ids = Array.from({ length: 3_000 }, (_, i) => `j${i}`);
    await redis.admin.hset(keyOf(redis, 'jobs'), ...ids.flatMap((id) => [id, 'job\n']));
    await redis.admin.zadd(keyOf(redis, 'completed'), ...ids.flatMap((id, i) => [i + 1, id]));
    await until(async () => (await redis.admin.exists(keyOf(redis, 'jobs'))) === 0, PATIENT);
    expect((await queue.audit()).violations).toEqual([]);
  });

  it('ends with its application, also in the middle of many jobs', async () => {
    const { close } = await bootQueue(redis, { root: often, handlers: { job: () => 1 }, watch: false });
    const ids = Array.from({ length: 20_000 }, (_, i) => `j${i}`);
    await redis.admin.zadd(keyOf(redis, 'completed'), ...ids.flatMap((id, i) => [i + 1, id]));
    const left = () => redis.admin.zcard(keyOf(redis, 'completed'));
    await until(async () => (await left()) < ids.length, PATIENT);
    await close();
    const after = await left();
    expect(after).toBeGreaterThan(0);
    expect(await left()).toBe(after);
  });
});
