import {
  Injectable,
  Scope,
  UseFilters,
  UseGuards,
  UseInterceptors,
  type ArgumentsHost,
  type CallHandler,
  type CanActivate,
  type ExceptionFilter,
  type ExecutionContext,
  type NestInterceptor,
  type Type,
} from '@nestjs/common';
import { of, tap } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { HandleBatch } from '#lib/decorators/handle-batch.decorator.js';
import { JobData } from '#lib/decorators/job-params.decorator.js';
import { OnJob } from '#lib/decorators/on-job.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { BatchOutcomeError, JobAbortedError, UnrecoverableError } from '#lib/errors.js';
import { QueueExecutionContext } from '#lib/handlers/queue-context.js';
import { defineJob, type JobOf } from '#lib/job/define-job.js';
import { Snooze, type Job } from '#lib/job/job.js';
import type { BatchOptions } from '#lib/options/worker-options.js';
import type { BatchMethod, JobBatch } from '#lib/worker/batches.js';
import { QueueTesting, QueueTestingModule } from '#lib/subpaths/testing.js';
import { bootQueue, PATIENT, type QueueApp } from '../support/queue-app.js';
import { bootApp } from '../support/app.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';
import { bootFaults, withQueues } from './fakes.js';
import { QueueModule } from '#lib/module/queue.module.js';

const redis = useRedis();
const KEPT = { defaults: { retention: '1m', attempts: 1 } } as const;

/** A processor of `work` with one batch handler for the jobs `b`, and all calls that it gets. */
function batcher(handle: BatchMethod, options: BatchOptions = { size: 10 }, concurrency = 10) {
  const calls: string[][] = [];
  @Processor('work', { concurrency })
  class Batcher {
    @HandleBatch('b', options)
    run(jobs: Job<any>[], batch: JobBatch<any>): unknown {
      calls.push(jobs.map(({ data }) => data));
      return handle(jobs, batch);
    }
  }
  return { provider: Batcher as Type, calls };
}

async function boot(provider: Type, queue: object = KEPT): Promise<QueueApp> {
  return bootQueue(redis, { providers: [provider], queue });
}

const addAll = async ({ queue }: QueueApp, data: readonly unknown[], options = {}) =>
  (await queue.addBulk(data.map((one) => ({ name: 'b', data: one, options })))).map(({ id }) => id);

/** How each of these jobs ended. */
async function endsOf({ ended, queue }: QueueApp, ids: readonly string[]) {
  return Promise.all(
    ids.map(async (id) => {
      const { type } = await ended(id);
      const job = await queue.get(id);
      return type === 'dead' ? `${job?.failure?.name}: ${job?.failure?.message}` : (job?.result ?? type);
    }),
  );
}

