import { UseGuards, UseInterceptors, type CallHandler, type NestInterceptor } from '@nestjs/common';
import { concat, defer, EMPTY, filter, ignoreElements, map, NEVER, Observable, of, retry, tap } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { Signal } from '#lib/decorators/job-params.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import type { QueueEvent } from '#lib/events/queue-event.js';
import { QueueExecutionContext } from '#lib/handlers/queue-context.js';
import type { Job } from '#lib/job/job.js';
import { bootQueue, PATIENT, type QueueApp } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';

const redis = useRedis();
const KEPT = { defaults: { retention: '1m', attempts: 1 } } as const;

const through: NestInterceptor = { intercept: (_context, next) => next.handle() };

/** Runs a job of that name. Returns how it ended, its result, and its progress values. */
async function run({ queue, ended }: QueueApp, name: string, data: unknown = null) {
  told.length = 0;
  const { id } = await queue.add(name, data);
  const end = await ended(id);
  return { type: end.type, result: (await queue.get(id))?.result, progress: [...told], error: errorOf(end) };
}

const told: unknown[] = [];

/** Records the progress of a run. A queue may write no event for it if the run ends at once. */
function listen(job: Job): void {
  Object.assign(job, { progress: async (value: unknown) => void told.push(value) });
}

function errorOf(end: QueueEvent): string | undefined {
  return end.type === 'dead' ? `${end.error?.name}: ${end.error?.message}` : undefined;
}

describe('what a handler returns means the same inside guards and interceptors', () => {
  it('a value, a promise, an Observable whose values are progress and whose last is the result, an empty one', async () => {
    class Base {
      @Handle('value')
      value() {
        return [1];
      }
      @Handle('promise')
      async promise() {
        return 'later';
      }
      @Handle('observable')
      observable(job: Job) {
        listen(job);
        return of(10, 20, 30);
      }
      @Handle('promised observable')
      async promisedObservable(job: Job) {
        listen(job);
        return of(1, 2);
      }
      @Handle('empty')
      empty() {
        return EMPTY;
      }
      @Handle('nothing')
      nothing() {}
      @Handle('fails on its way')
      failsOnItsWay(job: Job) {
        listen(job);
        return concat(
          of(1),
          defer(() => Promise.reject(new Error('half way'))),
        );
      }
    }
    @Processor('work')
    @UseInterceptors(through)
    class Intercepted extends Base {}
    @Processor('guarded')
    @UseGuards({ canActivate: () => true })
    class Guarded extends Base {}
    const app = await bootQueue(redis, {
      queue: KEPT,
      queues: [{ name: 'guarded', ...KEPT }],
      providers: [Intercepted, Guarded],
    });
    const completed = { type: 'completed', error: undefined };
    expect(await run(app, 'value')).toEqual({ ...completed, result: [1], progress: [] });
    expect(await run(app, 'promise')).toEqual({ ...completed, result: 'later', progress: [] });
    expect(await run(app, 'observable')).toEqual({ ...completed, result: 30, progress: [10, 20] });
    expect(await run(app, 'promised observable')).toEqual({ ...completed, result: 2, progress: [1] });
    expect(await run(app, 'empty')).toEqual({ ...completed, result: null, progress: [] });
    expect(await run(app, 'nothing')).toEqual({ ...completed, result: null, progress: [] });
    const failed = { type: 'dead', progress: [1], error: 'Error: half way' };
    expect(await run(app, 'fails on its way')).toMatchObject(failed);

    const guarded = app.queueOf('guarded');
    told.length = 0;
    const { id } = await guarded.add('observable', null);
    await until(async () => (await guarded.get(id))?.state === 'completed', PATIENT);
    expect((await guarded.get(id))!.result).toBe(30);
    expect(told).toEqual([10, 20]);
  });

  it('an interceptor may change the values, drop all of them, or return a result instead of calling the handler', async () => {
    let calls = 0;

    @Processor('work')
    class Work {
      @Handle('changed')
      @UseInterceptors({ intercept: (_, next) => next.handle().pipe(map((n: number) => n * 2)) })
      changed(job: Job) {
        listen(job);
        return of(1, 2);
      }
      @Handle('dropped')
      @UseInterceptors({ intercept: (_, next) => next.handle().pipe(filter(() => false)) })
      dropped() {
        return 'unseen';
      }
      @Handle('cached')
      @UseInterceptors({ intercept: () => of('from the cache') })
      cached() {
        calls++;
      }
    }
    const app = await bootQueue(redis, { queue: KEPT, providers: [Work] });
    expect(await run(app, 'changed')).toMatchObject({ type: 'completed', result: 4, progress: [2] });
    expect(await run(app, 'dropped')).toMatchObject({ type: 'completed', result: null });
    expect(await run(app, 'cached')).toMatchObject({ type: 'completed', result: 'from the cache' });
    expect(calls).toBe(0);
  });

  it('an interceptor that tries again calls the handler again, in the same attempt', async () => {
    const seen: [number, number][] = [];

    @Processor('work')
    class Work {
      @Handle('flaky')
      @UseInterceptors({ intercept: (_, next) => next.handle().pipe(retry(2)) })
      async flaky(job: Job<number>) {
        seen.push([job.attempt, job.data]);
        if (seen.length < 3) throw new Error('not yet');
        return 'third time';
      }
    }
    const app = await bootQueue(redis, { queue: KEPT, providers: [Work] });
    expect(await run(app, 'flaky', 7)).toMatchObject({ type: 'completed', result: 'third time' });
    expect(seen).toEqual([
      [1, 7],
      [1, 7],
      [1, 7],
    ]);
  });
});

