// Runs whole applications with random options, jobs and acts: `npm run test:soak -- [how many] [--seed <first seed>]`. A fault is told
// with its seed, which makes the same applications, jobs and acts again; their times differ.
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const args = process.argv.slice(2);
const runs = /^\d+$/.test(args[0] ?? '') ? args[0] : '50';
const seed = args.includes('--seed') ? args[args.indexOf('--seed') + 1] : String(Date.now() % 1_000_000);

console.error(`${runs} runs of each kind, from seed ${seed}`);
const child = spawn(
  process.execPath,
  ['node_modules/vitest/vitest.mjs', 'run', 'test/soak/soak.spec.ts', '--disable-console-intercept'],
  {
    cwd: fileURLToPath(new URL('../..', import.meta.url)),
    env: { ...process.env, SOAK_RUNS: runs, SOAK_SEED: seed },
    stdio: 'inherit',
  },
);
child.on('exit', (code) => (process.exitCode = code ?? 1));
