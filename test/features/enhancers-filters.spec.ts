import {
  Catch,
  ForbiddenException,
  HttpException,
  Injectable,
  UseFilters,
  UseGuards,
  UseInterceptors,
  type ArgumentsHost,
  type ExceptionFilter,
} from '@nestjs/common';
import { concat, defer, EMPTY, NEVER, of, throwError } from 'rxjs';
import { expect, it } from 'vitest';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { Signal } from '#lib/decorators/job-params.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { UnrecoverableError } from '#lib/errors.js';
import { QueueExecutionContext } from '#lib/handlers/queue-context.js';
import { type Job, Snooze } from '#lib/job/job.js';
import { bootQueue, PATIENT, type QueueApp } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { until } from '../support/wait.js';

const redis = useRedis();
const ONCE = { defaults: { retention: '1m', attempts: 1 } } as const;

class PaymentError extends Error {
  override name = 'PaymentError';
}
class CardError extends PaymentError {
  override name = 'CardError';
}

/** A filter of these errors, or of all errors if none is named. */
function catching(
  types: readonly (new (...args: any[]) => Error)[],
  act: (error: any, host: ArgumentsHost) => unknown,
): ExceptionFilter {
  @Catch(...types)
  class TestFilter implements ExceptionFilter {
    catch(error: unknown, host: ArgumentsHost) {
      return act(error, host);
    }
  }
  return new TestFilter();
}

/** A processor of the queue `work` whose handlers all throw a `CardError`, each with its filters. */
function failing(handlers: Readonly<Record<string, readonly ExceptionFilter[]>>) {
  class Work {}
  const prototype = Work.prototype as Record<string, any>;
  for (const [name, filters] of Object.entries(handlers)) {
    prototype[name] = () => {
      throw new CardError('no money');
    };
    const descriptor = Object.getOwnPropertyDescriptor(prototype, name)!;
    UseFilters(...filters)(prototype, name, descriptor);
    Handle(name)(prototype, name, descriptor);
  }
  Processor('work')(Work);
  return Work;
}

/** The error of the dead job of that name. */
async function errorOf({ queue, ended }: QueueApp, name: string): Promise<string> {
  const { id } = await queue.add(name, null);
  const end = await ended(id);
  return end.type === 'dead' ? `${end.reason}: ${end.error?.name}: ${end.error?.message}` : end.type;
}

/** The log lines about filters. */
function complaintsOf({ logs }: QueueApp): readonly string[] {
  return logs.complaints.filter((text) => text.includes('a filter'));
}

const FINAL = new UnrecoverableError('give it up');
const ASIS = 'retries-exhausted: CardError: no money';

it('replaces the error by another one: thrown, returned, or by a promise or an Observable', async () => {
  const ways: Readonly<Record<string, () => unknown>> = {
    throws: () => {
      throw FINAL;
    },
    returns: () => FINAL,
    rejects: () => Promise.reject(FINAL),
    resolves: () => Promise.resolve(FINAL),
    'fails as an Observable': () => throwError(() => FINAL),
    'emits as an Observable': () => of(1, FINAL),
  };
  const filters = Object.entries(ways).map(([name, act]) => [name, [catching([CardError], act)]] as const);
  const app = await bootQueue(redis, { queue: ONCE, providers: [failing(Object.fromEntries(filters))] });
  for (const name of Object.keys(ways)) {
    expect(await errorOf(app, name), name).toBe('unrecoverable: UnrecoverableError: give it up');
  }
  expect(complaintsOf(app)).toEqual([]);
});

it('that returns a value does not turn a failure into a success: the job keeps its error, which is logged once', async () => {
  const ways: Readonly<Record<string, () => unknown>> = {
    value: () => ({ statusCode: 402 }),
    promise: async () => 'handled',
    observable: () => of('handled'),
    'promised observable': async () => of('handled'),
    null: () => null,
  };
  const looksOn: Readonly<Record<string, () => unknown>> = {
    nothing: () => undefined,
    'a promise of nothing': async () => undefined,
    'an empty Observable': () => EMPTY,
  };
  const all = Object.entries({ ...ways, ...looksOn });
  const filters = all.map(([name, act]) => [name, [catching([], act)]] as const);
  const app = await bootQueue(redis, { queue: ONCE, providers: [failing(Object.fromEntries(filters))] });
  for (const [name] of [...all, ...all]) expect(await errorOf(app, name), name).toBe(ASIS);
  expect(complaintsOf(app)).toEqual(
    Object.keys(ways).map(
      (name) =>
        `TestFilter, a filter of Work.${name}, returned a value, which is ignored: the job still fails with the original error; ` +
        `to replace it, throw or return another error`,
    ),
  );
});

