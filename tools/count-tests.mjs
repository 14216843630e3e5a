// Reads a JSON report of Vitest and prints how many tests passed and failed, as two numbers:
//   node tools/count-tests.mjs report.json
// A file that could not be run at all holds no failed test, and counts as one.
import { readFileSync } from 'node:fs';

const report = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const broken = report.testResults.filter(
  ({ status, assertionResults }) =>
    status === 'failed' && !assertionResults.some((test) => test.status === 'failed'),
);
console.log(report.numPassedTests, report.numFailedTests + broken.length);
