import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { temporaryFolder } from '../support/cleanup.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const TOYS = 'test/support-specs/reruns';

/** Runs these toy specs; their exit code and the lines of `run-specs` itself. */
function runToys(names: string[], limit = 60): Promise<{ code: number; lines: string[] }> {
  const temp = temporaryFolder();
  const args = [`--config=${TOYS}/vitest.config.ts`, ...names.map((name) => `${TOYS}/${name}.toy.ts`)];
  const env = {
    ...process.env,
    MARKER: join(temp, 'marker'),
    GODWIT_SPEC_LIMIT: String(limit),
    // A killed Vitest leaves its cache there.
    TMPDIR: temp,
  };
  return new Promise((resolve) => {
    execFile(process.execPath, ['tools/run-specs.mjs', ...args], { cwd: ROOT, env }, (error, stdout) =>
      resolve({
        code: Number(error?.code ?? 0),
        lines: stdout.split('\n').filter((line) => /^(flaky: |did not end: |\d+ passed, )/.test(line)),
      }),
    );
  });
}

it('a file that fails and then passes when run alone is named as flaky and counts as passed', async () => {
  expect(await runToys(['passes', 'first-time'])).toEqual({
    code: 0,
    lines: [`flaky: ${TOYS}/first-time.toy.ts`, '3 passed, 0 failed'],
  });
});

it('a file that fails twice counts its failures, and one that cannot be loaded counts as one', async () => {
  expect(await runToys(['passes', 'first-time', 'always', 'broken'])).toEqual({
    code: 1,
    lines: [`flaky: ${TOYS}/first-time.toy.ts`, '4 passed, 3 failed'],
  });
});

it('a file that never ends is killed at the limit, named, and counts as failed', async () => {
  expect(await runToys(['never'], 10)).toEqual({
    code: 1,
    lines: [`did not end: ${TOYS}/never.toy.ts`, '0 passed, 1 failed'],
  });
});

it('no spec at all is a failure', async () => {
  expect(await runToys(['missing'])).toEqual({ code: 1, lines: ['0 passed, 1 failed'] });
});
