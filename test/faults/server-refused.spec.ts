import { mkdirSync, rmdirSync } from 'node:fs';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { join } from 'node:path';
import type { LoggerService } from '@nestjs/common';
import { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { RedisRefusedError, UnsupportedRedisError } from '#lib/errors.js';
import type { Job } from '#lib/job/job.js';
import { startRedis } from '../../tools/redis.mjs';
import { atEnd } from '../support/cleanup.js';
import { RequestSplitter, matches } from '../support/cut/requests.js';
import { bootQueue, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';
import { bootWorking } from './support/app.js';

const redis = useRedis({ refusals: true });

interface Line {
  readonly level: string;
  readonly text: string;
}

/** The log of an application that starts. */
function listen(): { lines: Line[]; logger: LoggerService } {
  const lines: Line[] = [];
  const say = (level: string) => (text: unknown) => void lines.push({ level, text: String(text) });
  return { lines, logger: { log: say('log'), warn: say('warn'), error: say('error') } };
}

it.each([
  ['redis_version:6.2.14\r\nloading:0\r\n', 'Redis 6.2.14 is too old: Redis 7.0 or Valkey 7.2 is needed'],
  // Valkey reports the version of Redis it is compatible with. That version would be new enough.
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

it('does not start in another database than the connection names', async () => {
  const user = redis.prefix;
  await redis.admin.call('ACL', 'SETUSER', user, 'reset', 'on', '>secret', '~*', '+@all');
  atEnd(() => redis.admin.call('ACL', 'DELUSER', user));
  const url = new URL(redis.url);
  [url.username, url.pathname] = [user, '/99'];
  const boot = () => bootWorking({ connection: url.href }).catch((error: unknown) => error);
  expect(await boot()).toMatchObject({
    code: 'GODWIT_REDIS_REFUSED',
    message: expect.stringMatching(/ERR DB index is out of range \(the connection names a database/),
  });
  await redis.admin.call('ACL', 'SETUSER', user, '-select');
  expect(await boot()).toMatchObject({ code: 'GODWIT_REDIS_REFUSED', reply: 'NOPERM' });
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

it('logs no warning if the server keeps its jobs', async () => {
  const server = await startRedis({ private: true, args: ['--appendonly', 'yes'] });
  atEnd(() => server.stop());
  const { lines, logger } = listen();
  await bootWorking({ connection: server.url }, undefined, { logger });
  expect(lines.filter(({ level }) => level !== 'log')).toEqual([]);
});

it('reports that the password is wrong, but never the password', async () => {
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

it('starts with a server that cannot write yet, and works once it can', async () => {
  const server = await startRedis({ private: true, args: ['--save', '3600 1'] });
  atEnd(() => server.stop());
  const admin = new Redis(server.url);
  atEnd(() => admin.disconnect());
  // A snapshot cannot replace a folder. Then Redis refuses all writes, and PING too.
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
  expect(lines.map(({ text }) => text)).toContainEqual(
    expect.stringMatching(/^Redis \(\S+, database 0\) is not reachable yet/),
  );
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

it('reports that the user may not access the keys, to the caller of add and in the log', async () => {
  const { lines, logger } = listen();
  const { queue } = await bootWorking(
    { connection: redis.url, prefix: `${redis.prefix.slice(0, 5)}-another` },
    undefined,
    {
      logger,
    },
  );
  await expect(queue.add('one', null)).rejects.toMatchObject({ reply: 'NOPERM', applied: 'no' });
  const said = await until(() => lines.find(({ text }) => text.includes('cannot claim or settle jobs now')));
  expect(said).toMatchObject({ level: 'error', text: expect.stringContaining('NOPERM') });
});

it('limits of the code are written once the user has the right again', async () => {
  const user = new URL(redis.url).username;
  const change = (...rules: string[]) => redis.admin.call('ACL', 'SETUSER', user, ...rules);
  await change('-eval', '-evalsha');
  atEnd(() => change('+eval', '+evalsha'));
  const queue = { limits: { concurrency: 3 } };
  const app = await bootQueue(redis, { queue, handlers: { '*': () => undefined }, watch: false });
  await app.logs.complaint(/^queue 'work': its limits could not be written, retrying: .*NOPERM/);
  await change('+eval', '+evalsha');
  const written = async () => (await app.queue.limits.list()).find(({ concurrency }) => concurrency);
  expect(await until(written, PATIENT)).toMatchObject({ of: 'queue', concurrency: 3 });
});

describe('rights that are taken away while it works, and given back', () => {
  const CANARY = 'canary-in-the-data';

  async function bootAndRun() {
    const { lines, logger } = listen();
    const gate = latch('the gate');
    atEnd(() => gate.open());
    const options = { connection: redis.url, prefix: redis.prefix, enqueueTimeout: '1s' };
    const run = (job: Job) => (job.name === 'slow' ? gate.promise : undefined);
    const app = await bootWorking(options, run, { logger });
    const { username, password } = new URL(redis.url);
    const change = (...rules: string[]) => redis.admin.call('ACL', 'SETUSER', username, ...rules);
    await app.queue.add('slow', CANARY, { id: 'running' });
    await until(() => app.runs.has('running'));
    // The thread takes some time to connect.
    await until(
      async () => (await redis.clients()).some(({ name }) => name?.endsWith(':heartbeat')),
      PATIENT,
    );
    /** How often the server has refused this user. */
    const refused = async () => {
      const log = (await redis.admin.call('ACL', 'LOG', 128)) as (string | number)[][];
      const entries = log.map((flat) => new Map(flat.map((value, i) => [value, flat[i + 1]])));
      const own = entries.filter((entry) => entry.get('username') === username);
      return own.reduce((sum, entry) => sum + Number(entry.get('count')), 0);
    };
    const complaints = () => lines.filter(({ level }) => level !== 'log').map(({ text }) => text);
    const goesOn = async () => {
      await until(() => app.queue.add('one', CANARY, { id: 'after' }), { timeout: 10_000 });
      await until(() => app.runs.has('after'), { timeout: 10_000 });
      await until(async () => Object.values(await app.queue.counts()).every((count) => count === 0));
      expect([...app.runs]).toEqual([
        ['running', 1],
        ['after', 1],
      ]);
      const secrets = JSON.stringify([lines, app.links.map(({ error }) => [error, error?.stack])]);
      expect(secrets).not.toContain(CANARY);
      expect(secrets).not.toContain(`"${password}"`);
    };
    return { ...app, gate, lines, complaints, username, password, change, refused, goesOn };
  }

  it('of scripts: jobs that end meanwhile are settled later, and it is logged once', async () => {
    const { queue, gate, lines, complaints, change, refused, goesOn } = await bootAndRun();
    await change('-evalsha', '-eval');
    gate.open();
    const failure = await queue.add('one', CANARY).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: 'GODWIT_REDIS_REFUSED', reply: 'NOPERM', applied: 'no' });
    expect(String(failure)).not.toContain(CANARY);
    await until(async () => (await refused()) >= 6, {
      timeout: 15_000,
      what: 'it has tried again and again',
    });
    expect(complaints().filter((text) => text.includes('NOPERM'))).toEqual([
      expect.stringMatching(/^queue 'work': cannot claim or settle jobs now, retrying: .*'evalsha' command/),
    ]);
    await change('+evalsha', '+eval');
    await goesOn();
    const ends = lines.filter(({ level, text }) => level === 'log' && text.startsWith("queue 'work'"));
    expect(ends.map(({ text }) => text)).toEqual([
      expect.stringMatching(/^queue 'work': claims and settles jobs again, after [\d.]+ (s|min)$/),
    ]);
  });

  it('of the connection: it logs that once for each, and recovers on its own', async () => {
    const { queue, gate, links, complaints, username, password, change, refused, goesOn } =
      await bootAndRun();
    await change('resetpass', '>another');
    await redis.admin.call('CLIENT', 'KILL', 'USER', username);
    // Calls sent before the client noticed the cut may have arrived.
    await until(() => complaints().some((text) => text.startsWith('the command connection')));
    gate.open();
    await expect(queue.add('one', CANARY)).rejects.toMatchObject({ reply: 'WRONGPASS', applied: 'no' });
    await until(async () => (await refused()) >= 9, {
      timeout: 15_000,
      what: 'it has tried again and again',
    });
    const lost = () => complaints().filter((text) => text.endsWith('trying again'));
    await until(() => lost().length >= 3, PATIENT);
    expect(new Set(lost().map((text) => text.split(' ')[1]))).toEqual(
      new Set(['blocking', 'command', 'heartbeat']),
    );
    expect(lost()).toHaveLength(3);
    expect(links.filter(({ error }) => error?.message.startsWith('WRONGPASS')).length).toBeGreaterThan(3);
    await change(`>${password}`);
    await goesOn();
  });
});

/** A server that answers only questions about what it is. The end of the test closes it. Returns its URL. */
async function startFakeServer(info: string): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    const splitter = new RequestSplitter();
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      for (const request of splitter.push(chunk)) {
        matches(request, (words) => {
          socket.write(reply(words[0]!.toLowerCase(), info));
          return true;
        });
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return `redis://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function reply(command: string, info: string): string {
  switch (command) {
    case 'hello':
      return "-ERR unknown command 'HELLO'\r\n";
    case 'info':
      return `$${Buffer.byteLength(info)}\r\n${info}\r\n`;
    case 'time':
      return '*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n';
    default:
      return '+OK\r\n';
  }
}
