import { describe, expect, it } from 'vitest';
import type { Job } from '#lib/job/job.js';
import {
  bootQueue,
  brief,
  describeOnRedis,
  type Handlers,
  itOnRedis,
  keyOf,
  PATIENT,
} from '../support/queue-app.js';
import { countsOf, die, gated, oneOfEach, refused } from '../support/queue-states.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';

const redis = useRedis();
const EMPTY = { waiting: 0, delayed: 0, active: 0, completed: 0, dead: 0, cancelled: 0 };

describe('counts', () => {
  it('returns how many jobs are in each state', async () => {
    const { gate, handlers } = gated();
    const { queue } = await bootQueue(redis, { handlers });
    expect(await queue.counts()).toEqual(EMPTY);
    await oneOfEach(queue);
    expect(await queue.counts()).toEqual(
      countsOf({ waiting: 2, delayed: 1, active: 1, completed: 1, dead: 1 }),
    );
    gate.open();
  });
});

describe('pause and resume', () => {
  it('apply to every process, let runs end, and return whether they changed anything', async () => {
    const gate = latch('the gate');
    const began = latch('the run');
    const ran: string[] = [];
    const handlers = (app: string): Handlers => ({
      slow: async () => {
        began.open();
        await gate.promise;
      },
      job: () => void ran.push(app),
    });
    const one = await bootQueue(redis, { handlers: handlers('one'), concurrency: 5 });
    const two = await bootQueue(redis, { handlers: handlers('two'), concurrency: 5, watch: false });
    const slow = await one.queue.add('slow', 1);
    await began.wait(PATIENT);
    expect(await two.queue.isPaused()).toBe(false);
    expect(await one.queue.pause()).toBe(true);
    expect(await two.queue.pause()).toBe(false);
    expect(await two.queue.isPaused()).toBe(true);

    const jobs = await one.queue.addBulk(Array.from({ length: 20 }, () => ({ name: 'job', data: 1 })));
    gate.open();
    expect((await one.ended(slow.id)).type).toBe('completed');
    // That exchange, and every later one, has seen the pause.
    expect(await one.queue.counts()).toMatchObject({ waiting: 20, active: 0 });
    expect(ran).toEqual([]);

    expect(await two.queue.resume()).toBe(true);
    expect(await one.queue.resume()).toBe(false);
    for (const { id } of jobs) await one.ended(id);
    expect(ran).toHaveLength(20);
    const said = one.said.values.map((event) => event.type);
    expect(said.filter((type) => type === 'paused' || type === 'resumed')).toEqual(['paused', 'resumed']);
  });
});

describe('remove', () => {
  it('takes a job out of any state but active', async () => {
    const { gate, handlers } = gated();
    const { queue, said } = await bootQueue(redis, { handlers });
    const ids = await oneOfEach(queue);
    for (const state of ['waiting', 'delayed', 'completed', 'dead']) {
      await queue.remove(ids[state]!);
      expect(await queue.get(ids[state]!), state).toBeNull();
    }
    await queue.remove('ranked');
    expect(await queue.counts()).toEqual({ ...EMPTY, active: 1 });
    const removed = await said.take(5, (event) => event.type === 'removed', PATIENT);
    expect(removed.map(brief)).toEqual(
      ['waiting', 'delayed', 'completed', 'dead', 'ranked'].map((id) => ({
        type: 'removed',
        jobId: id,
        name: id === 'dead' ? 'die' : 'done',
        reason: 'asked',
      })),
    );

    expect(await refused(queue.remove('active'))).toMatchObject({
      code: 'GODWIT_WRONG_STATE',
      message: `job "active" in queue 'work' is active; wait for the end of its run, or cancel it`,
    });
    expect(await queue.get('active')).toMatchObject({ state: 'active' });
    expect(await refused(queue.remove('waiting'))).toMatchObject({
      code: 'GODWIT_JOB_NOT_FOUND',
      jobId: 'waiting',
    });
    gate.open();
  });

  it('leaves nothing that a new job with the same id would inherit', async () => {
    let fail = true;
    const handlers: Handlers = {
      job: async (job: Job) => {
        await job.progress(job.attempt);
        await job.log(`attempt ${job.attempt}`);
        if (fail) die();
      },
    };
    const { queue, ended, said } = await bootQueue(redis, { handlers });
    await queue.add('job', 1, { id: 'same', attempts: 2, backoff: 0, priority: 7 });
    await ended('same');
    await queue.remove('same');
    fail = false;
    await queue.pause();
    await queue.add('job', 2, { id: 'same', retention: '1h' });
    expect(await queue.get('same')).toMatchObject({
      data: 2,
      attempt: 0,
      failure: null,
      progress: null,
      logs: [],
    });
    await queue.resume();
    await said.first((event) => event.type === 'completed', PATIENT);
    expect(await queue.get('same')).toMatchObject({
      attempt: 1,
      logs: [{ attempt: 1, text: 'attempt 1' }],
      failure: null,
    });
  });
});

