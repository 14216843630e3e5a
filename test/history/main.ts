/* Checks the histories in files of JSON lines: `npm run history -- .tmp/chaos-1/*.jsonl`. */
import { check } from './check.js';
import { readHistory } from './recorder.js';

const SHOWN = 50;
const files = process.argv.slice(2);
if (files.length === 0) {
  process.stderr.write('usage: npm run history -- <file of JSON lines>...\n');
  process.exitCode = 2;
} else {
  const { findings, ...figures } = check(readHistory(files));
  process.stdout.write(`${JSON.stringify(figures)}\n`);
  for (const { promise, queue, id, text } of findings.slice(0, SHOWN))
    process.stdout.write(`BROKEN ${promise}: ${queue} ${id}: ${text}\n`);
  process.exitCode = findings.length > 0 ? 1 : 0;
}
