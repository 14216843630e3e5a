import { parseArgs } from 'node:util';
import { CONTENDERS } from './contenders/names.js';
import { pick, UsageError, whole } from './flags.js';
import type { Plan } from './run/runner.js';
import { scenarios } from './scenarios/index.js';

const MIN_JOBS = 1_000;

export const HELP = `Measures Godwit beside its peers on a private Redis.

  --jobs <n>            jobs per measurement, fewer where each takes long, at least ${MIN_JOBS} (default 100000)
  --rounds <n>          how often each measurement is taken (default 3)
  --only <a,b>          scenarios: ${scenarios.map((s) => s.name).join(', ')} (default all)
  --contenders <a,b>    ${CONTENDERS.join(', ')} (default all); the first is compared with the others
  --check               measures nothing; shows of each contender that it does what it offers
  --help                this text
`;

/** The options from the command line. */
export interface Request extends Plan {
  /** Check the contenders instead of measuring them. */
  readonly check: boolean;
}

/** The options; undefined if help was asked for. */
export function readOptions(argv: readonly string[]): Request | undefined {
  const flags = parse(argv);
  if (flags.help) return undefined;
  const names = pick(
    '--only',
    flags.only,
    scenarios.map((s) => s.name),
  );
  return {
    check: flags.check,
    jobs: whole('--jobs', flags.jobs, MIN_JOBS),
    rounds: whole('--rounds', flags.rounds, 1),
    scenarios: scenarios.filter((s) => names.includes(s.name)),
    contenders: pick('--contenders', flags.contenders, CONTENDERS),
  };
}

function parse(argv: readonly string[]) {
  try {
    return parseArgs({
      args: [...argv],
      options: {
        jobs: { type: 'string', default: '100000' },
        rounds: { type: 'string', default: '3' },
        only: { type: 'string' },
        contenders: { type: 'string' },
        check: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    }).values;
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}