describe('a batch handler', () => {
  it('gets the jobs that wait in one call, up to its size, and completes them all', async () => {
    const { provider, calls } = batcher(() => undefined, { size: 4 }, 8);
    const app = await boot(provider);
    await app.queue.pause();
    const ids = await addAll(app, [1, 2, 3, 4, 5, 6]);
    await app.queue.resume();
    expect(await endsOf(app, ids)).toEqual(Array(6).fill('completed'));
    expect(calls).toEqual([
      [1, 2, 3, 4],
      [5, 6],
    ]);
  });

  it('fails all its jobs by throwing, each with its own attempts', async () => {
    let throws = true;
    const { provider, calls } = batcher(() => {
      if (throws) throw new Error('no');
    });
    const app = await boot(provider, { defaults: { backoff: 60_000, retention: '1m' } });
    const [once] = await addAll(app, ['once'], { attempts: 1 });
    const [twice] = await addAll(app, ['twice'], { attempts: 2 });
    expect(await endsOf(app, [once!])).toEqual(['Error: no']);
    await until(async () => (await app.queue.get(twice!))?.state === 'delayed', PATIENT);
    throws = false;
    await app.queue.promote(twice!);
    expect(await endsOf(app, [twice!])).toEqual(['completed']);
    expect(calls.at(-1)).toEqual(['twice']);
    expect(await app.queue.get(twice!)).toMatchObject({ attempt: 2 });
  });

  it('fails single jobs, and completes the others', async () => {
    const { provider } = batcher((jobs, batch) => {
      for (const job of jobs) if (job.data === 'bad') batch.fail(job, new UnrecoverableError('bad data'));
    });
    const app = await boot(provider, { defaults: { retention: '1m' } });
    const ids = await addAll(app, ['good', 'bad', 'fine']);
    expect(await endsOf(app, ids)).toEqual(['completed', 'UnrecoverableError: bad data', 'completed']);
  });

  it('completes single jobs with results; then a job without an outcome has failed', async () => {
    const { provider } = batcher((jobs, batch) => {
      batch.complete(jobs[0]!, { n: 1 });
      batch.complete(jobs[0]!, 'the first counts');
      if (jobs[2]) batch.fail(jobs[2], new Error('third'));
    });
    const app = await boot(provider);
    await app.queue.pause();
    const ids = await addAll(app, ['a', 'b', 'c']);
    await app.queue.resume();
    expect(await endsOf(app, ids)).toEqual([
      { n: 1 },
      `BatchOutcomeError: Batcher.run gave other jobs of the batch an outcome, but not job "${ids[1]}"; complete or fail each job`,
      'Error: third',
    ]);
  });

  it('takes what the method returns: settled promises, results and errors, or a map', async () => {
    const returns: Record<string, (jobs: Job<any>[]) => unknown> = {
      settled: (jobs) =>
        Promise.allSettled(
          jobs.map(async ({ data: [, n] }) => {
            if (n === 1) throw new Error('one');
            return n;
          }),
        ),
      list: (jobs) => jobs.map(({ data: [, n] }) => (n === 1 ? new Error('one') : n)),
      sorted: (jobs) => jobs.splice(0, 3, ...jobs.toReversed()) && jobs.map(({ data: [, n] }) => n),
      emptied: (jobs) => jobs.splice(0).map(({ data: [, n] }) => n),
      map: (jobs) =>
        new Map<unknown, unknown>([
          [jobs[0]!, 0],
          [jobs[1]!.id, new Error('one')],
          [jobs[2]!, 2],
        ]),
      status: (jobs) => [
        { status: 'fulfilled', order: 7 },
        { status: 'rejected', id: jobs[1]!.data[1] },
        { status: 'rejected', reason: 'spam', score: 9 },
      ],
      'short map': (jobs) => new Map([[jobs[0]!, 0]]),
      'short list': () => [0],
      'other map': () => new Map([['nobody', 0]]),
      observable: () => of(1),
      other: () => ({ rows: 3 }),
    };
    const { provider } = batcher((jobs) => returns[jobs[0]!.data[0]]!(jobs));
    const app = await boot(provider);
    const outcomes: Record<string, unknown> = {};
    for (const how of Object.keys(returns)) {
      await app.queue.pause();
      const ids = await addAll(
        app,
        [0, 1, 2].map((n) => [how, n]),
      );
      await app.queue.resume();
      const ends = await endsOf(app, ids);
      outcomes[how] = ends.map((end) =>
        typeof end === 'string' ? end.replaceAll(/"[^"]{10,}"/g, '<id>') : end,
      );
    }
    const list =
      'BatchOutcomeError: Batcher.run returned a list of 1 outcomes for a batch of 3; return one for each job, in their order, or return nothing';
    const map =
      'BatchOutcomeError: Batcher.run returned an outcome for "nobody", which is not a job of the batch; the keys are the jobs, or their ids';
    const stream = 'BatchOutcomeError: Batcher.run returned an Observable; return a promise';
    const missing =
      'BatchOutcomeError: Batcher.run gave other jobs of the batch an outcome, but not job <id>; complete or fail each job';
    expect(outcomes).toEqual({
      settled: [0, 'Error: one', 2],
      list: [0, 'Error: one', 2],
      sorted: [0, 1, 2],
      emptied: [0, 1, 2],
      map: [0, 'Error: one', 2],
      status: [
        { status: 'fulfilled', order: 7 },
        { status: 'rejected', id: 1 },
        { status: 'rejected', reason: 'spam', score: 9 },
      ],
      'short map': [0, missing, missing],
      'short list': [list, list, list],
      'other map': [map, map, map],
      observable: [stream, stream, stream],
      other: ['completed', 'completed', 'completed'],
    });
  });

  it('may snooze a job, and refuses jobs of another batch', async () => {
    const refused: unknown[] = [];
    let snoozed = false;
    const { provider } = batcher(([job], batch) => {
      try {
        batch.complete({ ...job!, id: 'other' } as Job, 1);
      } catch (error) {
        refused.push((error as Error).message);
      }
      if (!snoozed) batch.fail(job!, new Snooze('100ms'));
      snoozed = true;
    });
    const app = await boot(provider);
    const ids = await addAll(app, ['a']);
    expect(await endsOf(app, ids)).toEqual(['completed']);
    expect(refused[0]).toMatch(/^batch\.complete\(\) must be given a job of this batch/);
    expect(await app.queue.get(ids[0]!)).toMatchObject({ attempt: 1 });
  });

  it('waits until minSize jobs are there', async () => {
    const { provider, calls } = batcher(() => undefined, { size: 5, minSize: 3, timeout: '1h' });
    const app = await boot(provider);
    const ids = await addAll(app, [1, 2]);
    await until(async () => (await app.queue.counts()).active === 2, PATIENT);
    expect(calls).toEqual([]);
    ids.push(...(await addAll(app, [3])));
    expect(await endsOf(app, ids)).toEqual(Array(3).fill('completed'));
    expect(calls).toEqual([[1, 2, 3]]);
  });

  it('does not wait for more jobs than setConcurrency allows', async () => {
    const { provider, calls } = batcher(() => undefined, { size: 5, timeout: '1h' });
    const app = await boot(provider);
    const ids = await addAll(app, [1, 2, 3]);
    await until(async () => (await app.queue.counts()).active === 3, PATIENT);
    app.runtime.setConcurrency('work', 2);
    ids.push(...(await addAll(app, [4, 5])));
    expect(await endsOf(app, ids)).toEqual(Array(5).fill('completed'));
    expect(calls).toEqual([
      [1, 2, 3],
      [4, 5],
    ]);
  });

  it('waits for no longer than its timeout, which does not count for that of the jobs', async () => {
    let begun = 0;
    const handler = (jobs: readonly Job[]) => {
      begun = performance.now();
      return jobs.map(() => 'in time');
    };
    const { provider, calls } = batcher(handler, { size: 5, timeout: 300 });
    const app = await boot(provider, { defaults: { timeout: 250, attempts: 1, retention: '1m' } });
    const ids = await addAll(app, [1, 2]);
    expect(await endsOf(app, ids)).toEqual(['in time', 'in time']);
    expect(calls).toEqual([[1, 2]]);
    const [end] = app.said.values.filter(({ type }) => type === 'completed') as { durationUs: number }[];
    // Not longer than the call and its events took. The wait would add 300 ms.
    expect(end!.durationUs).toBeLessThanOrEqual((performance.now() - begun) * 1_000);
  });

  it('leaves out a job that is cancelled while it waits', async () => {
    const { provider, calls } = batcher(() => undefined, { size: 5, minSize: 2, timeout: '1h' });
    const app = await boot(provider);
    const [gone] = await addAll(app, ['gone']);
    await until(async () => (await app.queue.counts()).active === 1, PATIENT);
    await app.queue.cancel(gone!);
    expect((await app.ended(gone!)).type).toBe('cancelled');
    const ids = await addAll(app, ['a', 'b']);
    expect(await endsOf(app, ids)).toEqual(['completed', 'completed']);
    expect(calls).toEqual([['a', 'b']]);
  });

  it('leaves out a job whose deadline comes while it waits', async () => {
    const { provider, calls } = batcher(() => undefined, { size: 5, minSize: 2, timeout: '1h' });
    const app = await boot(provider);
    const [late] = await addAll(app, ['late'], { deadline: Date.now() + 300 });
    expect((await app.ended(late!)).type).toBe('dead');
    expect(await app.queue.get(late!)).toMatchObject({ failure: { reason: 'expired' } });
    expect(calls).toEqual([]);
  });

  it('applies the timeout of each job separately', async () => {
    const hold = latch();
    const aborted: unknown[] = [];
    const { provider } = batcher(async (jobs, batch) => {
      batch.signal.addEventListener('abort', () => aborted.push(batch.signal.reason));
      await hold.promise;
      for (const job of jobs) if (job.signal.aborted) batch.fail(job, job.signal.reason);
    });
    const app = await boot(provider);
    await app.queue.pause();
    const ids = [...(await addAll(app, ['slow'], { timeout: 50 })), ...(await addAll(app, ['other']))];
    await app.queue.resume();
    expect((await app.ended(ids[0]!)).type).toBe('dead');
    expect(aborted).toEqual([]);
    await app.queue.cancel(ids[1]!);
    await until(() => aborted.length > 0, PATIENT);
    expect(aborted[0]).toBeInstanceOf(JobAbortedError);
    hold.open();
    expect((await app.ended(ids[1]!)).type).toBe('cancelled');
  });

  it('starts at once if its process stops, and the stop waits for it', async () => {
    const { provider, calls } = batcher(() => undefined, { size: 5, minSize: 5, timeout: '1h' });
    const app = await boot(provider);
    const ids = await addAll(app, [1, 2]);
    await until(async () => (await app.queue.counts()).active === 2, PATIENT);
    await app.close();
    expect(calls).toEqual([[1, 2]]);
    const other = await boot(batcher(() => undefined).provider);
    expect(await Promise.all(ids.map(async (id) => (await other.queue.get(id))?.state))).toEqual([
      'completed',
      'completed',
    ]);
  });

  it('starts at once if its process claims no more jobs', async () => {
    const { provider, calls } = batcher(() => undefined, { size: 5, timeout: '1h' });
    const app = await boot(provider);
    const ids = await addAll(app, [1, 2]);
    await until(async () => (await app.queue.counts()).active === 2, PATIENT);
    app.runtime.pause();
    expect(await endsOf(app, ids)).toEqual(['completed', 'completed']);
    expect(calls).toEqual([[1, 2]]);
  });

  it('aborts its signal once all jobs without an outcome should end', async () => {
    const completed = latch('a job is completed');
    const aborted = latch<unknown>('the signal aborts');
    const { provider } = batcher(
      async ([first], batch) => {
        batch.signal.addEventListener('abort', () => aborted.open(batch.signal.reason));
        batch.complete(first!, 1);
        completed.open();
        throw await aborted.promise;
      },
      { size: 2, timeout: '1h' },
    );
    const app = await boot(provider);
    const ids = await addAll(app, ['done', 'gone']);
    await completed.wait(PATIENT);
    await app.queue.cancel(ids[1]!);
    expect(await aborted.wait(PATIENT)).toMatchObject({ reason: 'cancelled' });
    expect(await endsOf(app, ids)).toEqual([1, 'cancelled']);
  });

  it('aborts its signal if the last job that should not end is completed', async () => {
    const begun = latch('the method is called');
    const gone = latch('a job is aborted');
    const aborted: boolean[] = [];
    const { provider } = batcher(
      async ([first, second], batch) => {
        aborted.push(batch.signal.aborted);
        second!.signal.addEventListener('abort', () => gone.open());
        begun.open();
        await gone.promise;
        aborted.push(batch.signal.aborted);
        batch.complete(first!, 1);
        aborted.push(batch.signal.aborted);
      },
      { size: 2, timeout: '1h' },
    );
    const app = await boot(provider);
    const ids = await addAll(app, ['done', 'gone']);
    await begun.wait(PATIENT);
    await app.queue.cancel(ids[1]!);
    expect(await endsOf(app, ids)).toEqual([1, 'cancelled']);
    expect(aborted).toEqual([false, false, true]);
  });

  it('takes the jobs of a pattern, and each counts as one slot', async () => {
    const hold = latch();
    let running = 0;
    let most = 0;
    @Processor('work', { concurrency: 5 })
    class Patterns {
      @HandleBatch('mail.*', { size: 3 })
      async mail(jobs: Job[]) {
        running += jobs.length;
        most = Math.max(most, running);
        await hold.promise;
        running -= jobs.length;
        return jobs.map(({ name }) => name);
      }
    }
    const app = await boot(Patterns);
    const added = await app.queue.addBulk(
      ['mail.a', 'mail.b', 'mail.c', 'mail.d', 'mail.e', 'mail.f'].map((name) => ({ name, data: 0 })),
    );
    await until(() => running === 5, PATIENT);
    hold.open();
    expect(
      await endsOf(
        app,
        added.map(({ id }) => id),
      ),
    ).toEqual(added.map(({ name }) => name));
    expect(most).toBe(5);
  });

  it('validates each job on its own', async () => {
    const typed = defineJob('work', 'typed', z.object({ n: z.coerce.number() }));
    const calls: unknown[] = [];
    @Processor('work')
    class Typed {
      @HandleBatch(typed, { size: 10 }, { retention: '1m' })
      run(jobs: JobOf<typeof typed>[]) {
        calls.push(jobs.map((job) => job.data.n));
      }
    }
    const app = await boot(Typed);
    await app.queue.pause();
    const added = await app.queue.addBulk(
      [{ n: 1 }, { n: 'x' }, { n: '3' }].map((data) => ({ name: 'typed', data })),
    );
    await app.queue.resume();
    const [a, b, c] = await Promise.all(added.map(({ id }) => app.ended(id)));
    expect([a!.type, b!.type, c!.type]).toEqual(['completed', 'dead', 'completed']);
    expect(calls).toEqual([[1, 3]]);
  });

  it('has guards, interceptors and filters for each job, and hooks and listeners too', async () => {
    const history: string[] = [];
    @Injectable()
    class Guard implements CanActivate {
      canActivate(context: ExecutionContext) {
        return QueueExecutionContext.of(context).job.data !== 'refused';
      }
    }
    @Injectable()
    class Interceptor implements NestInterceptor {
      intercept(context: ExecutionContext, next: CallHandler) {
        const { data } = QueueExecutionContext.of(context).job;
        return next.handle().pipe(tap((value) => history.push(`${String(data)} -> ${String(value)}`)));
      }
    }
    class Filter implements ExceptionFilter {
      catch(error: Error, host: ArgumentsHost) {
        return new Error(`${String(host.getArgByIndex<Job>(0).data)}: ${error.message}`);
      }
    }
    @Processor('work')
    @UseGuards(Guard)
    class Guarded {
      @HandleBatch('b', { size: 10 })
      @UseInterceptors(Interceptor)
      @UseFilters(new Filter())
      run(jobs: Job<string>[], batch: JobBatch) {
        history.push(jobs.map(({ data }) => data).join());
        for (const job of jobs) {
          if (job.data === 'bad') batch.fail(job, new Error('no'));
          else batch.complete(job, 'ok');
        }
      }
      @OnJob('completed')
      ended({ job }: { job: { data: unknown } }) {
        history.push(`ended ${String(job.data)}`);
      }
    }
    const wrapped: string[] = [];
    const app = await bootQueue(redis, {
      providers: [Guarded, Guard, Interceptor],
      queue: KEPT,
      root: {
        wrap: async (job, next) => {
          wrapped.push(String(await next().catch(() => `${job.data} failed`)));
        },
      },
    });
    await app.queue.pause();
    const ids = await addAll(app, ['good', 'bad', 'refused']);
    await app.queue.resume();
    const [good, bad, refused] = await endsOf(app, ids);
    expect(good).toBe('ok');
    expect(bad).toBe('Error: bad: no');
    expect(refused).toMatch(/Forbidden/);
    expect(history).toEqual(['good,bad', 'good -> ok', 'ended good']);
    expect(wrapped.toSorted()).toEqual(['bad failed', 'ok', 'refused failed']);
  });

  it('runs alone in tests, without waiting for others', async () => {
    const { provider, calls } = batcher((jobs) => jobs.map(({ data }) => data), { size: 5, timeout: '1h' });
    const app = await bootApp({
      imports: [QueueTestingModule.forRoot(), QueueModule.registerQueue({ name: 'work' })],
      providers: [provider],
    });
    const testing = app.get(QueueTesting);
    expect(await testing.run('work', 'b', 7)).toBe(7);
    expect(calls).toEqual([[7]]);
  });
});

