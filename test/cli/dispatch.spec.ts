import { Redis } from 'ioredis';
import { beforeEach, describe, expect, it } from 'vitest';
import { main } from '#lib/subpaths/cli/main.js';
import { useRedis } from '../support/redis.js';
import { KEEPING, useServer } from '../support/server.js';
import { until } from '../support/wait.js';
import { atEnd } from '../support/cleanup.js';
import { freePort } from '../../tools/free-port.mjs';
import { startRedis } from '../../tools/redis.mjs';
import { godwit, type Command } from './support.js';

// The server is the spec's own: here any program may use any key. Tasks survive its restart.
const server = useServer({ args: KEEPING });
const redis = useRedis({ server, rights: 'all' });
const SET = 'delayedtaskset';
const LIST = 'readytasklist';
const PATIENT = { timeout: 30_000 };

beforeEach(async () => {
  await redis.admin.flushall();
});

const dispatch = (...args: string[]) => godwit(['dispatch', '-u', server.url, ...args]);
type Put = readonly [due: number | string, task: string | Buffer];
const put = async (...tasks: readonly Put[]) => {
  for (let at = 0; at < tasks.length; at += 5_000) {
    await redis.admin.zadd(SET, ...tasks.slice(at, at + 5_000).flat());
  }
};
const ready = () => redis.admin.lrange(LIST, 0, -1);
const listed = (count: number, key = LIST) =>
  until(async () => (await redis.admin.llen(key)) === count, PATIENT);
const numbered = (count: number) =>
  Array.from({ length: count }, (_, i) => [i, `task-${String(i).padStart(6, '0')}`] as const);

/** Rows of the table as numbers, without headers. */
function rows(command: Command): number[][] {
  return command.out
    .split('\n')
    .filter((line) => /^ *\d/.test(line))
    .map((line) => line.trim().split(/ +/).map(Number));
}

async function expectEnd(command: Command, signal: NodeJS.Signals = 'SIGTERM'): Promise<number> {
  const { code, ms } = await command.end(signal);
  expect(code).toBe(0);
  return ms;
}

/** It promises one second, and a busy machine may take longer. Anything it could wait for takes at least two. */
async function expectQuickEnd(command: Command, signal?: NodeJS.Signals): Promise<void> {
  expect(await expectEnd(command, signal)).toBeLessThan(1_800);
}

describe('tasks', () => {
  it('move from delayedtaskset to readytasklist in the order of their due times, and BLPOP gets them', async () => {
    const client = new Redis(server.url);
    atEnd(() => client.disconnect());
    const first = client.blpop(LIST, 20);
    await put([2, 'second'], [3, 'third'], [1, 'first'], [4e12, 'in a hundred thousand years']);
    const command = dispatch();
    expect(await first).toEqual([LIST, 'first']);
    await listed(2);
    expect(await ready()).toEqual(['second', 'third']);
    expect(await redis.admin.zrange(SET, '0', '-1')).toEqual(['in a hundred thousand years']);
    await expectEnd(command);
    expect(command.out + command.err).toBe('');
  });

  it('move between the keys that are named, long and short', async () => {
    await redis.admin.zadd('from here', 1, 'a');
    const short = dispatch('-d', 'from here', '-r', 'to there');
    await listed(1, 'to there');
    await expectEnd(short);
    await redis.admin.zadd('from', 1, 'a');
    const long = godwit([
      'dispatch',
      `--redis-url=${server.url}`,
      '--delayed-task-zset-key=from',
      '--ready-task-list-key',
      'to',
      '--batch-size',
      '1000',
    ]);
    await listed(1, 'to');
    await expectEnd(long, 'SIGINT');
  });

  it('come through as the bytes they are', async () => {
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
    await put([1, bytes], [2, Buffer.from([0xc3, 0x28])]);
    const command = dispatch();
    await listed(2);
    expect(await redis.admin.lrangeBuffer(LIST, 0, -1)).toEqual([bytes, Buffer.from([0xc3, 0x28])]);
    await expectEnd(command);
  });

  it('that come due while it waits are moved when they are due, before the back-off ends', async () => {
    const command = dispatch('-v');
    await until(() => rows(command).length >= 4, PATIENT);
    const now = Number((await redis.admin.time())[0]);
    await put([now + 2, 'soon'], [now + 4, 'later']);
    await listed(2);
    const late = Number((await redis.admin.time())[0]) - (now + 4);
    expect(late).toBeLessThan(2);
    await expectEnd(command);
  });

  it('are each on the list once with two dispatchers at once', async () => {
    const tasks = numbered(20_000);
    await put(...tasks);
    const both = [dispatch('-v'), dispatch('-v')];
    await listed(tasks.length);
    expect((await ready()).toSorted()).toEqual(tasks.map(([, task]) => task));
    await Promise.all(both.map((command) => command.said(/\n +0 +0 /)));
    const moved = both.map((command) => rows(command).reduce((sum, [dispatched]) => sum + dispatched!, 0));
    expect(moved[0]! + moved[1]!).toBe(tasks.length);
    for (const command of both) await expectEnd(command);
  });
});

