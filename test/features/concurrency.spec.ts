import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { QueueInspector } from '#lib/inspect/queue-inspector.js';
import type { Job } from '#lib/job/job.js';
import { bootQueue, Logs, PATIENT, processorOf, type Handlers, itOnRedis } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { useServer } from '../support/server.js';
import { latch, until } from '../support/wait.js';

const jobs = (count: number, name = 'job') =>
  Array.from({ length: count }, (_, data) => ({ name, data: data as unknown }));

/** Counts the handlers that run at once. */
class Gauge {
  now = 0;
  most = 0;

  async during(work: () => Promise<void>): Promise<void> {
    this.now += 1;
    this.most = Math.max(this.most, this.now);
    await work();
    this.now -= 1;
  }
}

/** Work that takes one or several turns of the event loop. */
const turns = async (count: number) => {
  for (let i = 0; i < count; i++) await new Promise(setImmediate);
};

/** Handlers of quick jobs and of slow ones: `began` opens when a slow one starts, and `gate` ends it. */
function slowAndQuick() {
  const gate = latch('the end of the slow job');
  const began = latch('the slow job');
  const slow = async () => {
    began.open();
    await gate.promise;
  };
  return { gate, began, handlers: { slow, job: () => undefined } };
}

describe('concurrency', () => {
  const redis = useRedis();

  it.each([1, 3, 20])('runs %i jobs at once, never more', async (concurrency) => {
    const gauge = new Gauge();
    const full = latch('all slots are taken');
    const handlers: Handlers = {
      job: (job: Job<number>) =>
        gauge.during(async () => {
          if (gauge.now === concurrency) full.open();
          await full.promise;
          await turns(job.data % 4);
        }),
    };
    const { queue, said } = await bootQueue(redis, { handlers, concurrency });
    await queue.addBulk(jobs(400));
    await said.take(400, (event) => event.type === 'completed', PATIENT);
    expect(gauge.most).toBe(concurrency);
  });

  it('lets several processor classes of a queue be one pool', async () => {
    const gauge = new Gauge();
    const ran: string[] = [];
    const handler = (of: string) => (job: Job) =>
      gauge.during(async () => {
        ran.push(`${of} ${job.name}`);
        await turns(2);
      });
    const { queue, said, runtime } = await bootQueue(redis, {
      providers: [
        processorOf('work', { a: handler('first') }, { concurrency: 2 }),
        processorOf('work', { b: handler('second') }),
        processorOf('work', { '*': handler('third') }, { concurrency: 2 }),
      ],
    });
    expect(runtime.state).toBe('running');
    await queue.addBulk(['a', 'b', 'c'].flatMap((name) => jobs(50, name)));
    await said.take(150, (event) => event.type === 'completed', PATIENT);
    expect(gauge.most).toBe(2);
    expect(new Set(ran)).toEqual(new Set(['first a', 'second b', 'third c']));
    expect(await redis.admin.zcard(`{${redis.prefix}:work}:workers`)).toBeLessThanOrEqual(1);
  });

  it('shares the jobs of a queue between two applications, each to one of them', async () => {
    const gates = { one: latch('a job in one'), two: latch('a job in two') };
    const ran: Record<'one' | 'two', unknown[]> = { one: [], two: [] };
    const handlers = (name: 'one' | 'two'): Handlers => ({
      job: async (job: Job) => {
        ran[name].push(job.data);
        gates[name].open();
        // No job ends before both workers have one.
        await Promise.all([gates.one.promise, gates.two.promise]);
      },
    });
    const logs = new Logs();
    const one = await bootQueue(redis, { handlers: handlers('one'), concurrency: 5, logs });
    await bootQueue(redis, { handlers: handlers('two'), concurrency: 5, watch: false, logs });
    await one.queue.addBulk(jobs(300));
    const done = await one.said.take(300, (event) => event.type === 'completed', PATIENT);
    expect(new Set(done.map((event) => event.jobId)).size).toBe(300);
    expect([...ran.one, ...ran.two].toSorted((a, b) => Number(a) - Number(b))).toEqual(
      jobs(300).map(({ data }) => data),
    );
    expect(ran.one.length).toBeGreaterThan(0);
    expect(ran.two.length).toBeGreaterThan(0);
    expect(logs.complaints.filter((text) => /another worker|lease/.test(text))).toEqual([]);
  });

  it('does not claim too much: jobs that wait for a slow job run in an idle application', async () => {
    const gate = latch('the end of the slow job');
    const began = latch<string>('the slow job');
    const ran: Record<string, number> = { one: 0, two: 0 };
    const handlers = (name: string): Handlers => ({
      slow: async () => {
        began.open(name);
        await gate.promise;
      },
      job: () => {
        ran[name]! += 1;
      },
    });
    const one = await bootQueue(redis, { handlers: handlers('one'), concurrency: 1 });
    // Fast jobs first, so that this worker claims many at a time.
    await one.queue.addBulk(jobs(2000));
    await one.said.take(2000, (event) => event.type === 'completed', PATIENT);
    expect(ran).toEqual({ one: 2000, two: 0 });

    const two = await bootQueue(redis, { handlers: handlers('two'), concurrency: 1, watch: false });
    await two.runtime.stop();
    await one.queue.addBulk([...jobs(200), { name: 'slow', data: 0 }, ...jobs(30, 'job')]);
    expect(await began.wait(PATIENT)).toBe('one');
    await two.runtime.start();
    await one.said.take(2230, (event) => event.type === 'completed', PATIENT);
    expect(gate.isOpen).toBe(false);
    expect(await one.queue.counts()).toMatchObject({ waiting: 0, active: 1 });
    expect(ran['two']).toBeGreaterThan(0);
    gate.open();
  });

  it('gives jobs that wait for a slow job to an idle worker, without a new add', async () => {
    const { gate, began, handlers } = slowAndQuick();
    const elsewhere: unknown[] = [];
    const one = await bootQueue(redis, { handlers, concurrency: 1 });
    await one.queue.addBulk(jobs(2000));
    await one.said.take(2000, (event) => event.type === 'completed', PATIENT);
    const two = await bootQueue(redis, {
      handlers: { '*': (job: Job) => void elsewhere.push(job.data) },
      concurrency: 1,
      watch: false,
    });
    // The worker is paused in its own process, so it sleeps while the other one takes the batch.
    two.runtime.pause('work');
    await one.queue.addBulk([{ name: 'slow', data: 0 }, ...jobs(5)]);
    await began.wait(PATIENT);
    two.runtime.resume('work');
    await until(() => elsewhere.length === 5, PATIENT);
    expect(new Set(elsewhere)).toEqual(new Set([0, 1, 2, 3, 4]));
    gate.open();
  });

  it('wakes an idle application for every job for which the others have no slot', async () => {
    let both = latch('both applications have a job');
    let running = 0;
    const handlers: Handlers = {
      job: async () => {
        if (++running === 2) both.open();
        await both.promise;
      },
    };
    const one = await bootQueue(redis, { handlers, concurrency: 1 });
    await bootQueue(redis, { handlers, concurrency: 1, watch: false });
    const times: number[] = [];
    for (let round = 0; round < 60; round++) {
      running = 0;
      both = latch('both applications have a job');
      const began = performance.now();
      const added = await one.queue.addBulk(jobs(2));
      for (const { id } of added) await one.ended(id);
      times.push(performance.now() - began);
    }
    // After a lost bell the next look at the lines finds the job, seconds later. A busy machine may be slow once or
    // twice.
    expect(times.filter((ms) => ms > 750).length, times.map(Math.round).join(' ')).toBeLessThan(4);
  });

  it('pauses and resumes one queue, or all, of one process only', async () => {
    const ran: Record<string, string[]> = { one: [], two: [] };
    const handlers = (name: string): Handlers => ({ job: (job: Job) => void ran[name]!.push(job.queue) });
    const options = (name: string) => ({
      handlers: handlers(name),
      queues: [{ name: 'other' }],
      providers: [processorOf('other', handlers(name))],
    });
    const one = await bootQueue(redis, options('one'));
    one.runtime.pause('work');
    const two = await bootQueue(redis, { ...options('two'), watch: false });

    await one.queue.addBulk(jobs(20));
    await one.said.take(20, (event) => event.type === 'completed', PATIENT);
    expect(ran).toEqual({ one: [], two: Array.from({ length: 20 }).fill('work') });
    expect(await one.queue.isPaused()).toBe(false);

    two.runtime.pause();
    await one.queueOf('other').addAndWait('job', 1);
    expect(ran['one']).toEqual(['other']);
    const { id } = await one.queue.add('job', 1);
    await one.queueOf('other').addAndWait('job', 1);
    expect(await one.queue.get(id)).toMatchObject({ state: 'waiting' });

    one.runtime.resume();
    expect((await one.ended(id)).type).toBe('completed');
    expect(ran['one']).toEqual(['other', 'other', 'work']);
    expect(() => one.runtime.pause('nowhere')).toThrow(/queue 'nowhere' is not registered/);
  });

  itOnRedis("lets a process with the role 'producer' add, and run nothing", async () => {
    const handlers: Handlers = { job: () => expect.fail('it ran') };
    const producer = await bootQueue(redis, { handlers, root: { role: 'producer' } });
    const { id } = await producer.queue.add('job', 1);
    const bulk = await producer.queue.addBulk(jobs(10));
    expect(await producer.queue.get(id)).toMatchObject({ state: 'waiting' });
    // It holds no connection that waits for work.
    const names = (await redis.clients()).map(({ name }) => name?.split(':').at(-1));
    expect(new Set(names)).toEqual(new Set(['command', 'events']));

    const worker = await bootQueue(redis, {
      handlers: { job: () => 1 },
      root: { role: 'worker' },
      watch: false,
    });
    for (const job of bulk) expect((await producer.ended(job.id)).type).toBe('completed');
    expect(worker.runtime.state).toBe('running');
  });

  it('with autoStart false runs nothing until it is started by hand', async () => {
    const ran: unknown[] = [];
    const handlers: Handlers = { job: (job: Job) => void ran.push(job.data) };
    const { queue, runtime, ended } = await bootQueue(redis, { handlers, root: { autoStart: false } });
    expect(runtime.state).toBe('new');
    const added = await queue.addBulk(jobs(10));
    expect(await queue.counts()).toMatchObject({ waiting: 10 });
    expect(await redis.admin.exists(`{${redis.prefix}:work}:workers`)).toBe(0);
    expect(ran).toEqual([]);
    await Promise.all([runtime.start(), runtime.start()]);
    for (const { id } of added) expect((await ended(id)).type).toBe('completed');
    expect(ran).toHaveLength(10);
    await runtime.stop();
    expect(runtime.state).toBe('stopped');
  });
});

