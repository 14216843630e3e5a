import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { getQueueToken } from '#lib/decorators/metadata.js';
import { QueueEvents } from '#lib/events/queue-events.js';
import type { Queue } from '#lib/producer/queue.js';
import { QueueModule } from '#lib/module/queue.module.js';
import { bootApp } from '../support/app.js';
import { atEnd } from '../support/cleanup.js';
import { PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { collect, until } from '../support/wait.js';
import { Ledger, onceEach } from './support/ledger.js';
import { spawnApp, spawnWorker } from './support/spawn.js';
import { emptied } from './support/app.js';

// Tests that start processes take as long as the machine does.
vi.setConfig({ testTimeout: 120_000 });

/** Long enough that a living worker sends its beats in time while other processes start. */
const LEASE_MS = 2_000;
/** From the end of a lease until another worker runs its jobs, on a busy machine. */
const NOTICE_MS = 4_000;

const redis = useRedis();
let queue: Queue;
let ledger: Ledger;
let events: QueueEvents;

beforeEach(async () => {
  // Killed processes leave their records. Redis removes them after ten minutes.
  atEnd(() => redis.flush());
  ledger = new Ledger();
  const root = QueueModule.forRoot({ connection: redis.url, prefix: redis.prefix, role: 'producer' });
  const { get } = await bootApp({ imports: [root, QueueModule.registerQueue({ name: 'work' })] });
  queue = get<Queue>(getQueueToken('work'));
  events = get(QueueEvents);
});

const startWorker = (concurrency: number, lease = {}, more = {}) =>
  spawnWorker(redis, ledger, concurrency, { lease: { duration: LEASE_MS, ...lease }, ...more });

async function addJobs(count: number, name: string, data: unknown = null): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, i) => `${name}-${i}`);
  await queue.addBulk(ids.map((id) => ({ name, data, options: { id, retention: '1h' } })));
  return ids;
}

it('runs the jobs of a killed worker again once its lease is over, and counts a stall and no attempt', async () => {
  const stalled = collect(events.ofType('work', 'stalled'));
  await events.ready('work');
  const first = await startWorker(20);
  const ids = await addJobs(20, 'hold');
  await first.take(20, 'started');
  const second = await startWorker(20);
  first.kill('SIGKILL');
  const since = performance.now();
  await second.take(20, 'started');
  const allMs = performance.now() - since;
  expect(second.all('started').map(({ attempt }) => attempt)).toEqual(Array(20).fill(1));
  expect(await queue.get(ids[0]!)).toMatchObject({ state: 'active', attempt: 1, stalls: 1 });
  await second.call('release');
  await emptied(queue);
  expect(ledger.times('S')).toEqual(new Map(ids.map((id) => [id, 2])));
  expect(ledger.times('E')).toEqual(onceEach(ids));
  expect(new Set((await stalled.take(20)).map(({ jobId }) => jobId))).toEqual(new Set(ids));
  expect(allMs).toBeLessThan(LEASE_MS + NOTICE_MS);
  second.kill('SIGTERM');
  await second.exit();
});

it('completes 100 jobs that lost their worker three times in a row', async () => {
  const ids = await addJobs(100, 'hold');
  let started = 100;
  for (let kill = 1; kill <= 3; kill++) {
    const worker = await startWorker(100);
    await worker.take(started, 'started');
    worker.kill('SIGKILL');
    await worker.exit();
    // From its second stall on a job is claimed alone, so that only one job can cause the next one.
    if (kill === 2) started = 1;
  }
  const last = await startWorker(100);
  await last.call('release');
  await emptied(queue, 30_000);
  expect(ledger.times('E')).toEqual(onceEach(ids));
  expect(await queue.counts()).toMatchObject({ completed: 100, dead: 0 });
  last.kill('SIGTERM');
  await last.exit();
});

