import { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { atEnd } from '../support/cleanup.js';
import { useRedis } from '../support/redis.js';
import { KEEPING, useServer } from '../support/server.js';
import { until } from '../support/wait.js';

describe('a server for one spec', () => {
  const server = useServer({ args: KEEPING });
  const redis = useRedis({ server });

  it('may be killed and comes back with its data', async () => {
    const client = new Redis(redis.url, { retryStrategy: () => 5, maxRetriesPerRequest: null });
    client.on('error', () => {});
    atEnd(() => client.quit());
    await client.hset(`{${redis.prefix}:mail}:jobs`, 'a', '1');
    await server.kill9();
    const answer = client.hget(`{${redis.prefix}:mail}:jobs`, 'a');
    await server.restart();
    expect(await answer).toBe('1');
    expect(await redis.clients()).toHaveLength(1);
  });

  it('starts each test without the data of the one before', async () => {
    expect(await redis.admin.dbsize()).toBe(0);
    expect(await redis.keys()).toEqual([]);
  });
});

describe('the shared server', () => {
  const redis = useRedis({ refusals: true });

  it('shows the connections of this test only', async () => {
    expect(await redis.clients()).toEqual([]);
    const client = new Redis(redis.url, { connectionName: 'mine' });
    await client.ping();
    expect(await redis.clients()).toEqual([expect.objectContaining({ name: 'mine', cmd: 'ping' })]);
    client.disconnect();
    await until(async () => (await redis.clients()).length === 0);
  });

  it.each([
    ['FLUSHALL', []],
    ['CONFIG', ['SET', 'maxmemory', '1']],
    ['DEBUG', ['SLEEP', '1']],
    ['GET', ['{other:mail}:jobs']],
    ['EVAL', ["return redis.call('GET', 'undeclared')", '0']],
  ])('does not let a test disturb its neighbours: %s', async (command, args) => {
    const client = new Redis(redis.url);
    atEnd(() => client.disconnect());
    await expect(client.call(command, ...args)).rejects.toThrow(/NOPERM|ACL failure|can't access/);
  });

  const prefixes = new Set<string>();
  it.each([1, 2])('has a prefix of its own for each test, that may start keys: %i', () => {
    expect(redis.prefix).toMatch(/^[A-Za-z0-9._-]{1,64}$/);
    expect(prefixes).not.toContain(redis.prefix);
    prefixes.add(redis.prefix);
  });
});
