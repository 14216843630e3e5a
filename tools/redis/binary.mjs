import { spawnSync } from 'node:child_process';
import { MissingProgramError, aptInstall, findOnPath } from '../programs.mjs';

/** The oldest versions whose scripts can be allowed to run at maxmemory. */
const FLOOR = { redis: [7, 0], valkey: [7, 2] };

/**
 * Returns the server program to start: the first of `redis-server` and `valkey-server` on PATH that is new
 * enough. If there is none, it installs one with apt-get, or throws a MissingProgramError that says how to
 * get one. `forTests`: GODWIT_TEST_REDIS_SERVER may name another program of any version. `quiet`: do not
 * print why the installation failed.
 */
export function findServer({ forTests, quiet = false }) {
  const named = process.env.GODWIT_TEST_REDIS_SERVER;
  if (forTests && named) {
    const path = findOnPath(named);
    if (path) return path;
    throw new MissingProgramError(
      `GODWIT_TEST_REDIS_SERVER names ${named}, which is not an executable program`,
    );
  }
  const first = search();
  if (first.path) return first.path;
  const again = aptInstall('A Redis server', ['redis-server', 'valkey-server'], quiet) ? search() : first;
  if (again.path) return again.path;
  throw new MissingProgramError(waysToGetOne(again.tooOld, forTests));
}

function search() {
  const tooOld = [];
  for (const name of ['redis-server', 'valkey-server']) {
    const path = findOnPath(name);
    if (!path) continue;
    const version = versionOf(path);
    if (version && isNewEnough(version)) return { path, tooOld };
    tooOld.push(
      `${path} is ${version ? `${version.product} ${version.numbers.join('.')}` : 'of unknown version'}`,
    );
  }
  return { path: undefined, tooOld };
}

/** Reads `Redis server v=7.0.15 sha=…` and `Valkey server v=8.1.1 sha=…`. */
function versionOf(path) {
  const { stdout } = spawnSync(path, ['--version'], { encoding: 'utf8' });
  const found = /^(redis|valkey) server v=(\d+)\.(\d+)/i.exec(stdout ?? '');
  return found && { product: found[1].toLowerCase(), numbers: [Number(found[2]), Number(found[3])] };
}

function isNewEnough({ product, numbers: [major, minor] }) {
  const [floorMajor, floorMinor] = FLOOR[product];
  return major > floorMajor || (major === floorMajor && minor >= floorMinor);
}

function waysToGetOne(tooOld, forTests) {
  const docker = forTests
    ? 'docker run --rm -it -v "$PWD":/godwit -w /godwit node:22 sh -c "npm ci && npm test"'
    : 'docker compose up -d --wait && export REDIS_URL=redis://localhost:6379';
  return [
    'No Redis 7.0 (or Valkey 7.2) or newer was found on PATH, and it could not be installed.',
    ...tooOld.map((text) => `  found:  ${text}, which is too old`),
    'Get one in one of these ways, then try again:',
    '  apt:    sudo apt-get update && sudo apt-get install redis-server',
    '  brew:   brew install redis',
    `  docker: ${docker}`,
  ].join('\n');
}
