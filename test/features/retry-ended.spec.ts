import { describe, expect, it } from 'vitest';
import { bootQueue, bodiesOf, brief, itOnRedis, PATIENT, type QueueApp } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { latch } from '../support/wait.js';

const redis = useRedis();
const KEPT = { retention: { completed: '1h', cancelled: '1h' } } as const;

const ends = (app: QueueApp, id: string, count = 1) =>
  app.said.take(count, (event) => event.type === 'completed' && event.jobId === id, PATIENT);

describe('queue.retry', () => {
  it('runs a completed job once more under its id, with its data and options, and counts attempts from 1', async () => {
    let runs = 0;
    const app = await bootQueue(redis, {
      handlers: {
        report: async (job) => {
          await job.log(`run ${++runs}`);
          return [job.id, job.data, job.attempt, job.attempts, job.priority, runs];
        },
      },
    });
    const { queue } = app;
    await queue.add('report', { week: 7 }, { id: 'r', attempts: 4, priority: 3, ...KEPT });
    await ends(app, 'r');
    expect(await queue.get('r')).toMatchObject({
      result: ['r', { week: 7 }, 1, 4, 3, 1],
      logs: [{ text: 'run 1' }],
    });
    const first = (await queue.get('r'))!.createdAt!;

    await queue.retry('r');
    await ends(app, 'r', 2);
    const again = (await queue.get('r'))!;
    expect(again).toMatchObject({
      result: ['r', { week: 7 }, 1, 4, 3, 2],
      logs: [{ text: 'run 2' }],
      priority: 3,
    });
    expect(again.createdAt!.getTime()).toBeGreaterThanOrEqual(first.getTime());
    expect(await queue.counts()).toMatchObject({ completed: 1, waiting: 0 });
    await expect(queue.audit()).resolves.toMatchObject({ violations: [] });
  });

  it('runs it now, without the delay or the deadline of the first time', async () => {
    const app = await bootQueue(redis, { handlers: { '*': () => 1 } });
    const { queue } = app;
    await queue.add('one', null, { id: 'r', delay: 1, deadline: new Date(Date.now() + 3_000), ...KEPT });
    await ends(app, 'r');
    await queue.retry('r');
    await ends(app, 'r', 2);
    expect(await queue.get('r')).toMatchObject({ state: 'completed', delay: 0 });
  });

  it('runs a cancelled job that is kept, and a dead one as dead.retry does', async () => {
    let fails = true;
    const app = await bootQueue(redis, {
      handlers: {
        '*': () => {
          if (fails) throw new Error('no luck');
        },
      },
    });
    const { queue, said } = app;
    await queue.add('one', null, { id: 'c', delay: '1h', ...KEPT });
    await queue.cancel('c', 'no need');
    await queue.add('one', null, { id: 'd', attempts: 1, ...KEPT });
    await said.first((event) => event.type === 'dead', PATIENT);
    fails = false;
    await queue.retry('c');
    await queue.retry('d');
    await Promise.all([ends(app, 'c'), ends(app, 'd')]);
    expect(await queue.counts()).toMatchObject({ completed: 2, dead: 0, cancelled: 0, delayed: 0 });
  });

  it('queues it once for several calls, and explains why it does nothing', async () => {
    const gate = latch('the second run may end');
    let runs = 0;
    const app = await bootQueue(redis, {
      handlers: { '*': () => (++runs === 1 ? undefined : gate.promise) },
    });
    const { queue } = app;
    await queue.add('one', null, { id: 'r', ...KEPT });
    await ends(app, 'r');
    const answers = await Promise.allSettled([1, 2, 3].map(() => queue.retry('r')));
    const codes = answers.map((answer) => (answer.status === 'rejected' ? answer.reason.code : 'queued'));
    expect(codes.filter((code) => code === 'queued')).toHaveLength(1);
    expect(codes.filter((code) => code === 'GODWIT_WRONG_STATE')).toHaveLength(2);
    await expect(queue.retry('r')).rejects.toThrow(/only a job that has ended is run again/);
    gate.open();
    await ends(app, 'r', 2);
    expect(runs).toBe(2);
    await expect(queue.retry('nobody')).rejects.toMatchObject({ code: 'GODWIT_JOB_NOT_FOUND' });
    await expect(queue.retry('')).rejects.toMatchObject({ code: 'GODWIT_INVALID_JOB_ID' });
  });

  it('waits until callers of addAndWait can have read the result', async () => {
    const { queue } = await bootQueue(redis, { handlers: { '*': () => 1 } });
    await queue.addAndWait('one', null, { id: 'r' });
    await expect(queue.retry('r')).rejects.toThrow(/may still read its result; try again in 10 s$/);
  });

  it('reports to listeners that the ended job was replaced', async () => {
    const app = await bootQueue(redis, { handlers: { '*': () => 1 } });
    const { queue, said } = app;
    await queue.add('one', null, { id: 'r', ...KEPT });
    await ends(app, 'r');
    await queue.retry('r');
    await ends(app, 'r', 2);
    const types = said.values.map((event) => brief(event)['type']);
    expect(types.filter((type) => type === 'added')).toHaveLength(2);
  });

  it('does not run while another job has its unique key, and names that job', async () => {
    const app = await bootQueue(redis, {
      handlers: {
        '*': (job) => {
          if (job.data === 'fails') throw new Error('no luck');
        },
      },
    });
    const { queue, said } = app;
    const unique = { key: 'k' };
    const done = await queue.add('one', 'well', { unique, ...KEPT });
    await ends(app, done.id);
    const dead = await queue.add('one', 'fails', { unique, attempts: 1, ...KEPT });
    await said.first((event) => event.type === 'dead', PATIENT);
    const holder = await queue.add('one', 'later', { unique, delay: '1h' });

    const refusal = { code: 'GODWIT_DUPLICATE_JOB', queue: queue.name, jobId: holder.id, state: 'delayed' };
    for (const act of [
      () => queue.retry(done.id),
      () => queue.retry(dead.id),
      () => queue.dead.retry(dead.id),
      () => queue.dead.retry(dead.id, { data: 'well' }),
    ]) {
      await expect(act()).rejects.toMatchObject(refusal);
      await expect(act()).rejects.toThrow(/has the key of this job; wait for its end, or cancel or remove/);
    }
    expect(await queue.dead.retry({})).toBe(0);
    expect(await queue.dead.retry({ contains: 'one' })).toBe(0);
    expect(await queue.get(dead.id)).toMatchObject({ state: 'dead', data: 'fails' });
    expect(await queue.get(done.id)).toMatchObject({ state: 'completed' });

    await queue.remove(holder.id);
    await queue.dead.retry(dead.id, { data: 'well' });
    await said.first((event) => event.type === 'completed' && event.jobId === dead.id, PATIENT);
    await queue.retry(done.id);
    await ends(app, done.id, 2);
  });

  itOnRedis('does not touch a job whose body cannot be read', async () => {
    const app = await bootQueue(redis, { handlers: { '*': () => 1 } });
    const { queue } = app;
    await queue.add('one', null, { id: 'r', ...KEPT });
    await ends(app, 'r');
    await redis.admin.hset(bodiesOf(redis, 'r'), 'r', 'nonsense');
    await expect(queue.retry('r')).rejects.toMatchObject({ code: 'GODWIT_WRONG_STATE', state: 'corrupt' });
    expect(await redis.admin.hget(bodiesOf(redis, 'r'), 'r')).toBe('nonsense');
  });

  itOnRedis('keeps options that this version does not know', async () => {
    const app = await bootQueue(redis, { handlers: { '*': () => 1 } });
    const { queue } = app;
    await queue.add('one', { a: 1 }, { id: 'r', attempts: 2, ...KEPT });
    await ends(app, 'r');
    const body = (await redis.admin.hget(bodiesOf(redis, 'r'), 'r'))!;
    await redis.admin.hset(bodiesOf(redis, 'r'), 'r', body.replace('{"a":2', '{"colour":"red","a":2'));
    await queue.retry('r');
    await ends(app, 'r', 2);
    expect(await redis.admin.hget(bodiesOf(redis, 'r'), 'r')).toMatch(
      /^one\n\w+\n\{"colour":"red","a":2,.*\}\n\{"a":1\}$/,
    );
  });
});
