// Runs the whole suite on the newest Redis and the newest Valkey, and prints a line for each at the end:
//   node tools/test-versions.mjs [redis-server|valkey-server] [arguments of Vitest…]
import { spawnSync } from 'node:child_process';
import { MissingProgramError } from './programs.mjs';
import { runSpecs } from './run-specs.mjs';
import { newestServers } from './servers.mjs';

const [asked, ...rest] = process.argv.slice(2);

try {
  const servers = newestServers();
  const chosen = servers.filter(({ name }) => name === asked);
  const args = chosen.length > 0 ? rest : process.argv.slice(2);
  const lines = [];
  for (const { path } of chosen.length > 0 ? chosen : servers) {
    const version = spawnSync(path, ['--version'], { encoding: 'utf8' }).stdout.split(' sha=')[0];
    console.log(`=== ${version}`);
    const { passed, failed, flaky } = await runSpecs(args, { env: { GODWIT_TEST_REDIS_SERVER: path } });
    if (failed > 0 || passed === 0) process.exitCode = 1;
    const rerun = flaky.length > 0 ? `; flaky: ${flaky.join(' ')}` : '';
    lines.push(`${version}: ${passed} passed, ${failed} failed${rerun}`);
  }
  console.log(lines.join('\n'));
} catch (error) {
  console.error(error instanceof MissingProgramError ? error.message : error);
  process.exitCode = 1;
}
