import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { runCleanup } from '../support/cleanup.js';
import { Lab } from './lab.js';
import { table } from './report.js';
import { trials } from './trials.js';
import type { Result, Trial } from './trial.js';

const HELP = `Measures what is promised about faults, with real processes on a Redis of its own.

  npm run trials                                all, one after another
  npm run trials -- recovery --times 20         some of them
  --times <n>     repetitions, where a trial has any
  --jobs <n>      jobs, where their number matters
  --json <file>   where the results are written
  --list          the trials
  --help          this text
`;

interface Plan {
  readonly chosen: readonly Trial[];
  readonly times?: number;
  readonly jobs?: number;
  readonly json?: string;
}

class UsageError extends Error {}

try {
  const plan = read(process.argv.slice(2));
  if (typeof plan === 'string') process.stdout.write(plan);
  else process.exitCode = await runAll(plan);
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  process.stderr.write(`${error.message}\n\n${HELP}`);
  process.exitCode = 2;
}

function read(argv: string[]): Plan | string {
  const { values, positionals } = parse(argv);
  if (values.help) return HELP;
  if (values.list) return trials.map(({ name, what }) => `${name.padEnd(14)}${what}\n`).join('');
  const unknown = positionals.filter((name) => !trials.some((trial) => trial.name === name));
  if (unknown.length > 0) {
    throw new UsageError(
      `no trial '${unknown.join("', '")}'; there are ${trials.map(({ name }) => name).join(', ')}`,
    );
  }
  const isChosen = ({ name }: Trial) => positionals.length === 0 || positionals.includes(name);
  return {
    chosen: trials.filter(isChosen),
    ...(values.times !== undefined && { times: whole('--times', values.times) }),
    ...(values.jobs !== undefined && { jobs: whole('--jobs', values.jobs) }),
    ...(values.json !== undefined && { json: values.json }),
  };
}

function parse(args: string[]) {
  try {
    return parseArgs({
      args,
      allowPositionals: true,
      options: {
        times: { type: 'string' },
        jobs: { type: 'string' },
        json: { type: 'string' },
        list: { type: 'boolean' },
        help: { type: 'boolean' },
      },
    });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

function whole(flag: string, text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1) {
    throw new UsageError(`${flag} must be a whole number of at least 1, got '${text}'`);
  }
  return value;
}

/** The exit code: 1 where a figure is not what it must be, or could not be measured. */
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
