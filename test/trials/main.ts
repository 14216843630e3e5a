import { writeFileSync } from 'node:fs';
import { runCleanup } from '../support/cleanup.js';
import { HELP, UsageError, read, type Plan } from './cli.js';
import { Lab } from './lab.js';
import { table } from './report.js';
import type { Result } from './trial.js';

try {
  const plan = read(process.argv.slice(2));
  if (typeof plan === 'string') process.stdout.write(plan);
  else process.exitCode = await runAll(plan);
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  process.stderr.write(`${error.message}\n\n${HELP}`);
  process.exitCode = 2;
}

/** The exit code: 1 if a figure is beyond its bound, or could not be measured. */
async function runAll({ chosen, json, ...given }: Plan): Promise<number> {
  const print = (text: string) => process.stdout.write(`${text}\n`);
  const startedAt = new Date().toISOString();
  const results: Result[] = [];
  const failures: { trial: string; error: string }[] = [];
  for (const trial of chosen) {
    const lab = new Lab(trial, given, print);
    const since = performance.now();
    try {
      await trial.run(lab);
    } catch (error) {
      failures.push({ trial: trial.name, error: String((error as Error).stack) });
    }
    await runCleanup().catch((error: Error) => failures.push({ trial: trial.name, error: describe(error) }));
    results.push(...lab.results);
    print(`  ${trial.name} took ${((performance.now() - since) / 1000).toFixed(0)} s`);
  }
  print(`\n${table(results)}`);
  for (const { trial, error } of failures) print(`\n${trial} FAILED: ${error}`);
  if (json !== undefined)
    writeFileSync(json, `${JSON.stringify({ startedAt, results, failures }, null, 2)}\n`);
  return failures.length > 0 || results.some(({ pass }) => !pass) ? 1 : 0;
}

function describe(error: Error): string {
  return error instanceof AggregateError ? error.errors.map(String).join('\n') : String(error);
}
