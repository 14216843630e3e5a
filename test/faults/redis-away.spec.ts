import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { RedisRefusedError, RedisUnavailableError } from '#lib/errors.js';
import { freePort } from '../../tools/free-port.mjs';
import { startRedis } from '../../tools/redis.mjs';
import { atEnd } from '../support/cleanup.js';
import { PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { KEEPING, useServer } from '../support/server.js';
import { latch, until, within } from '../support/wait.js';
import { bootWorking, drained, type WorkingApp } from './support/app.js';

const server = useServer({ args: KEEPING });
const redis = useRedis({ server });
/** Longer than Redis is away, whatever it takes to come back. */
const ENQUEUE_MS = 15_000;
/**
 * From the moment Redis listens until work goes on. The promise is 1.5 s, measured by trials. A busy machine takes
 * longer.
 */
const RESUME_MS = 5_000;

/** An application whose adds wait for Redis. */
const bootPatient = () =>
  bootWorking({ connection: redis.url, prefix: redis.prefix, enqueueTimeout: ENQUEUE_MS });

/** Adds a job every few ms until it is stopped. Each add ends within its time limit. */
function keepAdding({ queue }: WorkingApp) {
  const adds: Promise<void>[] = [];
  const outcome = { stored: [] as string[], refused: [] as string[], unknown: [] as string[] };
  let longestMs = 0;
  const addOne = async (id: string) => {
    const since = performance.now();
    try {
      await within(queue.add('one', null, { id }), {
        timeout: ENQUEUE_MS + 1_000,
        what: `the add of ${id} is decided`,
      });
      outcome.stored.push(id);
    } catch (error) {
      if (!(error instanceof RedisUnavailableError)) throw error;
      (error.applied === 'no' ? outcome.refused : outcome.unknown).push(id);
    }
    longestMs = Math.max(longestMs, performance.now() - since);
  };
  const timer = setInterval(() => adds.push(addOne(`job-${adds.length}`)), 5);
  atEnd(() => clearInterval(timer));
  return {
    count: () => adds.length,
    stop: async () => {
      clearInterval(timer);
      await Promise.all(adds);
      return { ...outcome, longestMs };
    },
  };
}

/** No confirmed add is lost, no refused add has run, and nothing has run twice. */
function expectHonest(app: WorkingApp, { stored, refused }: { stored: string[]; refused: string[] }) {
  expect(stored.filter((id) => !app.runs.has(id))).toEqual([]);
  expect(refused.filter((id) => app.runs.has(id))).toEqual([]);
  expect([...app.runs].filter(([, times]) => times > 1)).toEqual([]);
}

it('continues soon after Redis was away for three seconds, and keeps every promise', async () => {
  const app = await bootPatient();
  const adding = keepAdding(app);
  await until(() => app.runs.size > 50);
  await server.kill9();
  await pause(3_000);
  const before = app.runs.size;
  await server.restart();
  const since = performance.now();
  await until(() => app.runs.size > before, { ...PATIENT, what: 'a job runs after the restart' });
  const resumedMs = performance.now() - since;
  const outcome = await adding.stop();
  await drained(app);
  expect(resumedMs).toBeLessThan(RESUME_MS);
  // Adds that were made meanwhile waited for Redis.
  expect(outcome.longestMs).toBeGreaterThan(1_500);
  expect(outcome.refused).toEqual([]);
  expectHonest(app, outcome);
});

it('rejects an add in time if Redis stays away, and does not run the job later', async () => {
  const app = await bootWorking({ connection: redis.url, prefix: redis.prefix, enqueueTimeout: '500ms' });
  await server.kill9();
  const since = performance.now();
  const outcomes = await Promise.allSettled([
    ...['a', 'b', 'c'].map((id) => app.queue.add('one', null, { id })),
    app.queue.addBulk([{ name: 'many', data: null, options: { id: 'd' } }]),
  ]);
  const refusal = { code: 'GODWIT_REDIS_UNAVAILABLE', applied: 'no' };
  expect(outcomes).toMatchObject(outcomes.map(() => ({ status: 'rejected', reason: refusal })));
  // Without a signal it would take five seconds.
  expect(performance.now() - since).toBeLessThan(4_000);
  await server.restart();
  // With the same id: a job that was stored and not confirmed in time is added again.
  await until(() => app.queue.add('later', null, { id: 'later' }), PATIENT);
  await drained(app);
  expect([...app.runs.keys()]).toEqual(['later']);
});

it('closes while Redis is away', async () => {
  const app = await bootWorking({ connection: redis.url, prefix: redis.prefix });
  await app.queue.add('one', null);
  await drained(app);
  await server.kill9();
  const since = performance.now();
  await app.close();
  expect(performance.now() - since).toBeLessThan(10_000);
  await server.restart();
  await redis.flush();
});

it('starts without Redis and works once Redis is there', async () => {
  const port = await freePort();
  const app = await bootWorking({ connection: `redis://127.0.0.1:${port}`, enqueueTimeout: '20s' });
  const added = app.queue.add('early', null);
  const late = await startRedis({ private: true, port });
  atEnd(() => app.close().then(() => late.stop()));
  const since = performance.now();
  await added;
  await until(() => app.runs.size === 1, PATIENT);
  expect(performance.now() - since).toBeLessThan(RESUME_MS);
});

it('loses and doubles nothing while all connections are killed again and again', async () => {
  const app = await bootPatient();
  const adding = keepAdding(app);
  for (let i = 1; i <= 10; i++) {
    await redis.admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    const before = app.runs.size;
    await until(() => app.runs.size > before + 5);
  }
  const outcome = await adding.stop();
  await drained(app);
  expect(outcome.refused.length + outcome.unknown.length).toBe(0);
  expectHonest(app, outcome);
});

it('does not mind that the server forgets its scripts', async () => {
  const app = await bootPatient();
  const adding = keepAdding(app);
  for (let i = 1; i <= 20; i++) {
    await redis.admin.script('FLUSH');
    const before = app.runs.size;
    await until(() => app.runs.size > before + 2);
  }
  const outcome = await adding.stop();
  await drained(app);
  expect(outcome.refused.length + outcome.unknown.length).toBe(0);
  expectHonest(app, outcome);
});

describe('at maxmemory', () => {
  it('refuses adds with an error and drains the backlog', async () => {
    const gate = latch('the gate');
    const app = await bootWorking({ connection: redis.url, prefix: redis.prefix }, () => gate.promise);
    const jobs = Array.from({ length: 500 }, (_, i) => ({
      name: 'many',
      data: 'x'.repeat(1_000),
      options: { id: `${i}` },
    }));
    await app.queue.addBulk(jobs);
    const limit = Number(/used_memory:(\d+)/.exec(await redis.admin.info('memory'))![1]) - 200_000;
    await redis.admin.config('SET', 'maxmemory', limit);
    atEnd(() => redis.admin.config('SET', 'maxmemory', 0));
    const refused = await app.queue.add('more', null, { id: 'more' }).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(RedisRefusedError);
    expect(refused).toMatchObject({
      reply: 'OOM',
      applied: 'no',
      message: expect.stringContaining('raise maxmemory'),
    });
    await expect(app.queue.addBulk([{ name: 'more', data: null }])).rejects.toMatchObject({ reply: 'OOM' });
    gate.open();
    await drained(app);
    expect(app.runs).toEqual(new Map(jobs.map(({ options }) => [options.id, 1])));
    await redis.admin.config('SET', 'maxmemory', 0);
    await app.queue.add('again', null, { id: 'again' });
    await until(() => app.runs.has('again'));
  });
});