describe('--verbose', () => {
  it('shows dispatched, delayed, ready and the back-off, batch for batch', async () => {
    await put(...numbered(25), [4e12, 'later']);
    const command = dispatch('--verbose');
    await until(() => rows(command).length >= 7, PATIENT);
    expect(command.out.split('\n')[0]!.trim().split(/ {2,}/)).toEqual([
      'dispatched',
      'delayed',
      'ready',
      'backing-off (s)',
    ]);
    expect(rows(command).slice(0, 7)).toEqual([
      [10, 16, 10, 0],
      [10, 6, 20, 0],
      [5, 1, 25, 0],
      [0, 1, 25, 0],
      [0, 1, 25, 1],
      [0, 1, 25, 1],
      [0, 1, 25, 2],
    ]);
    await put([1, 'due']);
    // It may have looked once more before and found nothing.
    const found = () => rows(command).findIndex(([dispatched], i) => i >= 7 && dispatched! > 0);
    await until(() => found() > 0 && rows(command).length >= found() + 3, PATIENT);
    expect(rows(command).slice(found(), found() + 3)).toEqual([
      [1, 1, 26, 0],
      [0, 1, 26, 0],
      [0, 1, 26, 1],
    ]);
    await expectEnd(command);
    expect(command.err).toBe('');
  });

  it('takes batches of the size that is asked for, and shows its header every 50 lines', async () => {
    await put(...numbered(300));
    const command = dispatch('-v', '-n', '3');
    await command.said(/\n +0 +0 +300 /);
    const lines = command.out.split('\n');
    expect(lines.flatMap((line, i) => (line.includes('dispatched') ? [i] : []))).toEqual([0, 51, 102]);
    expect(rows(command).slice(0, 100)).toEqual(
      Array.from({ length: 100 }, (_, i) => [3, 297 - 3 * i, 3 + 3 * i, 0]),
    );
    await expectEnd(command);
  });

  it('ends quietly when its output is no longer read, as with | head', async () => {
    const command = dispatch('-v');
    await command.said(/dispatched/);
    command.stdout.destroy();
    expect(await command.ended()).toBe(0);
    expect(command.err).toBe('');
  });

  it('keeps moving tasks, and can be ended, while its reader stalls', async () => {
    const command = dispatch('-v', '-n', '1');
    await command.said(/dispatched/);
    command.stdout.pause();
    // A socket holds some 700 lines that nobody reads.
    await put(...numbered(2_000));
    // On a busy machine all of them take long. The test goes on as long as more arrive.
    for (let count = 500; count <= 2_000; count += 500)
      await until(async () => (await redis.admin.llen(LIST)) >= count, PATIENT);
    await expectQuickEnd(command);
  });
});

