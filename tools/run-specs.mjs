// Runs the specs, then runs each file that failed once more by itself. A file that passes then is printed as
// `flaky: <file>` and counts as passed. Prints "N passed, N failed" at the end:
//   node tools/run-specs.mjs [files and --name=value options of Vitest…]     needs a build
// A run that takes longer than GODWIT_SPEC_LIMIT seconds is killed; its output names the files that were running.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isMain } from './programs.mjs';

const VITEST = fileURLToPath(new URL('../node_modules/vitest/vitest.mjs', import.meta.url));
const REPORTER = fileURLToPath(new URL('spec-reporter.mjs', import.meta.url));
const SETUP_FAILED = { files: {}, running: [], errors: 1 };

/** `{ passed, failed, flaky }`. */
export async function runSpecs(args, { limitMs = 2_400_000, env = {} } = {}) {
  const first = await runVitest(args, { limitMs, env });
  const again = failedFiles(first);
  if (again.length === 0 || first.running.length > 0) return { ...count(first), flaky: [] };
  console.log(`\nonce more, by themselves: ${again.join(' ')}`);
  const second = await runVitest([...optionsOf(args), '--maxWorkers=1', ...again], { limitMs, env });
  const flaky = again.filter((name) => second.files[name]?.failed === 0);
  const files = { ...first.files };
  for (const name of flaky) files[name] = second.files[name];
  return { ...count({ ...first, files, errors: first.errors + second.errors }), flaky };
}

/** The arguments without the names of files. An option with a value must be written as one word. */
function optionsOf(args) {
  return args.filter((one) => one.startsWith('-') && !one.startsWith('--maxWorkers'));
}

function failedFiles({ files }) {
  return Object.keys(files).filter((name) => files[name].failed > 0);
}

function count({ files, running, errors }) {
  const sum = (key) => Object.values(files).reduce((total, file) => total + file[key], 0);
  return { passed: sum('passed'), failed: sum('failed') + running.length + errors };
}

async function runVitest(args, { limitMs, env }) {
  const folder = mkdtempSync(join(tmpdir(), 'godwit-specs-'));
  const path = join(folder, 'report.json');
  try {
    const code = await runLimited(['run', '--reporter=default', `--reporter=${REPORTER}`, ...args], limitMs, {
      ...env,
      GODWIT_SPEC_REPORT: path,
    });
    if (!existsSync(path)) return SETUP_FAILED;
    const report = JSON.parse(readFileSync(path, 'utf8'));
    for (const name of report.running) console.log(`did not end: ${name}`);
    // Vitest also fails for other reasons than a failed test, such as a global teardown that did not end.
    const isExplained = count(report).failed > 0;
    return code === 0 || isExplained ? report : { ...report, errors: 1 };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The exit code. Vitest runs in a process group of its own, which is killed as a whole: a spec that never yields ignores SIGTERM. */
function runLimited(args, limitMs, env) {
  const child = spawn(process.execPath, [VITEST, ...args], {
    stdio: 'inherit',
    detached: true,
    env: { ...process.env, ...env },
  });
  const kill = (signal) => {
    try {
      process.kill(-Number(child.pid), signal);
    } catch {
      // It has ended.
    }
  };
  const limit = setTimeout(() => {
    console.log(`\nthe specs took longer than ${limitMs / 1000} s and are killed`);
    kill('SIGKILL');
  }, limitMs);
  const stop = (signal) => {
    kill('SIGKILL');
    process.exit(signal === 'SIGINT' ? 130 : 143);
  };
  process.once('SIGINT', stop).once('SIGTERM', stop);
  return new Promise((resolve) => {
    child.once('exit', (code) => {
      clearTimeout(limit);
      process.off('SIGINT', stop).off('SIGTERM', stop);
      // Child processes of a crashed Vitest would continue.
      kill('SIGKILL');
      resolve(code ?? 1);
    });
  });
}

if (isMain(import.meta)) {
  const seconds = Number(process.env['GODWIT_SPEC_LIMIT'] ?? 2400);
  const { passed, failed, flaky } = await runSpecs(process.argv.slice(2), { limitMs: seconds * 1000 });
  for (const name of flaky) console.log(`flaky: ${name}`);
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
}
