// Makes one small mistake after another in the scripts and looks whether a test notices: first the model, with a fixed seed,
// then the specs of the scripts. Ends with one line: how many there were, how many were noticed, and the score. Every mistake
// that nothing notices must stand in survivors.json with the reason why none can, or need not.
//
//   npm run test:mutation -- [--only <file, such as exchange or shared/due>] [--table]
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const HERE = fileURLToPath(new URL('.', import.meta.url));
const CHILDREN = 2;
const MIN_SCORE = 95;
/** It loads the scripts under their own names, which a mutant does not have. */
const NOT_FOR_MUTANTS = 'all-scripts.spec.ts';

const args = process.argv.slice(2);
const only = args.includes('--only') ? args[args.indexOf('--only') + 1] : undefined;
const children = new Set();
const temp = mkdtempSync(join(tmpdir(), 'godwit-mutation-'));
process.on('exit', () => {
  for (const child of children) process.kill(-Number(child.pid), 'SIGKILL');
  rmSync(temp, { recursive: true, force: true });
});
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));

/** Runs Vitest; answers whether all passed, and what it wrote. */
function vitest(more, env) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', ...more], {
      cwd: ROOT,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      // A group of its own, so that its processes end with it.
      detached: true,
    });
    children.add(child);
    let text = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (text += data));
    // A mutant that goes round in circles is noticed too.
    const late = setTimeout(
      () => process.kill(-Number(child.pid), 'SIGKILL'),
      env.GODWIT_MUTANT ? 240_000 : 2_147_483_647,
    );
    child.on('exit', (code) => {
      clearTimeout(late);
      children.delete(child);
      resolve({ passed: code === 0, text });
    });
  });
}

function specsOf(file) {
  const all = readdirSync(join(ROOT, 'test/scripts')).filter((name) => name.endsWith('.spec.ts'));
  const own = file.startsWith('shared/') ? [] : all.filter((name) => name.startsWith(file));
  const others = all.filter((name) => !own.includes(name) && name !== NOT_FOR_MUTANTS);
  return [own, others]
    .filter((names) => names.length > 0)
    .map((names) => names.map((name) => `test/scripts/${name}`));
}

function readLines(path) {
  if (!existsSync(path)) return [];
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}

async function byModel() {
  const outs = Array.from({ length: CHILDREN }, (_, i) => join(temp, `${i}.jsonl`));
  const progress = setInterval(() => {
    const done = outs.flatMap(readLines);
    const left = done.filter(({ killedBy }) => killedBy === null).length;
    console.error(`the model has tried ${done.length} mutants, ${left} of them are left for the specs`);
  }, 60_000);
  const runs = await Promise.all(
    outs.map((out, i) =>
      vitest(['--config', 'test/mutation/vitest.config.ts'], {
        MUTATION_OUT: out,
        MUTATION_SHARD: `${i}/${CHILDREN}`,
        ...(only === undefined ? {} : { MUTATION_ONLY: only }),
      }),
    ),
  );
  clearInterval(progress);
  for (const { passed, text } of runs)
    if (!passed) throw new Error(`the model did not get through:\n${text}`);
  return outs.flatMap(readLines);
}

async function bySpecs(mutant) {
  const [file] = mutant.id.split(':');
  for (const specs of specsOf(file)) {
    const { passed } = await vitest([...specs, '--bail', '1'], { GODWIT_MUTANT: mutant.id });
    if (!passed) return 'specs';
  }
  return null;
}

async function inParallel(list, act) {
  const rest = [...list];
  const worker = async () => {
    for (let one = rest.shift(); one; one = rest.shift()) await act(one);
  };
  await Promise.all(Array.from({ length: CHILDREN }, worker));
}

function table(mutants) {
  const files = new Map();
  for (const { id, killedBy } of mutants) {
    const [file] = id.split(':');
    const row = files.get(file) ?? { all: 0, model: 0, specs: 0, left: 0 };
    row.all += 1;
    row[killedBy === null ? 'left' : killedBy.startsWith('model') ? 'model' : 'specs'] += 1;
    files.set(file, row);
  }
  const lines = [...files]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([file, row]) => [file, ...Object.values(row)].join('\t'));
  return `${['script\tmutants\tkilled by the model\tkilled by the specs\tsurvived', ...lines].join('\n')}\n`;
}

/** Without its line, which changes with every edit above it. */
function keyOf({ id, code }) {
  const [file, , nth, kind] = id.split(':');
  return `${file} | ${kind} ${nth} | ${code}`;
}

const control = await vitest(specsOf('none').flat(), { GODWIT_MUTANT: 'none' });
if (!control.passed) throw new Error(`the specs fail on scripts without a mistake:\n${control.text}`);
const mutants = process.env.MUTATION_RESUME
  ? process.env.MUTATION_RESUME.split(',').flatMap(readLines)
  : await byModel();
const left = mutants.filter(({ killedBy }) => killedBy === null);
console.error(`${mutants.length - left.length} of ${mutants.length} mutants were killed by the model`);
let tried = 0;
await inParallel(left, async (mutant) => {
  mutant.killedBy = await bySpecs(mutant);
  tried += 1;
  if (mutant.killedBy === null) console.error(`survived: ${mutant.id}  ${mutant.code}`);
  if (tried % 20 === 0) console.error(`the specs have tried ${tried} of ${left.length}`);
});

const survivors = mutants.filter(({ killedBy }) => killedBy === null);
const reasons = JSON.parse(readFileSync(join(HERE, 'survivors.json'), 'utf8'));
const unexplained = survivors.filter((mutant) => !reasons[keyOf(mutant)]);
for (const mutant of unexplained) console.log(`no reason is given for ${keyOf(mutant)}`);
if (only === undefined) writeFileSync(join(HERE, 'results.tsv'), table(mutants));
const killed = mutants.length - survivors.length;
const score = (100 * killed) / mutants.length;
console.log(
  `${mutants.length} mutants, ${killed} killed, ${survivors.length} survived (${unexplained.length} without a reason), score ${score.toFixed(1)} %`,
);
process.exitCode = score >= MIN_SCORE && unexplained.length === 0 ? 0 : 1;
