// Packs the library, installs the tarball into an application for each row of the support matrix, compiles
// it, and runs it on each supported Node against a real Redis. Then it does the same in an application as
// `nest new` creates it (new-app.mjs):
//   node tools/pack-check.mjs     needs a build; ends with "N passed, N failed"
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import { checkNewApp } from './new-app.mjs';
import { startRedis } from './redis.mjs';
import { APPS, NODES, ROOT, installed, installNode, read } from './support-matrix.mjs';

const APP = join(ROOT, 'tools/packed-app');
const LANES = 3;

let passed = 0;
let failed = 0;

/** Runs one check. If the check fails, checks that depend on it are left out. */
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

/** Output and error output together. Rejects if the exit code is not 0 or the program takes too long. */
async function run(cwd, command, args, { env = {}, timeout = 400_000 } = {}) {
  const options = { cwd, env: { ...process.env, ...env }, timeout, killSignal: 'SIGKILL', maxBuffer: 1e8 };
  const { stdout, stderr } = await promisify(execFile)(command, args, options);
  return stdout + stderr;
}

async function pack(temp) {
  const { stdout } = await promisify(execFile)('npm', ['pack', '--json', '--pack-destination', temp], {
    cwd: ROOT,
  });
  const answer = JSON.parse(stdout);
  const [{ filename, files }] = Array.isArray(answer) ? answer : Object.values(answer);
  const paths = files.map(({ path }) => path);
  const missing = ['README.md', 'LICENSE', 'CHANGELOG.md'].filter((path) => !paths.includes(path));
  // Source maps would be two fifths of the package, and point to sources that are not in it.
  const surplus = paths.filter(
    (path) => !/^(dist\/(?!.*\.map$)|grafana\/|package\.json$|[A-Z]+(\.md)?$)/.test(path),
  );
  if (missing.length + surplus.length > 0) {
    throw new Error(`the tarball lacks [${missing.join(', ')}] and should not hold [${surplus.join(', ')}]`);
  }
  const mapped = paths.filter(
    (path) => path.endsWith('.js') && readFileSync(join(ROOT, path), 'utf8').includes('sourceMappingURL'),
  );
  if (mapped.length > 0)
    throw new Error(`these files name a source map that does not exist: ${mapped.join(', ')}`);
  const command = files.find(({ path }) => path === 'dist/subpaths/cli.js');
  if ((command.mode & 0o111) === 0) throw new Error('dist/subpaths/cli.js in the tarball cannot be executed');
  return join(temp, filename);
}

async function checkApp(temp, tarball, row, nodes) {
  const app = join(temp, row.name.replaceAll(/[^A-Za-z0-9]+/g, '-'));
  mkdirSync(app);
  cpSync(APP, app, { recursive: true });
  writeFileSync(
    join(app, 'package.json'),
    JSON.stringify({ name: 'packed-app', private: true, type: row.type }),
  );
  const packages = {
    ...row.peers,
    ...row.platform,
    ...row.beside,
    typescript: row.typescript,
    '@types/node': installed('@types/node'),
  };
  const wanted = Object.entries(packages).map(([name, version]) => `${name}@${version}`);
  const install = () => run(app, 'npm', ['install', '--no-audit', '--no-fund', tarball, ...wanted]);
  if (!(await check(`${row.name}: installs`, install))) return;
  const compile = () => run(app, 'npx', ['--no-install', 'tsc']);
  if (!(await check(`${row.name}: compiles`, compile))) return;
  await check(`${row.name}: every declaration of the library is valid`, () => checkDeclarations(app));
  for (const { version, path } of await nodes)
    await check(`${row.name}: serves a request and runs its job on Node ${version}`, () =>
      runJob(app, row, path),
    );
  await check(`${row.name}: has the godwit command`, () => runCommand(app));
}

/**
 * Without `skipLibCheck` the compiler checks all packages. Errors in other packages are ignored, including
 * missing types (TS7016: RxJS before 7.5).
 */
async function checkDeclarations(app) {
  const args = ['--no-install', 'tsc', '--noEmit', '--skipLibCheck', 'false', '--pretty', 'false'];
  const said = await run(app, 'npx', args).catch((error) => `${error.stdout}${error.stderr}`);
  const isOwn = (line) => line.includes('node_modules/godwit/') && !line.includes('TS7016');
  const own = said.split('\n').filter(isOwn);
  if (own.length > 0) throw new Error(own.join('\n'));
}

async function runJob(app, row, node) {
  const redis = await startRedis({ private: true });
  try {
    const [platform] = Object.keys(row.platform);
    // An application that does not exit after close() has something left open. The time limit detects that.
    const output = await run(app, node, ['out/main.js'], {
      env: { REDIS_URL: redis.url, PLATFORM: platform.slice('@nestjs/platform-'.length) },
      timeout: 30_000,
    });
    if (!output.includes('the job was completed')) throw new Error(`it said:\n${output}`);
  } finally {
    await redis.stop();
  }
}

/** Runs the command as a user does: `npx godwit dispatch`, without Nest. */
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

/** A version of Node that the registry does not have counts as failed and is left out. */
async function findNodes(temp) {
  const nodes = [{ version: process.versions.node, path: process.execPath }];
  for (const version of NODES) {
    await check(`Node ${version} can be installed`, async () =>
      nodes.push({ version, path: await installNode(version, temp) }),
    );
  }
  return nodes;
}

/** Each row mostly waits for the registry, so several rows run at once. */
async function inLanes(lanes, tasks) {
  const rest = [...tasks];
  const lane = async () => {
    for (let task = rest.shift(); task; task = rest.shift()) await task();
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

const temp = mkdtempSync(join(tmpdir(), 'godwit-pack-'));
try {
  let tarball;
  if (await check('contains only the files that users need', async () => (tarball = await pack(temp)))) {
    const nodes = findNodes(temp);
    await inLanes(LANES, [
      () => checkNewApp(temp, tarball, { check, run }),
      ...APPS.map((row) => () => checkApp(temp, tarball, row, nodes)),
    ]);
  }
} finally {
  rmSync(temp, { recursive: true, force: true });
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
