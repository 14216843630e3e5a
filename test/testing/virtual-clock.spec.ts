import { describe, expect, it } from 'vitest';
import { JobFailedError, WaitTimeoutError } from '#lib/errors.js';
import { getQueueToken } from '#lib/decorators/metadata.js';
import type { Job } from '#lib/job/job.js';
import type { Queue } from '#lib/producer/queue.js';
import { NOON, setBench } from './support.js';

const HOUR = 3_600_000;

describe('the clock of a test', () => {
  it('stands still until it is moved, and only moves forward', async () => {
    const { testing } = await setBench();
    expect(testing.now).toEqual(NOON);
    await testing.advance('90m');
    expect(testing.now).toEqual(new Date('2026-01-01T13:30:00Z'));
    await testing.advanceTo(NOON);
    expect(testing.now).toEqual(new Date('2026-01-01T13:30:00Z'));
    await testing.advanceTo(new Date('2026-03-01T00:00:00Z'));
    expect(testing.now).toEqual(new Date('2026-03-01T00:00:00Z'));
  });

  it.each([['2026-01-01T12:00:00Z'], [NOON.getTime()], [NOON]])(
    'starts at the given time: %s',
    async (now) => {
      expect((await setBench({ root: { now } })).testing.now).toEqual(NOON);
    },
  );

  it('starts at the present by default', async () => {
    const before = Date.now();
    const { testing } = await setBench({ root: { now: undefined as never } });
    expect(testing.now.getTime()).toBeGreaterThanOrEqual(before);
    expect(testing.now.getTime()).toBeLessThanOrEqual(Date.now());
  });

  it('refuses invalid times, with a message', async () => {
    await expect(setBench({ root: { now: 'soon' } })).rejects.toThrow(
      `QueueTestingModule.forRoot().now must be a date, ms since 1970 or a string like '2026-01-01T09:00:00Z', got "soon"`,
    );
    const { testing } = await setBench();
    await expect(testing.advance('soon')).rejects.toThrow("advance() must be a duration in ms or like '10s'");
    await expect(testing.advance(-1)).rejects.toThrow('not negative');
    await expect(testing.advanceTo('tomorrow' as never)).rejects.toThrow('advanceTo() must be a Date');
    expect(testing.now).toEqual(NOON);
  });
});

describe('jobs that limits delay', () => {
  const limited = async () => {
    const at: number[] = [];
    const bench = await setBench({
      handlers: { work: { '*': () => void at.push(bench.testing.now.getTime() - NOON.getTime()) } },
    });
    await bench.queue.limits.set({ rate: { max: 1, per: '1s', window: 'fixed' } });
    return { ...bench, at };
  };

  it('each run at the time at which they may start', async () => {
    const { testing, queue, at } = await limited();
    await queue.addBulk([1, 2, 3].map((data) => ({ name: 'a', data })));
    await testing.advance('1m', { run: true });
    expect(at).toEqual([0, 1_000, 2_000]);
  });

  it('are named by the error of runNext, with that time', async () => {
    const { work, queue } = await limited();
    await queue.addBulk([1, 2, 3].map((data) => ({ name: 'a', data })));
    await work.runNext();
    const why = `runNext(): limits of queue 'work' let none of its 2 waiting jobs start before 2026-01-01T12:00:01.000Z; now it is 2026-01-01T12:00:00.000Z`;
    await expect(work.runNext()).rejects.toThrow(why);
    await expect(work.runNext('a')).rejects.toThrow(why);
    await queue.limits.clear();
    await queue.limits.set({ concurrency: 1 });
    expect(await work.drain()).toHaveLength(2);
  });

  it('are named with their paused groups, which advance() does not resume', async () => {
    const { work, queue } = await limited();
    await queue.limits.clear();
    await queue.addBulk(['acme', 'beta'].map((group) => ({ name: 'a', data: 1, options: { group } })));
    await queue.group('acme').pause();
    expect(await work.drain()).toHaveLength(1);
    const why = `runNext(): no job of queue 'work' may start: group "acme" is paused`;
    await expect(work.runNext()).rejects.toThrow(why);
  });

  it('may be changed if the code has them, although no worker has written them', async () => {
    const breaker = { failures: 1 } as const;
    const { queue, module } = await setBench({ queues: [{ name: 'crm', limits: { breaker } }] });
    const crm = module.get<Queue>(getQueueToken('crm'));
    await crm.limits.set({ breaker: { failures: 3 } });
    expect((await crm.limits.list())[0]!.breaker!.failures).toBe(3);
    await expect(queue.limits.set({ breaker })).rejects.toThrow('limits.set().breaker must be left out');
  });

  it('are awaited by addAndWait, for as long as it may wait', async () => {
    const { queue, at } = await limited();
    await queue.add('a', 1);
    await queue.addAndWait('a', 2);
    await queue.addAndWait('a', 3);
    expect(at).toEqual([0, 1_000]);
    await expect(queue.addAndWait('a', 4, { waitTimeout: 500 })).rejects.toThrow(WaitTimeoutError);
  });
});

