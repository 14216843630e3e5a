import { findOrder } from './linearizable.js';
import { LEDGER_CHECKS } from './ledger.js';
import type { Call } from './record.js';
import { Story } from './story.js';

export interface Finding {
  /** The promise that is broken. */
  readonly promise: string;
  readonly queue: string;
  readonly id: string;
  readonly text: string;
}

export interface Verdict {
  readonly calls: number;
  readonly ids: number;
  readonly runs: number;
  readonly indeterminate: number;
  /** Ids that met a fault after which the store may have lost acknowledged calls: nothing is promised for them. */
  readonly excused: number;
  /** Of the excused ids, those whose history shows a loss. */
  readonly forgotten: number;
  readonly findings: readonly Finding[];
}

/** Finds the promises that a history breaks. Shares no code with the library. */
export function check(history: readonly Call[]): Verdict {
  const story = new Story(history);
  const findings: Finding[] = [];
  let excused = 0;
  let forgotten = 0;
  for (const job of story.ids.values()) {
    const isExcused = story.mayBeForgotten(job.calls);
    const found: Finding[] = [];
    const report = (promise: string, text: string) =>
      found.push({ promise, queue: job.queue, id: job.id, text });
    for (const [promise, find] of Object.entries(LEDGER_CHECKS)) {
      for (const text of find(job, story)) report(promise, text);
    }
    const disorder = findOrder(job.calls, story.settled);
    if (disorder !== null) report('linearizable', disorder);
    if (!isExcused) findings.push(...found);
    else {
      excused += 1;
      if (found.length > 0) forgotten += 1;
    }
  }
  findings.push(...story.findings());
  return {
    calls: history.length,
    ids: story.ids.size,
    runs: history.filter(({ verb }) => verb === 'run').length,
    indeterminate: history.filter(({ outcome, verb }) => outcome === 'indeterminate' && verb !== 'run')
      .length,
    excused,
    forgotten,
    findings,
  };
}
