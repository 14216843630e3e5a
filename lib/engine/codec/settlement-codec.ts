import type { FailureRecord, KeptResult, SettledRun } from '../../job/outcome.js';
import { attemptOf, deadRecord } from '../../contract/upkeep-verbs.js';
import { EventColumns } from './event-codec.js';
import type { Value } from '../script.js';

type SettlementLists = Record<'kept' | 'retried' | 'dead' | 'released' | 'names' | 'eventFields', Value[]>;

/** The lists of one exchange: runs by outcome, the counts per job name, and the events. */
export function encodeSettled(
  runs: readonly SettledRun[],
  withEvents: boolean,
  worker: string,
): { readonly lists: SettlementLists; readonly completed: string; readonly nameIndexes: string } {
  const { names, nameIndexes } = countNames(runs);
  const lists: SettlementLists = {
    kept: [],
    retried: [],
    dead: [],
    released: [],
    names,
    eventFields: [],
  };
  let completed = '';
  for (const run of runs) {
    if (run.outcome.kind !== 'completed' || run.outcome.keep) place(run, lists, worker);
    else completed += completed === '' ? run.id : `\n${run.id}`;
  }
  if (withEvents && runs.length > 0) say(runs, lists);
  return { lists, completed, nameIndexes };
}

function place(run: SettledRun, lists: SettlementLists, worker: string): void {
  const { id, outcome } = run;
  switch (outcome.kind) {
    case 'completed':
      if (outcome.keep) lists.kept.push(id, outcome.keep.forMs, endRecord(run, outcome.keep));
      return;
    case 'retried': {
      const failure = outcome.failure ? withEntry(run, worker, JSON.stringify(outcome.failure)) : '';
      lists.retried.push(
        id,
        Math.ceil(outcome.delayMs),
        failure,
        outcome.counted ? 1 : outcome.started === false ? '' : 0,
        outcome.priority,
      );
      return;
    }
    case 'dead':
      lists.dead.push(
        id,
        withEntry(run, worker, deadRecord(outcome.failure, outcome.reason)),
        outcome.counted ? 1 : 0,
      );
      return;
    case 'released':
      lists.released.push(id, outcome.started ? 1 : 0);
  }
}

/** The record of a failure, with a line for the list of the last attempts before it. */
function withEntry(run: SettledRun, worker: string, record: string): string {
  const entry = attemptOf(run, worker);
  return entry ? `${JSON.stringify(entry)}\n${record}` : record;
}

function endRecord(run: SettledRun, { result, resultFault }: KeptResult): string {
  const { attempt, durationUs: us } = run;
  return JSON.stringify({ attempt, us, stalls: run.stalls || undefined, result, resultFault });
}

/** The types of the events of settlements, in the order in which they are written. */
const RUN_EVENTS = ['completed', 'retrying', 'delayed', 'dead', 'released'] as const;

/** Groups are created when needed: usually all runs have completed. */
type Groups = { [Type in (typeof RUN_EVENTS)[number]]?: EventColumns };

function say(runs: readonly SettledRun[], { kept, eventFields }: SettlementLists): void {
  const groups: Groups = {};
  for (const run of runs) {
    const { outcome } = run;
    switch (outcome.kind) {
      case 'completed':
        writeCompleted(into(groups, 'completed', run).with('us', run.durationUs), outcome.eventResult);
        break;
      case 'retried': {
        const group = into(groups, outcome.counted ? 'retrying' : 'delayed', run);
        if (outcome.counted) group.with('us', run.durationUs).with('error', brief(outcome.failure));
        group.with('delay', Math.ceil(outcome.delayMs));
        break;
      }
      case 'dead':
        into(groups, 'dead', run)
          .with('us', run.durationUs)
          .with('reason', outcome.reason)
          .with('error', brief(outcome.failure));
        break;
      case 'released':
        into(groups, 'released', run);
    }
  }
  // The script already has the ids of the completed runs.
  for (const type of RUN_EVENTS) groups[type]?.writeTo(eventFields, type !== 'completed' || kept.length > 0);
}

/** Either all runs of a queue have an `eventResult`, or none has. */
function writeCompleted(group: EventColumns, kept: KeptResult | undefined): void {
  if (kept) group.with('result', kept.result ?? '').with('reason', kept.resultFault ?? '');
}

function into(groups: Groups, type: keyof Groups, run: SettledRun): EventColumns {
  const group = (groups[type] ??= new EventColumns(type));
  return group.add(run.id).with('name', run.name).with('attempt', run.attempt);
}

/** Events contain the message, not the stack. The job keeps the stack. */
function brief(failure: FailureRecord | null): string {
  return failure
    ? JSON.stringify({ name: failure.name, message: failure.message.slice(0, 500), attempt: failure.attempt })
    : '';
}

/**
 * How many runs of a batch completed, failed and died, by job name. Counted here, so that a batch of five hundred costs the store
 * no more than one run. If the store does not accept all runs, it counts again, and needs `nameIndexes`.
 */
interface NameCounts {
  /** Name, completed, failed attempts, dead. */
  readonly names: Value[];
  /** For each run, in the order of the lists of an exchange, the index of its name. Empty if there is only one name. */
  readonly nameIndexes: string;
}

const ROW = 4;

function countNames(runs: readonly SettledRun[]): NameCounts {
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
  return { names, nameIndexes: rows.size > 1 ? indexesOf(runs, rows) : '' };
}

/** The order of the lists. Released runs come last and are not counted. */
const LISTS: readonly ((run: SettledRun) => boolean)[] = [
  ({ outcome }) => outcome.kind === 'completed' && !outcome.keep,
  ({ outcome }) => outcome.kind === 'completed' && outcome.keep !== undefined,
  ({ outcome }) => outcome.kind === 'retried',
  ({ outcome }) => outcome.kind === 'dead',
];

function indexesOf(runs: readonly SettledRun[], rows: ReadonlyMap<string, number>): string {
  const numbers: number[] = [];
  for (const isIn of LISTS) for (const run of runs) if (isIn(run)) numbers.push(rows.get(run.name)! / ROW);
  return numbers.join(',');
}

function addOne(counts: Value[], at: number): void {
  counts[at] = (counts[at] as number) + 1;
}
