import { Redis } from 'ioredis';
import { describe, expect, it, vi } from 'vitest';
import { atEnd } from '../support/cleanup.js';
import { bootQueue, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';
import { bootWorking, drained } from './support/app.js';
import { onceEach } from './support/ledger.js';
import { spawnApp } from './support/spawn.js';
import { SkewedClock } from '../trials/support/skewed-clock.js';
import { startRedis } from '../../tools/redis.mjs';
import { countsOf } from '../support/queue-states.js';

// Tests that start processes take as long as the machine does.
vi.setConfig({ testTimeout: 120_000 });

const HOUR = 3_600_000;
const DELAY_MS = 1_000;
/** A busy machine may be late by seconds. Code that used the wrong clock would be late by hours. */
const LATE_MS = 10_000;

describe.each([
  ['ahead of', 2 * HOUR],
  ['behind', -2 * HOUR],
])('a process whose clock is two hours %s that of Redis', (_, clockMs) => {
  const redis = useRedis();
  const rootOf = () => ({ connection: redis.url, prefix: redis.prefix });

  it('runs delayed jobs neither early nor late, and lets none expire', async () => {
    const { queue } = await bootWorking({ ...rootOf(), role: 'producer' });
    const worker = await spawnApp({ root: rootOf(), concurrency: 10, env: new SkewedClock(clockMs).env });
    const since = Date.now();
    await queue.add('quick', null, { id: 'delay', delay: DELAY_MS });
    await queue.add('quick', null, { id: 'runAt', runAt: since + DELAY_MS });
    await queue.add('quick', null, { id: 'fresh', expiresIn: '1h' });
    await worker.first('started', ({ id }) => id === 'fresh');
    expect(Date.now() - since).toBeLessThan(LATE_MS);
    for (const due of ['delay', 'runAt']) await worker.first('started', ({ id }) => id === due);
    const elapsed = Date.now() - since;
    expect(elapsed).toBeGreaterThanOrEqual(DELAY_MS);
    expect(elapsed).toBeLessThan(DELAY_MS + LATE_MS);
    await drained({ queue });
    worker.kill('SIGTERM');
    await worker.exit();
  });

  it('adds jobs that are due at the right time and have the right age', async () => {
    const app = await bootWorking(rootOf());
    const producer = await spawnApp({ root: rootOf(), env: new SkewedClock(clockMs).env });
    const since = Date.now();
    await producer.call('add', 'quick', null, { id: 'delay', delay: DELAY_MS });
    await producer.call('add', 'quick', null, { id: 'fresh', expiresIn: '10m' });
    await until(() => app.runs.has('fresh'), PATIENT);
    await until(() => app.runs.has('delay'), PATIENT);
    const elapsed = Date.now() - since;
    expect(elapsed).toBeGreaterThanOrEqual(DELAY_MS);
    expect(elapsed).toBeLessThan(DELAY_MS + LATE_MS);
    await drained(app);
    producer.kill('SIGTERM');
    await producer.exit();
  });
});

describe('a step of the clock of Redis', () => {
  // Long enough that two beats of a living worker are not missed on a busy machine.
  const LEASE_MS = 3_000;

  async function start() {
    const clock = new SkewedClock();
    const server = await startRedis({ private: true, env: clock.env });
    atEnd(() => server.stop());
    const admin = new Redis(server.url);
    atEnd(() => admin.disconnect());
    const root = { connection: server.url, prefix: 'clocks', lease: { duration: LEASE_MS } };
    const now = async () => Number((await admin.time())[0]) * 1_000;
    return { clock, admin, root, now };
  }

  it.each([
    ['forward', HOUR],
    ['back', -HOUR],
  ])('%s loses nothing, and recovers nothing from workers that live', async (_, ms) => {
    const { clock, admin, root, now } = await start();
    const gate = latch('the gate');
    const apps = [
      await bootWorking(root, () => gate.promise),
      await bootWorking(root, () => gate.promise),
    ] as const;
    const ids = Array.from({ length: 15 }, (_unused, i) => `job-${i}`);
    for (const id of ids) await apps[0].queue.add('hold', null, { id });
    await apps[0].queue.add('later', null, { id: 'later', delay: '2h' });
    const runs = (id: string) => apps.reduce((sum, app) => sum + (app.runs.get(id) ?? 0), 0);
    await until(() => ids.every((id) => runs(id) === 1) && apps.every((app) => app.runs.size > 0), PATIENT);

    const before = await now();
    clock.set(ms);
    await until(async () => Math.abs((await now()) - before - ms) < 10_000, {
      what: 'the server sees the step',
    });
    const after = await now();
    // Time for two leases to end, and for the jobs to be recovered.
    await until(async () => (await now()) > after + 2 * LEASE_MS, { timeout: 15_000 });
    const ends = (await admin.zrange('{clocks:work}:workers', '0', '-1', 'WITHSCORES')).filter(
      (_unused, i) => i % 2 === 1,
    );
    expect(ends).toHaveLength(2);
    for (const end of ends) {
      expect(Number(end)).toBeGreaterThan(after + 2 * LEASE_MS - 1_000);
      // No worker is trusted for longer than one lease.
      expect(Number(end)).toBeLessThan((await now()) + 2 * LEASE_MS);
    }
    gate.open();
    await until(async () => (await apps[0].queue.counts()).active === 0, PATIENT);
    for (const id of ids) expect(runs(id)).toBe(1);
    expect(await apps[0].queue.counts()).toEqual(countsOf({ delayed: 1 }));
    // Blocking calls use the clock of the server. They must not block for the hour by which it went back.
    const since = performance.now();
    await apps[0].queue.add('soon', null, { id: 'soon', delay: DELAY_MS });
    await until(() => runs('soon') === 1, PATIENT);
    expect(performance.now() - since).toBeLessThan(DELAY_MS + LATE_MS);
    expect(JSON.stringify(await admin.xrange('{clocks:work}:events', '-', '+'))).not.toContain('stalled');
  });

  it('back does not keep the jobs of a dead worker for one hour longer', async () => {
    const { clock, root } = await start();
    const heir = await bootWorking({ ...root, autoStart: false });
    const dead = await spawnApp({ root, concurrency: 5 });
    const ids = Array.from({ length: 5 }, (_, i) => `job-${i}`);
    await heir.queue.addBulk(ids.map((id) => ({ name: 'hold', data: null, options: { id } })));
    await dead.take(5, 'started');
    dead.kill('SIGKILL');
    await dead.exit();
    clock.set(-HOUR);
    const since = performance.now();
    await heir.start();
    await until(() => heir.runs.size === 5, { timeout: 15_000 });
    expect(performance.now() - since).toBeLessThan(2 * LEASE_MS + LATE_MS);
    await drained(heir);
    expect(heir.runs).toEqual(onceEach(ids));
  });

  it.each(['redis', 'memory'])('back does not let groups rest for one hour longer (%s)', async (kind) => {
    const { clock, root, now } = await start();
    const wall = Date.now;
    const connection = kind === 'memory' ? 'memory' : root.connection;
    const ran: string[] = [];
    const { queue } = await bootQueue(
      { url: root.connection, prefix: root.prefix },
      {
        root: { connection },
        queue: { groups: { rate: { max: 1, per: '2s' } } },
        handlers: { job: ({ id }) => void ran.push(id) },
        watch: false,
      },
    );
    for (const id of ['a-0', 'b-0', 'a-1', 'b-1'])
      await queue.add('job', null, { id, group: id.slice(0, 1) });
    await until(async () => ran.length === 2 && (await queue.counts()).active === 0, PATIENT);
    if (kind === 'memory') vi.spyOn(Date, 'now').mockImplementation(() => wall() - HOUR);
    else {
      const before = await now();
      clock.set(-HOUR);
      await until(async () => (await now()) < before - HOUR / 2, PATIENT);
    }
    atEnd(() => void vi.restoreAllMocks());
    await until(() => ran.length === 4, PATIENT);
    expect(ran.slice(2).toSorted()).toEqual(['a-1', 'b-1']);
  });
});
