// Packs the library, installs the tarball into empty applications with the newest and the oldest peers it allows,
// compiles them, boots them, and runs a job to completion:
//   node tools/pack-check.mjs     needs a build; ends with "N passed, N failed"
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import { startRedis } from './redis.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const APP = join(ROOT, 'tools/packed-app');
const read = (path) => JSON.parse(readFileSync(path, 'utf8'));
const { peerDependencies: peers } = read(join(ROOT, 'package.json'));
/** Compilers of users that must understand the published types, beside the one of the project. */
const OTHER_COMPILERS = ['5.9.3', '7.0.2'];

const installed = (name) => read(join(ROOT, 'node_modules', name, 'package.json')).version;
/** `5.4.0` of `^5.4.0 || ^6.0.0`. */
const floor = (range) => /\d+\.\d+\.\d+/.exec(range)[0];

const PEERS = {
  newest: Object.keys(peers).map((name) => `${name}@${installed(name)}`),
  oldest: Object.entries(peers).map(([name, range]) => `${name}@${floor(range)}`),
};

let passed = 0;
let failed = 0;

/** Runs one check; what depends on it is left out when it fails. */
async function check(name, attempt) {
  try {
    await attempt();
    passed += 1;
    console.log(`ok      ${name}`);
    return true;
  } catch (error) {
    failed += 1;
    console.log(`FAILED  ${name}\n${[error.message, error.stdout, error.stderr].filter(Boolean).join('\n')}`);
    return false;
  }
}

/** Output and error output together; rejects on another exit code than 0, or when it takes too long. */
async function run(cwd, command, args, { env = {}, timeout = 180_000 } = {}) {
  const options = { cwd, env: { ...process.env, ...env }, timeout, killSignal: 'SIGKILL', maxBuffer: 1e8 };
  const { stdout, stderr } = await promisify(execFile)(command, args, options);
  return stdout + stderr;
}

function filesUnder(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

async function pack(temp) {
  const { stdout } = await promisify(execFile)('npm', ['pack', '--json', '--pack-destination', temp], {
    cwd: ROOT,
  });
  const answer = JSON.parse(stdout);
  const [{ filename, files }] = Array.isArray(answer) ? answer : Object.values(answer);
  const paths = files.map(({ path }) => path);
  const lua = filesUnder(join(ROOT, 'lib')).filter((path) => path.endsWith('.lua'));
  const expected = lua.map((path) => path.slice(ROOT.length).replace(/^lib/, 'dist'));
  const missing = ['README.md', 'LICENSE', 'CHANGELOG.md', ...expected].filter(
    (path) => !paths.includes(path),
  );
  const surplus = paths.filter((path) => !/^(dist\/|package\.json$|[A-Z]+(\.md)?$)/.test(path));
  if (missing.length + surplus.length > 0) {
    throw new Error(`the tarball lacks [${missing.join(', ')}] and should not hold [${surplus.join(', ')}]`);
  }
  const command = files.find(({ path }) => path === 'dist/cli.js');
  if ((command.mode & 0o111) === 0) throw new Error('dist/cli.js in the tarball cannot be executed');
  return join(temp, filename);
}

async function checkApp(temp, flavour, tarball) {
  const app = join(temp, flavour);
  mkdirSync(app);
  cpSync(APP, app, { recursive: true });
  writeFileSync(
    join(app, 'package.json'),
    JSON.stringify({ name: 'packed-app', private: true, type: 'module' }),
  );
  const tools = [`typescript@${installed('typescript')}`, `@types/node@${installed('@types/node')}`];
  const wanted = [tarball, ...PEERS[flavour], ...tools];
  const install = () => run(app, 'npm', ['install', '--no-audit', '--no-fund', ...wanted]);
  if (!(await check(`installs with the ${flavour} peers: ${PEERS[flavour].join(' ')}`, install))) return;
  if (!(await check(`compiles with the ${flavour} peers`, () => run(app, 'npx', ['--no-install', 'tsc']))))
    return;
  await check(`boots, runs a job and ends with the ${flavour} peers`, () => runJob(app));
  await check(`has its command with the ${flavour} peers`, () => runCommand(app));
  if (flavour === 'newest') await checkCompilers(app);
}

async function runJob(app) {
  const redis = await startRedis({ private: true });
  try {
    // An application that does not end after close() holds something open; the time limit is what finds it.
    const output = await run(app, process.execPath, ['out/main.js'], {
      env: { REDIS_URL: redis.url },
      timeout: 30_000,
    });
    if (output.trim() !== 'the job went through') throw new Error(`it said:\n${output}`);
  } finally {
    await redis.stop();
  }
}

/** As a user does it: `npx godwit dispatch`, without Nest. */
async function runCommand(app) {
  const version = await run(app, 'npx', ['--no-install', 'godwit', '--version']);
  if (!version.includes(read(join(ROOT, 'package.json')).version)) throw new Error(`it said:\n${version}`);
  const redis = await startRedis({ private: true });
  const client = new Redis(redis.url);
  const command = spawn(join(app, 'node_modules/.bin/godwit'), ['dispatch', '-u', redis.url, '-v'], {
    stdio: 'ignore',
  });
  const ended = once(command, 'exit');
  try {
    await client.zadd('delayedtaskset', 1, 'task');
    const [, task] = (await client.blpop('readytasklist', 20)) ?? [];
    if (task !== 'task') throw new Error('the task was not moved');
    command.kill('SIGTERM');
    const [code] = await ended;
    if (code !== 0) throw new Error(`it ended with code ${code}`);
  } finally {
    command.kill('SIGKILL');
    client.disconnect();
    await redis.stop();
  }
}

async function checkCompilers(app) {
  for (const version of OTHER_COMPILERS) {
    await check(`the types are understood by TypeScript ${version}`, async () => {
      const compiler = join(app, `typescript-${version}`);
      mkdirSync(compiler);
      writeFileSync(join(compiler, 'package.json'), '{}');
      await run(compiler, 'npm', ['install', '--no-audit', '--no-fund', `typescript@${version}`]);
      await run(app, process.execPath, [join(compiler, 'node_modules/typescript/bin/tsc'), '--noEmit']);
    });
  }
}

const temp = mkdtempSync(join(tmpdir(), 'godwit-pack-'));
try {
  let tarball;
  if (await check('packs what users need and nothing else', async () => (tarball = await pack(temp)))) {
    for (const flavour of Object.keys(PEERS)) await checkApp(temp, flavour, tarball);
  }
} finally {
  rmSync(temp, { recursive: true, force: true });
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
