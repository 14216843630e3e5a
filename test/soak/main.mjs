// Runs whole applications with random options, jobs and acts: `npm run test:soak -- [how many] [--seed <first seed>]`. Each fault names
// its seed. The same seed makes the same applications, jobs and acts; their times differ.
import { runVitest } from '../support/vitest.mjs';

const args = process.argv.slice(2);
const runs = /^\d+$/.test(args[0] ?? '') ? args[0] : '50';
const seed = args.includes('--seed') ? args[args.indexOf('--seed') + 1] : String(Date.now() % 1_000_000);

console.error(`${runs} runs of each kind, from seed ${seed}`);
runVitest(['test/soak/soak.spec.ts'], { SOAK_RUNS: runs, SOAK_SEED: seed });