describe('advance', () => {
  it('makes delayed jobs waiting at their time, and runs nothing', async () => {
    const { testing, work, queue } = await setBench({ handlers: { work: { '*': () => 'done' } } });
    await queue.add('later', {}, { delay: '1h' });
    await queue.add('tomorrow', {}, { delay: '1d' });
    await testing.advance(HOUR - 1);
    expect(await queue.counts()).toMatchObject({ waiting: 0, delayed: 2 });
    expect(await testing.advance(1)).toEqual([]);
    expect(await queue.counts()).toMatchObject({ waiting: 1, delayed: 1 });
    expect(work.runs()).toEqual([]);
    expect(await work.drain()).toMatchObject([{ name: 'later', outcome: 'completed' }]);
  });

  it('keeps the order of the due times, whatever the order of the adds', async () => {
    const { testing, work, queue } = await setBench({ handlers: { work: { '*': () => 'done' } } });
    for (const minutes of [30, 10, 20]) await queue.add(`after ${minutes}`, {}, { delay: `${minutes}m` });
    await testing.advance('1h');
    expect((await work.drain()).map(({ name }) => name)).toEqual(['after 10', 'after 20', 'after 30']);
  });

  it('runs jobs at their own time on request, so that retries happen', async () => {
    const times: string[] = [];
    const bench = await setBench({
      handlers: {
        work: {
          flaky: (job: Job) => {
            times.push(`${job.attempt} at ${bench.testing.now.toISOString().slice(11, 19)}`);
            if (job.attempt < 4) throw new Error('not yet');
            return 'at last';
          },
          tick: () => void times.push(`tick at ${bench.testing.now.toISOString().slice(11, 19)}`),
        },
      },
    });
    await bench.queue.add('flaky', {}, { attempts: 5, backoff: ['10s', '1m', '1h'] });
    await bench.queue.add('tick', {}, { delay: '30s' });
    const runs = await bench.testing.advance('2h', { run: true });
    expect(times).toEqual([
      '1 at 12:00:00',
      '2 at 12:00:10',
      'tick at 12:00:30',
      '3 at 12:01:10',
      '4 at 13:01:10',
    ]);
    expect(runs.map(({ outcome }) => outcome)).toEqual([
      'retrying',
      'retrying',
      'completed',
      'retrying',
      'completed',
    ]);
    expect(bench.work.failed().map(({ delay }) => delay)).toEqual([10_000, 60_000, HOUR]);
    expect(bench.testing.now).toEqual(new Date('2026-01-01T14:00:00Z'));
  });

  it('ends retentions', async () => {
    const { testing, work, queue } = await setBench({
      root: { dead: { age: '1d' } },
      handlers: {
        work: {
          good: () => 1,
          bad: () => {
            throw new Error('no');
          },
        },
      },
    });
    const good = await queue.add('good', {}, { retention: '1h' });
    const bad = await queue.add('bad', {}, { attempts: 1 });
    await work.drain();
    await testing.advance('2h');
    expect([await queue.get(good.id), await queue.get(bad.id)]).toMatchObject([null, { state: 'dead' }]);
    await testing.advance('1d');
    expect(await queue.get(bad.id)).toBeNull();
  });

  it('lets jobs expire', async () => {
    const { testing, work, queue } = await setBench({ handlers: { work: { '*': () => 'done' } } });
    await queue.add('soon', {}, { expiresIn: '5m' });
    await testing.advance('6m');
    expect(await work.drain()).toMatchObject([{ outcome: 'dead', reason: 'expired' }]);
  });

  it('stops with an error if a handler snoozes forever', async () => {
    const { testing, queue } = await setBench({
      handlers: {
        work: { nap: async () => Promise.reject(new (await import('#lib/job/job.js')).Snooze(0)) },
      },
    });
    await queue.add('nap', {});
    await expect(testing.advance('1s', { run: true, limit: 5 })).rejects.toThrow('has run more than 5 jobs');
  });
});