it('makes a job that kills its worker dead as stalled, and completes the other jobs', async () => {
  const { id: poison } = await queue.add('poison', null);
  const neighbours = await addJobs(9, 'sleep', 50);
  let kills = 0;
  const lease = { maxStalls: 2 };
  for (;;) {
    const worker = await startWorker(10, lease);
    const ended = await Promise.race([
      worker.exit({ timeout: 60_000 }),
      emptied(queue).then(() => undefined),
    ]);
    if (ended === undefined) {
      worker.kill('SIGTERM');
      await worker.exit();
      break;
    }
    kills += 1;
  }
  expect(kills).toBe(3);
  expect(await queue.get(poison)).toMatchObject({ state: 'dead', failure: { reason: 'stalled' } });
  expect(await queue.counts()).toMatchObject({ completed: 9, dead: 1 });
  expect(ledger.times('E')).toEqual(onceEach(neighbours));
});

it('refuses outcomes of a worker that was stopped for longer than its lease, and lets it continue under a new name', async () => {
  const zombie = await startWorker(10);
  const ids = await addJobs(10, 'hold');
  await zombie.take(10, 'started');
  const heir = await startWorker(10);
  zombie.kill('SIGSTOP');
  await heir.take(10, 'started');
  zombie.kill('SIGCONT');
  const aborted = await zombie.take(10, 'aborted');
  expect(new Set(aborted.map(({ id, reason }) => `${id} ${reason}`))).toEqual(
    new Set(ids.map((id) => `${id} lease-lost`)),
  );

  // Its handlers end. That must not end the jobs, which another worker runs now.
  await zombie.call('release');
  await until(() => ledger.lines('E').length === 10, PATIENT);
  expect(await queue.counts()).toMatchObject({ active: 10, completed: 0 });
  const more = (await queue.add('quick', null)).id;
  await zombie.first('ended', ({ id }) => id === more);
  await heir.call('release');
  await emptied(queue);
  expect(await queue.counts()).toMatchObject({ completed: 10, dead: 0 });
  expect(ledger.times('S').get(ids[0]!)).toBe(2);
  for (const worker of [zombie, heir]) worker.kill('SIGTERM');
  await Promise.all([zombie.exit(), heir.exit()]);
});

describe('a handler that blocks the event loop', () => {
  it('is not treated as dead for three leases', async () => {
    const blocked = await startWorker(1);
    const other = await startWorker(1);
    const stalled = collect(events.ofType('work', 'stalled'));
    await events.ready('work');
    const ids = await addJobs(1, 'block', 3 * LEASE_MS);
    await until(() => ledger.lines('E').length === 1, PATIENT);
    await emptied(queue);
    expect(ledger.times('S')).toEqual(onceEach(ids));
    expect(stalled.values).toEqual([]);
    for (const worker of [blocked, other]) worker.kill('SIGTERM');
    await Promise.all([blocked.exit(), other.exit()]);
  });

  it('forever loses its jobs after maxBlock and the lease', async () => {
    const maxBlock = 1_000;
    const blocked = await startWorker(1, { maxBlock });
    const heir = await startWorker(1, { maxBlock, maxStalls: 0 }, { autoStart: false });
    const { id: stuck } = await queue.add('stuck', null);
    await blocked.first('started');
    const since = performance.now();
    await heir.call('start');
    await until(async () => (await queue.get(stuck))?.state === 'dead', { timeout: 15_000 });
    const ms = performance.now() - since;
    expect(ms).toBeGreaterThan(maxBlock);
    expect(ms).toBeLessThan(maxBlock + LEASE_MS + NOTICE_MS);
    blocked.kill('SIGKILL');
    heir.kill('SIGTERM');
    await heir.exit();
  });
});

it('runs nothing twice if the heartbeat thread starts only after several leases', async () => {
  const lease = { duration: 1_000 };
  const slow = await spawnApp({
    root: { connection: redis.url, prefix: redis.prefix, lease },
    concurrency: 5,
    ledger: ledger.file(),
    execArgv: ['--require', fileURLToPath(new URL('support/slow-thread.cjs', import.meta.url))],
  });
  const ids = await addJobs(5, 'hold');
  await slow.take(5, 'started');
  // This worker would take over the jobs of an expired lease.
  await startWorker(5, lease);
  await slow.first('link', ({ role, state }) => role === 'heartbeat' && state === 'up');
  await slow.call('release');
  await emptied(queue);
  expect(ledger.times('S')).toEqual(onceEach(ids));
  expect(await queue.get(ids[0]!)).toMatchObject({ state: 'completed', stalls: 0 });
});