describe('the bootstrap refuses', () => {
  const faultsOf = (providers: Type[]) => bootFaults(withQueues(['work'], { providers }));

  it('batches that can never be filled', async () => {
    @Processor('work', { concurrency: 4 })
    class Large {
      @HandleBatch('large', { size: 5 })
      large(_: Job[]) {}
      @HandleBatch('min', { size: 2, minSize: 3 })
      min(_: Job[]) {}
      @HandleBatch('none', undefined as never)
      none(_: Job[]) {}
      @HandleBatch('one', { size: 1, timeout: '2h', by: 'name', many: 1 } as never)
      one(_: Job[]) {}
    }
    expect(await faultsOf([Large])).toEqual([
      "Large.min: @HandleBatch('min').minSize must be at most size, 2, got 3 (number)",
      "Large.none: @HandleBatch('none').size must be an integer from 2 to 1000, got undefined",
      "Large.one: @HandleBatch('one').size must be an integer from 2 to 1000, got 1 (number)",
      'Large.one: @HandleBatch(\'one\').timeout must be a duration from 1 ms to 3600000 ms, got "2h" (string)',
      "Large.one: @HandleBatch('one').by must be 'group', got \"name\" (string)",
      expect.stringMatching(/many/),
      'Large.large takes batches of up to 5 jobs, but its pool runs 4 jobs at once, and each job of a batch takes a slot; ' +
        'set concurrency to at least 5, or size to at most 4',
    ]);
  });

  it('batches that limits of the code keep below their smallest size', async () => {
    const options = { size: 4, minSize: 3, by: 'group' } as const;
    @Processor('one')
    class One {
      @HandleBatch('few', options)
      few(_: Job[]) {}
      @HandleBatch('any', { size: 4 })
      any(_: Job[]) {}
    }
    @Processor('two')
    class Two {
      @HandleBatch('few', { size: 4, timeout: '2s' })
      few(_: Job[]) {}
    }
    @Processor('three')
    class Three {
      @HandleBatch('few', options)
      few(_: Job[]) {}
    }
    @Processor(['four', 'five'])
    class Four {
      @HandleBatch('each', options)
      each(_: Job[]) {}
      @HandleBatch('both', { size: 4, minSize: 3 })
      both(_: Job[]) {}
    }
    const found = await bootFaults({
      imports: [
        QueueModule.forRoot({ limits: { api: { concurrency: 2 } } }),
        QueueModule.registerQueue(
          { name: 'one', groups: { order: 'strict' }, limits: { concurrency: 2 } },
          { name: 'two', limits: { names: { few: { concurrency: 3 } } } },
          { name: 'three', groups: { concurrency: 2 }, uses: ['api'] },
          { name: 'four', limits: { concurrency: 2 } },
          { name: 'five' },
        ),
      ],
      providers: [One, Two, Three, Four],
    });
    const fault = (place: string, min: number, limit: string, most: number) =>
      `${place} waits for batches of at least ${min} jobs, but ${limit} lets at most ${most} run at once, so each batch would wait for its timeout; set minSize to at most ${most}`;
    expect(found).toEqual([
      fault('One.few', 3, "limits.concurrency of queue 'one'", 2),
      fault('One.few', 3, "groups.order 'strict' of queue 'one'", 1),
      fault('Two.few', 4, "limits.names.few.concurrency of queue 'two'", 3),
      fault('Three.few', 3, 'limits.api.concurrency of forRoot()', 2),
      fault('Three.few', 3, "groups.concurrency of queue 'three'", 2),
      fault('Four.each', 3, "limits.concurrency of queue 'four'", 2),
    ]);
  });

  it('features for one job: request scope, decorated parameters, @Handle on the same method', async () => {
    @Processor('work', { scope: Scope.REQUEST })
    class Scoped {
      @HandleBatch('scoped', { size: 2 })
      run(_: Job[]) {}
    }
    @Processor('work')
    class Both {
      @HandleBatch('a', { size: 2 })
      @Handle('b')
      both(_: any) {}
      @HandleBatch('c', { size: 2 })
      data(@JobData() _: any) {}
    }
    expect(await faultsOf([Scoped, Both])).toEqual([
      "@HandleBatch('scoped') of Scoped.run is on Scoped, which has an instance for each job, itself or through something it injects; " +
        'a batch has many jobs: make Scoped a singleton, or use @Handle',
      'Both.both has both @Handle and @HandleBatch, which call it with different arguments; put one of them on another method',
      'parameter 1 of Both.data has a decorator, but a batch has many jobs; take them as the first parameter, and the batch as the second',
    ]);
  });

  it('a method that does not take a list of jobs, already at compile time', () => {
    class Wrong {
      // @ts-expect-error a batch is a list of jobs
      @HandleBatch('b', { size: 2 })
      run(_: Job<string>) {}
    }
    expect(Wrong).toBeDefined();
    expect(new BatchOutcomeError('Wrong.run', 'returned nothing').message).toBe('Wrong.run returned nothing');
  });
});