describe('an interceptor that does not let the job through', () => {
  it('fails the job if it ends without a value and without calling the handler, and explains what to do', async () => {
    @Processor('work')
    class Work {
      @Handle('silent')
      @UseInterceptors({ intercept: () => EMPTY })
      silent() {}
    }
    const app = await bootQueue(redis, { queue: KEPT, providers: [Work] });
    expect(await run(app, 'silent')).toMatchObject({
      type: 'dead',
      error:
        'HandlerNotCalledError: an interceptor of Work.silent ended without a value and without calling the handler; ' +
        'return next.handle(), or a value that is the result of the job: of(value)',
    });
  });

  it('fails the job if it returns no Observable, and names the handler', async () => {
    @Processor('work')
    class Work {
      @Handle('forgets')
      @UseInterceptors({ intercept: (_: unknown, next: CallHandler) => void next.handle() } as never)
      forgets() {}
    }
    const app = await bootQueue(redis, { queue: KEPT, providers: [Work] });
    expect(await run(app, 'forgets')).toMatchObject({
      type: 'dead',
      error:
        'HandlerNotCalledError: an interceptor of Work.forgets returned no Observable; ' +
        'return next.handle(), or a value that is the result of the job: of(value)',
    });
  });

  it('that never emits is ended by the timeout of the job, which says that the handler was not called', async () => {
    const left = latch('the interceptor is left');

    @Processor('work')
    class Work {
      @Handle('stuck')
      @UseInterceptors({ intercept: () => new Observable(() => () => left.open()) })
      stuck() {}
      @Handle('at the guard')
      @UseGuards({ canActivate: () => NEVER })
      atTheGuard() {}
      @Handle('after it')
      @UseInterceptors({ intercept: (_, next) => concat(next.handle().pipe(ignoreElements()), NEVER) })
      afterIt() {}
    }
    const defaults = { ...KEPT.defaults, timeout: 50 };
    const app = await bootQueue(redis, { queue: { defaults }, providers: [Work] });
    const said = (method: string) =>
      `it took longer than 50 ms; Work.${method} was not called by then: the guards and interceptors before it had not let the job ` +
      'through';
    const stuck = await run(app, 'stuck');
    expect(stuck.error).toContain(`JobAbortedError: run of job`);
    expect(stuck.error).toContain(said('stuck'));
    await left.wait(PATIENT);
    expect((await run(app, 'at the guard')).error).toContain(said('atTheGuard'));
    expect((await run(app, 'after it')).error).toMatch(/it took longer than 50 ms$/);
  });
});

