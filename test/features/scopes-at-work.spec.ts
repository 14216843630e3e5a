import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Inject, Injectable, Scope } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { JOB_REF } from '#lib/decorators/metadata.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import type { Job } from '#lib/job/job.js';
import { bootQueue, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';
import { jobOf, runnerFor } from './scopes-support.js';

describe('request-scoped processors at work', () => {
  const redis = useRedis();

  it('run fifty jobs at once, each with its own instances', async () => {
    const full = latch('fifty jobs run');
    const made: string[] = [];
    let running = 0;
    @Injectable({ scope: Scope.REQUEST })
    class Session {
      constructor(@Inject(JOB_REF) readonly job: Job<number>) {
        made.push(job.id);
      }
    }
    @Processor('work', { concurrency: 50 })
    class Work {
      constructor(readonly session: Session) {}
      @Handle('job')
      async job(job: Job<number>) {
        running += 1;
        if (running === 50) full.open();
        await full.promise;
        return this.session.job === job ? this.session.job.data : 'of another job';
      }
    }
    const { queue, said } = await bootQueue(redis, {
      queue: { defaults: { retention: '1m' } },
      providers: [Work, Session],
    });
    const added = await queue.addBulk(Array.from({ length: 200 }, (_, data) => ({ name: 'job', data })));
    await said.take(200, ({ type }) => type === 'completed', PATIENT);
    const results = await Promise.all(added.map(async ({ id }) => (await queue.get(id))?.result));
    expect(results).toEqual(added.map((_, i) => i));
    expect(made.toSorted()).toEqual(added.map(({ id }) => id).toSorted());
  });

  it('that cannot be created fail their job, which is retried and dies with the message', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class Account {
      constructor(@Inject(JOB_REF) { attempt }: Job) {
        throw new Error(`no account at attempt ${attempt}`);
      }
    }
    @Processor('work')
    class Work {
      constructor(readonly account: Account) {}
      @Handle('job')
      job() {}
    }
    const { queue, ended } = await bootQueue(redis, { providers: [Work, Account] });
    const { id } = await queue.add('job', null, { id: 'lost', attempts: 2, backoff: 1 });
    expect(await ended(id)).toMatchObject({ type: 'dead', reason: 'retries-exhausted', attempt: 2 });
    expect((await queue.get(id))?.failure).toMatchObject({
      name: 'ProcessorScopeError',
      message: `Work could not be created for job "lost" of queue 'work': no account at attempt 2`,
      stack: expect.stringContaining('new Account'),
    });
  });

  it('that are not created in time are not called any more', async () => {
    const made = latch('the connection is there');
    const calls: string[] = [];
    const connection = {
      provide: 'connection',
      scope: Scope.REQUEST,
      useFactory: async () => {
        await made.promise;
        calls.push('made');
      },
    };
    @Processor('work')
    class Work {
      constructor(@Inject('connection') readonly connection: unknown) {}
      @Handle('job')
      job() {
        calls.push('called');
      }
    }
    const { queue, ended, logs } = await bootQueue(redis, { providers: [Work, connection] });
    const { id } = await queue.add('job', null, { attempts: 1, timeout: 50 });
    expect(await ended(id)).toMatchObject({ type: 'dead', reason: 'retries-exhausted' });
    made.open();
    await until(() => calls.length > 0, PATIENT);
    // Anything that came after it would come in the same turn.
    await new Promise(setImmediate);
    expect(calls).toEqual(['made']);
    expect(logs.complaints.filter((text) => text.includes('Work.job'))).toEqual([]);
  });
});

describe('request-scoped processors', () => {
  it('leave nothing in memory', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    @Injectable({ scope: Scope.REQUEST })
    class Session {
      constructor(@Inject(JOB_REF) readonly job: Job) {}
    }
    @Processor('email')
    class Mails {
      constructor(readonly session: Session) {}
      @Handle('welcome')
      welcome() {
        return this.session.job.id;
      }
    }
    const { run } = await runnerFor({ providers: [Mails, Session] });
    const ballast = Array.from({ length: 1024 }, (_, i) => i);
    const heapAfter = async (jobs: number) => {
      // 8 KiB each. None of it may stay in memory.
      for (let i = 0; i < jobs; i++) await run(jobOf([...ballast]));
      collect();
      return process.memoryUsage().heapUsed;
    };
    const before = await heapAfter(500);
    const after = await heapAfter(3_000);
    // 24 MiB would stay if jobs did.
    expect((after - before) / 1024 / 1024).toBeLessThan(4);
  });
});
