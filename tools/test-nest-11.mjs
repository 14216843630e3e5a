// Runs the specs of the public features on Nest 11, with the same build as on Nest 12:
//   node tools/test-nest-11.mjs [arguments of Vitest…]     needs a build
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { ROOT } from './support-matrix.mjs';

const NEST_11 = [
  '@nestjs/common@11.2.10',
  '@nestjs/core@11.2.10',
  '@nestjs/platform-express@11.2.10',
  '@nestjs/platform-fastify@11.2.8',
  '@nestjs/testing@11.2.6',
  '@nestjs/terminus@11.1.1',
  '@nestjs/cqrs@11',
  '@nestjs/event-emitter@3',
];
/** Without the long proofs, and without the webhooks sample, which validates with a pipe that Nest 11 does not have. */
const SPECS = [
  '--project=shared',
  '--project=rest',
  'test/features',
  'test/testing',
  'test/conformance',
  'test/unit',
  'sample/02',
  'sample/03',
  'sample/04',
];

const given = process.argv.slice(2);
const copy = mkdtempSync(join(tmpdir(), 'godwit-nest-11-'));
const run = (command, args) => spawnSync(command, args, { cwd: copy, stdio: 'inherit' }).status ?? 1;
try {
  const files = execFileSync('git', ['ls-files', '-z', '-co', '--exclude-standard'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  for (const file of files.split('\0').filter(Boolean)) {
    mkdirSync(dirname(join(copy, file)), { recursive: true });
    cpSync(join(ROOT, file), join(copy, file));
  }
  cpSync(join(ROOT, 'dist'), join(copy, 'dist'), { recursive: true });
  const quiet = ['--no-audit', '--no-fund'];
  process.exitCode =
    run('npm', ['ci', ...quiet]) ||
    // Peers of other dev dependencies ask for Nest 12.
    run('npm', ['install', '--no-save', '--legacy-peer-deps', ...quiet, ...NEST_11]) ||
    run('npm', ['run', '--silent', 'scripts']) ||
    run('npx', ['vitest', 'run', ...(given.length > 0 ? given : SPECS)]);
} finally {
  rmSync(copy, { recursive: true, force: true });
}
