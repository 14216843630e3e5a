import { setTimeout as pause } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { useRedis } from '../support/redis.js';
import { useServer } from '../support/server.js';
import { latch, until } from '../support/wait.js';
import { bootWorking, drained } from './support/app.js';
import { onceEach } from './support/ledger.js';

// No worker died. The server stood still for longer than a lease. Running jobs go on, and no other worker runs them.
const server = useServer();
const redis = useRedis({ server });
const LEASE_MS = 1_000;
const STALL_MS = 2_500;

const stalls: [string, () => Promise<unknown>][] = [
  ['sleeps', () => redis.admin.call('DEBUG', 'SLEEP', STALL_MS / 1_000)],
  [
    'answers nobody for a while',
    async () => {
      await redis.admin.call('CLIENT', 'PAUSE', STALL_MS, 'ALL');
      await redis.admin.ping();
    },
  ],
  [
    'takes no writes for a while',
    async () => {
      await redis.admin.call('CLIENT', 'PAUSE', STALL_MS, 'WRITE');
      await pause(STALL_MS);
    },
  ],
  [
    'is stopped',
    async () => {
      process.kill(server.pid!, 'SIGSTOP');
      await pause(STALL_MS);
      process.kill(server.pid!, 'SIGCONT');
    },
  ],
];

it.each(stalls)(
  'recovers nothing and runs nothing twice when the server %s for longer than a lease',
  async (_, stall) => {
    const gate = latch('the gate');
    const root = { connection: redis.url, prefix: redis.prefix, lease: { duration: LEASE_MS } };
    const [first, second] = await Promise.all([
      bootWorking(root, () => gate.promise),
      bootWorking(root, () => gate.promise),
    ]);
    const ids = Array.from({ length: 15 }, (_, i) => `job-${i}`);
    // One at a time, so that both workers get some and each sees the lease of the other.
    for (const id of ids) await first.queue.add('hold', null, { id });
    const started = () => first.runs.size + second.runs.size;
    await until(() => started() === ids.length && first.runs.size > 0 && second.runs.size > 0);

    await stall();
    // Every lease has been renewed since. A wrong recovery would have happened by now.
    const now = async () => Number((await redis.admin.time())[0]) * 1_000;
    const since = await now();
    const ends = () => redis.admin.zrange(`{${redis.prefix}:work}:workers`, '0', '-1', 'WITHSCORES');
    await until(async () => (await now()) > since + 2 * LEASE_MS, { timeout: 10_000 });
    const [, one, , other] = (await ends()).map(Number);
    expect(Math.min(one!, other!)).toBeGreaterThan(since + 2 * LEASE_MS - 500);

    gate.open();
    await drained(first);
    for (const id of ids) expect((first.runs.get(id) ?? 0) + (second.runs.get(id) ?? 0)).toBe(1);
    expect(new Map([...first.runs, ...second.runs])).toEqual(onceEach(ids));
    const events = await redis.admin.xrange(`{${redis.prefix}:work}:events`, '-', '+');
    expect(JSON.stringify(events)).not.toContain('stalled');
  },
);
