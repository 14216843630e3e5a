import type { SettledRun } from '../../job/outcome.js';
import type { Value } from '../script.js';

/**
 * How many of a batch completed, failed and died, by job name: counted here, so that it costs the store the same for one run
 * and for five hundred. The store counts again where it did not accept all of them; `whose` tells it then whose runs they are.
 */
export interface NameCounts {
  /** Name, completed, failed attempts, dead. */
  readonly names: Value[];
  /** The number of its name, from 0, for each run in the order of the lists of an exchange; empty where there is but one name. */
  readonly whose: string;
}

const ROW = 4;

export function countNames(runs: readonly SettledRun[]): NameCounts {
  const rows = new Map<string, number>();
  const names: Value[] = [];
  let last: string | undefined;
  let row = 0;
  for (const { name, outcome } of runs) {
    if (name !== last) {
      last = name;
      row = rows.get(name) ?? names.length;
      if (row === names.length) {
        rows.set(name, row);
        names.push(name, 0, 0, 0);
      }
    }
    if (outcome.kind === 'completed') addOne(names, row + 1);
    else if (outcome.kind !== 'released') {
      if (outcome.counted) addOne(names, row + 2);
      if (outcome.kind === 'dead') addOne(names, row + 3);
    }
  }
  return { names, whose: rows.size > 1 ? whose(runs, rows) : '' };
}

/** The order of the lists; the released come last and are not counted. */
const LISTS: readonly ((run: SettledRun) => boolean)[] = [
  ({ outcome }) => outcome.kind === 'completed' && !outcome.keep,
  ({ outcome }) => outcome.kind === 'completed' && outcome.keep !== undefined,
  ({ outcome }) => outcome.kind === 'retried',
  ({ outcome }) => outcome.kind === 'dead',
];

function whose(runs: readonly SettledRun[], rows: ReadonlyMap<string, number>): string {
  const numbers: number[] = [];
  for (const isIn of LISTS) for (const run of runs) if (isIn(run)) numbers.push(rows.get(run.name)! / ROW);
  return numbers.join(',');
}

function addOne(counts: Value[], at: number): void {
  counts[at] = (counts[at] as number) + 1;
}
