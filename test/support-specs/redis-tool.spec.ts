import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { freePort } from '../../tools/free-port.mjs';
import { startRedis, type StartRedisOptions } from '../../tools/redis.mjs';
import { atEnd, temporaryFolder } from '../support/cleanup.js';
import { until } from '../support/wait.js';

/** How long a test waits for another process: a busy machine must not fail it. */
const PATIENT = { timeout: 15_000 } as const;
const TOOL = fileURLToPath(new URL('../../tools/redis.mjs', import.meta.url));
const SAY_WHAT_RUNS = `import { startRedis } from ${JSON.stringify(pathToFileURL(TOOL).href)};
  const { pid, dir, url } = await startRedis({ private: true });
  console.log(JSON.stringify({ pid, dir, url }));`;

function tempFolder(): string {
  const folder = temporaryFolder();
  return folder;
}

async function started(options: StartRedisOptions = {}) {
  const redis = await startRedis({ private: true, ...options });
  atEnd(() => redis.stop());
  return redis;
}

async function withClient<T>(url: string, use: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(url);
  try {
    return await use(client);
  } finally {
    client.disconnect();
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Runs Node with these arguments; `onText` gets all it has printed so far, each time it prints. */
async function node(
  args: string[],
  env: NodeJS.ProcessEnv = {},
  onText: (text: string, child: ChildProcess) => void = () => {},
): Promise<Ended> {
  const child = spawn(process.execPath, args, {
    env: { ...process.env, REDIS_URL: '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  atEnd(() => child.kill('SIGKILL'));
  const ended: Ended = { code: null, stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    ended.stdout += text;
    onText(ended.stdout, child);
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => (ended.stderr += text));
  [ended.code] = (await once(child, 'close')) as [number | null];
  return ended;
}

describe('startRedis', () => {
  let named: string | undefined;

  beforeEach(() => {
    named = process.env['REDIS_URL'];
  });

  afterEach(() => {
    if (named === undefined) delete process.env['REDIS_URL'];
    else process.env['REDIS_URL'] = named;
  });

  it('starts a private server on 127.0.0.1, and leaves nothing of it', async () => {
    const redis = await started();
    expect(await withClient(redis.url, (client) => client.config('GET', 'bind'))).toEqual([
      'bind',
      '127.0.0.1',
    ]);
    expect(redis.url).toBe(`redis://127.0.0.1:${redis.port}`);
    await redis.stop();
    expect(isRunning(redis.pid!)).toBe(false);
    expect(existsSync(redis.dir!)).toBe(false);
    await redis.stop();
  });

  it('keeps the data of a sample on disk and never evicts; further options win', async () => {
    delete process.env['REDIS_URL'];
    const redis = await started({ private: false, args: ['--maxmemory', '50mb'] });
    const expected = {
      appendonly: 'yes',
      appendfsync: 'everysec',
      'maxmemory-policy': 'noeviction',
      maxmemory: String(50 * 1024 * 1024),
      save: '',
    };
    const got = await withClient(redis.url, (client) =>
      Promise.all(Object.keys(expected).map((name) => client.config('GET', name))),
    );
    expect(got).toEqual(Object.entries(expected));
  });

  it('uses REDIS_URL unchanged, and does not stop that server', async () => {
    process.env['REDIS_URL'] = 'redis://user:pass@elsewhere:7000/3';
    const redis = await startRedis();
    expect(redis).toMatchObject({
      url: process.env['REDIS_URL'],
      port: 7000,
      pid: undefined,
      dir: undefined,
    });
    await redis.stop();
    await expect(redis.kill9()).rejects.toThrow('this program did not start it');
    await expect(redis.restart()).rejects.toThrow('this program did not start it');
  });

  it('ignores REDIS_URL for tests', async () => {
    process.env['REDIS_URL'] = 'redis://elsewhere:7000';
    expect((await started()).url).toMatch(/^redis:\/\/127\.0\.0\.1:/);
  });

  it('restarts on the same port with its files, after SIGKILL and after a clean stop', async () => {
    const redis = await started({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] });
    await withClient(redis.url, (client) => client.set('a', '1'));
    const { port, pid } = redis;
    await redis.kill9();
    expect(isRunning(pid!)).toBe(false);
    await redis.restart();
    await withClient(redis.url, (client) => client.incr('a'));
    await redis.restart();
    expect(await withClient(redis.url, (client) => client.get('a'))).toBe('2');
    expect(redis.port).toBe(port);
    expect(redis.pid).not.toBe(pid);
  });

  it('ends a server that is stopped by a signal', async () => {
    const redis = await started();
    process.kill(redis.pid!, 'SIGSTOP');
    await redis.restart();
    process.kill(redis.pid!, 'SIGSTOP');
    await redis.stop();
    expect(isRunning(redis.pid!)).toBe(false);
  });

  it('keeps the files in a folder that the caller names', async () => {
    const dir = tempFolder();
    const redis = await started({ dir, args: ['--appendonly', 'yes'] });
    await withClient(redis.url, (client) => client.set('a', '1'));
    await redis.stop();
    const again = await started({ dir, args: ['--appendonly', 'yes'] });
    expect(await withClient(again.url, (client) => client.get('a'))).toBe('1');
  });

  it('waits for a port that is still in use for a moment', async () => {
    const port = await freePort();
    const first = await started({ port });
    const dir = tempFolder();
    const second = started({ port, dir });
    await until(() => readFileSync(join(dir, 'redis.log'), 'utf8').includes('in use'), {
      ...PATIENT,
      what: 'a first try fails',
    });
    await first.stop();
    expect((await second).port).toBe(port);
  });

  it('shows the output of the server when it does not start', async () => {
    await expect(started({ args: ['--no-such-option', '1'] })).rejects.toThrow(
      /ended with code 1:[^]*no-such-option/,
    );
  });
});

describe('the server ends with its parent', () => {
  it.each([
    ['ends', ''],
    ['is killed', "process.kill(process.pid, 'SIGKILL');"],
    ['crashes', "throw new Error('crash');"],
    ['exits', 'process.exit(3);'],
  ])('that %s', async (_, ending) => {
    const { stdout } = await node(['--input-type=module', '-e', `${SAY_WHAT_RUNS}\n${ending}`]);
    const { pid, dir } = JSON.parse(stdout) as { pid: number; dir: string };
    expect(await until(() => !isRunning(pid), { ...PATIENT, what: 'the server is gone' })).toBe(true);
    expect(await until(() => !existsSync(dir), { ...PATIENT, what: 'its folder is gone' })).toBe(true);
  });
});

describe('node tools/redis.mjs', () => {
  it('runs a command with REDIS_URL, ends with its exit code, and ends the server', async () => {
    const script = `import { createConnection } from 'node:net';
      const { port } = new URL(process.env.REDIS_URL);
      const socket = createConnection(port, '127.0.0.1', () => socket.write('INFO server\\r\\n'));
      socket.once('data', (text) => { console.log(/process_id:(\\d+)/.exec(text)[1]); process.exit(7); });`;
    const ended = await node([TOOL, '--', process.execPath, '--input-type=module', '-e', script]);
    expect(ended).toMatchObject({ code: 7, stderr: '' });
    expect(isRunning(Number(ended.stdout))).toBe(false);
  });

  it('passes REDIS_URL on if it is set', async () => {
    const ended = await node([TOOL, process.execPath, '-p', 'process.env.REDIS_URL'], {
      REDIS_URL: 'redis://mine:1',
    });
    expect(ended).toMatchObject({ code: 0, stdout: 'redis://mine:1\n' });
  });

  it('passes signals on and lets the command exit on its own', async () => {
    const script = `process.on('SIGTERM', () => { console.log('got it'); process.exit(5); });
      setInterval(() => {}, 1000); console.log('ready');`;
    const ended = await node([TOOL, '--', process.execPath, '-e', script], {}, (text, child) => {
      if (text === 'ready\n') child.kill('SIGTERM');
    });
    expect(ended).toMatchObject({ code: 5, stdout: 'ready\ngot it\n' });
  });

  it('exits with 128 plus the number of the signal that ended the command', async () => {
    const ended = await node([TOOL, '--', process.execPath, '-e', "process.kill(process.pid, 'SIGKILL')"]);
    expect(ended.code).toBe(137);
  });

  it('explains a wrong call', async () => {
    expect(await node([TOOL])).toMatchObject({ code: 2, stderr: expect.stringContaining('usage:') });
    const unknown = await node([TOOL, 'no-such-program']);
    expect(unknown).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('no-such-program cannot be run'),
    });
  });
});

/** A PATH that holds nothing but these programs. */
function pathWith(programs: Record<string, string>): string {
  const folder = tempFolder();
  symlinkSync('/bin/sh', join(folder, 'sh'));
  for (const [name, script] of Object.entries(programs)) {
    writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(folder, name), 0o755);
  }
  return folder;
}

describe('without a server', () => {
  it('stops and lists the ways to get one', async () => {
    const ended = await node([TOOL, 'true'], { PATH: pathWith({}) });
    expect(ended.code).toBe(1);
    for (const way of ['apt: ', 'brew: ', 'docker: ']) expect(ended.stderr).toContain(`  ${way}`);
  });

  const IN_MEMORY =
    'Redis 7.0 or newer could not be started: jobs are in the memory of the process and are lost when it exits.\n';
  const sayUrl = ['--or-memory', '--', process.execPath, '-p', 'process.env.REDIS_URL'];

  it('runs the command in memory if that is allowed, and prints one line about it', async () => {
    const ended = await node([TOOL, ...sayUrl], { PATH: pathWith({}) });
    expect(ended).toEqual({ code: 0, stdout: 'memory\n', stderr: IN_MEMORY });
  });

  it('does so also with a server that is too old, and prints nothing if memory was requested', async () => {
    const path = pathWith({ 'redis-server': 'echo "Redis server v=6.2.7 sha=0:0 bits=64"' });
    expect(await node([TOOL, ...sayUrl], { PATH: path })).toMatchObject({ code: 0, stderr: IN_MEMORY });
    const asked = await node([TOOL, ...sayUrl], { PATH: path, REDIS_URL: 'memory' });
    expect(asked).toEqual({ code: 0, stdout: 'memory\n', stderr: '' });
  });

  it('still starts a server if there is one', async () => {
    const ended = await node([TOOL, ...sayUrl]);
    expect(ended).toMatchObject({ code: 0, stderr: '', stdout: expect.stringMatching(/^redis:/) });
  });

  it('names a server that is too old', async () => {
    const path = pathWith({ 'redis-server': 'echo "Redis server v=6.2.7 sha=0:0 bits=64"' });
    const ended = await node([TOOL, 'true'], { PATH: path });
    expect(ended).toMatchObject({ code: 1, stderr: expect.stringContaining('redis 6.2, which is too old') });
  });

  it('refuses a test server that does not exist', async () => {
    const ended = await node(['--input-type=module', '-e', SAY_WHAT_RUNS], {
      GODWIT_TEST_REDIS_SERVER: 'redis-server-9',
    });
    expect(ended).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('GODWIT_TEST_REDIS_SERVER names redis-server-9'),
    });
  });

  it('starts the test server that is named, also one that runs in another root', async () => {
    const path = pathWith({
      'redis-server-9': `cd / && PATH='${process.env['PATH']}' exec redis-server "$@"`,
    });
    const ended = await node(['--input-type=module', '-e', SAY_WHAT_RUNS], {
      PATH: `${path}:${process.env['PATH']}`,
      GODWIT_TEST_REDIS_SERVER: 'redis-server-9',
    });
    expect(ended).toMatchObject({ code: 0, stderr: '' });
  });

  it.runIf(existsSync('/etc/debian_version'))(
    'continues in memory if it may install a server but cannot, without output of apt-get',
    async () => {
      const passOn = 'shift; exec "$@"';
      const failing = 'echo "E: Temporary failure resolving"; exit 100';
      const folder = pathWith({ env: passOn, sudo: passOn, true: 'exit 0', 'apt-get': failing });
      const ended = await node([TOOL, ...sayUrl], { PATH: folder });
      const said = 'A Redis server is missing: installing it with apt-get (redis-server or valkey-server)\n';
      expect(ended).toEqual({ code: 0, stdout: 'memory\n', stderr: said + IN_MEMORY });
    },
  );

  it.runIf(existsSync('/etc/debian_version'))(
    'installs a server if it may, prints that, and updates the package lists first',
    async () => {
      const passOn = 'shift; exec "$@"';
      const folder = pathWith({ env: passOn, sudo: passOn, true: 'exit 0' });
      const calls = join(folder, 'calls');
      const install = `PATH='${process.env['PATH']}'; ln -s "$(command -v redis-server)" ${folder}/`;
      writeFileSync(
        join(folder, 'apt-get'),
        `#!/bin/sh\necho "$*" >>${calls}\ncase "$*" in *redis-server) ${install};; esac\n`,
      );
      chmodSync(join(folder, 'apt-get'), 0o755);
      const ended = await node([TOOL, 'true'], { PATH: folder });
      const said = 'A Redis server is missing: installing it with apt-get (redis-server or valkey-server)\n';
      expect(ended).toEqual({ code: 0, stdout: '', stderr: said });
      expect(readFileSync(calls, 'utf8')).toBe(
        '-qq update\n-qq install --yes --no-install-recommends redis-server\n',
      );
    },
  );
});
