// Starts Redis: for the tests and benches by `startRedis`, for the samples by
// node tools/redis.mjs [--or-memory] [--] command args… runs the command with REDIS_URL set and ends with its
// exit code. With --or-memory it is `memory` if no server can be started.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { freePort } from './free-port.mjs';
import { MissingProgramError, isMain } from './programs.mjs';
import { findServer } from './redis/binary.mjs';
import { PortTakenError, launch } from './redis/process.mjs';

// Two spaces make an empty word, `--save ''`: no snapshots.
/**
 * Loses at most the jobs of the last second if the machine crashes, and never evicts a job if memory is full.
 */
const KEEPING = '--save  --appendonly yes --appendfsync everysec --maxmemory-policy noeviction'.split(' ');
/** Writes nothing to disk, and allows tests to make the server sleep or fail. */
const TESTING = '--save  --appendonly no --enable-debug-command local --repl-diskless-sync-delay 0'.split(
  ' ',
);

/** A server that is shutting down may still use the port. */
const PORT_TRIES = 50;
/** If the port is taken, another port is tried, unless the arguments name the port. */
const CHOICES = 5;

export async function startRedis(options = {}) {
  if (!options.private && process.env.REDIS_URL) return new BorrowedRedis(process.env.REDIS_URL);
  const redis = new OwnRedis(options);
  try {
    await redis.launch();
  } catch (error) {
    await redis.stop();
    throw error;
  }
  return redis;
}

class OwnRedis {
  #options;
  #binary;
  #process;

  constructor(options) {
    this.#options = options;
    this.#binary = findServer({ forTests: Boolean(options.private), quiet: options.quiet });
    this.port = options.port;
    this.dir = options.dir ? resolve(options.dir) : mkdtempSync(join(tmpdir(), 'godwit-redis-'));
  }

  get url() {
    return `redis://127.0.0.1:${this.port}`;
  }

  get pid() {
    return this.#process?.pid;
  }

  get log() {
    return join(this.dir, 'redis.log');
  }

  async launch() {
    const chooses = this.#options.port === undefined && this.#process === undefined;
    for (let tries = 1; ; tries++) {
      this.port ??= await freePort();
      try {
        this.#process = await this.#launchOnce();
        return;
      } catch (error) {
        const most = chooses ? CHOICES : PORT_TRIES;
        if (!(error instanceof PortTakenError) || tries === most) throw error;
        if (chooses) this.port = undefined;
        else await new Promise((done) => setTimeout(done, 100));
      }
    }
  }

  #launchOnce() {
    const { args = [], env, private: forTests, dir } = this.#options;
    const settings = [
      ...`--port ${this.port} --bind 127.0.0.1 --daemonize no`.split(' '),
      ...(forTests ? TESTING : KEEPING),
      // A program that the caller names may run in another root directory, where all instances share one
      // working directory.
      ...(forTests && process.env.GODWIT_TEST_REDIS_SERVER ? ['--appenddirname', basename(this.dir)] : []),
      ...args,
    ];
    return launch({
      binary: this.#binary,
      args: settings,
      env,
      port: this.port,
      dir: this.dir,
      orphanDir: dir ? undefined : this.dir,
      log: this.log,
    });
  }

  async kill9() {
    await this.#process?.end('SIGKILL');
  }

  async restart() {
    await this.#process?.end('SIGTERM');
    await this.launch();
  }

  async stop() {
    // The temporary folder is removed with its data, so the server need not save it.
    await this.#process?.end(this.#options.dir ? 'SIGTERM' : 'SIGKILL');
    if (!this.#options.dir) rmSync(this.dir, { recursive: true, force: true });
  }
}

class BorrowedRedis {
  constructor(url) {
    this.url = url;
    this.port = Number(new URL(url).port || 6379);
    this.pid = undefined;
    this.dir = undefined;
  }

  async stop() {}

  async kill9() {
    throw new Error('this Redis was named by REDIS_URL: this program did not start it, and does not stop it');
  }

  async restart() {
    await this.kill9();
  }
}

async function runWith(url, [command, ...args]) {
  let child;
  // Registered before the command starts: on a busy machine the command may run and a signal may arrive
  // before this process continues.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => {
      // A terminal sends Ctrl-C to this process and to the command. Passing it on would be a second signal,
      // which means “stop at once”.
      if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal);
    });
  }
  child = spawn(command, args, { stdio: 'inherit', env: { ...process.env, REDIS_URL: url } });
  return new Promise((done, fail) => {
    child.once('error', (error) =>
      fail(new MissingProgramError(`${command} cannot be run: ${error.message}`)),
    );
    child.once('exit', (code, signal) => done(code ?? 128 + constants.signals[signal]));
  });
}

const MEMORY = 'memory';

/** Undefined if there is no server and none can be installed. */
async function startedOrNone() {
  if (process.env.REDIS_URL === MEMORY) return undefined;
  try {
    return await startRedis({ quiet: true });
  } catch (error) {
    if (!(error instanceof MissingProgramError)) throw error;
    console.error(
      'Redis 7.0 or newer could not be started: jobs are in the memory of the process and are lost when it exits.',
    );
    return undefined;
  }
}

async function main(argv) {
  const orMemory = argv[0] === '--or-memory';
  const words = orMemory ? argv.slice(1) : argv;
  const command = words[0] === '--' ? words.slice(1) : words;
  if (command.length === 0) {
    console.error(
      'usage: node tools/redis.mjs [--or-memory] [--] command args…   runs the command with REDIS_URL set',
    );
    return 2;
  }
  const redis = orMemory ? await startedOrNone() : await startRedis();
  try {
    return await runWith(redis?.url ?? MEMORY, command);
  } finally {
    await redis?.stop();
  }
}

if (isMain(import.meta)) {
  try {
    process.exitCode = await main(process.argv.slice(2));
  } catch (error) {
    console.error(error instanceof MissingProgramError ? error.message : error);
    process.exitCode = 1;
  }
}
