import { Injectable, Scope, type ModuleMetadata } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { describe, expect, it } from 'vitest';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { getQueueToken, QUEUE_ENGINE } from '#lib/decorators/metadata.js';
import { OnJob } from '#lib/decorators/on-job.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import type { QueueEngine } from '#lib/contract/engine.js';
import { Snooze, type Job } from '#lib/job/job.js';
import { QueueModule } from '#lib/module/queue.module.js';
import type { Queue } from '#lib/producer/queue.js';
import { QueueTestingModule } from '#lib/subpaths/testing/queue-testing.module.js';
import { QueueTesting } from '#lib/subpaths/testing/queue-testing.js';
import { JobListeners, type JobEvent, type JobEventOf } from '#lib/worker/job-listeners.js';
import { of } from 'rxjs';
import { bootQueue, PATIENT, processorOf } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';
import { bootFaults, gate, withQueues } from './fakes.js';

const redis = useRedis();
const ALL = ['active', 'completed', 'failed', 'dead', 'stalled'] as const;

/** A processor of the queue `work` that has only listeners. */
function listening() {
  const events: JobEvent[] = [];
  @Processor('work')
  class Listening {
    @OnJob(ALL)
    hear(event: JobEvent) {
      events.push(event);
    }
  }
  const of = (id: string) => events.filter(({ job }) => job.id === id);
  const types = (id: string) => of(id).map(({ type }) => type);
  return { Listening, events, of, types };
}

describe('a method with @OnJob', () => {
  it('is called once, in the process that ran the job, with the job and its result', async () => {
    const [here, there] = [listening(), listening()];
    const running = await bootQueue(redis, {
      handlers: { sum: (job) => job.data.a + job.data.b, stream: () => of(1, 2) },
      providers: [here.Listening],
    });
    await bootQueue(redis, { handlers: { other: () => 1 }, providers: [there.Listening], watch: false });
    const ids: string[] = [];
    for (let i = 0; i < 20; i++) ids.push((await running.queue.add('sum', { a: i, b: 1 })).id);
    ids.push((await running.queue.add('stream', null)).id);
    const told = () => ids.filter((id) => here.types(id).at(-1) === 'completed');
    await until(() => told().length === ids.length, PATIENT);
    for (const id of ids) expect(here.types(id)).toEqual(['active', 'completed']);
    expect(here.of(ids[3]!)[1]).toMatchObject({
      result: 4,
      job: { name: 'sum', queue: 'work', data: { a: 3, b: 1 }, attempt: 1, attempts: 3 },
    });
    expect(here.of(ids.at(-1)!)[1]).toMatchObject({ result: 2 });
    expect(there.events).toEqual([]);
  });

  it('is not called for the failure of a job that was cancelled meanwhile', async () => {
    const { Listening, types } = listening();
    const [begun, failing] = [latch('the run'), latch('its failure')];
    const app = await bootQueue(redis, {
      handlers: {
        fail: async () => {
          begun.open();
          await failing.promise;
          throw new Error('no luck');
        },
      },
      providers: [Listening],
      queue: { defaults: { attempts: 1 } },
    });
    const { id } = await app.queue.add('fail', null);
    await begun.wait(PATIENT);
    // The worker learns of it with its next heartbeat, which is later.
    expect(await app.queue.cancel(id)).toBe('signalled');
    failing.open();
    await until(async () => (await app.queue.counts()).active === 0, PATIENT);
    await app.close();
    expect(types(id)).toEqual(['active']);
  });

  it('is called for each failed attempt, and for the death, with the error; not for a snooze', async () => {
    const { Listening, of: told, types } = listening();
    const thrown = new TypeError('no luck');
    const app = await bootQueue(redis, {
      handlers: {
        fail: () => {
          throw thrown;
        },
        later: (job) => {
          if (Date.now() - job.createdAt.getTime() < 50) throw new Snooze(60);
        },
      },
      providers: [Listening],
      queue: { unknownJob: 'dead', defaults: { attempts: 2, backoff: 1 } },
    });
    const { id } = await app.queue.add('fail', 7);
    await until(() => types(id).at(-1) === 'dead', PATIENT);
    expect(types(id)).toEqual(['active', 'failed', 'active', 'failed', 'dead']);
    const [, first, , second, dead] = told(id) as JobEventOf<'failed'>[];
    expect([first!.error, first!.delayMs, second!.error, second!.delayMs]).toEqual([thrown, 1, thrown, null]);
    expect(dead).toMatchObject({ error: thrown, reason: 'retries-exhausted', job: { data: 7, attempt: 2 } });

    const unknown = await app.queue.add('nobody', 8);
    await until(() => types(unknown.id).length > 0, PATIENT);
    expect(told(unknown.id)).toMatchObject([
      { type: 'dead', reason: 'no-handler', job: { name: 'nobody', data: 8 }, error: expect.any(Error) },
    ]);
    const snoozed = await app.queue.add('later', 1);
    await until(() => types(snoozed.id).at(-1) === 'completed', PATIENT);
    expect(types(snoozed.id).filter((type) => type !== 'active')).toEqual(['completed']);
  });

  it('takes a name or a pattern, and changes nothing if it throws, rejects or sends an error', async () => {
    const names: string[] = [];
    @Processor('work')
    class Filtered {
      @OnJob('completed', { name: ['mail.*', 'sms'] })
      hear({ job }: JobEventOf<'completed'>) {
        names.push(job.name);
        throw new Error('sync');
      }
      @OnJob('active', { name: 'sms' })
      async rejects() {
        throw new Error('async');
      }
    }
    const app = await bootQueue(redis, { handlers: { '*': () => 1 }, providers: [Filtered] });
    for (const name of ['mail.a', 'other', 'sms']) {
      const { id } = await app.queue.add(name, 1);
      expect(await app.ended(id)).toMatchObject({ type: 'completed', attempt: 1 });
    }
    await until(() => names.length === 2, PATIENT);
    expect(names).toEqual(['mail.a', 'sms']);
    await app.logs.complaint(
      /Filtered\.hear failed for 'completed' of .*: sync; the outcome of the job is not changed/,
    );
    await app.logs.complaint(/Filtered\.rejects failed for 'active' of .*: async; the outcome/);
  });

  it('is awaited before the drain ends', async () => {
    const [called, open] = [gate(), gate()];
    const order: string[] = [];
    @Processor('work')
    class Slow {
      @OnJob('completed')
      async hear() {
        called.open();
        await open.opened;
        order.push('heard');
      }
    }
    const app = await bootQueue(redis, { handlers: { '*': () => 1 }, providers: [Slow] });
    await app.queue.add('any', 1);
    await called.opened;
    const stopped = app.runtime.stop().then(() => order.push('stopped'));
    await app.queue.counts();
    open.open();
    await stopped;
    expect(order).toEqual(['heard', 'stopped']);
  });

  it('is called for a stalled job in the process that recovers it, and for its death', async () => {
    const { Listening, types, of: told } = listening();
    const root = { lease: { duration: '300ms', maxStalls: 0 } } as const;
    const producer = await bootQueue(redis, { root: { ...root, role: 'producer' } });
    const { id } = await producer.queue.add('lost', { n: 1 });
    await producer.get<QueueEngine>(QUEUE_ENGINE).exchange('work', {
      worker: 'ghost',
      seq: 1,
      leaseMs: 300,
      want: 1,
      maySuspect: true,
      settled: [],
    });
    await bootQueue(redis, { root, handlers: { '*': () => 1 }, providers: [Listening], watch: false });
    await until(() => types(id).length === 2, PATIENT);
    expect(told(id)).toMatchObject([
      { type: 'stalled', stalls: 1, job: { id, name: 'lost', data: { n: 1 } } },
      { type: 'dead', reason: 'stalled', error: expect.any(Error) },
    ]);
  });

  it('is not called for a job that the worker has lost', () => {
    const events: JobEvent[] = [];
    const call = (event: JobEvent) => events.push(event);
    const listeners = new JobListeners('work', [
      { label: 'A.b', types: new Set(ALL), names: undefined, call },
    ]);
    const job = { id: 'a', name: 'n' } as never;
    listeners.ended(job, { kind: 'completed' }, 1);
    listeners.confirmed([{ id: 'a' }], ['a']);
    listeners.ended(job, { kind: 'completed' }, 1);
    listeners.dropped();
    listeners.confirmed([{ id: 'a' }], []);
    expect(events).toEqual([]);
    listeners.ended(job, { kind: 'completed' }, 1);
    expect(events).toEqual([]);
    listeners.confirmed([{ id: 'a' }], []);
    expect(events).toMatchObject([{ type: 'completed', result: 1 }]);
  });

  it('is called, and awaited, in tests without Redis', async () => {
    const { Listening, types } = listening();
    const module = await Test.createTestingModule({
      imports: [QueueTestingModule.forRoot(), QueueModule.registerQueue({ name: 'work' })],
      providers: [Listening, processorOf('work', { '*': () => 1 })],
    }).compile();
    await module.init();
    const testing = module.get(QueueTesting);
    const { id } = await module.get<Queue>(getQueueToken('work')).add('a', 1);
    await testing.queue('work').runNext();
    expect(types(id)).toEqual(['active', 'completed']);
    await module.close();
  });
});

