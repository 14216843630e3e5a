import { setImmediate as pause } from 'node:timers/promises';
import { concat, NEVER, of, tap } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { UnrecoverableError } from '#lib/errors.js';
import { defineJob } from '#lib/job/define-job.js';
import { type Job, Snooze } from '#lib/job/job.js';
import type { WrapHook } from '#lib/options/worker-options.js';
import { useRedis } from '../support/redis.js';
import { bootQueue, outcomeOf, PATIENT, type QueueAppOptions } from '../support/queue-app.js';
import { latch, until } from '../support/wait.js';

const redis = useRedis();

const boot = (wrap: WrapHook | WrapHook[], options: QueueAppOptions) =>
  bootQueue(redis, {
    queue: { defaults: { attempts: 1, retention: '1m' } },
    ...options,
    root: { wrap, ...options.root },
  });

describe('hooks around a run', () => {
  it('run around it in their order, the first outermost, with the job that the handler gets', async () => {
    const steps: string[] = [];
    const jobs = new Set<unknown>();
    const hook =
      (name: string): WrapHook =>
      async (job, next) => {
        jobs.add(job);
        steps.push(`${name} before`);
        const result = await next();
        steps.push(`${name} after ${String(result)}`);
      };
    const app = await boot([hook('outer'), hook('inner')], {
      handlers: {
        run: async (job) => {
          jobs.add(job);
          steps.push('handler');
          return 'done';
        },
      },
    });
    expect(await outcomeOf(app, 'run')).toEqual(['completed', 'done']);
    expect(steps).toEqual([
      'outer before',
      'inner before',
      'handler',
      'inner after done',
      'outer after done',
    ]);
    expect(jobs.size).toBe(1);
  });

  it('run after the schema: they see the data that the handler sees, and no refused data', async () => {
    const typed = defineJob('work', 'typed', z.object({ count: z.coerce.number() }));
    @Processor('work')
    class Typed {
      @Handle(typed)
      run({ data }: Job<{ count: number }>) {
        return data.count;
      }
    }
    const seen: unknown[] = [];
    const look: WrapHook = ({ data }, next) => {
      seen.push(data);
      return next();
    };
    const app = await boot(look, { providers: [Typed] });
    expect(await outcomeOf(app, 'typed', { count: '7' })).toEqual(['completed', 7]);
    expect((await outcomeOf(app, 'typed', { count: 'x' }))[0]).toBe('dead');
    expect(seen).toEqual([{ count: 7 }]);
  });

  it('get the last value of an Observable, while the others are progress', async () => {
    const heard: unknown[] = [];
    const app = await boot(
      async (_, next) => {
        heard.push(await next());
        // The hook is slow. The last value is not lost because of that.
        for (let i = 0; i < 5; i++) await pause();
      },
      {
        handlers: {
          stream: () => of(1, 2, 3),
          later: async () => of('a', 'b'),
          one: () => of('only'),
          told: (job) => job.progress('told'),
        },
      },
    );
    // The server then knows the script that writes progress. A script that must be sent first may run after the end of
    // the job.
    await outcomeOf(app, 'told');
    expect(await outcomeOf(app, 'stream')).toEqual(['completed', 3]);
    expect(await outcomeOf(app, 'later')).toEqual(['completed', 'b']);
    expect(await outcomeOf(app, 'one')).toEqual(['completed', 'only']);
    expect(heard).toEqual([undefined, 3, 'b', 'only']);
    expect(app.said.values.flatMap((event) => (event.type === 'progress' ? [event.progress] : []))).toEqual([
      'told',
      1,
      2,
      'a',
    ]);
  });

  it('end with an aborted run: the stream is unsubscribed, and next rejects with the reason', async () => {
    const told: string[] = [];
    const left: string[] = [];
    const app = await boot(
      async ({ name }, next) => {
        try {
          await next();
        } catch (error) {
          told.push(`${name} ${(error as { reason?: string }).reason}`);
          throw error;
        }
      },
      {
        queue: { defaults: { attempts: 1 } },
        handlers: {
          stream: ({ name }) =>
            concat(of(1), NEVER).pipe(tap({ unsubscribe: () => left.push(name), finalize: () => undefined })),
          cancelled: () => NEVER.pipe(tap({ unsubscribe: () => left.push('cancelled') })),
        },
      },
    );
    const { id } = await app.queue.add('stream', null, { timeout: '50ms' });
    expect(await app.ended(id)).toMatchObject({ type: 'dead', error: { name: 'JobAbortedError' } });
    await app.queue.add('cancelled', null, { id: 'c' });
    await app.said.first((event) => event.type === 'active' && event.jobId === 'c', PATIENT);
    await app.queue.cancel('c', 'no need');
    expect(await app.ended('c')).toMatchObject({ type: 'cancelled', reason: 'no need' });
    expect(left).toEqual(['stream', 'cancelled']);
    expect(told).toEqual(['stream timeout', 'cancelled cancelled']);
  });
});

