import { expect, it } from 'vitest';
import { setImmediate as nextImmediate } from 'node:timers/promises';
import type { HeartbeatPlan } from '#lib/contract/engine.js';
import { atEnd } from '../support/cleanup.js';
import { isBlocked } from '../support/blocked.js';
import { PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';
import { bootWorking, drained } from './support/app.js';

const redis = useRedis();
/** Longer than a call may take. */
const BLOCK_MS = 3_000;

it('keeps its connections while a handler blocks the event loop, whatever calls were in flight', async () => {
  const root = { connection: redis.url, prefix: redis.prefix };
  const app = await bootWorking(root, async () => {
    // From here on timers run before sockets are read.
    await nextImmediate();
    // Sent at once, and answered while the event loop is blocked.
    const counts = app.engine.admin.counts('work');
    const end = performance.now() + BLOCK_MS;
    while (performance.now() < end);
    return counts;
  });
  const counts = await app.queue.addAndWait('blocks', 1, { retention: '1m', waitTimeout: '20s' });
  expect(counts).toMatchObject({ active: 1 });
  expect(app.runs.size).toBe(1);
  expect(app.links.filter(({ state, error }) => state === 'down' || error)).toEqual([]);
});

it('keeps the lease of a job that was given to it while its event loop was blocked and it was idle', async () => {
  const gate = latch('the end of the job');
  atEnd(() => gate.open());
  const lease = { duration: 2_400 };
  const app = await bootWorking({ connection: redis.url, prefix: redis.prefix, lease }, () => gate.promise);
  // Only the thread can renew the lease, and it takes time to start. It has started once the process is in the
  // registry.
  await until(
    async () =>
      (await redis.clients()).some(({ name, cmd }) => name?.endsWith(':heartbeat') && cmd === 'evalsha'),
    PATIENT,
  );
  // The first sleep had no connection to block on.
  await app.engine.ring('work');
  await isBlocked(redis);
  const added = app.queue.add('waits', null);
  for (let turn = 0; turn < 3; turn++) await nextImmediate();
  const end = performance.now() + lease.duration * 1.7;
  while (performance.now() < end);
  const leases = await app.engine.overdue('work', 60_000);
  await added;
  expect(leases).toHaveLength(1);
  expect(leases[0]!.endsInMs).toBeGreaterThan(0);
  gate.open();
  await drained(app);
  expect([...app.runs.values()]).toEqual([1]);
});

it('keeps its jobs when a heartbeat reply arrives that Redis sent before the first exchange', async () => {
  const gate = latch('the end of the job');
  atEnd(() => gate.open());
  const root = { connection: redis.url, prefix: redis.prefix, autoStart: false };
  const aborted: unknown[] = [];
  const app = await bootWorking(root, async ({ signal }) => {
    signal.addEventListener('abort', () => aborted.push(signal.reason));
    await gate.promise;
  });
  const { engine } = app;
  let plan!: HeartbeatPlan;
  const openHeartbeat = engine.openHeartbeat.bind(engine);
  engine.openHeartbeat = (given) => openHeartbeat((plan = given));
  const exchange = engine.exchange.bind(engine);
  let calls = 0;
  let worker!: string;
  engine.exchange = (queue, call) => {
    calls += 1;
    worker = call.worker;
    return exchange(queue, call);
  };
  await app.start();
  await app.queue.add('waits', null);
  await until(() => app.runs.size === 1, PATIENT);
  const before = calls;
  plan.onBeat('work', worker, { kind: 'unknown-worker' });
  // The worker asks Redis whether that is true.
  await until(() => calls > before, PATIENT);
  gate.open();
  await drained(app);
  expect(aborted).toEqual([]);
  expect([...app.runs.values()]).toEqual([1]);
});
