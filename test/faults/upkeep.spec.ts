import { describe, expect, it } from 'vitest';
import { UnrecoverableError } from '#lib/errors.js';
import { bootQueue, keyOf, Logs, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { KEEPING, useServer } from '../support/server.js';
import { until } from '../support/wait.js';

const server = useServer({ args: KEEPING });
const redis = useRedis({ server });
const often = { upkeep: { interval: 100 } } as const;
const handlers = { job: () => 1 };

/** So many completed jobs whose retention is over. */
async function heap(count: number): Promise<string> {
  const key = keyOf(redis, 'completed');
  await redis.admin.zadd(key, ...Array.from({ length: count }, (_, i) => [i + 1, `j${i}`]).flat());
  return key;
}

/** So many dead jobs, a millisecond apart. */
async function fillDead(count: number, since = Date.now() - count): Promise<void> {
  const ids = Array.from({ length: count }, (_, i) => `d${i}`);
  await redis.admin.hset(keyOf(redis, 'jobs'), ...ids.flatMap((id) => [id, 'job\n']));
  await redis.admin.zadd(keyOf(redis, 'dead'), ...ids.flatMap((id, i) => [since + i, id]));
}

const isGone = (key: string) => until(async () => (await redis.admin.exists(key)) === 0, PATIENT);

/** How often a command was called. */
async function calls(command: string): Promise<number> {
  const stats = await redis.admin.info('commandstats');
  return Number(new RegExp(`^cmdstat_${command}:calls=(\\d+)`, 'm').exec(stats)?.[1] ?? 0);
}

describe('the janitor', () => {
  it('continues on its own after Redis was away in the middle of its work', async () => {
    const { logs } = await bootQueue(redis, { root: often, handlers, watch: false });
    const key = await heap(20_000);
    await until(async () => (await redis.admin.zcard(key)) < 20_000, PATIENT);
    await server.kill9();
    await logs.complaint(/Redis|connection|ECONN/);
    await server.restart();
    await isGone(key);
    expect(logs.complaints.filter((text) => text.includes('cannot be removed'))).toEqual([]);
  });

  it('continues on its own after Redis was too busy to answer', async () => {
    const { logs } = await bootQueue(redis, { root: often, handlers, watch: false });
    await redis.admin.client('PAUSE', 500, 'ALL');
    await isGone(await heap(1_000));
    expect(logs.complaints).toEqual([]);
  });

  it('runs in one of several processes at a time', async () => {
    const logs = new Logs();
    const interval = 500;
    const root = { upkeep: { interval } };
    for (let i = 0; i < 4; i++) await bootQueue(redis, { root, handlers, logs, watch: false });
    const begun = performance.now();
    const before = await calls('zcount');
    for (let round = 0; round < 4; round++) await isGone(await heap(10));
    // The claim of a round is over before the next one begins.
    const claims = async () => (await redis.keys()).filter((key) => key.includes(':janitor:'));
    await until(async () => (await claims()).length === 1, PATIENT);
    // Each round asks each queue once or twice. With one round per process it would be four times as often.
    const rounds = (performance.now() - begun) / (interval * 0.8) + 1;
    const asked = (await calls('zcount')) - before;
    expect(asked).toBeGreaterThan(0);
    expect(asked).toBeLessThanOrEqual(2 * rounds);
  });

  it('in two processes at once is harmless, and removes everything once', async () => {
    const logs = new Logs();
    const queues = [{ name: 'own' }];
    // They share only some queues, so each process looks after its own.
    await bootQueue(redis, { root: often, handlers, logs, watch: false });
    const other = await bootQueue(redis, { root: often, handlers, logs, queues });
    await fillDead(3_000, 1);
    await isGone(keyOf(redis, 'jobs'));
    const removed = await other.said.take(3_000, (event) => event.type === 'removed', PATIENT);
    expect(new Set(removed.map((event) => event.jobId)).size).toBe(3_000);
    expect(logs.complaints).toEqual([]);
  });

  it('measures the bytes of dead jobs only when no more are to be removed by their number', async () => {
    const before = await calls('hstrlen');
    await bootQueue(redis, { root: { ...often, dead: { max: 100 } }, handlers, watch: false });
    await fillDead(3_000);
    await until(async () => (await redis.admin.zcard(keyOf(redis, 'dead'))) === 100, PATIENT);
    // Each measurement reads two values of each of the 100 jobs, and a few rounds may have passed.
    await until(async () => (await calls('hstrlen')) - before >= 200, PATIENT);
    expect((await calls('hstrlen')) - before).toBeLessThanOrEqual(600);
  });

  it('after deaths in a queue with many dead jobs, measures only those that have just died', async () => {
    const fails = () => {
      throw new UnrecoverableError('unwanted');
    };
    const { queue } = await bootQueue(redis, { handlers: { job: fails }, watch: false });
    await fillDead(3_000);
    const before = await calls('hstrlen');
    await queue.addBulk(Array.from({ length: 100 }, (_, i) => ({ name: 'job', data: i })));
    // It measures two values of each once 64 have died. It does not wait for the few that may be left.
    await until(async () => (await calls('hstrlen')) - before >= 128, PATIENT);
    expect((await calls('hstrlen')) - before).toBeLessThanOrEqual(400);
  });

  it('logs the problem of one queue once, and continues with the others', async () => {
    const { logs } = await bootQueue(redis, {
      root: often,
      handlers,
      queues: [{ name: 'other' }],
      watch: false,
    });
    await redis.admin.set(keyOf(redis, 'dead', 'other'), 'not ours');
    await logs.complaint(
      /queue 'other': jobs and events beyond their age or number cannot be removed: .*WRONGTYPE/,
    );
    for (let round = 0; round < 3; round++) await isGone(await heap(10));
    expect(logs.complaints.filter((text) => text.includes('cannot be removed'))).toHaveLength(1);
    await redis.flush();
  });
});