describe('the outcome is that of the handler', () => {
  it('even if a hook returns, waits for, or catches something', async () => {
    const hooks: Record<string, WrapHook> = {
      returns: async (_, next) => {
        await next();
        return 'of the hook';
      },
      floats: (_, next) => void next(),
      swallows: async (_, next) => {
        await next().catch(() => 'fine');
        return 'fine';
      },
    };
    const app = await boot((job, next) => hooks[job.data as string]!(job, next), {
      handlers: {
        works: async () => {
          await pause();
          return 'of the handler';
        },
        fails: async () => {
          await pause();
          throw new TypeError('of the handler');
        },
      },
    });
    for (const way of Object.keys(hooks)) {
      expect(await outcomeOf(app, 'works', way), way).toEqual(['completed', 'of the handler']);
      expect(await outcomeOf(app, 'fails', way), way).toEqual(['dead', 'TypeError', 'of the handler']);
    }
  });

  it('unless a hook throws: then the run fails with that error, which decides about retries', async () => {
    let hasSnoozed = false;
    const thrown: Record<string, () => unknown> = {
      error: () => new RangeError('of the hook'),
      final: () => new UnrecoverableError('of the hook, for ever'),
      text: () => 'no error at all',
    };
    const app = await boot(
      async ({ name, data }, next) => {
        if (data === 'snooze' && !hasSnoozed) {
          hasSnoozed = true;
          throw new Snooze(1);
        }
        if (name === 'before') throw thrown[data as string]!();
        await next().catch(() => undefined);
        if (data !== 'snooze') throw thrown[data as string]!();
      },
      {
        queue: { defaults: { attempts: 2, backoff: '1ms', retention: '1m' } },
        handlers: {
          before: () => expect.fail('it was called'),
          works: () => 1,
          fails: () => {
            throw new Error('of the handler');
          },
        },
      },
    );
    for (const name of ['before', 'works', 'fails']) {
      expect(await outcomeOf(app, name, 'error')).toEqual(['dead', 'RangeError', 'of the hook']);
      expect(await outcomeOf(app, name, 'final')).toEqual([
        'dead',
        'UnrecoverableError',
        'of the hook, for ever',
      ]);
    }
    expect((await outcomeOf(app, 'works', 'text')).at(-1)).toContain('no error at all');
    expect(await outcomeOf(app, 'works', 'snooze')).toEqual(['completed', 1]);
  });

  it('and a run whose hook has thrown is over only when its handler has ended', async () => {
    const gate = latch();
    let ended = false;
    const app = await boot(
      (_, next) => {
        void next();
        throw new Error('impatient');
      },
      {
        handlers: {
          slow: async () => {
            await gate.promise;
            ended = true;
          },
        },
      },
    );
    const { id } = await app.queue.add('slow', null);
    await app.said.first((event) => event.type === 'active', PATIENT);
    await app.queue.add('slow', null, { id: 'second' });
    await app.said.first((event) => event.type === 'active' && event.jobId === 'second', PATIENT);
    expect(app.said.values.filter((event) => event.type === 'dead')).toEqual([]);
    gate.open();
    expect(await app.ended(id)).toMatchObject({ type: 'dead', error: { message: 'impatient' } });
    expect(ended).toBe(true);
  });
});

describe('a hook that does not call next once', () => {
  it('fails the run with a message, and it is retried', async () => {
    const late: Promise<unknown>[] = [];
    const hooks: Record<string, WrapHook> = {
      never: function withTenant() {
        return 'a result of its own';
      },
      twice: async function withRetry(_, next) {
        await next();
        await next().catch(() => undefined);
      },
      again: async function withRetry(_, next) {
        try {
          return await next();
        } catch {
          return await next();
        }
      },
      first: ({ attempt }, next) => (attempt === 1 ? undefined : next()),
      late: (_, next) => {
        setImmediate(() => late.push(next()));
      },
    };
    let runs = 0;
    const wraps = Object.entries(hooks).map(([way, hook]): WrapHook => {
      const only: WrapHook = (job, next) => (job.data === way ? hook(job, next) : next());
      return Object.defineProperty(only, 'name', { value: hook.name });
    });
    const app = await boot(wraps, {
      handlers: {
        works: () => (runs += 1),
        fails: () => {
          throw new Error('of the handler');
        },
      },
    });
    const name = 'WrapHookError';
    expect(await outcomeOf(app, 'works', 'never')).toEqual([
      'dead',
      name,
      'forRoot().wrap[0] (withTenant) returned without calling next(), so the handler did not run; return next(), or throw an error',
    ]);
    expect(runs).toBe(0);
    const twice =
      'forRoot().wrap[1] (withRetry) called next() twice, but the handler ran only once; call it once, and use `attempts` for retries';
    expect(await outcomeOf(app, 'works', 'twice')).toEqual(['dead', name, twice]);
    expect(runs).toBe(1);
    expect(await outcomeOf(app, 'fails', 'again')).toEqual(['dead', name, twice.replace('[1]', '[2]')]);
    expect((await outcomeOf(app, 'works', 'late'))[2]).toMatch(
      /^forRoot\(\)\.wrap\[4\] \(late\) returned without/,
    );
    await until(() => late.length, PATIENT);
    await expect(late[0]).rejects.toMatchObject({ code: 'GODWIT_WRAP_HOOK', fault: 'next-called-late' });
    expect(runs).toBe(1);
    await app.queue.add('works', 'first', { id: 'again', attempts: 2, backoff: '1ms' });
    expect(await app.ended('again')).toMatchObject({ type: 'completed', attempt: 2 });
  });
});

describe('an invalid hook', () => {
  it('is refused at the start', async () => {
    const wrong = [null, 'trace', [() => {}, 7], { hook() {} }];
    for (const [i, wrap] of wrong.entries()) {
      const started = bootQueue(redis, { watch: false, root: { wrap: wrap as never } });
      await expect(started).rejects.toThrow(
        `forRoot().wrap${i === 2 ? '[1]' : ''} must be a function, (job, next) => next(), got`,
      );
    }
  });
});
