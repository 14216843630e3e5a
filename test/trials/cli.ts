import { parseArgs } from 'node:util';
import type { Trial } from './trial.js';
import { trials } from './trials.js';

export const HELP = `Measures what is promised about faults, with real processes on a Redis of its own.

  npm run trials                                all, one after another
  npm run trials -- recovery --times 20         some of them
  --times <n>     repetitions, where a trial has any
  --jobs <n>      jobs, where their number matters
  --json <file>   where the results are written
  --list          the trials
  --help          this text
`;

export interface Plan {
  readonly chosen: readonly Trial[];
  readonly times?: number;
  readonly jobs?: number;
  readonly json?: string;
}

/** A call that is wrong. The message says why. */
export class UsageError extends Error {}

/** The measurements to make, or the text to print. */
export function read(argv: string[]): Plan | string {
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
