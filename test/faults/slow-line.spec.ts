import { expect, it } from 'vitest';
import { startCut } from '../support/cut.js';
import { bootQueue, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { useServer } from '../support/server.js';
import { latch, until } from '../support/wait.js';
import { onceEach } from './support/ledger.js';

const server = useServer();
const redis = useRedis({ server });
const LEASE_MS = 2_000;

it('recovers nothing over a line that takes 50 to 500 ms each way', async () => {
  const cut = await startCut(redis.url);
  const gate = latch('the gate');
  const runs = new Map<string, number>();
  const root = { connection: cut.url, lease: { duration: LEASE_MS } };
  const far = await bootQueue(redis, {
    root,
    watch: false,
    handlers: {
      '*': ({ id }) => {
        runs.set(id, (runs.get(id) ?? 0) + 1);
        return gate.promise;
      },
    },
  });
  // Somebody near, who would take over.
  const near = await bootQueue(redis, {
    root: { lease: { duration: LEASE_MS } },
    handlers: { none: () => undefined },
  });
  await near.runtime.pause();
  const ids = Array.from({ length: 10 }, (_, i) => `job-${i}`);
  await near.queue.addBulk(ids.map((id) => ({ name: 'job', data: null, options: { id } })));
  await until(() => runs.size === ids.length, PATIENT);
  await near.runtime.resume();

  const delays = [50, 500, 120, 350, 80];
  const until3Leases = performance.now() + 3 * LEASE_MS;
  for (let i = 0; performance.now() < until3Leases; i++) {
    cut.delay(delays[i % delays.length]!);
    const next = performance.now() + 300;
    await until(() => performance.now() > next);
  }
  gate.open();
  await until(async () => Object.values(await near.queue.counts()).every((count) => count === 0), PATIENT);
  expect(runs).toEqual(onceEach(ids));
  expect(near.said.values.filter(({ type }) => type === 'stalled')).toEqual([]);
  cut.delay(0);
  await far.close();
});

it('tells every event although the server cuts its reader for being slow, again and again', async () => {
  const text = 'm'.repeat(500);
  const app = await bootQueue(redis, {
    concurrency: 300,
    queue: { defaults: { attempts: 1 } },
    handlers: {
      '*': () => {
        throw new Error(text);
      },
    },
  });
  const ids = Array.from({ length: 900 }, (_, i) => `job-${i}`);
  const reader = async () => (await redis.clients()).find(({ name }) => name?.endsWith(':events'))?.id;
  let cuts = 0;
  for (let i = 0; i < ids.length; i += 300) {
    const before = await until(reader, PATIENT);
    // Less than the events of one exchange take, and more than any other answer.
    await redis.admin.config('SET', 'client-output-buffer-limit', 'normal 100000 0 0');
    await app.queue.addBulk(
      ids.slice(i, i + 300).map((id) => ({ name: 'job', data: null, options: { id } })),
    );
    await until(async () => (await reader()) !== before, PATIENT);
    cuts += 1;
    await redis.admin.config('SET', 'client-output-buffer-limit', 'normal 0 0 0');
  }
  expect(cuts).toBe(3);
  for (const id of ids) await app.ended(id);
  const dead = app.said.values.flatMap(({ type, jobId }) => (type === 'dead' ? [jobId] : []));
  expect(dead.length).toBe(ids.length);
  expect(new Set(dead)).toEqual(new Set(ids));
});
