import { expect, it } from 'vitest';
import { JobNotFoundError, UnrecoverableError, WrongStateError } from '#lib/errors.js';
import type { QueueEvent } from '#lib/events/queue-event.js';
import type { BackoffOption } from '#lib/job/backoff.js';
import { type Job, Snooze } from '#lib/job/job.js';
import { bootQueue, brief, PATIENT, processorOf, type QueueApp } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { collect, latch, until } from '../support/wait.js';

const redis = useRedis();

const fail = () => {
  throw new TypeError('no luck');
};

/** The waits between the attempts of a job, read from its events. */
function waitsOf(values: readonly QueueEvent[], id: string): number[] {
  return values.flatMap((event) => (event.type === 'retrying' && event.jobId === id ? [event.delayMs] : []));
}

it('runs a failing job as often as attempts says, and keeps the error', async () => {
  const seen: number[] = [];
  const handlers = { charge: (job: Job) => (seen.push(job.attempt), fail()) };
  const { queue, ended, said } = await bootQueue(redis, { handlers });
  const { id } = await queue.add('charge', { cents: 990 }, { attempts: 3, backoff: 0 });

  expect(await ended(id)).toMatchObject({ type: 'dead', attempt: 3, reason: 'retries-exhausted' });
  expect(seen).toEqual([1, 2, 3]);
  const error = { name: 'TypeError', message: 'no luck' };
  const run = { jobId: id, name: 'charge' };
  expect(said.values.map(brief)).toEqual([
    { type: 'added', ...run },
    { type: 'active', ...run, attempt: 1 },
    { type: 'retrying', ...run, attempt: 1, delayMs: 0, error: { ...error, attempt: 1 } },
    { type: 'active', ...run, attempt: 2 },
    { type: 'retrying', ...run, attempt: 2, delayMs: 0, error: { ...error, attempt: 2 } },
    { type: 'active', ...run, attempt: 3 },
    { type: 'dead', ...run, attempt: 3, reason: 'retries-exhausted', error: { ...error, attempt: 3 } },
  ]);

  const job = await queue.get(id);
  expect(job).toMatchObject({ state: 'dead', attempt: 3, attempts: 3, data: { cents: 990 } });
  expect(job?.failure).toEqual({
    ...error,
    stack: expect.stringMatching(/^TypeError: no luck\n {4}at .*retries\.spec\.ts/),
    attempt: 3,
    reason: 'retries-exhausted',
    at: job?.endedAt,
  });
});

it('keeps the last five failed attempts: when, where, for how long and why', async () => {
  const handlers = {
    charge: ({ attempt }: Job) => {
      throw new TypeError(`no luck ${attempt}`);
    },
  };
  const { queue, ended, said } = await bootQueue(redis, { handlers });
  const { id } = await queue.add('charge', 1, { attempts: 6, backoff: 0 });
  await ended(id);
  const { failures } = (await queue.get(id))!;
  expect(failures.map(({ attempt, name, message }) => [attempt, name, message])).toEqual(
    [2, 3, 4, 5, 6].map((n) => [n, 'TypeError', `no luck ${n}`]),
  );
  const ends = said.values.filter(({ type }) => type === 'retrying' || type === 'dead').slice(1);
  for (const [i, { at, worker, durationUs, stack }] of failures.entries()) {
    expect(at).toEqual(ends[i]!.at);
    expect(worker).toMatch(/./);
    expect(durationUs).toBe((ends[i] as { durationUs: number }).durationUs);
    expect(stack).toMatch(/^at .*retries\.spec\.ts/);
  }
});

it('keeps the error of an attempt while the job waits for the next one, and after it has completed', async () => {
  const handlers = { flaky: (job: Job) => (job.attempt === 1 ? fail() : 'well') };
  const { queue, ended, said } = await bootQueue(redis, { handlers });
  const { id } = await queue.add('flaky', 1, { backoff: '1h', retention: '1m' });
  await said.first((event) => event.type === 'retrying', PATIENT);
  const failure = { name: 'TypeError', message: 'no luck', attempt: 1 };
  const waiting = await queue.get(id);
  expect(waiting).toMatchObject({ state: 'delayed', attempt: 1, failure });
  expect(waiting!.failure).not.toHaveProperty('reason');
  expect(waiting!.dueAt!.getTime() - waiting!.failure!.at.getTime()).toBe(3_600_000);

  await queue.promote(id);
  expect(await ended(id)).toMatchObject({ type: 'completed', attempt: 2 });
  expect(await queue.get(id)).toMatchObject({ state: 'completed', attempt: 2, failure, result: 'well' });
});