describe('dead jobs', () => {
  it('run again when a person retries them, with all their attempts', async () => {
    let fail = true;
    const attempts: number[] = [];
    const handlers: Handlers = {
      job: (job: Job) => {
        attempts.push(job.attempt);
        if (fail) die();
        return 'well';
      },
    };
    const defaults = { attempts: 2, backoff: 0, retention: '1h' };
    const { queue, ended, said } = await bootQueue(redis, { handlers, queue: { defaults } });
    const first = await queue.add('job', 'kept');
    await ended(first.id);
    fail = false;
    await queue.dead.retry(first.id);
    await said.first((event) => event.type === 'completed', PATIENT);
    expect(await queue.get(first.id)).toMatchObject({
      data: 'kept',
      result: 'well',
      attempt: 1,
      failure: null,
    });
    expect(attempts).toEqual([1, 2, 1]);
    expect(said.values.map((event) => event.type)).toEqual([
      'added',
      'active',
      'retrying',
      'active',
      'dead',
      'added',
      'active',
      'completed',
    ]);

    expect(await refused(queue.dead.retry(first.id))).toMatchObject({
      code: 'GODWIT_WRONG_STATE',
      message: `job "${first.id}" in queue 'work' is completed; only dead jobs with a body are retried`,
    });
    expect(await refused(queue.dead.retry('nobody'))).toMatchObject({ code: 'GODWIT_JOB_NOT_FOUND' });
  });

  it('run again all at once, those first that died first, up to a limit', async () => {
    let fail = true;
    const handlers: Handlers = { job: () => (fail ? die() : undefined) };
    const { queue, ended } = await bootQueue(redis, {
      handlers,
      queue: { defaults: { attempts: 1 } },
      concurrency: 1,
    });
    const jobs = await queue.addBulk([1, 2, 3, 4, 5].map((data) => ({ name: 'job', data })));
    for (const { id } of jobs) await ended(id);
    fail = false;
    await queue.pause();
    const ids = jobs.map(({ id }) => id);
    expect(await queue.dead.retry({ limit: 2 })).toBe(2);
    expect((await queue.dead.list()).jobs.map(({ id }) => id)).toEqual(ids.slice(2));
    expect(await queue.counts()).toMatchObject({ waiting: 2, dead: 3 });
    expect(await queue.dead.retry({})).toBe(3);
    expect(await queue.dead.retry({})).toBe(0);
    expect(await queue.counts()).toMatchObject({ waiting: 5, dead: 0 });
    for (const limit of [0, -1, 1.5, Number.NaN, '5' as never]) {
      expect(await refused(queue.dead.retry({ limit }))).toMatchObject({ code: 'GODWIT_INVALID_OPTION' });
    }
  });

  it('are kept up to a number; those beyond leave with an event', async () => {
    const { queue, ended, said } = await bootQueue(redis, {
      handlers: { die },
      queue: { dead: { max: 3 }, defaults: { attempts: 1 } },
      concurrency: 1,
    });
    const jobs = await queue.addBulk([1, 2, 3, 4, 5].map((data) => ({ name: 'die', data })));
    const removed = await said.take(2, (event) => event.type === 'removed', PATIENT);
    expect(removed.map(brief)).toEqual(
      jobs.slice(0, 2).map(({ id }) => ({ type: 'removed', jobId: id, name: 'die', reason: 'retention' })),
    );
    await ended(jobs[4]!.id);
    expect(await queue.counts()).toMatchObject({ dead: 3 });
    expect(await queue.get(jobs[0]!.id)).toBeNull();
    expect(await queue.get(jobs[2]!.id)).toMatchObject({ state: 'dead' });
  });
});

