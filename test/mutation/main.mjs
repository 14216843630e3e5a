// Makes one small mistake after another in the scripts and checks whether a test fails: first the specs of the scripts, then, for
// the mistakes that these do not detect, the model with a fixed seed. Ends with the numbers and the score. survivors.json has each
// mistake that no test detects, with the reason why none can, or need not.
//
// results.tsv has the numbers of each file from the last run that tried it.
//
//   npm run test:mutation -- [scripts and fragments, such as exchange shared/rates]
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const HERE = fileURLToPath(new URL('.', import.meta.url));
const CHILDREN = 2;
const RESULTS = join(HERE, 'results.tsv');
const MIN_SCORE = 95;

const only = process.argv.slice(2);
const files = only.filter((name) => !name.includes(':'));
/**
 * A process loads the specs once for each of its mutants, so it gets a hundred of them at most. It also tries the scripts without a
 * mistake, which takes minutes, so single mutants share one.
 */
const SHARES =
  CHILDREN *
  (only.length > 0 ? 3 * files.length + Math.ceil((only.length - files.length) / (50 * CHILDREN)) : 10);
const children = new Set();
const temp = mkdtempSync(join(tmpdir(), 'godwit-mutation-'));
process.on('exit', () => {
  for (const child of children) process.kill(-Number(child.pid), 'SIGKILL');
  rmSync(temp, { recursive: true, force: true });
});
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));

/** Runs one half of the work in several processes, each with a share. Returns the lines they wrote, and their output. */
async function run(by, env) {
  const outs = Array.from({ length: SHARES }, (_, i) => join(temp, `${by}-${i}.jsonl`));
  const progress = setInterval(() => {
    console.error(`the ${by} tried ${outs.flatMap(readLines).length} mutants`);
  }, 60_000);
  const texts = [];
  const left = [...outs.entries()];
  async function work() {
    for (let next = left.shift(); next; next = left.shift()) {
      const [i, out] = next;
      const share = { MUTATION_BY: by, MUTATION_OUT: out, MUTATION_SHARD: `${i}/${SHARES}` };
      // A process ends at a mutant whose script does not end. The next one goes on with the others.
      let before;
      do {
        before = readLines(out).length;
        texts.push(await vitest({ ...env, ...share }));
      } while (readLines(out).length > before && readLines(out).at(-1).isStuck);
    }
  }
  await Promise.all(Array.from({ length: CHILDREN }, work));
  clearInterval(progress);
  return { lines: outs.flatMap(readLines), text: texts.join('\n') };
}

function vitest(env) {
  return new Promise((resolve) => {
    const args = ['node_modules/vitest/vitest.mjs', 'run', '--config', 'test/mutation/vitest.config.ts'];
    // A group of its own, so that its processes end with it.
    const options = {
      cwd: ROOT,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    };
    const child = spawn(process.execPath, args, options);
    children.add(child);
    let text = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (text += data));
    child.on('exit', () => {
      children.delete(child);
      resolve(text);
    });
  });
}

function readLines(path) {
  if (!existsSync(path)) return [];
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}

/** The rows of the mutants that were tried, with those of other files from earlier runs. */
function table(mutants) {
  const rows = new Map();
  for (const { id, killedBy } of mutants) {
    const [file] = id.split(':');
    const row = rows.get(file) ?? { all: 0, model: 0, specs: 0, left: 0 };
    row.all += 1;
    row[killedBy === null ? 'left' : killedBy.split(',')[0]] += 1;
    rows.set(file, row);
  }
  const head = ['script', 'mutants', 'killed by the model', 'killed by the specs', 'survived'];
  const isThere = (file) => existsSync(join(ROOT, `lib/engine/scripts/${file}.lua`));
  const earlier = readFileSync(RESULTS, 'utf8')
    .split('\n')
    .map((line) => line.split('\t'));
  const lines = [
    ...earlier.filter(([file]) => isThere(file) && !rows.has(file)),
    ...[...rows].map(([file, row]) => [file, ...Object.values(row)]),
  ].toSorted(([a], [b]) => (a < b ? -1 : 1));
  const sum = (at) => lines.reduce((total, line) => total + Number(line[at]), 0);
  return [head, ...lines, ['all', sum(1), sum(2), sum(3), sum(4)]]
    .map((cells) => `${cells.join('\t')}\n`)
    .join('');
}

const bySpecs = await run('specs', { MUTATION_ONLY: only.join(',') });
const mutants = bySpecs.lines.filter(({ id }) => id !== 'none');
if (mutants.length === 0 && bySpecs.text.includes('No test found in suite mutant none')) {
  console.error(
    `there are no mutants in ${only.join(', ')}; name scripts or fragments, such as exchange shared/rates`,
  );
  process.exit(1);
}
if (mutants.length === 0) throw new Error(`the specs tried nothing:\n${bySpecs.text}`);
if (bySpecs.lines.some(({ id, killedBy }) => id === 'none' && killedBy !== null))
  throw new Error(`the specs fail on scripts without a mistake:\n${bySpecs.text}`);
const left = mutants.filter(({ killedBy }) => killedBy === null);
console.error(`${mutants.length - left.length} of ${mutants.length} mutants were killed by the specs`);

const list = join(temp, 'ids');
writeFileSync(list, ['none', ...left.map(({ id }) => id)].join('\n'));
const byModel = await run('model', { MUTATION_IDS: list });
const answers = new Map(byModel.lines.map(({ id, killedBy }) => [id, killedBy]));
if (answers.get('none') !== null)
  throw new Error(`the model fails on scripts without a mistake:\n${byModel.text}`);
for (const mutant of left) {
  if (!answers.has(mutant.id)) throw new Error(`the model did not try ${mutant.id}:\n${byModel.text}`);
  mutant.killedBy = answers.get(mutant.id);
}

const survivors = left.filter(({ killedBy }) => killedBy === null);
const reasons = JSON.parse(readFileSync(join(HERE, 'survivors.json'), 'utf8'));
const unexplained = survivors.filter((mutant) => !(mutant.key in reasons));
for (const mutant of unexplained) console.log(`no reason is given for ${JSON.stringify(mutant.key)}`);
// Single mutants say nothing about a file.
if (files.length === only.length) writeFileSync(RESULTS, table(mutants));
const killed = mutants.length - survivors.length;
const score = (100 * killed) / mutants.length;
console.log(
  `${mutants.length} mutants, ${killed} killed, ${survivors.length} survived (${unexplained.length} without a reason), score ${score.toFixed(1)} %`,
);
process.exitCode = score >= MIN_SCORE && unexplained.length === 0 ? 0 : 1;
