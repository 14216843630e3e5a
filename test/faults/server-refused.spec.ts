import { mkdirSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import type { LoggerService } from '@nestjs/common';
import { Redis } from 'ioredis';
import { expect, it } from 'vitest';
import { RedisRefusedError, UnsupportedRedisError } from '#lib/errors.js';
import { startRedis } from '../../tools/redis.mjs';
import { atEnd } from '../support/cleanup.js';
import { useRedis } from '../support/redis.js';
import { until } from '../support/wait.js';
import { bootWorking } from './support/app.js';
import { startFakeServer } from './support/fake-server.js';

const redis = useRedis({ refusals: true });

interface Line {
  readonly level: string;
  readonly text: string;
}

/** What an application says while it starts. */
function listen(): { lines: Line[]; logger: LoggerService } {
  const lines: Line[] = [];
  const say = (level: string) => (text: unknown) => void lines.push({ level, text: String(text) });
  return { lines, logger: { log: say('log'), warn: say('warn'), error: say('error') } };
}

it.each([
  ['redis_version:6.2.14\r\nloading:0\r\n', 'Redis 6.2.14 is too old: Redis 7.0 or Valkey 7.2 is needed'],
  // Valkey says which Redis it is like, which would be new enough.
  [
    'redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:7.0.1\r\nloading:0\r\n',
    'Valkey 7.0.1 is too old: Redis 7.0 or Valkey 7.2 is needed',
  ],
])('does not start with a server that is too old (%j)', async (info, words) => {
  const connection = await startFakeServer(info);
  const failure = await bootWorking({ connection }).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(UnsupportedRedisError);
  expect((failure as Error).message).toContain(words);
});

it.each([
  ['evicts', '--appendonly yes --maxmemory-policy allkeys-lru', 'maxmemory-policy allkeys-lru'],
  ['keeps no append-only file', '--appendonly no', 'appendonly no'],
])('starts with a server that %s, and warns once', async (_, args, words) => {
  const server = await startRedis({ private: true, args: args.split(' ') });
  atEnd(() => server.stop());
  const { lines, logger } = listen();
  await bootWorking({ connection: server.url }, undefined, { logger });
  const warnings = lines.filter(({ level }) => level === 'warn').map(({ text }) => text);
  expect(warnings).toEqual([expect.stringContaining(words)]);
});

it('warns of nothing where the server keeps its jobs', async () => {
  const server = await startRedis({ private: true, args: ['--appendonly', 'yes'] });
  atEnd(() => server.stop());
  const { lines, logger } = listen();
  await bootWorking({ connection: server.url }, undefined, { logger });
  expect(lines.filter(({ level }) => level !== 'log')).toEqual([]);
});

it('says that the password is wrong, and never the password', async () => {
  const url = new URL(redis.url);
  url.password = 'my-guess';
  const { lines, logger } = listen();
  const failure = await bootWorking({ connection: url.href }, undefined, { logger }).catch(
    (error: unknown) => error,
  );
  expect(failure).toBeInstanceOf(RedisRefusedError);
  expect(failure).toMatchObject({ reply: 'WRONGPASS', applied: 'no' });
  expect((failure as Error).message).toContain('check the user, password and ACL of the connection');
  expect(JSON.stringify([lines, String(failure)])).not.toContain('my-guess');
});

it('says that a password is missing', async () => {
  const server = await startRedis({ private: true, args: ['--requirepass', 'needed'] });
  atEnd(() => server.stop());
  const failure = await bootWorking({ connection: server.url }).catch((error: unknown) => error);
  expect(failure).toMatchObject({
    reply: 'NOAUTH',
    message: expect.stringContaining('check the user, password'),
  });
});

it('starts with a server that can write nothing for now, and works once it can', async () => {
  const server = await startRedis({ private: true, args: ['--save', '3600 1'] });
  atEnd(() => server.stop());
  const admin = new Redis(server.url);
  atEnd(() => admin.disconnect());
  // A snapshot cannot take the place of a folder; then all writes are refused, and PING too.
  const inTheWay = join(server.dir!, 'dump.rdb');
  const save = async (status: string) => {
    await admin.bgsave();
    await until(async () => (await admin.info('persistence')).includes(`rdb_last_bgsave_status:${status}\r`));
  };
  mkdirSync(inTheWay);
  await save('err');
  await expect(admin.ping()).rejects.toThrow('MISCONF');

  const { lines, logger } = listen();
  const { queue, runs } = await bootWorking({ connection: server.url }, undefined, { logger });
  expect(lines.map(({ text }) => text)).toContainEqual(expect.stringContaining('started without Redis'));
  rmdirSync(inTheWay);
  await save('ok');
  const { id } = await queue.add('one', null);
  await until(() => runs.get(id) === 1);
});

it.each(['info', 'ping'])('says that the user may not run %s', async (command) => {
  const user = new URL(redis.url).username;
  await redis.admin.call('ACL', 'SETUSER', user, `-${command}`);
  const failure = await bootWorking({ connection: redis.url, prefix: redis.prefix }).catch(
    (error: unknown) => error,
  );
  expect(failure).toBeInstanceOf(RedisRefusedError);
  expect(failure).toMatchObject({ reply: 'NOPERM', message: expect.stringContaining(`'${command}'`) });
});

it('says that the user may not touch the keys, to whoever adds and in the log', async () => {
  const { lines, logger } = listen();
  const { queue } = await bootWorking(
    { connection: redis.url, prefix: `${redis.prefix.slice(0, 5)}-another` },
    undefined,
    {
      logger,
    },
  );
  await expect(queue.add('one', null)).rejects.toMatchObject({ reply: 'NOPERM', applied: 'no' });
  const said = await until(() => lines.find(({ text }) => text.includes('cannot claim or settle for now')));
  expect(said).toMatchObject({ level: 'error', text: expect.stringContaining('NOPERM') });
});