describe('addAndWait, without running workers', () => {
  it('runs the job, through its delays and retries, and moves the clock as far as it waits', async () => {
    const { testing, queue } = await setBench({
      handlers: {
        work: {
          sum: (job: Job<number[]>) => {
            if (job.attempt < 3) throw new Error('not yet');
            return { sum: job.data[0]! + job.data[1]! };
          },
        },
      },
    });
    const options = { delay: '1s', backoff: '5s', retention: '1h' };
    expect(await queue.addAndWait('sum', [1, 2], options)).toEqual({ sum: 3 });
    expect(testing.now).toEqual(new Date('2026-01-01T12:00:11Z'));
    expect(testing.queue('work').added()).toMatchObject([{ options }]);
  });

  it('runs only that job, also inside a handler', async () => {
    const bench = await setBench({
      queues: [{ name: 'inner' }],
      handlers: {
        work: { outer: async () => `outer ${String(await bench.queueOf('inner').addAndWait('inner', {}))}` },
        inner: { inner: () => 'inner' },
      },
    });
    await bench.queueOf('inner').add('other', {});
    await bench.queue.add('outer', {});
    expect(await bench.work.runNext()).toMatchObject({ result: 'outer inner' });
    expect(await bench.queueOf('inner').counts()).toMatchObject({ waiting: 1 });
  });

  it('rejects as it does in production: dead, too late, removed', async () => {
    const { queue, testing } = await setBench({
      handlers: { work: { fail: () => Promise.reject(new Error('no')), late: () => 1 } },
    });
    const failing = queue.addAndWait('fail', {}, { attempts: 1 });
    await expect(failing).rejects.toMatchObject({
      code: 'GODWIT_JOB_FAILED',
      reason: 'retries-exhausted',
      cause: { message: 'no' },
    });
    await expect(failing).rejects.toBeInstanceOf(JobFailedError);
    const late = queue.addAndWait('late', {}, { delay: '1h' });
    await expect(late).rejects.toBeInstanceOf(WaitTimeoutError);
    expect(testing.now).toEqual(new Date(NOON.getTime() + 30_000));
    await queue.pause();
    await expect(queue.addAndWait('late', {})).rejects.toThrow("queue 'work' is paused");
  });

  it('rejects if the existing job was cancelled and is kept', async () => {
    const { queue } = await setBench({ handlers: { work: { count: () => 1 } } });
    const options = { id: 'c', idHeldBy: ['cancelled'], retention: { cancelled: '1h' } } as const;
    await queue.add('count', {}, options);
    await queue.cancel('c', 'not needed');
    await expect(queue.addAndWait('count', {}, options)).rejects.toMatchObject({
      reason: 'cancelled',
      message: expect.stringContaining('not needed'),
    });
  });

  it('for an existing job waits for that one', async () => {
    let runs = 0;
    const { queue } = await setBench({ handlers: { work: { count: () => (runs += 1) } } });
    await queue.add('count', {}, { id: 'c', idHeldBy: ['completed'], retention: '1h' });
    expect(await queue.addAndWait('count', {}, { id: 'c', idHeldBy: ['completed'] })).toBe(1);
    expect(await queue.addAndWait('count', {}, { id: 'c', idHeldBy: ['completed'] })).toBe(1);
  });

  it('rejects if the existing job keeps no result', async () => {
    const { queue } = await setBench({ handlers: { work: { count: () => 1 } } });
    await queue.add('count', {}, { id: 'c' });
    await expect(queue.addAndWait('count', {}, { id: 'c' })).rejects.toMatchObject({
      code: 'GODWIT_RESULT_NOT_KEPT',
      jobId: 'c',
    });
  });
});