it('waits for the backoff: a duration, fixed, a list, exponential with cap and jitter', async () => {
  const { queue, ended, said } = await bootQueue(redis, { handlers: { fail } });
  const add = async (attempts: number, backoff: Exclude<BackoffOption, (...args: never[]) => unknown>) =>
    (await queue.add('fail', 1, { attempts, backoff })).id;
  const ids = {
    duration: await add(3, '3ms'),
    fixed: await add(3, { type: 'fixed', delay: 4 }),
    list: await add(5, [1, '2ms', 3]),
    exponential: await add(5, { type: 'exponential', delay: 2, factor: 3, max: 20 }),
    jitter: await add(9, { type: 'exponential', delay: 16, max: 64, jitter: 0.5 }),
  };
  await Promise.all(Object.values(ids).map(ended));
  const waits = (id: string) => waitsOf(said.values, id);
  expect(waits(ids.duration)).toEqual([3, 3]);
  expect(waits(ids.fixed)).toEqual([4, 4]);
  expect(waits(ids.list)).toEqual([1, 2, 3, 3]);
  expect(waits(ids.exponential)).toEqual([2, 6, 18, 20]);
  const full = [16, 32, 64, 64, 64, 64, 64, 64];
  const jittered = waits(ids.jitter);
  expect(jittered).toHaveLength(full.length);
  for (const [i, wait] of jittered.entries()) {
    expect(wait).toBeGreaterThanOrEqual(full[i]! / 2);
    expect(wait).toBeLessThanOrEqual(full[i]!);
  }
  expect(jittered, 'eight waits that all fall on the same share of the whole').not.toEqual(full);
});

it('starts the next attempt only when the wait is over, by the clock of Redis', async () => {
  const { queue, ended, said } = await bootQueue(redis, { handlers: { fail } });
  const { id } = await queue.add('fail', 1, { attempts: 2, backoff: 250 });
  await ended(id);
  const [first] = await said.take(1, (event) => event.type === 'retrying');
  const [, second] = await said.take(2, (event) => event.type === 'active');
  expect(second!.at.getTime() - first!.at.getTime()).toBeGreaterThanOrEqual(250);
});

it("lets the job's value win over its queue's, and that over the module's", async () => {
  const calls: [number, unknown][] = [];
  const own = (attempt: number, error: unknown) => {
    calls.push([attempt, error]);
    return attempt * 2;
  };
  const { queueOf, queue, events, said, ended } = await bootQueue(redis, {
    root: { defaults: { attempts: 3, backoff: 5 } },
    queue: { defaults: { attempts: 4, backoff: own } },
    queues: [{ name: 'plain' }],
    providers: [processorOf('plain', { fail })],
    handlers: { fail },
  });
  const byQueue = await queue.add('fail', 1);
  const byJob = await queue.add('fail', 1, { attempts: 2, backoff: 1 });
  await Promise.all([ended(byQueue.id), ended(byJob.id)]);
  expect(waitsOf(said.values, byQueue.id)).toEqual([2, 4, 6]);
  expect(waitsOf(said.values, byJob.id)).toEqual([1]);
  expect(calls).toEqual([1, 2, 3].map((attempt) => [attempt, expect.any(TypeError)]));

  const byModule = await queueOf('plain').add('fail', 1);
  const other = collect(events.of('plain', { since: '0' }));
  await other.first((event) => event.type === 'dead', PATIENT);
  expect(waitsOf(other.values, byModule.id)).toEqual([5, 5]);
});