describe('the bootstrap refuses', () => {
  const faultsOf = (metadata: ModuleMetadata) => bootFaults(withQueues(['work'], metadata));

  it('@OnJob with wrong arguments, on other classes and on request-scoped processors', async () => {
    @Processor('work')
    class Wrong {
      @Handle('a')
      a(job: Job) {
        return job;
      }
      @OnJob('finished' as never)
      b() {}
      @OnJob('retrying' as never)
      c() {}
      @OnJob([])
      d() {}
      @OnJob('dead', { names: 'a' } as never)
      e() {}
      @OnJob('dead', { name: [] })
      f() {}
    }
    @Injectable()
    class Other {
      @OnJob('dead')
      g() {}
    }
    @Processor('work', { scope: Scope.REQUEST })
    class Scoped {
      @Handle('b')
      b() {}
      @OnJob('dead')
      h() {}
    }
    const wanted = 'name one or several of active, completed, failed, dead, stalled';
    expect((await faultsOf({ providers: [Wrong, Other, Scoped] })).toSorted()).toEqual([
      `@OnJob("dead") of Wrong.e.names is not an option; did you mean name?`,
      `@OnJob("dead") of Wrong.f.name must be the name of a job, or several, got [] (array)`,
      `@OnJob("finished") of Wrong.b: there is no type "finished" (string); ${wanted}`,
      `@OnJob("retrying") of Wrong.c: there is no type "retrying" (string); ${wanted}; use 'failed': it is reported for each failed attempt, also if the job is retried`,
      `@OnJob([]) of Wrong.d: it names no type; ${wanted}`,
      `Other.g has @OnJob("dead"), but Other has no @Processor; add @Processor('queue') to the class, or use @OnQueueEvent`,
      `Scoped.h has @OnJob("dead"), but Scoped is request-scoped, itself or through something it injects; events come without a request: ` +
        'make the class a singleton, or put the listener on a class that is one',
    ]);
  });

  it('a queue that has listeners and no handler', async () => {
    expect(await faultsOf({ providers: [listening().Listening] })).toEqual([
      `nothing handles the jobs of queue 'work', which Listening works on; put @Handle('name') on a method, or remove the queue from @Processor`,
    ]);
  });
});
