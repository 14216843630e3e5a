import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { SchemaViolationError, UnknownQueueError, UnrecoverableError } from '#lib/errors.js';
import { QueueEvents } from '#lib/events/queue-events.js';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { defineJob, type JobOf } from '#lib/job/define-job.js';
import { type Job, Snooze } from '#lib/job/job.js';
import { from } from 'rxjs';
import { latch } from '../support/wait.js';
import { NOON, setBench } from './support.js';
import { countsOf } from '../support/queue-states.js';

const nothing = () => undefined;
const mail = defineJob('work', 'mail', z.object({ to: z.email(), copies: z.number().default(2) }));

@Processor('work')
class Mails {
  @Handle(mail)
  send(job: JobOf<typeof mail>) {
    return job.data;
  }
}

describe('the added jobs', () => {
  it('are returned with name, data, options as given, id and delay, in their order', async () => {
    const { work, queue } = await setBench();
    await queue.add('greet', { to: 'ada', at: new Date(0) }, { delay: '10m', id: 'a', attempts: 2 });
    await queue.addBulk([
      { name: 'greet', data: { to: 'bob' } },
      { name: 'leave', data: null, options: { runAt: NOON.getTime() + 5 } },
    ]);
    expect(work.added()).toEqual([
      {
        id: 'a',
        queue: 'work',
        name: 'greet',
        data: { to: 'ada', at: '1970-01-01T00:00:00.000Z' },
        options: { delay: '10m', id: 'a', attempts: 2 },
        delay: 600_000,
        at: NOON,
        schedule: null,
      },
      expect.objectContaining({ name: 'greet', data: { to: 'bob' }, options: {}, delay: 0 }),
      expect.objectContaining({ name: 'leave', data: null, delay: 5 }),
    ]);
    expect(work.added('leave')).toHaveLength(1);
    expect(work.added((job) => job.data?.to === 'bob')).toHaveLength(1);
  });

  it('leave out refused jobs and duplicates', async () => {
    const { work, queue } = await setBench();
    await queue.add('greet', 1, { id: 'a' });
    await queue.add('greet', 2, { id: 'a' });
    await expect(queue.add('greet', undefined as never, { delay: '-1s' })).rejects.toThrow(
      'add().options.delay must be',
    );
    expect(work.added().map(({ data }) => data)).toEqual([1]);
  });

  it('belong to one module only', async () => {
    const one = await setBench();
    const other = await setBench();
    await one.queue.add('greet', {});
    expect(one.work.added()).toHaveLength(1);
    expect(other.work.added()).toEqual([]);
    expect(await other.queue.counts()).toMatchObject({ waiting: 0 });
  });

  it('are removed by clear, with every job', async () => {
    const { work, queue, testing } = await setBench({ handlers: { work: { greet: nothing } } });
    await queue.add('greet', {});
    await work.drain();
    await queue.add('greet', {}, { delay: '1h' });
    await testing.clear();
    expect([work.added(), work.runs(), work.events()]).toEqual([[], [], []]);
    expect(await queue.counts()).toMatchObject({ waiting: 0, delayed: 0 });
    await queue.add('greet', {});
    expect(await work.drain()).toMatchObject([{ outcome: 'completed' }]);
  });

  it('belong to an existing queue', async () => {
    const { testing } = await setBench();
    expect(() => testing.queue('nope')).toThrow(UnknownQueueError);
    expect(() => testing.queue('work').added(42 as never)).toThrow(
      'the filter of added() must be a job name',
    );
  });
});

