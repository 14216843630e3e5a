/* oxlint-disable vitest/expect-expect -- what they expect stands in their titles */
import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { Worker } from 'node:worker_threads';
import { Redis } from 'ioredis';
import { describe, it } from 'vitest';
import { atEnd } from '../../support/cleanup.js';
import { useRedis } from '../../support/redis.js';

function leavesTimer() {
  setTimeout(() => {}, 60_000);
}

// The title of each test is what its failure must say; see ../leaks.spec.ts.
describe('with Redis', () => {
  const redis = useRedis();
  const queue = () => `{${redis.prefix}:mail}`;

  it('passes: data of a queue, a closed client, a cleared timer', async () => {
    const client = new Redis(redis.url);
    await client.hset(`${queue()}:jobs`, 'a', 'b');
    await client.hset(`${queue()}:stats:2026-01-01`, 'done', 1);
    atEnd(() => client.quit());
    clearInterval(setInterval(() => {}, 1_000));
  });

  it('fails: keys that are no data of a queue: <queue>:active:w1', async () => {
    await redis.admin.sadd(`${queue()}:active:w1`, 'job');
  });

  it('fails: keys that are no data of a queue: <prefix>:lock', async () => {
    await redis.admin.set(`${redis.prefix}:lock`, '1');
  });

  it('passes: a worker that was flushed on purpose', async () => {
    await redis.admin.sadd(`${queue()}:active:w1`, 'job');
    await redis.flush();
  });

  it('passes: the record of a process that was stopping', async () => {
    await redis.admin.hset(`{${redis.prefix}}:processes:info`, 'p', '{"state":"draining"}');
    await redis.admin.zadd(`{${redis.prefix}}:processes`, 1, 'p');
  });

  it('fails: keys that are no data of a queue: {<prefix>}:processes', async () => {
    await redis.admin.hset(`{${redis.prefix}}:processes:info`, 'p', '{"state":"running"}');
    await redis.admin.zadd(`{${redis.prefix}}:processes`, 1, 'p');
  });

  it('fails: name=forgotten last command=ping', async () => {
    const client = new Redis(redis.url, { connectionName: 'forgotten', retryStrategy: () => null });
    client.on('error', () => {});
    await client.ping();
  });

  it('fails: NOPERM', async () => {
    const client = new Redis(redis.url);
    atEnd(() => client.disconnect());
    await client.set('somebody-elses-key', '1');
  });
});

describe('with Redis, if workers may remain', () => {
  const redis = useRedis({ leaves: ['active'] });

  it('passes: a worker that may remain', async () => {
    await redis.admin.sadd(`{${redis.prefix}:mail}:active:w1`, 'job');
  });
});

describe('without Redis', () => {
  it('passes: nothing', () => {});

  it('fails: timer set at leavesTimer', () => {
    leavesTimer();
  });

  it('passes: a timer that has fired', async () => {
    await new Promise<void>((resolve) => setTimeout(resolve, 1));
  });

  it('fails: 1 × listening server (TCPServerWrap)', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });

  it('fails: 1 × child process (ProcessWrap)', () => {
    // It ends with us: its standard input is closed then.
    spawn('cat', { stdio: ['pipe', 'ignore', 'ignore'] });
  });

  it('fails: thread 1', async () => {
    const thread = new Worker('setInterval(() => {}, 1000)', { eval: true });
    await new Promise((resolve) => thread.once('online', resolve));
  });

  it('fails: could not be closed', () => {
    atEnd(() => Promise.reject(new Error('could not be closed')));
  });
});