describe('a key of another type: prints the error, code 1, nothing moved', () => {
  it('of the list', async () => {
    await put([1, 'due']);
    await redis.admin.set(LIST, 'a text');
    const command = dispatch('-v');
    expect(await command.ended()).toBe(1);
    expect(command.err).toBe(
      'godwit dispatch: dispatch: Redis refused, nothing was changed: the key "readytasklist" is a string, ' +
        'and ready tasks wait in a list (BLPOP); name another key\n',
    );
    expect(await redis.admin.zcard(SET)).toBe(1);
    expect(await redis.admin.get(LIST)).toBe('a text');
  });

  it('of the sorted set', async () => {
    await redis.admin.sadd(SET, 'member');
    const command = dispatch();
    expect(await command.ended()).toBe(1);
    expect(command.err).toContain('"delayedtaskset" is a set, and delayed tasks wait in a sorted set (ZADD)');
    expect(await redis.admin.exists(LIST)).toBe(0);
  });
});

describe('no access: prints the error, code 1', () => {
  const as = (user: string) => server.url.replace('://', `://${user}@`);
  const addUser = (...rules: string[]) =>
    redis.admin.call('ACL', 'SETUSER', 'tasks', 'reset', 'on', ...rules);
  const refused = async (url: string, ...args: string[]) => {
    const command = godwit(['dispatch', '-u', url, ...args]);
    expect(await command.ended()).toBe(1);
    expect(command.out + command.err).not.toContain('s3cret');
    return command.err;
  };

  it('a wrong password', async () => {
    await addUser('>other', '~*', '+@all');
    const text = await refused(as('tasks:s3cret'));
    expect(text).toMatch(
      /^godwit dispatch: .*WRONGPASS.*\(check the user, password and ACL of the connection\)\n$/,
    );
  });

  it('no password although one is needed', async () => {
    const other = await startRedis({ private: true, args: ['--requirepass', 's3cret'] });
    atEnd(() => other.stop());
    expect(await refused(other.url)).toMatch(/^godwit dispatch: .*NOAUTH.*\(check the user/);
  });

  it('a database that does not exist; nothing in another one changes', async () => {
    await put([1, 'due']);
    const text = await refused(`${server.url}/99`);
    expect(text).toMatch(
      /^godwit dispatch: .*ERR DB index is out of range \(the connection names a database that this server does/,
    );
    expect(await redis.admin.zcard(SET)).toBe(1);
  });

  it('a user without rights on the keys', async () => {
    await addUser('>s3cret', '~delayedtaskset', '+@all');
    expect(await refused(as('tasks:s3cret'))).toMatch(/NOPERM.*\(check the user/);
    await addUser('>s3cret', '~delayedtaskset', '~readytasklist', '+@all', '-rpush');
    await put([1, 'due']);
    expect(await refused(as('tasks:s3cret'))).toMatch(/check the user|whether it took effect is unknown/);
    expect(await redis.admin.zcard(SET)).toBe(1);
  });
});

describe('Redis goes away', () => {
  it('and comes back: it reports both, reconnects, and continues', async () => {
    const url = server.url.replace('://', '://default:s3cret@');
    const command = godwit(['dispatch', '-u', url, '-v']);
    await put([1, 'before']);
    await listed(1);
    await server.restart();
    await command.said(/is reachable again/, 'err');
    await put([2, 'after']);
    await listed(2);
    expect(await ready()).toEqual(['before', 'after']);
    await expectEnd(command);
    const place = `127.0.0.1:${server.port}`;
    expect(command.err).toMatch(
      new RegExp(`^godwit dispatch: lost Redis at ${place}.*; retrying
godwit dispatch: Redis at ${place} is reachable again
$`),
    );
    expect(command.err).not.toContain('s3cret');
  });

  it('or was never there: it reports that once, and waits for it', async () => {
    const port = await freePort();
    const url = `redis://127.0.0.1:${port}`;
    const command = godwit(['dispatch', '-u', url]);
    await command.said(/cannot reach Redis at .* \(connect ECONNREFUSED .*\); retrying\n/, 'err');
    const late = await startRedis({ private: true, port });
    atEnd(() => late.stop());
    await command.said(/is reachable\n/, 'err');
    const client = new Redis(url);
    atEnd(() => client.disconnect());
    await client.zadd(SET, 1, 'due');
    await until(async () => (await client.llen(LIST)) === 1, PATIENT);
    await expectEnd(command);
    expect(command.err.split('\n')).toHaveLength(3);
  });

  it('or is a replica for a while: it reports that once, although each refusal opens a new connection', async () => {
    const other = await startRedis({ private: true });
    atEnd(() => other.stop());
    const client = new Redis(other.url);
    atEnd(() => client.disconnect());
    const connections = async () =>
      Number(/total_connections_received:(\d+)/.exec(await client.info('stats'))?.[1]);
    await client.zadd(SET, 1, 'due');
    await client.replicaof('127.0.0.1', await freePort());
    const before = await connections();
    const command = godwit(['dispatch', '-u', other.url]);
    await until(async () => (await connections()) >= before + 4, PATIENT);
    await client.replicaof('NO', 'ONE');
    await until(async () => (await client.llen(LIST)) === 1, PATIENT);
    await command.said(/moves tasks/, 'err');
    await expectEnd(command);
    const place = `127\\.0\\.0\\.1:${other.port}`;
    expect(command.err).toMatch(
      new RegExp(`^godwit dispatch: Redis at ${place} moves no tasks now: .*READONLY.*; retrying
godwit dispatch: Redis at ${place} moves tasks again
$`),
    );
  });

  it('a host name that cannot be resolved is reported, and the command keeps trying', async () => {
    const command = godwit(['dispatch', '-u', 'redis://nowhere.invalid:6379']);
    await command.said(/cannot reach Redis at nowhere\.invalid:6379 \(.+\); retrying/, 'err');
    // Node waits for a running lookup before it exits. Only the resolver decides how long that takes.
    await expectEnd(command);
  });
});

describe('SIGINT and SIGTERM end it within a second with code 0', () => {
  it.each(['SIGINT', 'SIGTERM'] as const)('%s while it backs off', async (signal) => {
    const command = dispatch('-v');
    await until(() => rows(command).some(([, , , seconds]) => seconds === 2), PATIENT);
    await expectQuickEnd(command, signal);
  });

  it('while it moves', async () => {
    await put(...numbered(50_000));
    const command = dispatch('-n', '1');
    await until(() => redis.admin.llen(LIST), PATIENT);
    await expectQuickEnd(command);
    // Read at one time: a call that was sent before the command ended may still move one.
    const found = (await redis.admin.multi().zcard(SET).llen(LIST).exec())!;
    const [left, moved] = found.map(([, count]) => Number(count));
    expect(left).toBeGreaterThan(0);
    expect(moved).toBe(50_000 - left!);
  });

  it.each(['SIGINT', 'SIGTERM'] as const)('%s while Redis is away', async (signal) => {
    const command = godwit(['dispatch', '-u', `redis://127.0.0.1:${await freePort()}`]);
    await command.said(/cannot reach/, 'err');
    await expectQuickEnd(command, signal);
  });

  it('while a call hangs, also with a second signal', async () => {
    const command = dispatch('-v', '-n', '1');
    await command.said(/dispatched/);
    await put(...numbered(20_000));
    process.kill(server.pid!, 'SIGSTOP');
    atEnd(() => process.kill(server.pid!, 'SIGCONT'));
    command.kill('SIGINT');
    await expectQuickEnd(command, 'SIGINT');
  });

  it('also if another signal comes after its last call', async () => {
    const heard = () => process.rawListeners('SIGTERM');
    const before = new Set(heard());
    const added = () => heard().filter((listener) => !before.has(listener)) as (() => void)[];
    const result = main(['dispatch', '-u', server.url]);
    const listeners = added();
    expect(listeners).toHaveLength(1);
    atEnd(() => ['SIGINT', 'SIGTERM'].forEach((signal) => process.off(signal, listeners[0]!)));
    listeners[0]!();
    expect(await result).toBe(0);
    // As long as it listens, a signal does not kill the process.
    expect(added()).toEqual(listeners);
  });
});
