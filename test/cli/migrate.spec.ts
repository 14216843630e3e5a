import { FlowProducer, Queue, Worker } from 'bullmq';
import { afterEach, describe, expect, it } from 'vitest';
import { atEnd, runCleanup } from '../support/cleanup.js';
import { BullSource } from '#lib/subpaths/cli/bullmq-source.js';
import { QueueInspector } from '#lib/inspect/queue-inspector.js';
import { bootQueue, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { useServer } from '../support/server.js';
import { until } from '../support/wait.js';
import { godwitOn, jsonOf, runHere, runOn, type Ended } from './support.js';

/** BullMQ has keys of other kinds. */
const server = useServer();
const redis = useRedis({ server, rights: 'all' });

afterEach(async () => {
  await runCleanup();
  await redis.admin.flushall();
});

const run = (...args: string[]) => runOn(redis, 'migrate', 'bullmq', ...args);

/** The report, and the exit code. */
const report = async (...args: string[]) => reported(await run('--json', ...args));

function reported(ran: Ended) {
  const { code, json } = jsonOf(ran);
  return { code, ...(json as { applied: boolean; queues: any[] }) };
}

const connection = () => ({ host: '127.0.0.1', port: Number(new URL(redis.url).port) });

function bullQueue(): Queue {
  const queue = new Queue('work', { connection: connection() });
  atEnd(() => queue.close());
  return queue;
}

/** Fails one job in BullMQ. */
async function failOne(queue: Queue): Promise<void> {
  const worker = new Worker(
    queue.name,
    async (job) => {
      if (job.name === 'bad') throw new Error('no mailer');
    },
    { connection: connection() },
  );
  await queue.add('bad', { to: 'ada' });
  await until(async () => (await queue.getFailedCount()) === 1, PATIENT);
  await worker.close();
}

describe('a queue of a real BullMQ', () => {
  it('moves jobs in their order and with their options, and schedules; nothing without --apply', async () => {
    const app = await bootQueue(redis, { watch: false });
    await app.queue.pause();
    const bull = bullQueue();
    await failOne(bull);
    await bull.pause();
    await bull.add('first', { n: 1 });
    await bull.add('second', { n: 2 }, { attempts: 5, backoff: { type: 'exponential', delay: 2_000 } });
    await bull.add('low', null, { priority: 9 });
    await bull.add('high', null, { priority: 2, removeOnComplete: { age: 60 } });
    await bull.add('later', [1], { delay: 3_600_000, jobId: 'mine' });
    await bull.add('odd', null, { backoff: { type: 'own' }, attempts: 2 });
    await bull.upsertJobScheduler(
      'daily',
      { pattern: '0 7 * * *', tz: 'Europe/Berlin' },
      { name: 'report', data: { a: 1 }, opts: { attempts: 4 } },
    );
    await bull.upsertJobScheduler(
      'poll',
      { every: 7_200_000, limit: 10, startDate: Date.now() + 900_000 },
      { name: 'poll' },
    );
    const due = (await bull.getJob('mine'))!.timestamp + 3_600_000;

    const plan = await report();
    expect(plan).toMatchObject({
      code: 1,
      applied: false,
      queues: [
        { queue: 'work', schedules: 2, left: [{ what: '1 failed job' }], lost: { 'backoff "own"': 1 } },
      ],
    });
    expect((await app.queue.counts()).waiting).toBe(0);
    expect(await redis.admin.exists('bull:work:moved-to-godwit')).toBe(0);

    const done = await report('--apply', '--yes', '--failed');
    expect(done).toMatchObject({ code: 0, applied: true });
    expect(done.queues[0].jobs).toMatchObject({ prioritized: 2, delayed: 1, failed: 1 });
    const { jobs } = await app.queue.jobs({ state: 'waiting', data: true });
    const names = jobs.map(({ name }) => name);
    expect(names.filter((name) => ['first', 'second', 'high', 'low'].includes(name))).toEqual([
      'first',
      'second',
      'high',
      'low',
    ]);
    const byName = (name: string) => jobs.find((job) => job.name === name)!;
    expect(byName('second')).toMatchObject({ data: { n: 2 }, attempts: 5 });
    expect(byName('bad')).toMatchObject({ data: { to: 'ada' }, attempts: 1 });
    const later = await app.queue.get('mine');
    expect(later).toMatchObject({ name: 'later', data: [1], state: 'delayed' });
    expect(Math.abs(later!.dueAt!.getTime() - due)).toBeLessThan(2_000);
    const schedules = await app.queue.schedules.list();
    expect(schedules.map(({ id }) => id).toSorted()).toEqual(['daily', 'poll']);
    const daily = schedules.find(({ id }) => id === 'daily')!;
    expect(daily).toMatchObject({ rule: { cron: '0 7 * * *', tz: 'Europe/Berlin' } });
    const bulls = await bull.getJobSchedulers();
    for (const { id, nextAt } of schedules)
      expect([id, nextAt!.getTime()]).toEqual([id, bulls.find(({ key }) => key === id)!.next]);
  });

  it('adds no job twice, also when it has ended here, and goes on with new ones', async () => {
    const app = await bootQueue(redis, { watch: false, handlers: { x: () => null } });
    const bull = bullQueue();
    await bull.pause();
    await bull.addBulk(Array.from({ length: 250 }, (_, i) => ({ name: 'x', data: i })));
    await bull.upsertJobScheduler(
      'hourly',
      { every: 3_600_000, startDate: Date.now() + 60_000 },
      { name: 'x' },
    );
    expect((await report('work', '--apply', '--yes')).queues[0].jobs.wait).toBe(250);
    await until(async () => (await app.queue.stats({ days: 2 })).total.processed === 250, PATIENT);
    await app.queue.schedules.pause('hourly');
    await bull.add('x', 'new');
    const { queues } = await report('work', '--apply', '--yes');
    expect(queues[0]).toMatchObject({ jobs: { wait: 1 }, alreadyHere: 0, schedules: 0, schedulesHere: 1 });
    await until(async () => (await app.queue.stats({ days: 2 })).total.processed === 251, PATIENT);
    expect((await app.queue.schedules.get('hourly'))!.paused).toBe(true);
    // One at the start and one at the end of each run, not one for each job.
    const { actions } = await app.get(QueueInspector).actions({ queue: 'work' });
    expect(actions.map(({ action, target, count, result }) => [action, target, count, result])).toEqual([
      ['queue.migrate', 'bullmq', 1, 'ok'],
      ['queue.migrate', 'bullmq', null, 'started'],
      ['queue.migrate', 'bullmq', 251, 'ok'],
      ['queue.migrate', 'bullmq', null, 'started'],
    ]);
  });

  it('reports what it cannot move, and why', async () => {
    const app = await bootQueue(redis, { watch: false });
    const bull = bullQueue();
    const flow = new FlowProducer({ connection: connection() });
    atEnd(() => flow.close());
    await bull.pause();
    await flow.add({ name: 'parent', queueName: 'work', children: [{ name: 'child', queueName: 'work' }] });
    await bull.add('big', 'x'.repeat(1_100_000));
    await bull.upsertJobScheduler('fast', { every: 200 }, { name: 'x' });
    const { code, out } = await run('--apply', '--yes');
    expect(code).toBe(1);
    expect(out).toMatch(/^work: left +1 parent of a flow: .*no flows$/m);
    expect(out).toMatch(/^work: left +job .*: it is the child of a flow; Godwit has no flows$/m);
    expect(out).toMatch(/^work: left +job \d+: .*bytes/m);
    expect(out).toMatch(/^work: left +schedule fast: .*every/m);
    // An occurrence that was due waits as a job like any other.
    expect((await app.queue.jobs({ state: 'waiting' })).jobs).toMatchObject([{ name: 'x' }]);
  });

  it('names the global limits of a queue, and how to set them here', async () => {
    const bull = bullQueue();
    await bull.setGlobalConcurrency(3);
    await bull.setGlobalRateLimit(10, 1_000);
    await bull.add('x', null);
    await bull.pause();
    const { code, queues } = await report('--apply', '--yes');
    const limits = queues[0].left.map(({ why }: { why: string }) => /set (--.*) sets/.exec(why)?.[1]);
    expect([code, limits]).toEqual([1, ['--concurrency 3', '--rate 10/1000ms']]);
    const set = runOn(redis, 'limits', 'work', 'set', '--concurrency', '3', '--rate', '10/1000ms');
    expect(await set).toMatchObject({ code: 0 });
  });

  it('copies a queue whose name Godwit refuses under another name, and the others without it', async () => {
    const app = await bootQueue(redis, { watch: false });
    const bull = bullQueue();
    const high = new Queue('work high', { connection: connection() });
    atEnd(() => high.close());
    await bull.pause();
    await bull.add('x', 1);
    await high.add('y', 2);
    await high.add('z', 3);
    const all = await report('--apply', '--yes');
    expect(all.code).toBe(1);
    expect(all.queues).toMatchObject([
      { queue: 'work high', left: [{ what: 'the queue', why: expect.stringMatching(/queue name.*--to/) }] },
      { queue: 'work', jobs: { wait: 1 }, left: [] },
    ]);
    await high.pause();
    // BullMQ counts the ids of each queue.
    expect(await report('work high', '--to', 'work', '--apply', '--yes')).toMatchObject({
      code: 1,
      queues: [{ jobs: { wait: 1 }, left: [{ what: 'job 1', why: 'another job has this id here' }] }],
    });
    expect(await report('work high', '--to', 'work-high', '--apply', '--yes')).toMatchObject({
      code: 0,
      queues: [{ queue: 'work high', jobs: { wait: 1 }, left: [] }],
    });
    const { jobs } = await app.queue.jobs({ state: 'waiting' });
    expect(jobs.map(({ name }) => name)).toEqual(['x', 'z']);
    expect(await run('work', 'work high', '--to', 'work')).toMatchObject({
      code: 2,
      err: expect.stringMatching(/--to is for one queue, got 2/),
    });
    expect(await run('work high', '--to', 'a b')).toMatchObject({
      code: 2,
      err: expect.stringMatching(/queue name/),
    });
  });

  it('plans what --apply does, and lists the jobs that cannot be moved', async () => {
    await bootQueue(redis, { watch: false });
    const bull = bullQueue();
    await bull.pause();
    await bull.add('good', 1);
    await bull.add('x'.repeat(256), 2);
    await bull.add('big', 'x'.repeat(1_100_000));
    await bull.add('later', 3, { delay: 3_600_000, jobId: 'two\nlines' });
    await bull.upsertJobScheduler('slow', { every: 3_600_000 }, { name: 'x' });
    await bull.upsertJobScheduler('fast', { every: 500 }, { name: 'x' });
    const plan = await report();
    const done = await report('--apply', '--yes');
    expect(plan.code).toBe(1);
    expect(plan.queues[0].left).toHaveLength(4);
    expect({ ...plan, applied: true }).toEqual(done);
  });

  it('moves jobs that become due while it reads', async () => {
    const app = await bootQueue(redis, { watch: false });
    const bull = bullQueue();
    await bull.pause();
    await bull.addBulk(Array.from({ length: 3_000 }, (_, i) => ({ name: 'x', data: i })));
    const delay = 3_600_000;
    await bull.addBulk(Array.from({ length: 20 }, (_, i) => ({ name: 'later', data: i, opts: { delay } })));
    const list = (await redis.admin.exists('bull:work:wait')) ? 'bull:work:wait' : 'bull:work:paused';
    const moving = godwitOn(redis, 'migrate', 'bullmq', '--json', '--apply', '--yes').result();
    await until(async () => (await redis.admin.hlen('bull:work:moved-to-godwit')) > 0, PATIENT);
    // They move to a list that the command has read already.
    const due = await redis.admin.zrange('bull:work:delayed', '0', '9');
    await redis.admin
      .multi()
      .zrem('bull:work:delayed', ...due)
      .rpush(list, ...due)
      .exec();
    const { code, queues } = reported(await moving);
    expect([code, queues[0].left]).toEqual([0, []]);
    const { waiting, delayed } = await app.queue.counts();
    expect(waiting + delayed).toBe(3_020);
  });

  it('reads a sorted list to its end although its first jobs leave it', async () => {
    const bull = bullQueue();
    await bull.pause();
    const delay = 3_600_000;
    await bull.addBulk(Array.from({ length: 450 }, (_, i) => ({ name: 'later', data: i, opts: { delay } })));
    // Equal scores at the end of a page and at the start of the next.
    const same = await redis.admin.zrange('bull:work:delayed', '250', '420');
    const [, score] = await redis.admin.zrange('bull:work:delayed', '250', '250', 'WITHSCORES');
    await redis.admin.zadd('bull:work:delayed', ...same.flatMap((id) => [score!, id]));
    const source = new BullSource(redis.url, 'bull');
    atEnd(() => source.close());
    const read: string[] = [];
    for await (const { jobs } of source.jobs('work', 'delayed', new Set())) {
      read.push(...jobs.map(({ id }) => id));
      if (read.length === 100) await redis.admin.zremrangebyrank('bull:work:delayed', 0, 99);
    }
    expect([read.length, new Set(read).size]).toEqual([450, 450]);
  });

  it('refuses a queue whose workers could run the same jobs, and wrong calls', async () => {
    const bull = bullQueue();
    await bull.add('x', null);
    expect(await run('--apply', '--yes')).toMatchObject({
      code: 2,
      err: expect.stringMatching(/pause work in BullMQ first/),
    });
    await bull.pause();
    expect(await run('--apply')).toMatchObject({ code: 2, err: expect.stringMatching(/Add --yes/) });
    expect(await run('none')).toMatchObject({
      code: 2,
      err: expect.stringMatching(/BullMQ has no queue none; it has work/),
    });
    expect(await run('--from', 'redis://127.0.0.1:1')).toMatchObject({
      code: 1,
      err: expect.stringMatching(
        /the Redis of BullMQ: connect ECONNREFUSED 127.0.0.1:1; nothing was changed/,
      ),
    });
    const other = await runHere(['migrate', 'sidekiq', '-u', redis.url]);
    expect([other.code, other.err]).toEqual([2, expect.stringMatching(/"sidekiq" is not bullmq/)]);
  });
});