describe('a worker that has nothing to start', () => {
  const server = useServer();
  const redis = useRedis({ server });

  it('asks Redis for nothing, although jobs wait', async () => {
    const { gate, began, handlers } = slowAndQuick();
    const { queue, ended, get } = await bootQueue(redis, {
      handlers,
      concurrency: 1,
      // Its beats are calls too. There are more of them if the pause below takes longer.
      root: { lease: { duration: '1h' } },
    });
    // The thread has started and has sent its first report.
    await until(async () => (await get(QueueInspector).workers()).length === 1, PATIENT);
    await queue.add('slow', 0);
    await began.wait(PATIENT);
    const added = await queue.addBulk(jobs(10));
    const before = await callsOf('bzpopmin', 'evalsha');
    await pause(500);
    // The worker may have been blocked at the doorbell, and may ring once for another worker.
    expect((await callsOf('bzpopmin', 'evalsha')) - before).toBeLessThanOrEqual(4);
    gate.open();
    for (const { id } of added) await ended(id);
  });

  it('asks Redis for nothing if its queue is empty and shares a limit with fewer places than it has slots', async () => {
    const { queue, ended, get } = await bootQueue(redis, {
      handlers: { job: () => undefined },
      queue: { uses: ['api'] },
      root: { limits: { api: { concurrency: 2 } }, lease: { duration: '1h' } },
    });
    await until(async () => (await get(QueueInspector).workers()).length === 1, PATIENT);
    for (const { id } of await queue.addBulk(jobs(10))) await ended(id);
    // The places are given back after the last job.
    const shared = queue.limits.shared('api');
    await until(async () => (await shared.state())?.running === 0, PATIENT);
    const before = await callsOf('bzpopmin', 'evalsha');
    await pause(500);
    expect((await callsOf('bzpopmin', 'evalsha')) - before).toBeLessThanOrEqual(4);
  });

  it.each([
    ['', {}],
    [' and a job of its queue has a slot', { limits: { concurrency: 2 } }],
  ])('asks Redis for nothing while a shared limit is full%s', async (_, limits) => {
    const gate = latch('the end of the slow job');
    const { queue, ended, get } = await bootQueue(redis, {
      handlers: { slow: () => gate.promise, job: () => undefined },
      queue: { uses: ['api'], ...limits },
      root: { limits: { api: { concurrency: 1 } }, lease: { duration: '1h' } },
    });
    await until(async () => (await get(QueueInspector).workers()).length === 1, PATIENT);
    await queue.add('slow', 0);
    const shared = queue.limits.shared('api');
    await until(async () => (await shared.state())?.running === 1, PATIENT);
    const { id } = await queue.add('job', 1);
    let before = -1;
    const isQuiet = async () => {
      const last = before;
      await pause(100);
      before = await callsOf('bzpopmin', 'evalsha');
      return before === last;
    };
    // It asks for a place after the add, and then once a second.
    await until(isQuiet, { ...PATIENT, what: () => 'the worker has asked for a place' });
    await pause(500);
    expect((await callsOf('bzpopmin', 'evalsha')) - before).toBeLessThanOrEqual(4);
    gate.open();
    await ended(id);
  });

  async function callsOf(...commands: string[]): Promise<number> {
    const info = await redis.admin.info('commandstats');
    return commands.reduce((sum, name) => {
      return sum + Number(new RegExp(`^cmdstat_${name}:calls=(\\d+)`, 'm').exec(info)?.[1] ?? 0);
    }, 0);
  }
});
