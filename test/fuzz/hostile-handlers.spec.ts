import { EMPTY, Observable, of, throwError } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { GodwitError } from '#lib/errors.js';
import type { Job } from '#lib/job/job.js';
import { bootQueue, PATIENT, type QueueApp } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { until } from '../support/wait.js';
import { ERRORS, ODD, type Hostile } from './support/hostile.js';
import { expectNothingUnhandled } from './support/unhandled.js';

// Handlers are code of other people: whatever they throw, return or say, the job has an end and the worker goes on.
const redis = useRedis();
expectNothingUnhandled();

const BYTES = { message: 4096 * 3, stack: 16_384 * 3, name: 255 * 3 };

async function runAll(
  all: readonly Hostile[],
  act: (job: Job, value: unknown) => unknown,
  look: (app: QueueApp, id: string, what: string) => Promise<void>,
): Promise<number> {
  const app = await bootQueue(redis, {
    handlers: {
      '*': (job: Job<{ at: number }>) => act(job, all[job.data.at]!.make()),
      good: () => 'fine',
    },
    queue: { defaults: { attempts: 1, retention: '1h' } },
    concurrency: 4,
  });
  for (const [at, { what }] of all.entries()) await app.queue.add('bad', { at }, { id: what });
  for (const { what } of all) {
    await app.ended(what);
    await look(app, what, what);
  }
  // No slot was lost on the way.
  for (let i = 0; i < 8; i++) await app.queue.add('good', i, { id: `good ${i}` });
  for (let i = 0; i < 8; i++) expect((await app.ended(`good ${i}`)).type).toBe('completed');
  expect(await app.queue.counts()).toMatchObject({ waiting: 0, delayed: 0, active: 0 });
  expect(app.runtime.state).toBe('running');
  for (const { text } of app.logs.lines) {
    expect(text.length).toBeLessThan(10_000);
    // One line each, and nothing that a terminal would obey.
    // oxlint-disable-next-line no-control-regex
    expect(text).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/);
  }
  return all.length;
}

describe('whatever a handler throws', () => {
  const lookAtFailure = async ({ queue }: QueueApp, id: string, what: string) => {
    const job = (await until(() => queue.get(id), PATIENT))!;
    expect(job.state, what).toBe('dead');
    const { name, message, stack = '', reason } = job.failure!;
    expect(reason, what).toBe('retries-exhausted');
    expect(typeof name, what).toBe('string');
    expect(typeof message, what).toBe('string');
    expect(Buffer.byteLength(name), what).toBeLessThanOrEqual(BYTES.name);
    expect(Buffer.byteLength(message), what).toBeLessThanOrEqual(BYTES.message);
    expect(Buffer.byteLength(stack), what).toBeLessThanOrEqual(BYTES.stack);
  };

  it.each([
    [
      'at once',
      (_: Job, value: unknown) => {
        throw value;
      },
    ],
    [
      'later',
      async (_: Job, value: unknown) => {
        await Promise.resolve();
        throw value;
      },
    ],
    ['through an observable', (_: Job, value: unknown) => throwError(() => value)],
    [
      'as it is subscribed to',
      (_: Job, value: unknown) =>
        new Observable(() => {
          throw value;
        }),
    ],
  ])(
    '%s, is a failure of bounded size',
    async (_, act) => {
      expect(await runAll(ERRORS, act, lookAtFailure)).toBe(ERRORS.length);
    },
    30_000,
  );
});

describe('whatever a handler returns', () => {
  const isDone = async ({ queue }: QueueApp, id: string, what: string) => {
    const job = (await queue.get(id))!;
    expect(['completed', 'dead'], what).toContain(job.state);
    expect(JSON.stringify(job.result ?? null).length, what).toBeLessThan(2 ** 20);
    // A job whose result cannot be stored is completed, since its work is done. It fails only if awaiting the result throws.
    expect(job.state === 'completed' || /then|proxy/.test(what), what).toBe(true);
  };

  it.each([
    ['at once', (_: Job, value: unknown) => value],
    ['later', (_: Job, value: unknown) => Promise.resolve().then(() => ({ value }).value)],
    ['through an observable', (_: Job, value: unknown) => of(value)],
    ['after progress of it', (_: Job, value: unknown) => of(value, value, null)],
  ])(
    '%s, the job ends',
    async (_, act) => {
      expect(await runAll(ODD, act, isDone)).toBe(ODD.length);
    },
    30_000,
  );

  it('nothing, through an observable that is empty', async () => {
    const { queue, ended } = await bootQueue(redis, {
      handlers: { job: () => EMPTY },
      queue: { defaults: { retention: '1h' } },
    });
    const { id } = await queue.add('job', 1);
    expect((await ended(id)).type).toBe('completed');
  });

  it('and if results are not kept', async () => {
    const app = await bootQueue(redis, {
      handlers: { '*': ({ data }: Job<number>) => ODD[data]!.make() },
      queue: { defaults: { attempts: 1 } },
    });
    for (const [at, { what }] of ODD.entries()) await app.queue.add('job', at, { id: what });
    for (const { what } of ODD) await app.ended(what);
    expect(await app.queue.counts()).toMatchObject({ waiting: 0, active: 0 });
  });
});

describe('whatever a handler says', () => {
  const says = (job: Job, verb: 'progress' | 'log', value: unknown) =>
    job[verb](value as never).then(
      () => undefined,
      (error: unknown) => expect(error).toBeInstanceOf(GodwitError),
    );

  it.each(['progress', 'log'] as const)(
    'as %s, it is kept within bounds or refused with a typed error',
    async (verb) => {
      const all = await runAll(
        ODD,
        async (job, value) => {
          await says(job, verb, value);
          // Nobody waits for this one.
          void job[verb](value as never);
          return 'said';
        },
        async ({ queue }, id, what) => {
          const job = (await queue.get(id))!;
          expect(job.failure, what).toBeNull();
          expect(job, what).toMatchObject({ state: 'completed', result: 'said' });
          for (const { text } of job.logs) expect(text.length).toBeLessThanOrEqual(2_000);
        },
      );
      expect(all).toBe(ODD.length);
    },
    30_000,
  );
});
