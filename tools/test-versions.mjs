// Runs the whole suite on the newest Redis and the newest Valkey, and ends with a line for each:
//   node tools/test-versions.mjs [redis-server|valkey-server] [arguments of Vitest…]
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MissingProgramError } from './programs.mjs';
import { newestServers } from './servers.mjs';

const [asked, ...rest] = process.argv.slice(2);

function runSuite(path, args) {
  const folder = mkdtempSync(join(tmpdir(), 'godwit-versions-'));
  const report = join(folder, 'report.json');
  try {
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
    spawnSync('npx', ['vitest', 'run', ...reporters, ...args], {
      stdio: 'inherit',
      env: { ...process.env, GODWIT_TEST_REDIS_SERVER: path },
    });
    const counts = spawnSync(process.execPath, ['tools/count-tests.mjs', report], { encoding: 'utf8' });
    // No report: Vitest itself did not come to its end.
    return counts.status === 0 ? counts.stdout.trim().split(' ').map(Number) : [0, 1];
  } finally {
    rmSync(folder, { recursive: true });
  }
}

try {
  const servers = newestServers();
  const chosen = servers.filter(({ name }) => name === asked);
  const args = chosen.length > 0 ? rest : process.argv.slice(2);
  const lines = (chosen.length > 0 ? chosen : servers).map(({ path }) => {
    const version = spawnSync(path, ['--version'], { encoding: 'utf8' }).stdout.split(' sha=')[0];
    console.log(`=== ${version}`);
    const [passed, failed] = runSuite(path, args);
    if (failed > 0 || passed === 0) process.exitCode = 1;
    return `${version}: ${passed} passed, ${failed} failed`;
  });
  console.log(lines.join('\n'));
} catch (error) {
  console.error(error instanceof MissingProgramError ? error.message : error);
  process.exitCode = 1;
}
