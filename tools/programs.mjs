import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, realpathSync, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** A needed program is missing and could not be installed. The message says how to get it. */
export class MissingProgramError extends Error {
  name = 'MissingProgramError';
}

/**
 * Returns the path of a program: the name itself if it has a slash, otherwise the first match on PATH.
 * Undefined if there is none.
 */
export function findOnPath(name) {
  if (name.includes('/')) return isExecutable(name) ? name : undefined;
  const folders = (process.env.PATH ?? '').split(delimiter).filter(Boolean);
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/**
 * Installs the first of these Debian packages that exists, on Debian or Ubuntu, as root or with passwordless sudo.
 * Prints one line to stderr, and unless `quiet` the reason if it failed. Returns false on another system, without the
 * right to install, and if no package was found.
 */
export function aptInstall(what, packages, quiet = false) {
  if (!existsSync('/etc/debian_version') || !findOnPath('apt-get')) return false;
  const sudo = process.getuid?.() === 0 ? [] : ['sudo', '-n'];
  if (sudo.length > 0 && spawnSync('sudo', ['-n', 'true'], { stdio: 'ignore' }).status !== 0) return false;
  console.error(`${what} is missing: installing it with apt-get (${packages.join(' or ')})`);
  if (!aptGet(sudo, ['update'], quiet)) return false;
  return packages.some((name) => aptGet(sudo, ['install', '--yes', '--no-install-recommends', name], quiet));
}

function aptGet(sudo, args, quiet) {
  const [command, ...rest] = [...sudo, 'env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', '-qq', ...args];
  const run = spawnSync(command, rest, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  if (run.status !== 0 && !quiet)
    console.error(`apt-get ${args.join(' ')} failed:\n${run.stdout}${run.stderr}`.trimEnd());
  return run.status === 0;
}

/** Whether this module was started as a program, and not imported. */
export function isMain(meta) {
  const started = process.argv[1];
  return started !== undefined && pathToFileURL(realpathSync(started)).href === meta.url;
}