describe('a run that should end early', () => {
  it('is unsubscribed inside its interceptors if the handler returned an Observable', async () => {
    const begun = latch('begun');
    const left = latch('left');

    @Processor('work')
    @UseInterceptors(through)
    class Work {
      @Handle('endless')
      endless() {
        return new Observable((subscriber) => {
          subscriber.next(1);
          begun.open();
          return () => left.open();
        });
      }
    }
    const { queue, ended } = await bootQueue(redis, { queue: KEPT, providers: [Work] });
    const { id } = await queue.add('endless', null);
    await begun.wait(PATIENT);
    await queue.cancel(id);
    await left.wait(PATIENT);
    expect(await ended(id)).toMatchObject({ type: 'cancelled' });
  });

  it('ends on its own if the handler returned a promise and watches its signal, as without interceptors', async () => {
    const begun = latch('begun');

    @Processor('work')
    @UseInterceptors(through)
    class Work {
      @Handle('careful')
      async careful(_job: Job, @Signal() signal: AbortSignal) {
        const aborted = new Promise((resolve) => signal.addEventListener('abort', resolve));
        begun.open();
        await aborted;
        return 'all saved';
      }
    }
    const { queue, runtime } = await bootQueue(redis, {
      queue: KEPT,
      providers: [Work],
      root: { shutdown: { timeout: 0, grace: '5s' } },
    });
    const { id } = await queue.add('careful', null);
    await begun.wait(PATIENT);
    await runtime.stop();
    expect(await queue.get(id)).toMatchObject({ state: 'completed', result: 'all saved' });
  });

  it('does not start if it was told to end before its guards were done', async () => {
    const asked = latch('asked');
    const begun = latch('begun');
    let calls = 0;

    @Processor('work')
    class Work {
      @Handle('guarded')
      @UseGuards({
        canActivate: async (context) => {
          const { signal } = QueueExecutionContext.of(context);
          const aborted = new Promise((resolve) => signal.addEventListener('abort', resolve));
          asked.open();
          await aborted;
          return true;
        },
      })
      guarded() {
        calls++;
      }
      @Handle('tried again')
      @UseInterceptors({ intercept: (_, next) => next.handle().pipe(retry()) })
      async triedAgain(_job: Job, @Signal() signal: AbortSignal) {
        calls++;
        begun.open();
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        throw new Error('stopped');
      }
    }
    const { queue, ended } = await bootQueue(redis, { queue: KEPT, providers: [Work] });
    const first = await queue.add('guarded', null);
    await asked.wait(PATIENT);
    await queue.cancel(first.id);
    expect(await ended(first.id)).toMatchObject({ type: 'cancelled' });
    const second = await queue.add('tried again', null);
    await begun.wait(PATIENT);
    await queue.cancel(second.id);
    expect(await ended(second.id)).toMatchObject({ type: 'cancelled' });
    expect(calls).toBe(1);
  });

  it('ignores what an interceptor emits afterwards', async () => {
    const subscribed = latch('subscribed');
    const values: unknown[] = [];

    @Processor('work')
    class Work {
      @Handle('slow')
      @UseInterceptors({ intercept: (_, next) => next.handle().pipe(tap((value) => values.push(value))) })
      async slow(_job: Job, @Signal() signal: AbortSignal) {
        subscribed.open();
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        return 'too late';
      }
    }
    const { queue, ended, logs } = await bootQueue(redis, {
      queue: { defaults: { ...KEPT.defaults, timeout: 50 } },
      providers: [Work],
    });
    const { id } = await queue.add('slow', null);
    await subscribed.wait(PATIENT);
    expect(await ended(id)).toMatchObject({ type: 'dead' });
    expect(await logs.complaint(/Work\.slow, attempt 1, returned after its run was over/)).toContain(id);
    expect(values).toEqual(['too late']);
  });
});