it('survives a backoff function that throws or returns an invalid value, and logs that', async () => {
  const answers: (() => unknown)[] = [
    () => {
      throw new Error('backoff is broken');
    },
    () => 'soon',
    () => Promise.reject(new Error('backoff is away')),
    () => Promise.resolve('later'),
    () => undefined,
  ];
  const { queue, logs, ended, said } = await bootQueue(redis, {
    queue: { defaults: { backoff: (() => answers.shift()!()) as never, attempts: 2 } },
    handlers: { once: (job: Job) => (job.attempt === 1 ? fail() : undefined) },
  });
  while (answers.length > 0) {
    const { id } = await queue.add('once', 1);
    await said.first((event) => event.type === 'retrying' && event.jobId === id, PATIENT);
    expect(waitsOf(said.values, id)).toEqual([1000]);
    await logs.complaint(new RegExp(`job "${id}" of queue 'work': .*backoff.*1000 ms`));
    // Unless its second has passed by now, and it runs again by itself.
    await queue.promote(id).catch((error: unknown) => {
      if (!(error instanceof JobNotFoundError || error instanceof WrongStateError)) throw error;
    });
    expect(await ended(id)).toMatchObject({ type: 'completed', attempt: 2 });
  }
  expect(logs.complaints.filter((text) => text.includes('backoff is broken'))).toHaveLength(1);
});

it('waits for an asynchronous backoff function, and not for its run to time out meanwhile', async () => {
  const asked = latch('the backoff function');
  const answer = latch('its answer');
  const backoff = async () => {
    asked.open();
    await answer.promise;
    return 7;
  };
  const { queue, said, ended } = await bootQueue(redis, {
    queue: { defaults: { backoff, attempts: 2, timeout: 1_000 } },
    handlers: { once: (job: Job) => (job.attempt === 1 ? fail() : undefined) },
  });
  const { id } = await queue.add('once', 1);
  await asked.wait(PATIENT);
  expect(await queue.get(id)).toMatchObject({ state: 'active' });
  answer.open();
  expect(await ended(id)).toMatchObject({ type: 'completed', attempt: 2 });
  expect(waitsOf(said.values, id)).toEqual([7]);
});

it('does not retry a cancelled job, although its backoff function returns', async () => {
  const asked = latch('the backoff function');
  const { queue, ended } = await bootQueue(redis, {
    root: { lease: { duration: '400ms' } },
    queue: {
      defaults: {
        attempts: 2,
        backoff: async () => {
          asked.open();
          await until(async () => signal?.aborted, PATIENT);
          return 0;
        },
      },
    },
    handlers: {
      once: (job: Job) => {
        signal = job.signal;
        return fail();
      },
    },
  });
  let signal: AbortSignal | undefined;
  const { id } = await queue.add('once', 1);
  await asked.wait(PATIENT);
  expect(await queue.cancel(id)).toBe('signalled');
  expect(await ended(id)).toMatchObject({ type: 'cancelled', attempt: 1 });
});

it('gives up at once for an UnrecoverableError, also of a subclass or another copy of the package', async () => {
  class Refused extends UnrecoverableError {}
  const kinds: Record<string, () => never> = {
    own: () => {
      throw new UnrecoverableError('the card is stolen');
    },
    sub: () => {
      throw new Refused('no such account');
    },
    copy: () => {
      throw Object.assign(new Error('from another copy of the library'), { code: 'GODWIT_UNRECOVERABLE' });
    },
  };
  const { queue, ended } = await bootQueue(redis, { handlers: kinds });
  for (const kind of Object.keys(kinds)) {
    const { id } = await queue.add(kind, 1, { attempts: 5, backoff: 0 });
    expect(await ended(id)).toMatchObject({ type: 'dead', attempt: 1, reason: 'unrecoverable' });
  }
  const { id } = await queue.add('sub', 1);
  await ended(id);
  expect((await queue.get(id))?.failure).toMatchObject({ name: 'Refused', message: 'no such account' });
});

it('does not count a snooze as an attempt', async () => {
  const seen: number[] = [];
  const steps: (() => unknown)[] = [
    () => Promise.reject(new Snooze(101)),
    () => {
      throw new Snooze('102ms');
    },
    fail,
    () => Promise.reject(new Snooze(103)),
    () => 'done',
  ];
  const handlers = { visit: (job: Job) => (seen.push(job.attempt), steps.shift()!()) };
  const { queue, said, ended } = await bootQueue(redis, { handlers });
  const { id } = await queue.add('visit', 1, { attempts: 2, backoff: 0, retention: '1m' });
  expect(await ended(id)).toMatchObject({ type: 'completed', attempt: 2 });
  expect(seen).toEqual([1, 1, 1, 2, 2]);
  const later = said.values.filter((event) => event.type === 'delayed');
  expect(later.map((event) => event.delayMs)).toEqual([101, 102, 103]);
  expect(await queue.get(id)).toMatchObject({ attempt: 2, result: 'done', failure: { attempt: 1 } });
});

