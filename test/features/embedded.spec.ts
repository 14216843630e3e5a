import { Controller, Headers, Injectable, Sse } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { map } from 'rxjs';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { InjectQueue } from '#lib/decorators/inject-queue.decorator.js';
import { getQueueToken } from '#lib/decorators/metadata.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { Schedule } from '#lib/decorators/schedule.decorator.js';
import { JobFailedError, UnrecoverableError } from '#lib/errors.js';
import { QueueEvents } from '#lib/events/queue-events.js';
import { QueueInspector } from '#lib/inspect/queue-inspector.js';
import type { Job } from '#lib/job/job.js';
import type { Queue } from '#lib/producer/queue.js';
import { QueueModule } from '#lib/module/queue.module.js';
import { bootApp } from '../support/app.js';
import { bootQueue, Logs, PATIENT, type Handlers, type QueueAppOptions } from '../support/queue-app.js';
import { latch, until } from '../support/wait.js';
import { countsOf } from '../support/queue-states.js';

const memory = { url: 'memory', prefix: 'shop' } as const;
const boot = (options: QueueAppOptions = {}) => bootQueue(memory, options);
const NOTICE = /^jobs live in the memory of this process: they are lost when it exits/;

/** The text of a stream of server-sent events, up to the match. */
async function readUntil(url: string, match: RegExp, headers: Record<string, string>, act: () => unknown) {
  const end = new AbortController();
  const response = await fetch(url, { headers, signal: end.signal });
  await act();
  let text = '';
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    if (match.test(text)) break;
  }
  end.abort();
  return text;
}

describe('an application on memory', () => {
  it('runs its jobs with no connection and no thread, and logs that in one line', async () => {
    const sockets = () => process.getActiveResourcesInfo().filter((kind) => kind === 'TCPSocketWrap').length;
    const before = sockets();
    const handlers: Handlers = { sum: (job: Job<number[]>) => job.data.reduce((a, b) => a + b, 0) };
    const { queue, runtime, logs } = await boot({ handlers });
    expect(await queue.addAndWait('sum', [1, 2, 3])).toBe(6);
    expect(sockets()).toBe(before);
    expect(runtime.warnings).toEqual([]);
    expect(logs.complaints).toEqual([expect.stringMatching(NOTICE)]);
  });

  it('takes its options from forRootAsync too', async () => {
    const ran = latch<number>('the run');
    @Processor('mail')
    class Mail {
      @Handle('send')
      send(job: Job<number>) {
        ran.open(job.data);
      }
    }
    @Injectable()
    class Sender {
      constructor(@InjectQueue('mail') readonly mail: Queue) {}
    }
    const logs = new Logs();
    const { get } = await bootApp({
      imports: [
        QueueModule.forRootAsync({ useFactory: async () => ({ connection: { memory: true } }) }),
        QueueModule.registerQueue({ name: 'mail' }),
      ],
      providers: [Mail, Sender],
      logger: logs,
    });
    await get(Sender).mail.add('send', 7);
    expect(await ran.wait(PATIENT)).toBe(7);
    expect(logs.complaints).toEqual([expect.stringMatching(NOTICE)]);
  });

  it('has its own store, separate from that of another application in the same process', async () => {
    const one = await boot();
    const other = await boot({ handlers: { '*': () => undefined } });
    const { id } = await one.queue.add('x', 1);
    await other.queue.addAndWait('y', 2);
    expect(await other.queue.get(id)).toBeNull();
    expect(await one.queue.get(id)).toMatchObject({ state: 'waiting' });
    expect(await other.queue.stats()).toMatchObject({ total: { processed: 1 } });
    expect(await one.queue.stats()).toMatchObject({ total: { processed: 0 } });
  });

  it('does not recover its own jobs if a handler blocks the event loop for longer than the lease', async () => {
    const attempts: number[] = [];
    const block: Handlers[string] = (job) => {
      attempts.push(job.attempt);
      const until = performance.now() + 700;
      while (performance.now() < until);
    };
    const { queue, said } = await boot({ handlers: { block }, root: { lease: { duration: 200 } } });
    await queue.addAndWait('block', 1);
    await queue.addAndWait('block', 2);
    expect(attempts).toEqual([1, 1]);
    expect(said.values.map(({ type }) => type)).not.toContain('stalled');
  });
});