describe('runNext', () => {
  it('runs the next job, and returns its outcome', async () => {
    const { work, queue } = await setBench({
      handlers: { work: { greet: (job: Job) => ({ said: job.data }) } },
    });
    await queue.add('greet', 'a');
    await queue.add('greet', 'b');
    expect(await work.runNext()).toEqual({
      id: work.added()[0]!.id,
      queue: 'work',
      name: 'greet',
      data: 'a',
      attempt: 1,
      outcome: 'completed',
      result: { said: 'a' },
    });
    expect(await queue.counts()).toMatchObject({ waiting: 1, active: 0 });
  });

  it('returns errors: retrying with its delay, snoozed on request, dead with its reason', async () => {
    const errors = [new Error('once'), new Snooze('5m'), new UnrecoverableError('never'), new Error('last')];
    const { work, queue } = await setBench({
      handlers: {
        work: {
          fail: (job: Job) => {
            throw errors[job.data as number];
          },
        },
      },
    });
    await queue.add('fail', 0, { backoff: '7s' });
    await queue.add('fail', 1);
    await queue.add('fail', 2);
    await queue.add('fail', 3, { attempts: 1 });
    expect(await work.runNext()).toMatchObject({
      outcome: 'retrying',
      attempt: 1,
      delay: 7000,
      error: errors[0],
    });
    expect(await work.runNext()).toMatchObject({ outcome: 'snoozed', delay: 300_000 });
    expect(await work.runNext()).toMatchObject({
      outcome: 'dead',
      reason: 'unrecoverable',
      error: errors[2],
    });
    expect(await work.runNext()).toMatchObject({ outcome: 'dead', reason: 'retries-exhausted' });
    expect(work.failed().map(({ data }) => data)).toEqual([0, 2, 3]);
    expect(work.dead().map(({ data }) => data)).toEqual([2, 3]);
    expect(await queue.counts()).toMatchObject({ delayed: 2, dead: 2 });
  });

  it('runs the job that matches the filter, and leaves the others in place', async () => {
    const { work, queue } = await setBench({ handlers: { work: { '*': (job: Job) => job.data } } });
    await queue.addBulk([
      { name: 'a', data: 1 },
      { name: 'b', data: 2 },
      { name: 'a', data: 3 },
      { name: 'c', data: 4, options: { priority: 2 } },
      { name: 'c', data: 5, options: { priority: 1 } },
    ]);
    expect(await work.runNext((job) => job.data === 4)).toMatchObject({ result: 4 });
    expect(await work.runNext('b')).toMatchObject({ result: 2 });
    expect(work.events().filter(({ type }) => type === 'active' || type === 'released')).toHaveLength(2);
    const together = await Promise.all([work.runNext((job) => job.data === 3), work.runNext('c')]);
    expect(together.map(({ result }) => result)).toEqual([3, 5]);
    expect((await work.drain()).map(({ result }) => result)).toEqual([1]);
  });

  it('finds a job among all that are due, however many', async () => {
    const { work, queue } = await setBench({ handlers: { work: { '*': (job) => job.data } } });
    const due = Array.from({ length: 1_500 }, (_, data) => ({ name: 'due', data, options: { runAt: 0 } }));
    await queue.addBulk(due);
    expect(await work.runNext((job) => job.data === 1_499)).toMatchObject({ result: 1_499 });
  });

  it('describes the state of the queue if no job can run', async () => {
    const { work, queue, queueOf, testing } = await setBench({
      queues: [{ name: 'other' }],
      handlers: { work: { greet: nothing } },
    });
    await expect(work.runNext()).rejects.toThrow("nothing waits in queue 'work', and nothing is delayed");
    await queue.add('greet', {}, { delay: '1h' });
    await expect(work.runNext()).rejects.toThrow(
      'the first until 2026-01-01T13:00:00.000Z, and now it is 2026-01-01T12:00:00.000Z: testing.advance() moves the clock',
    );
    await queue.add('greet', {}, { id: 'g' });
    await expect(work.runNext('leave')).rejects.toThrow(
      'no waiting job of queue \'work\' matches; waiting: "greet" (g)',
    );
    await queue.pause();
    await expect(work.runNext()).rejects.toThrow(
      "queue 'work' is paused, so none of its 1 waiting jobs is claimed",
    );
    await queueOf('other').add('greet', {});
    await expect(testing.queue('other').runNext()).rejects.toThrow("no processor of queue 'other'");
    await expect(testing.queue('other').drain()).rejects.toThrow("no processor of queue 'other'");
    expect(await testing.drain()).toEqual([]);
    expect(await queue.counts()).toMatchObject({ waiting: 1 });
  });

  it('is aborted by a cancel with a filter', async () => {
    const entered = latch('the run');
    const wait = (job: Job) =>
      new Promise((_, reject) => {
        job.signal.addEventListener('abort', () => reject(job.signal.reason));
        entered.open();
      });
    const { work, queue } = await setBench({ handlers: { work: { wait } } });
    await queue.add('wait', {});
    const run = work.runNext();
    await entered.wait();
    expect(await queue.cancel({ name: 'wait' })).toBe(1);
    expect(await run).toMatchObject({ outcome: 'cancelled', error: { reason: 'cancelled' } });
  });

  it('works like every run: schema, Observable, progress, log, timeout, cancel', async () => {
    const entered = latch('the handler runs');
    const { work, queue } = await setBench({
      providers: [Mails],
      handlers: {
        work: {
          stream: () => from([1, 2, 3]),
          told: async (job: Job) => {
            await job.progress({ half: true });
            await job.log('done half');
          },
          slow: () => new Promise(nothing),
          stubborn: (job: Job) => {
            entered.open();
            return new Promise((_, reject) =>
              job.signal.addEventListener('abort', () => reject(job.signal.reason)),
            );
          },
        },
      },
    });
    await queue.add('stream', {});
    expect(await work.runNext()).toMatchObject({ outcome: 'completed', result: 3 });
    const { id } = await queue.add('told', {}, { retention: '1h' });
    await work.runNext();
    expect(await queue.get(id)).toMatchObject({
      state: 'completed',
      progress: { half: true },
      logs: [{ attempt: 1, text: 'done half' }],
    });
    await queue.add('slow', {}, { timeout: 5, attempts: 1 });
    expect(await work.runNext()).toMatchObject({ outcome: 'dead', error: { reason: 'timeout' } });
    await queue.add('stubborn', {}, { id: 's' });
    const run = work.runNext();
    await entered.wait();
    expect(await queue.cancel('s', 'not wanted')).toBe('signalled');
    expect(await run).toMatchObject({ outcome: 'cancelled', error: { reason: 'cancelled' } });
    expect(await queue.get('s')).toBeNull();
    await queue.add('nobody', {});
    expect(await work.runNext()).toMatchObject({ outcome: 'dead', reason: 'no-handler', name: 'nobody' });
    await queue.add('mail', { to: 'ada@example.com' });
    expect(await work.runNext(mail)).toMatchObject({
      data: { to: 'ada@example.com' },
      result: { copies: 2 },
    });
  });
});

