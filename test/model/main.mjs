// Plays many sequences on Redis and on the memory engine: `npm run test:model -- [how many] [--seed <number>] [--path <path>] [--replay <path>]`.
// A failure names its seed and paths. Given as options, they replay it.
import { runVitest } from '../support/vitest.mjs';

const args = process.argv.slice(2);
const option = (name) => (args.includes(name) ? args[args.indexOf(name) + 1] : undefined);
const runs = /^\d+$/.test(args[0] ?? '') ? args[0] : '2000';
const seed = option('--seed') ?? String(Date.now() % 2_147_483_648);
const env = { MODEL_RUNS: runs, MODEL_SEED: seed };
if (option('--path')) env.MODEL_PATH = option('--path');
if (option('--replay')) env.MODEL_REPLAY = option('--replay');

console.error(`${runs} sequences, seed ${seed}`);
const specs = ['test/model/sequential.spec.ts', 'test/model/interleaved.spec.ts'];
runVitest(specs, env);
