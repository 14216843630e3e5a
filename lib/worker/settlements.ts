import type { Outcome, SettledRun } from '../job/outcome.js';

/** Most settlements of one exchange, so that its script never takes long: an end other than plain completion counts double. */
const MAX_COST = 500;
/** Most characters of results in one exchange, so that each is confirmed soon on a slow connection; a single result has no limit. */
const MAX_RESULTS = 256 * 1024;

/** Outcomes that no exchange has carried yet, in the order in which the runs ended. */
export class Settlements {
  private runs: SettledRun[] = [];
  /** Of their results. */
  private chars = 0;

  get size(): number {
    return this.runs.length;
  }

  all(): readonly SettledRun[] {
    return this.runs;
  }

  /** Only this is kept of a run until the store has confirmed it: not the data of its job. */
  add({ id, name, attempt, durationUs, stalls }: Omit<SettledRun, 'outcome'>, outcome: Outcome): void {
    this.runs.push({ id, name, attempt, durationUs, outcome, stalls });
    this.chars += charsOf(outcome);
  }

  /** As many as one exchange may carry. */
  take(): readonly SettledRun[] {
    const { runs } = this;
    const isMany = this.chars > MAX_RESULTS || runs.length > MAX_COST / 2;
    const count = isMany ? countWithin(runs) : runs.length;
    this.runs = count < runs.length ? runs.splice(count) : [];
    this.chars = 0;
    for (const { outcome } of this.runs) this.chars += charsOf(outcome);
    return runs;
  }

  clear(): readonly SettledRun[] {
    const { runs } = this;
    this.runs = [];
    this.chars = 0;
    return runs;
  }
}

/** How many of these runs, from the first, one exchange may settle. */
function countWithin(runs: readonly SettledRun[]): number {
  let cost = 0;
  let chars = 0;
  const beyond = runs.findIndex(({ outcome }, i) => {
    cost += outcome.kind === 'completed' && !outcome.keep ? 1 : 2;
    chars += charsOf(outcome);
    return cost > MAX_COST || (chars > MAX_RESULTS && i > 0);
  });
  return beyond < 0 ? runs.length : beyond;
}

function charsOf(outcome: Outcome): number {
  return outcome.kind === 'completed' ? (outcome.keep?.result?.length ?? 0) : 0;
}