describe('drain', () => {
  it('runs all waiting jobs, and the jobs that they add, in all queues', async () => {
    const order: string[] = [];
    const bench = await setBench({
      queues: [{ name: 'next' }],
      handlers: {
        work: {
          '*': async (job: Job<number>) => {
            order.push(`work ${job.data}`);
            if (job.data < 3) await bench.queue.add('more', job.data + 1);
            await bench.queueOf('next').add('more', job.data);
          },
        },
        next: { '*': (job: Job) => void order.push(`next ${String(job.data)}`) },
      },
    });
    await bench.queue.add('first', 1);
    expect(await bench.testing.drain()).toHaveLength(6);
    expect(order).toEqual(['work 1', 'next 1', 'work 2', 'next 2', 'work 3', 'next 3']);
    expect(bench.testing.queue('next').completed()).toHaveLength(3);
  });

  it('ends with an error if the work never ends', async () => {
    const bench = await setBench({
      handlers: { work: { again: async () => void (await bench.queue.add('again', {})) } },
    });
    await bench.queue.add('again', {});
    await expect(bench.work.drain({ limit: 20 })).rejects.toThrow(
      /^drain\(\) has run more than 20 jobs and would not end; the last was "again" \(.+\) of queue 'work'/,
    );
    expect(bench.work.runs()).toHaveLength(21);
    await expect(bench.work.drain({ limit: 0 })).rejects.toThrow('drain().limit must be an integer from 1');
  });

  it('resolves after the event listeners were called', async () => {
    const { module, work, queue } = await setBench({ handlers: { work: { greet: nothing } } });
    const heard: string[] = [];
    const events = module.get(QueueEvents);
    const subscription = events.of('work').subscribe(({ type }) => heard.push(type));
    await events.ready('work');
    await queue.add('greet', {});
    await work.drain();
    expect(heard).toEqual(['added', 'active', 'completed']);
    expect(work.events().map(({ type }) => type)).toEqual(heard);
    subscription.unsubscribe();
    await module.close();
  });
});