describe('obliterate', () => {
  itOnRedis(
    'is refused while jobs run, unless forced, and then leaves only the number of the last event',
    async () => {
      const { gate, handlers } = gated();
      // No beat while the test looks: a worker that beats learns that its record is gone, and registers under a new
      // name.
      const { queue, logs } = await bootQueue(redis, { handlers, root: { lease: { duration: '1h' } } });
      await oneOfEach(queue);
      // The first beat comes with the connection of the heartbeat, which then registers the process.
      await until(async () => (await redis.keys()).some((key) => key.endsWith(':processes')), PATIENT);
      expect(await refused(queue.obliterate())).toMatchObject({
        code: 'GODWIT_WRONG_STATE',
        message: `a job in queue 'work' is active; pause the queue and let its runs end, or use { force: true }`,
      });
      expect(await queue.counts()).toEqual(
        countsOf({ waiting: 2, delayed: 1, active: 1, completed: 1, dead: 1 }),
      );

      await queue.obliterate({ force: true });
      expect(await queue.counts()).toEqual(EMPTY);
      const own = keyOf(redis, '');
      const left = (await redis.keys())
        .filter((key) => key.startsWith(own))
        .map((key) => key.slice(own.length));
      // The numbers of calls expire.
      expect(left.filter((kind) => !kind.startsWith('lane:'))).toEqual(['meta']);

      // Jobs that ran meanwhile are not counted, and the worker goes on with new ones.
      gate.open();
      await logs.complaint(/the lease ended|given to another worker/);
      const { id } = await queue.add('done', 1, { retention: '1h' });
      await until(async () => (await queue.get(id))?.state === 'completed', PATIENT);
    },
  );

  it('removes a queue at rest without force', async () => {
    const { queue } = await bootQueue(redis, { watch: false });
    await queue.addBulk(Array.from({ length: 100 }, (_, data) => ({ name: 'job', data })));
    await queue.pause();
    await queue.obliterate();
    expect(await queue.counts()).toEqual(EMPTY);
    expect(await queue.isPaused()).toBe(false);
  });
});

describeOnRedis('audit and repair', () => {
  it('find nothing in an intact queue, and repair one whose keys were deleted', async () => {
    const { gate, handlers } = gated();
    const { queue } = await bootQueue(redis, { handlers });
    await oneOfEach(queue);
    const counts = { waiting: 2, delayed: 1, active: 1, completed: 1, dead: 1, cancelled: 0 };
    expect(await queue.audit()).toEqual({ violations: [], checked: 6, counts });
    expect(await queue.repair()).toEqual({ repairs: [], checked: 6 });

    const [wait = ''] = (await redis.keys()).filter((key) => key.endsWith(':wait'));
    await redis.admin.del(wait);
    const [violation] = (await queue.audit()).violations;
    expect(violation).toMatchObject({ kind: 'no-place', id: 'waiting', where: ['jobs'] });
    const { repairs } = await queue.repair();
    expect(repairs).toMatchObject([{ did: 'lined-up', id: 'waiting' }]);
    expect(await queue.audit()).toEqual({ violations: [], checked: 6, counts });
    gate.open();
    await queue.resume();
    await until(async () => (await queue.counts()).waiting === 0, PATIENT);
  });

  it('count a stall if a job is held by an unknown worker, and give it back to the line', async () => {
    const { queue } = await bootQueue(redis, { watch: false });
    const { id } = await queue.add('job', 1);
    const [wait = ''] = (await redis.keys()).filter((key) => key.endsWith(':wait'));
    await redis.admin.del(wait);
    await redis.admin.sadd(wait.replace(/wait$/, 'active:nobody'), id);
    expect((await queue.audit()).violations.map(({ kind }) => kind)).toEqual(['no-lease', 'no-record']);
    expect((await queue.repair()).repairs).toMatchObject([{ did: 'recovered', id, worker: 'nobody' }]);
    expect(await queue.get(id)).toMatchObject({ state: 'waiting', stalls: 1 });
    expect((await queue.audit()).violations).toEqual([]);
  });
});
