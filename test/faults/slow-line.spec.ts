import { expect, it } from 'vitest';
import { startCut } from '../support/cut.js';
import { bootQueue, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { useServer } from '../support/server.js';
import { latch, until } from '../support/wait.js';
import { onceEach } from './support/ledger.js';

const server = useServer();
const redis = useRedis({ server });
/** Long enough for a beat, a round trip of one second, and a busy machine. */
const LEASE_MS = 5_000;

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
  // A worker near Redis, which would take over the jobs.
  const near = await bootQueue(redis, {
    root: { lease: { duration: LEASE_MS } },
    handlers: { none: () => undefined },
  });
  near.runtime.pause();
  const ids = Array.from({ length: 10 }, (_, i) => `job-${i}`);
  await near.queue.addBulk(ids.map((id) => ({ name: 'job', data: null, options: { id } })));
  await until(() => runs.size === ids.length, PATIENT);
  near.runtime.resume();

  const delays = [50, 500, 120, 350, 80];
  const end = performance.now() + 2 * LEASE_MS;
  for (let i = 0; performance.now() < end; i++) {
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

it.each([
  ['without limits', {}],
  ['in groups, each with a concurrency', { groups: { concurrency: 1 } }],
])('claims many fast jobs at once over a line that takes 10 ms each way, %s', async (_, queue) => {
  const cut = await startCut(redis.url);
  const near = await bootQueue(redis, { queue, watch: false });
  const jobs = 2_000;
  const groupOf = (i: number) => ('groups' in queue ? { group: `g${i % 500}` } : {});
  await near.queue.addBulk(
    Array.from({ length: jobs }, (__, i) => ({ name: 'job', data: null, options: groupOf(i) })),
  );
  cut.delay(10);
  let runs = 0;
  const requests = cut.counters.requests;
  const far = await bootQueue(redis, {
    root: { connection: cut.url },
    queue,
    concurrency: 5,
    watch: false,
    handlers: { '*': () => void (runs += 1) },
  });
  await until(() => runs === jobs, PATIENT);
  // A worker that claims for its free slots only needs a request for each five jobs.
  expect(cut.counters.requests - requests).toBeLessThan(jobs / 20);
  cut.delay(0);
  await far.close();
});

it('delivers every event although the server disconnects its reader again and again, as it does with a slow reader', async () => {
  const app = await bootQueue(redis, { handlers: { '*': () => undefined } });
  const ids = Array.from({ length: 500 }, (_, i) => `job-${i}`);
  const reader = async () => (await redis.clients()).find(({ name }) => name?.endsWith(':events'))?.['id'];
  for (let i = 0; i < ids.length; i += 100) {
    const id = await until(reader, PATIENT);
    const some = ids.slice(i, i + 100);
    const added = app.queue.addBulk(some.map((one) => ({ name: 'job', data: null, options: { id: one } })));
    await redis.admin.call('CLIENT', 'KILL', 'ID', id);
    await added;
    await until(async () => (await reader()) !== id, PATIENT);
  }
  for (const id of ids) await app.ended(id);
  const completed = app.said.values.flatMap(({ type, jobId }) => (type === 'completed' ? [jobId] : []));
  expect(completed.length).toBe(ids.length);
  expect(new Set(completed)).toEqual(new Set(ids));
});