describe('run', () => {
  it('runs one handler, and stores nothing', async () => {
    const { testing, work, queue } = await setBench({
      handlers: { work: { sum: (job: Job<number[]>) => job.data[0]! + job.attempt * 10 } },
    });
    expect(await testing.run('work', 'sum', [1])).toBe(11);
    expect(await testing.run('work', 'sum', [1], { attempt: 3 })).toBe(31);
    expect(await queue.counts()).toEqual(countsOf());
    expect([work.added(), work.runs(), work.events()]).toEqual([[], [], []]);
  });

  it('rejects with what the handler throws, as it was thrown', async () => {
    const broken = new TypeError('broken');
    const { testing } = await setBench({
      handlers: { work: { fail: () => Promise.reject(broken), later: () => Promise.reject(new Snooze(5)) } },
    });
    await expect(testing.run('work', 'fail', {})).rejects.toBe(broken);
    await expect(testing.run('work', 'later', {})).rejects.toBeInstanceOf(Snooze);
  });

  it('checks the data by the schema and applies its defaults', async () => {
    const { testing } = await setBench({ providers: [Mails] });
    expect(await testing.run(mail, { to: 'ada@example.com' })).toEqual({ to: 'ada@example.com', copies: 2 });
    expect(await testing.run(Mails, mail, { to: 'ada@example.com', copies: 3 })).toMatchObject({ copies: 3 });
    await expect(testing.run(mail, { to: 'ada' })).rejects.toBeInstanceOf(SchemaViolationError);
  });

  it('aborts its signal when the given one aborts', async () => {
    const { testing } = await setBench({
      handlers: {
        work: {
          wait: (job: Job) =>
            new Promise((_, reject) => job.signal.addEventListener('abort', () => reject(job.signal.reason))),
          look: (job: Job) => job.signal.aborted,
        },
      },
    });
    const controller = new AbortController();
    const run = testing.run('work', 'wait', {}, { signal: controller.signal });
    controller.abort(new Error('enough'));
    await expect(run).rejects.toMatchObject({ code: 'GODWIT_JOB_ABORTED', reason: 'cancelled' });
    const aborted = AbortSignal.abort(new Error('before'));
    await expect(testing.run('work', 'look', {}, { signal: aborted })).rejects.toThrow('before');
  });

  it('refuses jobs that it cannot run, with a message', async () => {
    class Stranger {}
    const { testing } = await setBench({ handlers: { work: { greet: nothing } } });
    const run = testing.run.bind(testing) as (...args: unknown[]) => Promise<unknown>;
    await expect(run('work', 'leave', {})).rejects.toThrow(
      'no handler of queue \'work\' is for jobs named "leave"',
    );
    await expect(run('nope', 'greet', {})).rejects.toBeInstanceOf(UnknownQueueError);
    await expect(run(Stranger, 'greet', {})).rejects.toThrow('a queue, a class with @Processor or a job');
    await expect(run('work', null, {})).rejects.toThrow('given a job name or a job');
    await expect(run('work', 'greet', 10n)).rejects.toMatchObject({ code: 'GODWIT_INVALID_PAYLOAD' });
    await expect(run('work', 'greet', {}, { attempt: 0 })).rejects.toThrow('run().options.attempt must be');
    await expect(run('work', 'greet', {}, { signal: {} })).rejects.toThrow('run().options.signal must be');
    await expect(run('work', 'greet', {}, { dely: 1 })).rejects.toThrow('dely');
    await expect(run('work', 'greet', {}, null)).rejects.toThrow('run().options must be an object');
  });
});

it('run is checked by the compiler if there is a definition', () => {
  const check = async ({ testing }: Awaited<ReturnType<typeof setBench>>) => {
    await testing.run(mail, { to: 'ada@example.com' });
    // @ts-expect-error -- `to` is a text
    await testing.run(mail, { to: 5 });
    const [first] = testing.queue(mail).added(mail);
    return first!.data.to satisfies string;
  };
  expect(check).toBeTypeOf('function');
});
