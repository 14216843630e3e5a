import { parseArgs } from 'node:util';
import { FAULTS, type FaultKind } from './faults.js';
import type { Broken } from './plan.js';

export interface Options {
  readonly seed: number;
  readonly jobs: number;
  /** How long the load is spread over; 0: as fast as the workers keep up. */
  readonly seconds: number;
  readonly workers: number;
  readonly producers: number;
  readonly concurrency: number;
  readonly leaseMs: number;
  /** Waiting jobs at which the producers pause. */
  readonly backlog: number;
  readonly fsync: 'always' | 'everysec' | 'no';
  readonly faults: Readonly<Record<FaultKind, number>>;
  readonly broken?: Broken;
  /** Where the result goes. */
  readonly out: string;
  readonly keep: boolean;
}

const flagOf = (kind: FaultKind) => FAULTS[kind].flag;
const kinds = Object.keys(FAULTS) as FaultKind[];
const list = kinds
  .map((kind) => `  --${flagOf(kind).padEnd(18)} ${FAULTS[kind].what} (${FAULTS[kind].usual})`)
  .join('\n');

export const HELP = `Runs real processes on a Redis of its own, breaks what can break, and accounts for every job by a ledger outside Redis.

usage: npm run chaos -- [options]

  --jobs <n>           plain jobs to be accepted (40000), beside calls of every kind on other queues
  --seconds <n>        how long they are spread over; 0: as fast as they are worked off (40; with --jobs 0)
  --seed <n>           of everything that looks random: the same one gives the same acts at the same share of the run
  --workers <n>        processes that work (3)        --concurrency <n>   jobs each runs at once (50)
  --producers <n>      processes that add (2)         --backlog <n>       waiting jobs at which they pause (20000)
  --lease <ms>         lease of the workers (4000; the library's default is 8000)
  --fsync <word>       appendfsync of Redis: always, everysec, no (no: by SIGKILL alone it loses nothing; with everysec
                       Redis holds answered writes back while a slow disk syncs, and a SIGKILL then loses them)
  --out <file>         where the result goes, as JSON (.tmp/chaos-<seed>.json)
  --keep               keep the ledgers also when all is well

How often each fault happens; once one is named, the others do not happen unless named, or --all is given:
${list}
  --all                the usual number of every fault that is not named
  --none               no faults at all

  --broken <word>      no-fencing, pop-and-forget: an engine that breaks its promise; the run must end with exit code 1
  --help               this text

Ends with one line of figures, and exit code 1 if any promise was broken.
`;

/** A flag that cannot be followed; the message says why. */
export class UsageError extends Error {}

/** Undefined when help was asked for. */
export function readOptions(argv: readonly string[]): Options | undefined {
  const flags = parse(argv) as Record<string, string | boolean | undefined>;
  if (flags['help']) return undefined;
  const number = (flag: string, usual: number, min = 0) => whole(flag, flags[flag], usual, min);
  const seed = number('seed', Math.floor(Math.random() * 1_000_000_000));
  if (readFaults(flags)['aof-cut'] > 0 && flags['jobs'] !== '0')
    throw new UsageError(
      '--aof-cuts needs --jobs 0: of plain jobs nobody writes down when they were acknowledged',
    );
  const broken = word('broken', flags['broken'], ['no-fencing', 'pop-and-forget'] as const);
  return {
    seed,
    jobs: number('jobs', 40_000),
    seconds: number('seconds', (flags['jobs'] ?? '0') === '0' ? 40 : 0),
    workers: number('workers', 3, 1),
    producers: number('producers', 2, 1),
    concurrency: number('concurrency', 50, 1),
    leaseMs: number('lease', 4_000, 100),
    backlog: number('backlog', 20_000, 1),
    fsync: word('fsync', flags['fsync'], ['always', 'everysec', 'no'] as const) ?? 'no',
    faults: readFaults(flags),
    ...(broken && { broken }),
    out: (flags['out'] as string | undefined) ?? `.tmp/chaos-${seed}.json`,
    keep: flags['keep'] === true,
  };
}

function readFaults(flags: Record<string, string | boolean | undefined>): Record<FaultKind, number> {
  const chosen = kinds.some((kind) => flags[flagOf(kind)] !== undefined);
  const rest = flags['none'] === true || (chosen && flags['all'] !== true);
  const usual = (kind: FaultKind) => (rest || !isPossible(kind) ? 0 : FAULTS[kind].usual);
  return Object.fromEntries(
    kinds.map((kind) => [kind, whole(flagOf(kind), flags[flagOf(kind)], usual(kind), 0)]),
  ) as Record<FaultKind, number>;
}

/** The limit on the size of files of a process that runs already can be set on Linux only. */
function isPossible(kind: FaultKind): boolean {
  return kind !== 'full-disk' || process.platform === 'linux';
}

function parse(argv: readonly string[]) {
  const text = { type: 'string' } as const;
  const numbers = 'jobs seconds seed workers producers concurrency lease backlog fsync out broken'.split(' ');
  const names = [...numbers, ...kinds.map(flagOf)];
  try {
    return parseArgs({
      args: [...argv],
      options: {
        ...Object.fromEntries(names.map((name) => [name, text])),
        all: { type: 'boolean' },
        none: { type: 'boolean' },
        keep: { type: 'boolean' },
        help: { type: 'boolean' },
      },
    }).values;
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

function whole(flag: string, given: string | boolean | undefined, usual: number, min: number): number {
  if (given === undefined) return usual;
  const value = Number(given);
  if (given !== '' && Number.isSafeInteger(value) && value >= min) return value;
  throw new UsageError(`--${flag} must be a whole number of at least ${min}, got '${given}'`);
}

function word<W extends string>(
  flag: string,
  given: string | boolean | undefined,
  known: readonly W[],
): W | undefined {
  if (given === undefined || known.includes(given as W)) return given as W | undefined;
  throw new UsageError(`--${flag} must be one of ${known.join(', ')}, got '${given}'`);
}