it('catches what @Catch names; of several filters only the nearest is called: method before class, the last one in a list first', async () => {
  const asked: string[] = [];
  const named = (name: string, types: readonly (new (...args: any[]) => Error)[]) =>
    catching(types, (error: Error) => {
      asked.push(name);
      throw new Error(`${name} for ${error.message}`);
    });

  @Processor('work')
  @UseFilters(named('class: all', []))
  class Work {
    @Handle('method')
    @UseFilters(named('method: payments', [PaymentError]), named('method: types', [TypeError, RangeError]))
    method(job: Job<string>) {
      if (job.name === 'method') throw new CardError('no money');
    }
    @Handle('last')
    @UseFilters(named('first given', [PaymentError]), named('last given', [CardError]))
    last() {
      throw new CardError('no money');
    }
    @Handle('class')
    @UseFilters(named('method: types', [TypeError]))
    class() {
      throw new CardError('no money');
    }
  }
  const app = await bootQueue(redis, { queue: ONCE, providers: [Work] });
  expect(await errorOf(app, 'method')).toContain('method: payments for no money');
  expect(await errorOf(app, 'last')).toContain('last given for no money');
  expect(await errorOf(app, 'class')).toContain('class: all for no money');
  expect(asked).toEqual(['method: payments', 'last given', 'class: all']);
});

it('is created by Nest with its dependencies, and gets the job', async () => {
  @Injectable()
  class Partner {
    readonly isDown = true;
  }
  @Catch(HttpException)
  class PartnerFilter implements ExceptionFilter {
    constructor(private readonly partner: Partner) {}

    catch(error: HttpException, host: ArgumentsHost) {
      const { job } = QueueExecutionContext.of<number>(host);
      if (this.partner.isDown && job.attempt === 1) throw new Snooze(job.data);
      throw error;
    }
  }
  const closed = { isClosed: true };

  @Processor('work')
  @UseFilters(PartnerFilter)
  class Work {
    @Handle('partner')
    @UseGuards({ canActivate: () => !closed.isClosed })
    partner() {}
    @Handle('later')
    later() {
      closed.isClosed = true;
    }
  }
  const { queue, said, ended } = await bootQueue(redis, {
    queue: { defaults: { attempts: 1 } },
    providers: [Work, Partner],
  });
  const { id } = await queue.add('partner', 1);
  // A snoozed run is not an attempt.
  await said.first((event) => event.type === 'delayed' && event.jobId === id, PATIENT);
  closed.isClosed = false;
  expect(await ended(id)).toMatchObject({ type: 'completed' });
});

it('gets errors of guards and interceptors, and of an Observable that fails later', async () => {
  const heard: string[] = [];
  // Read from the calls, not from events: a queue may write no progress event for a run that ends at once.
  const told: unknown[] = [];
  const filter = catching([], (error: Error) => {
    heard.push(error.message);
    throw new UnrecoverableError(`not again: ${error.message}`);
  });

  @Processor('work')
  @UseFilters(filter)
  class Work {
    @Handle('guard')
    @UseGuards({ canActivate: () => false })
    guard() {}
    @Handle('interceptor')
    @UseInterceptors({ intercept: () => throwError(() => new Error('intercepted')) })
    interceptor() {}
    @Handle('told')
    told(job: Job) {
      return job.progress(1);
    }
    @Handle('observable')
    observable(job: Job) {
      Object.assign(job, { progress: async (value: unknown) => void told.push(value) });
      return concat(
        of(50),
        defer(() => Promise.reject(new Error('half way'))),
      );
    }
  }
  const app = await bootQueue(redis, { queue: { defaults: { attempts: 3 } }, providers: [Work] });
  expect(await errorOf(app, 'guard')).toBe(
    `unrecoverable: UnrecoverableError: not again: ${new ForbiddenException('Forbidden resource').message}`,
  );
  expect(await errorOf(app, 'interceptor')).toContain('not again: intercepted');
  // The server then knows the script that writes progress. A script that must be sent first runs after the failure.
  const { id } = await app.queue.add('told', null);
  await app.ended(id);
  expect(await errorOf(app, 'observable')).toContain('not again: half way');
  expect(told).toEqual([50]);
  expect(heard).toHaveLength(3);
});

it('is not called for a run that was told to end: its job is given back, not dead', async () => {
  const begun: unknown[] = [];

  @Processor('work')
  @UseFilters(
    catching([], () => {
      throw new UnrecoverableError('everything is final');
    }),
  )
  class Work {
    @Handle('long')
    async long(job: Job, @Signal() signal: AbortSignal) {
      begun.push(job.data);
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      if (job.data === 'reason') throw signal.reason;
      const error = new Error('The operation was aborted');
      error.name = 'AbortError';
      throw error;
    }
  }
  const { queue, runtime } = await bootQueue(redis, {
    queue: ONCE,
    providers: [Work],
    root: { shutdown: { timeout: 0, grace: '5s' } },
  });
  const jobs = [await queue.add('long', 'reason'), await queue.add('long', 'abort error')];
  await until(() => begun.length === 2, PATIENT);
  await runtime.stop();
  for (const { id } of jobs) expect(await queue.get(id)).toMatchObject({ state: 'waiting', attempt: 0 });
});

it('that never returns is ended by the timeout of the job', async () => {
  const app = await bootQueue(redis, {
    queue: { defaults: { ...ONCE.defaults, timeout: 50 } },
    providers: [failing({ stuck: [catching([], () => NEVER)] })],
  });
  expect(await errorOf(app, 'stuck')).toMatch(/JobAbortedError: .* it took longer than 50 ms$/);
});
