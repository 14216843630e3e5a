// The suite also runs on these servers besides the one of this machine: the newest Redis and Valkey of
// Debian.
//   node tools/servers.mjs     gets them once, and prints for each its program
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { MissingProgramError, findOnPath, isMain } from './programs.mjs';

const NAMES = ['redis-server', 'valkey-server'];
const SUITE = 'sid';
const MIRROR = 'http://deb.debian.org/debian';
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';

/**
 * Returns the programs of the newest servers, `[{ name: 'redis-server', path }, …]`, which can be started
 * like any other. They are downloaded once into the user's cache by apt with a separate state, which needs no
 * rights and does not change this system. Their libraries are downloaded too, so they share only the kernel
 * with this system. Throws a MissingProgramError if this is not Debian.
 */
export function newestServers() {
  const folder = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'godwit', `servers-${SUITE}`);
  if (!existsSync(folder)) {
    for (const program of ['apt-get', 'dpkg-deb']) {
      if (!findOnPath(program) || !existsSync(KEYRING))
        throw new MissingProgramError(
          `newer servers are taken from Debian, which needs ${program} and ${KEYRING}; ` +
            'or name a server of your own in GODWIT_TEST_REDIS_SERVER and run "npm test"',
        );
    }
    // Downloaded under another name and then renamed, so that an interrupted download does not look complete.
    const made = `${folder}.${process.pid}`;
    try {
      fetchInto(made);
      renameSync(made, folder);
    } finally {
      rmSync(made, { recursive: true, force: true });
    }
  }
  return NAMES.map((name) => ({ name, path: writeStarter(folder, name) }));
}

function fetchInto(folder) {
  console.error(`fetching ${NAMES.join(' and ')} of Debian ${SUITE} into ${folder}`);
  const apt = join(folder, 'apt');
  for (const path of ['state/lists/partial', 'cache/archives/partial'])
    mkdirSync(join(apt, path), { recursive: true });
  writeFileSync(join(apt, 'status'), '');
  writeFileSync(join(apt, 'sources'), `deb [signed-by=${KEYRING}] ${MIRROR} ${SUITE} main\n`);
  writeFileSync(
    join(apt, 'conf'),
    [
      `Dir::State "${apt}/state";`,
      `Dir::State::status "${apt}/status";`,
      `Dir::Cache "${apt}/cache";`,
      `Dir::Etc::sourcelist "${apt}/sources";`,
      ...['sourceparts', 'preferences', 'preferencesparts'].map((what) => `Dir::Etc::${what} "/dev/null";`),
      'APT::Install-Recommends "false";',
      // Otherwise apt, run by root, would download as a user that may not write into the cache of root.
      'APT::Sandbox::User "root";',
    ].join('\n'),
  );
  const env = { ...process.env, APT_CONFIG: join(apt, 'conf'), LC_ALL: 'C' };
  run('apt-get', ['-qq', 'update'], env);
  run('apt-get', ['-qq', '--yes', '--download-only', 'install', ...NAMES], env);
  const archives = join(apt, 'cache', 'archives');
  for (const file of readdirSync(archives).filter((name) => name.endsWith('.deb')))
    run('dpkg-deb', ['--extract', join(archives, file), folder], env);
  rmSync(apt, { recursive: true });
}

/** The loader of the downloaded system finds the libraries next to the program. `chroot` would need root. */
function writeStarter(folder, name) {
  const libraries = readdirSync(join(folder, 'usr', 'lib'))
    .map((triplet) => join(folder, 'usr', 'lib', triplet))
    .find((path) => existsSync(join(path, 'libc.so.6')));
  const loader = readdirSync(libraries).find((file) => /^ld-linux.*\.so\.\d+$/.test(file));
  const words = [
    join(libraries, loader),
    '--argv0',
    name,
    '--library-path',
    libraries,
    join(folder, 'usr', 'bin', name),
  ];
  const path = join(folder, name);
  writeFileSync(path, `#!/bin/sh\nexec ${words.map(quoted).join(' ')} "$@"\n`);
  chmodSync(path, 0o755);
  return path;
}

const quoted = (word) => `'${word.replaceAll("'", "'\\''")}'`;

function run(command, args, env) {
  const { status, stdout, stderr, error } = spawnSync(command, args, { env, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed:\n${error ?? stdout + stderr}`);
}

if (isMain(import.meta)) {
  try {
    for (const { path } of newestServers()) console.log(path);
  } catch (error) {
    console.error(error instanceof MissingProgramError ? error.message : error);
    process.exitCode = 1;
  }
}
