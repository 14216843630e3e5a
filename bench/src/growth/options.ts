import { CONTENDERS } from '../contenders/names.js';
import { pick, UsageError, whole } from '../flags.js';
import type { Growth } from './growth.js';
import { growths } from './index.js';
import { parseArgs } from 'node:util';

const MIN_JOBS = 5_000;

export const HELP = `Measures how Godwit and a peer behave as one thing grows.

  --only <a,b>          ${growths.map((g) => g.name).join(', ')} (default all)
  --contenders <a,b>    ${CONTENDERS.join(', ')} (default godwit,@nestjs/bullmq); only the first goes to the largest sizes
  --jobs <n>            measured jobs at each size, at least ${MIN_JOBS} (default 50000)
  --rounds <n>          how often each size is measured at most (default 3)
  --minutes <n>         no further round of a growth begins that would not end within this time (default 10); one round is always taken
  --up-to <n>           leaves out larger sizes (default none)
  --help                this text
`;

export interface GrowthPlan {
  readonly growths: readonly Growth[];
  readonly contenders: readonly string[];
  readonly jobs: number;
  readonly rounds: number;
  readonly minutes: number;
  readonly upTo: number;
}

/** The measurements to make. Undefined if help was asked for. */
export function readOptions(argv: readonly string[]): GrowthPlan | undefined {
  const flags = parse(argv);
  if (flags.help) return undefined;
  const names = pick(
    '--only',
    flags.only,
    growths.map((g) => g.name),
  );
  return {
    growths: growths.filter((g) => names.includes(g.name)),
    contenders: pick('--contenders', flags.contenders, CONTENDERS),
    jobs: whole('--jobs', flags.jobs, MIN_JOBS),
    rounds: whole('--rounds', flags.rounds, 1),
    minutes: whole('--minutes', flags.minutes, 1),
    upTo: flags['up-to'] === undefined ? Infinity : whole('--up-to', flags['up-to'], 1),
  };
}

function parse(argv: readonly string[]) {
  try {
    return parseArgs({
      args: [...argv],
      options: {
        only: { type: 'string' },
        contenders: { type: 'string', default: 'godwit,@nestjs/bullmq' },
        jobs: { type: 'string', default: '50000' },
        rounds: { type: 'string', default: '3' },
        minutes: { type: 'string', default: '10' },
        'up-to': { type: 'string' },
        help: { type: 'boolean', default: false },
      },
    }).values;
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}
