// oxlint-disable unicorn/no-thenable -- what a handler returns may be one
import { asapScheduler, EMPTY, NEVER, Observable, observeOn, of, Subject, throwError } from 'rxjs';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { OnJob } from '#lib/decorators/on-job.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { SchemaViolationError } from '#lib/errors.js';
import { defineJob, type JobOf } from '#lib/job/define-job.js';
import type { Job } from '#lib/job/job.js';
import type { JobEvent } from '#lib/worker/job-listeners.js';
import { bodiesOf, bootQueue, type Handlers, itOnRedis, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';

const redis = useRedis();
const KEPT = { defaults: { retention: '1m', attempts: 1 } } as const;

it('takes a value, a promise, a thenable or an Observable as the result', async () => {
  const handlers: Handlers = {
    value: () => ({ a: [1] }),
    nothing: () => undefined,
    null: () => null,
    promise: async () => 'later',
    thenable: () => ({ then: (resolve: (value: unknown) => void) => resolve('then') }),
    // A thenable that breaks every rule of promises that matters.
    wild: () => ({
      then: (resolve: (value: unknown) => void, reject: (error: Error) => void) => {
        resolve(Promise.resolve('first'));
        reject(new Error('and an error too'));
        throw new Error('and thrown');
      },
    }),
    observable: () => of('o'),
    'promised observable': async () => of(1, 2),
    empty: () => EMPTY,
  };
  const { queue, ended, logs } = await bootQueue(redis, { handlers, queue: KEPT });
  const jobs = await queue.addBulk(Object.keys(handlers).map((name) => ({ name, data: 0 })));
  const results: Record<string, unknown> = {};
  for (const { id, name } of jobs) {
    expect(await ended(id), name).toMatchObject({ type: 'completed', attempt: 1 });
    results[name] = (await queue.get(id))!.result;
  }
  expect(results).toEqual({
    value: { a: [1] },
    nothing: null,
    null: null,
    promise: 'later',
    thenable: 'then',
    wild: 'first',
    observable: 'o',
    'promised observable': 2,
    empty: null,
  });
  expect(logs.complaints.filter((text) => text.startsWith('job'))).toEqual([]);
});

it('counts every way of failing as a failed attempt', async () => {
  const handlers: Handlers = {
    throws: () => {
      throw new Error('no');
    },
    rejects: () => Promise.reject(new Error('no')),
    'rejects with text': () => Promise.reject('no' as never),
    thenable: () => ({ then: (_: unknown, reject: (error: Error) => void) => reject(new Error('no')) }),
    'throwing thenable': () => ({
      then: () => {
        throw new Error('no');
      },
    }),
    'throwing getter': () =>
      Object.defineProperty({}, 'then', {
        get: () => {
          throw new Error('no');
        },
      }),
    observable: () => throwError(() => new Error('no')),
    'throwing observable': () =>
      new Observable(() => {
        throw new Error('no');
      }),
    'not quite an observable': () => ({
      pipe: () => undefined,
      subscribe: () => {
        throw new Error('no');
      },
    }),
  };
  const { queue, ended } = await bootQueue(redis, { handlers, queue: KEPT, concurrency: 1 });
  const jobs = await queue.addBulk(Object.keys(handlers).map((name) => ({ name, data: 0 })));
  for (const { id, name } of jobs) {
    expect(await ended(id), name).toMatchObject({ type: 'dead', reason: 'retries-exhausted' });
    expect((await queue.get(id))!.failure!.message, name).toMatch(/no/);
  }
});

it('shows its fields in JSON, in a handler and in @OnJob', async () => {
  const shown: unknown[] = [];
  @Processor('work')
  class Logging {
    @Handle('job')
    run(job: Job) {
      shown.push(JSON.parse(JSON.stringify({ job })));
    }
    @OnJob('completed')
    completed(event: JobEvent) {
      shown.push(JSON.parse(JSON.stringify(event)));
    }
  }
  const { queue } = await bootQueue(redis, { providers: [Logging] });
  const options = { group: 'a', headers: { tenant: 'x' }, delay: 1 };
  const { id } = await queue.add('job', { n: 1 }, options);
  await until(() => shown.length === 2, PATIENT);
  const job = {
    id,
    name: 'job',
    queue: 'work',
    data: { n: 1 },
    attempt: 1,
    attempts: 3,
    createdAt: expect.any(String),
    dueAt: expect.any(String),
    startedAt: expect.any(String),
    endedAt: null,
    stalls: 0,
    priority: 0,
    group: 'a',
    headers: { tenant: 'x' },
    delay: expect.any(Number),
  };
  expect(shown).toEqual([{ job }, { type: 'completed', job: { ...job, endedAt: expect.any(String) } }]);
});

it('reports each value of an Observable as progress when it comes, and the last one as the result', async () => {
  const values = new Subject<unknown>();
  const subscribed = latch('the subscription');
  const handlers: Handlers = {
    stream: () =>
      new Observable((subscriber) => {
        const subscription = values.subscribe(subscriber);
        subscribed.open();
        return subscription;
      }),
    burst: () => of(1, 2, 3),
    single: () => of('only'),
    spread: () => of('a', 'b').pipe(observeOn(asapScheduler)),
    broken: () =>
      new Observable((subscriber) => {
        subscriber.next('half way');
        subscriber.error(new Error('then lost'));
      }),
    unprintable: () => of(10n, 1, () => 0, 'fine'),
  };
  const { queue, said, logs, ended } = await bootQueue(redis, { handlers, queue: KEPT });
  const progressOf = (id: string) =>
    said.values.flatMap((event) => (event.type === 'progress' && event.jobId === id ? [event.progress] : []));

  const { id } = await queue.add('stream', 1);
  await subscribed.wait(PATIENT);
  for (const percent of [10, 20]) {
    values.next({ percent });
    // Written although no other value has come yet.
    await said.first(
      (event) => event.type === 'progress' && (event.progress as { percent: number }).percent === percent,
      PATIENT,
    );
    expect((await queue.get(id))!.progress).toEqual({ percent });
  }
  values.next('the result');
  values.complete();
  await ended(id);
  expect(progressOf(id)).toEqual([{ percent: 10 }, { percent: 20 }]);
  expect((await queue.get(id))!.result).toBe('the result');

  const expected: [string, unknown[], unknown][] = [
    ['burst', [1, 2], 3],
    ['single', [], 'only'],
    ['spread', ['a'], 'b'],
    ['broken', ['half way'], null],
    ['unprintable', [1], 'fine'],
  ];
  for (const [name, progress, result] of expected) {
    const job = await queue.add(name, 1);
    await ended(job.id);
    expect(progressOf(job.id), name).toEqual(progress);
    expect((await queue.get(job.id))!.result, name).toEqual(result);
  }
  expect(logs.complaints.filter((text) => text.includes('Observable'))).toEqual([
    expect.stringMatching(/a value of its Observable is not reported as progress: .*a BigInt/),
  ]);
});

it('drops a result that JSON cannot represent, with a warning if it should have been kept', async () => {
  const circular: Record<string, unknown> = {};
  circular['self'] = circular;
  const handlers: Handlers = {
    bigint: () => 10n,
    circular: () => circular,
    function: () => () => 1,
    large: () => 'x'.repeat(2000),
    'throwing toJSON': () => ({
      toJSON: () => {
        throw null;
      },
    }),
  };
  const { queue, logs, ended } = await bootQueue(redis, {
    handlers,
    queue: { maxPayloadBytes: 1000 },
  });
  const names = Object.keys(handlers);
  const unkept = await queue.addBulk(names.map((name) => ({ name, data: 0 })));
  for (const { id } of unkept) expect((await ended(id)).type).toBe('completed');
  expect(logs.complaints.filter((text) => text.includes('result'))).toEqual([]);

  const kept = await queue.addBulk(names.map((name) => ({ name, data: 0, options: { retention: '1m' } })));
  for (const { id, name } of kept) {
    expect(await ended(id), name).toMatchObject({ type: 'completed', attempt: 1 });
    expect(await queue.get(id), name).toMatchObject({ state: 'completed', result: null });
    await logs.complaint(
      new RegExp(`^job "${id}" of queue 'work': .*handle ${name} completed, but its result is not kept: `),
    );
  }
});

it('gives every name without a handler of its own to the catch-all', async () => {
  const handlers: Handlers = { known: () => 'its own', '*': (job) => `${job.name} by the catch-all` };
  const { queue, ended } = await bootQueue(redis, { handlers, queue: KEPT });
  const names = ['known', 'Known', '*', '__proto__', 'constructor', 'e\u0301'];
  const jobs = await queue.addBulk(names.map((name) => ({ name, data: 0 })));
  const results = [];
  for (const { id } of jobs) {
    await ended(id);
    results.push((await queue.get(id))!.result);
  }
  expect(results).toEqual(['its own', ...names.slice(1).map((name) => `${name} by the catch-all`)]);
});

const invoice = defineJob(
  'work',
  'invoice',
  z.object({
    cents: z.coerce.number().int(),
    tags: z.string().transform((text) => text.split(',')),
    due: z.iso.datetime().transform((text) => new Date(text)),
    currency: z.string().default('EUR'),
  }),
);

@Processor(invoice)
class InvoiceProcessor {
  @Handle(invoice)
  handle({ data }: JobOf<typeof invoice>) {
    return { ...data, due: data.due instanceof Date ? data.due.getTime() : 'no date' };
  }
}

it('gives the handler the data as the schema of the definition returns it, validated once', async () => {
  const { queue, producer, ended } = await bootQueue(redis, { providers: [InvoiceProcessor], queue: KEPT });
  const given = { cents: '990', tags: 'a,b', due: '2030-01-02T03:04:05Z' };
  const result = { cents: 990, tags: ['a', 'b'], due: Date.UTC(2030, 0, 2, 3, 4, 5), currency: 'EUR' };

  const { id } = await producer.add(invoice, given as never);
  const [bulk] = await producer.addBulk(invoice, [{ data: given as never }]);
  const raw = await queue.add('invoice', given);
  for (const job of [id, bulk!.id, raw.id]) {
    expect((await ended(job)).type).toBe('completed');
    expect((await queue.get(job))!.result).toEqual(result);
  }
  expect(await producer.addAndWait(invoice, given as never)).toEqual(result);
});

it('refuses data that violates the schema when it is added, and does not run it if it was stored anyway', async () => {
  const { queue, producer, ended, said } = await bootQueue(redis, {
    providers: [InvoiceProcessor],
    queue: { defaults: { attempts: 5 } },
  });
  const bad = { cents: 'many', tags: 1, due: '2030-01-02T03:04:05Z' };
  const error: SchemaViolationError = await producer.add(invoice, bad as never).then(
    () => expect.fail('it was taken'),
    (thrown: SchemaViolationError) => thrown,
  );
  expect(error).toBeInstanceOf(SchemaViolationError);
  expect(error.issues.map((issue) => issue.path)).toEqual(['cents', 'tags']);
  expect(error.message).toMatch(/^the data of job 'invoice' in queue 'work' .*cents: .*; tags: /);
  expect(said.values).toEqual([]);

  const { id } = await queue.add('invoice', bad);
  expect(await ended(id)).toMatchObject({ type: 'dead', attempt: 1, reason: 'unrecoverable' });
  expect((await queue.get(id))!.failure).toMatchObject({
    name: 'SchemaViolationError',
    message: expect.stringContaining('cents: '),
  });
});

const slow = defineJob(
  'work',
  'slow',
  z.object({ to: z.string().refine(async (to) => (await Promise.resolve(to)) !== 'nobody', 'is unknown') }),
);

it('waits for an asynchronous schema', async () => {
  @Processor(slow)
  class SlowProcessor {
    @Handle(slow)
    handle({ data }: JobOf<typeof slow>) {
      return data.to;
    }
  }
  const { producer, queue, ended } = await bootQueue(redis, { providers: [SlowProcessor] });
  expect(await producer.addAndWait(slow, { to: 'ada' })).toBe('ada');
  await expect(producer.add(slow, { to: 'nobody' })).rejects.toThrow(/to: is unknown/);
  const { id } = await queue.add('slow', { to: 'nobody' });
  expect(await ended(id)).toMatchObject({ type: 'dead', reason: 'unrecoverable' });
});

it('keeps a job without a handler as dead, and logs that', async () => {
  const { queue, ended, logs } = await bootQueue(redis, {
    handlers: { known: () => 1 },
    queue: { unknownJob: 'dead', log: true },
  });
  const { id } = await queue.add('unknown', { a: 1 });
  expect(await ended(id)).toMatchObject({ type: 'dead', attempt: 0, reason: 'no-handler' });
  expect(await queue.get(id)).toMatchObject({
    state: 'dead',
    attempt: 0,
    data: { a: 1 },
    failure: { reason: 'no-handler', message: expect.stringContaining(`@Handle('unknown')`) },
  });
  await logs.complaint(new RegExp(`^job "${id}" of queue 'work' is dead: .*@Handle\\('unknown'\\)`));
});

itOnRedis('buries what cannot be decoded or is gone, and runs the rest of its batch', async () => {
  const ran: number[] = [];
  const handlers: Handlers = { job: (job: Job<number>) => void ran.push(job.data) };
  const { queue, ended } = await bootQueue(redis, { handlers, queue: { defaults: { attempts: 1 } } });
  const bodies = [
    'no lines at all',
    'job\nzz\n\n{"broken',
    'job\n!!\n\n1',
    'job\nzz\n{"a":"x"}\n1',
    '\n\n\n',
    '\u0000',
  ];
  await queue.pause();
  const jobs = await queue.addBulk(Array.from({ length: 10 }, (_, data) => ({ name: 'job', data })));
  const broken = jobs.slice(1, 1 + bodies.length);
  const gone = jobs[8]!;
  for (const [i, { id }] of broken.entries()) await redis.admin.hset(bodiesOf(redis, id), id, bodies[i]!);
  await redis.admin.hdel(bodiesOf(redis, gone.id), gone.id);
  await queue.resume();

  for (const { id } of broken) {
    expect(await ended(id)).toMatchObject({ type: 'dead', attempt: 0, reason: 'malformed' });
    const job = await queue.get(id);
    expect(job).toMatchObject({ state: 'dead', name: '', failure: { reason: 'malformed' } });
    expect(job!.data).toBeUndefined();
  }
  expect(await ended(gone.id)).toMatchObject({ type: 'dead', reason: 'corrupt' });
  expect(await queue.get(gone.id)).toMatchObject({ state: 'dead', failure: { reason: 'corrupt' } });
  for (const index of [0, 7, 9]) expect((await ended(jobs[index]!.id)).type).toBe('completed');
  expect(ran).toEqual([0, 7, 9]);
  expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0, dead: bodies.length + 1 });
});

it('gives an interrupted Observable back when the workers stop', async () => {
  const subscribed = latch('the subscription');
  const unsubscribed = latch('the end of the subscription');
  const handlers: Handlers = {
    endless: () =>
      new Observable((subscriber) => {
        const subscription = NEVER.subscribe(subscriber);
        subscribed.open();
        return () => {
          subscription.unsubscribe();
          unsubscribed.open();
        };
      }),
  };
  const { queue, runtime, said } = await bootQueue(redis, {
    handlers,
    root: { shutdown: { timeout: 0, grace: '10s' } },
  });
  const { id } = await queue.add('endless', 1, { attempts: 1 });
  await subscribed.wait(PATIENT);
  await runtime.stop();
  expect(unsubscribed.isOpen).toBe(true);
  expect(await said.first((event) => event.type === 'released', PATIENT)).toMatchObject({ jobId: id });
  expect(await queue.get(id)).toMatchObject({ state: 'waiting', attempt: 0, failure: null });
});