it('counts a snooze with an invalid duration as a failed attempt with the reason', async () => {
  const handlers = {
    typo: () => {
      throw new Snooze('soonish');
    },
    forged: () => {
      throw Object.assign(new Error('of a copy that is broken'), { code: 'GODWIT_SNOOZE', delayMs: 'x' });
    },
  };
  const { queue, ended } = await bootQueue(redis, { handlers });
  const typo = await queue.add('typo', 1, { attempts: 1 });
  expect(await ended(typo.id)).toMatchObject({ type: 'dead', reason: 'retries-exhausted' });
  const { failure } = (await queue.get(typo.id))!;
  expect(failure).toMatchObject({
    name: 'InvalidOptionError',
    message: expect.stringContaining('"soonish"'),
  });
  const forged = await queue.add('forged', 1, { attempts: 1 });
  expect(await ended(forged.id)).toMatchObject({ type: 'dead', reason: 'retries-exhausted' });
});

it('accepts any thrown value, and continues', async () => {
  const { revoke, proxy } = Proxy.revocable({}, {});
  revoke();
  const circular: Record<string, unknown> = {};
  circular['self'] = circular;
  const hostile = (field: string) =>
    Object.defineProperty(new Error('hostile'), field, {
      get() {
        throw new Error(`nobody reads ${field}`);
      },
    });
  const thrown: [unknown, { name: unknown; message: unknown }][] = [
    [null, { name: 'NonError', message: 'the handler threw null (null)' }],
    [undefined, { name: 'NonError', message: 'the handler threw undefined' }],
    ['out of paper', { name: 'NonError', message: 'the handler threw "out of paper" (string)' }],
    [42n, { name: 'NonError', message: 'the handler threw 42n (bigint)' }],
    [Symbol('s'), { name: 'NonError', message: 'the handler threw Symbol(s)' }],
    [{ status: 503 }, { name: 'NonError', message: 'the handler threw {"status":503} (object)' }],
    [circular, { name: 'NonError', message: 'the handler threw [object Object] (object)' }],
    [{ message: 'like an error' }, { name: 'Error', message: 'like an error' }],
    [Object.assign(new Error('x'), { name: 42 }), { name: 'Error', message: 'x' }],
    [
      Object.assign(new Error('x'), { name: 'N'.repeat(1e6) }),
      { name: expect.stringMatching(/^N{255}$/), message: 'x' },
    ],
    [new Error('m'.repeat(2e6)), { name: 'Error', message: expect.stringMatching(/^m{4096}$/) }],
    [hostile('name'), { name: 'Error', message: 'hostile' }],
    [hostile('message'), { name: 'Error', message: '' }],
    [hostile('stack'), { name: 'Error', message: 'hostile' }],
    [hostile('code'), { name: 'Error', message: 'hostile' }],
    [
      Object.assign(new Error('x'), { code: { toString: () => Promise.reject() } }),
      { name: 'Error', message: 'x' },
    ],
    [proxy, { name: 'NonError', message: expect.stringMatching(/^the handler threw /) }],
  ];
  const handlers = {
    throws: (job: Job<number>) => {
      throw thrown[job.data]![0];
    },
    rejects: (job: Job<number>) => Promise.reject(thrown[job.data]![0] as Error),
    fine: () => undefined,
  };
  const app = await bootQueue(redis, { handlers, queue: { defaults: { attempts: 1 } }, concurrency: 1 });
  await Promise.all(
    thrown.flatMap(([, record], i) => [
      expectFailure(app, 'throws', i, record),
      expectFailure(app, 'rejects', i, record),
    ]),
  );
  const { id } = await app.queue.add('fine', 1);
  expect((await app.ended(id)).type).toBe('completed');
});

async function expectFailure(
  { queue, ended }: QueueApp,
  name: string,
  data: number,
  record: { name: unknown; message: unknown },
): Promise<void> {
  const { id } = await queue.add(name, data);
  expect(await ended(id), `${name} ${data}`).toMatchObject({ type: 'dead', reason: 'retries-exhausted' });
  const job = await queue.get(id);
  expect(job?.failure, `${name} ${data}`).toMatchObject(record);
  expect(job!.failure!.stack?.length ?? 0).toBeLessThanOrEqual(16_384);
}
