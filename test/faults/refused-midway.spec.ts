import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { RedisEngine } from '#lib/engine/redis-engine.js';
import { RedisRefusedError } from '#lib/errors.js';
import { useServer } from '../support/server.js';

const server = useServer();
const SECRET = 'canary-in-the-data';
/** An add needs the first command. Without the second it cannot undo what it did before. */
const MISSING = ['-rpush', '-hdel'];
let admin: Redis;

beforeAll(async () => {
  admin = new Redis(server.url);
  await admin.ping();
});

afterAll(async () => {
  await admin.quit();
});

/** The error of an add by a user who may not run some of the commands of the script. */
async function refusedMidway(missing = MISSING): Promise<RedisRefusedError> {
  await admin.flushall();
  await admin.call('ACL', 'SETUSER', 'half', 'reset', 'on', '>pass', '~*', '+@all', ...missing);
  const connection = { port: server.port, username: 'half', password: 'pass' };
  const limitsOf = () => ({
    leaseMs: 1_000,
    logsMax: 100,
    maxEvents: 0,
    deadMax: 1,
    deadAgeMs: 1,
    eventsAgeMs: null,
    eventsMaxBytes: 67_108_864,
    progressMaxBytes: 67_108_864,
    deadMaxBytes: 1_073_741_824,
    completedMax: 1,
  });
  const engine = new RedisEngine({ connection, prefix: 'midway', callMs: 10_000, limitsOf });
  const jobs = [{ id: 'a', name: 'job', body: `job\n0\n\n"${SECRET}"` }];
  const call = { lane: 'lane', seq: 1, rememberMs: 1_000, withinMs: 10_000, jobs };
  try {
    return await engine.enqueue('work', call).then(
      () => expect.fail('it was stored'),
      (error: RedisRefusedError) => error,
    );
  } finally {
    await engine.close();
  }
}

it('reports "unknown", never "no", for a call that was refused after a write of its script', async () => {
  const error = await refusedMidway();
  expect(error).toBeInstanceOf(RedisRefusedError);
  expect(error).toMatchObject({ applied: 'unknown', code: 'GODWIT_REDIS_REFUSED' });
  expect(error.message).toContain('whether it took effect is unknown');
});

it('reports "no" if the earlier writes were undone completely', async () => {
  const error = await refusedMidway(MISSING.slice(0, 1));
  expect(error).toBeInstanceOf(RedisRefusedError);
  expect(error).toMatchObject({ applied: 'no', code: 'GODWIT_REDIS_REFUSED' });
  expect(await admin.keys('*')).toEqual(['{midway}:queues']);
});

it('has no data of jobs in its errors', async () => {
  const { cause, message, stack } = await refusedMidway();
  expect(cause).toBeInstanceOf(Error);
  expect(JSON.stringify([cause, Object.entries(cause as object), message, stack])).not.toContain(SECRET);
});