describe('what works as it does on Redis', () => {
  it('retries, priorities, delays, progress, log, results, dead letters', async () => {
    const order: string[] = [];
    const handlers: Handlers = {
      note: (job) => void order.push(job.id),
      flaky: async (job) => {
        await job.log(`attempt ${job.attempt}`);
        await job.progress({ attempt: job.attempt });
        if (job.attempt < 3) throw new Error('not yet');
        return 'at last';
      },
      bad: () => {
        throw new UnrecoverableError('no such address');
      },
    };
    const { queue, ended, said } = await boot({ handlers, concurrency: 1 });
    await queue.pause();
    await queue.add('note', 1, { id: 'last', delay: 300, priority: 99 });
    await queue.add('note', 1, { id: 'third', priority: 9 });
    await queue.add('note', 1, { id: 'second', priority: 1 });
    await queue.add('note', 1, { id: 'first' });
    expect(await queue.add('note', 1, { id: 'first' })).toMatchObject({ id: 'first', duplicate: true });
    await queue.resume();
    await ended('last');
    expect(order).toEqual(['first', 'second', 'third', 'last']);

    const options = { id: 'flaky', backoff: 1, attempts: 3, retention: '1h' } as const;
    await queue.add('flaky', 1, options);
    await ended('flaky');
    expect(await queue.get('flaky')).toMatchObject({
      state: 'completed',
      result: 'at last',
      progress: { attempt: 3 },
      logs: [1, 2, 3].map((attempt) => ({ attempt, text: `attempt ${attempt}` })),
    });
    expect(said.values.filter(({ type }) => type === 'retrying')).toHaveLength(2);

    await expect(queue.addAndWait('bad', 1)).rejects.toThrow(JobFailedError);
    const { jobs } = await queue.dead.list();
    expect(jobs).toMatchObject([{ name: 'bad', failure: { message: 'no such address' } }]);
    await queue.dead.retry(jobs[0]!.id);
    await until(async () => (await queue.counts()).dead === 1, PATIENT);
    expect(await queue.audit()).toMatchObject({ violations: [] });
    const { total } = await queue.stats();
    expect(total).toMatchObject({ processed: 5, failed: 4, dead: 2 });
  });

  it('cancelling what waits and what runs, cleaning, obliterating', async () => {
    const began = latch('the run');
    const hang: Handlers[string] = (job) => {
      began.open();
      return new Promise((_, reject) =>
        job.signal.addEventListener('abort', () => reject(job.signal.reason)),
      );
    };
    const { queue, ended } = await boot({ handlers: { hang }, root: { lease: { duration: '1s' } } });
    const later = await queue.add('hang', 1, { delay: '1h' });
    expect(await queue.cancel(later.id, 'not needed')).toBe('cancelled');
    const running = await queue.add('hang', 1);
    await began.wait(PATIENT);
    expect(await queue.cancel(running.id, 'enough')).toBe('signalled');
    expect(await ended(running.id)).toMatchObject({ type: 'cancelled', reason: 'enough' });
    await queue.pause();
    const { id } = await queue.add('hang', 1);
    expect(await queue.remove({ state: 'waiting', olderThan: 0 })).toBe(1);
    expect(await queue.get(id)).toBeNull();
    await queue.add('hang', 1);
    await queue.obliterate();
    expect(await queue.counts()).toEqual(countsOf());
  });

  it('schedules, from code and made at run time', async () => {
    const ran: string[] = [];
    @Processor('work')
    class Chores {
      @Handle('tidy')
      @Schedule({ every: '1s', data: { room: 7 } })
      tidy(job: Job) {
        ran.push(job.name);
      }
      @Handle('poll')
      poll(job: Job) {
        ran.push(job.name);
      }
    }
    const { queue, said, logs } = await boot({ providers: [Chores] });
    const { schedules } = queue;
    expect(await schedules.list()).toMatchObject([{ id: 'tidy' }]);
    await schedules.upsert('poll', { every: '1h' }, { name: 'poll' });
    await schedules.runNow('poll');
    await said.take(3, ({ type }) => type === 'completed', PATIENT);
    expect(new Set(ran)).toEqual(new Set(['tidy', 'poll']));
    await schedules.pause('tidy');
    expect(await schedules.get('tidy')).toMatchObject({ paused: true, nextAt: null });
    expect(logs.lines.map(({ text }) => text)).toContainEqual(
      expect.stringMatching(/^schedule 'tidy' of queue 'work' created/),
    );
  });

  it('its own entry among the workers, and the queues with what waits', async () => {
    const began = latch('the run');
    const end = latch('its end');
    const hold: Handlers[string] = () => {
      began.open();
      return end.promise;
    };
    const { get, queue } = await boot({
      handlers: { hold },
      concurrency: 1,
      root: { lease: { duration: 400 } },
    });
    const inspector = get(QueueInspector);
    await queue.addBulk([
      { name: 'hold', data: 1 },
      { name: 'hold', data: 2 },
    ]);
    await began.wait(PATIENT);
    const worker = await until(
      async () => (await inspector.workers()).find(({ pools }) => pools[0]!.running === 1),
      PATIENT,
    );
    expect(worker).toMatchObject({ pid: process.pid, state: 'running', versions: { server: 'memory' } });
    expect(await inspector.queues()).toMatchObject([{ name: 'work', counts: { waiting: 1, active: 1 } }]);
    end.open();
  });

  it('events over HTTP, live and after the last event that a reader got', async () => {
    @Controller()
    class Live {
      constructor(private readonly events: QueueEvents) {}
      @Sse('live')
      live(@Headers('last-event-id') since?: string) {
        return this.events
          .of('work', since === undefined ? {} : { since })
          .pipe(map((event) => ({ id: event.eventId, type: event.type, data: event })));
      }
    }
    @Processor('work')
    class Work {
      @Handle()
      any() {}
    }
    const { url, get } = await bootApp({
      imports: [QueueModule.forRoot({ connection: 'memory' }), QueueModule.registerQueue({ name: 'work' })],
      providers: [Work],
      controllers: [Live],
      http: true,
    });
    const queue = get<Queue>(getQueueToken('work'));
    await queue.add('one', 1, { id: 'one' });
    const first = await readUntil(`${url}/live`, /"completed".*"two"/, { 'last-event-id': '0' }, () =>
      queue.add('two', 2, { id: 'two' }),
    );
    expect(first).toMatch(/event: added\n[^]*event: active\n[^]*event: completed\n/);
    const [, lastOfOne] = /event: completed\nid: (.+)\ndata: .*"one"/.exec(first)!;
    const again = await readUntil(
      `${url}/live`,
      /event: completed\n/,
      { 'last-event-id': lastOfOne! },
      () => 0,
    );
    expect(again).toContain('"jobId":"two"');
    expect(again).not.toContain('"jobId":"one"');
  });
});
