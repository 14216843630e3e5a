import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { read } from './cli.js';
import { format, table } from './report.js';
import { trials } from './trials.js';
import { temporaryFolder } from '../support/cleanup.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PROGRAM = ['--import', './tools/typescript.mjs', 'test/trials/main.ts'];

it('lists its trials, each once', () => {
  const lines = (read(['--list']) as string).trimEnd().split('\n');
  const names = lines.map((line) => line.split(' ')[0]);
  expect(names).toEqual(trials.map(({ name }) => name));
  expect(new Set(names).size).toBe(names.length);
});

it('measures with real processes, and reports what it measured', async () => {
  const dir = temporaryFolder();
  const file = join(dir, 'results.json');
  const args = [...PROGRAM, 'maxmemory', '--jobs', '2000', '--json', file];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: ROOT });
  expect(stdout).toContain('maxmemory: of a backlog of 2000 drained: 100 % (must: = 100 %) PASS');
  expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({
    failures: [],
    results: [{ trial: 'maxmemory', pass: true }, { pass: true }, { pass: true }],
  });
}, 60_000);

it.each([
  [['--times', '0'], '--times must be a whole number of at least 1'],
  [['nothing'], "no trial 'nothing'"],
  [['--what'], "Unknown option '--what'"],
])('refuses %s with a message', (args, words) => {
  expect(() => read(args)).toThrow(words);
});

it('judges a figure by all its bounds, and one that was not measured as failed', () => {
  const judged = (value: number, bounds: object) =>
    format('trial', { what: 'x', value, unit: 's', ...bounds });
  expect(judged(2, { atMost: 2 })).toMatchObject({ must: '≤ 2 s', pass: true });
  expect(judged(2.01, { atMost: 2 }).pass).toBe(false);
  expect(judged(1, { atLeast: 2, atMost: 3 })).toMatchObject({ must: '≥ 2 s, ≤ 3 s', pass: false });
  expect(judged(1, { equals: 0 }).pass).toBe(false);
  expect(judged(Number.NaN, {}).pass).toBe(false);
  expect(table([judged(3, { atMost: 2 })])).toContain('| trial | x | 3 s | ≤ 2 s | **FAIL** |');
});
