import type { ShownPool, ShownRun } from './registrar.js';
import type { Slots } from './slots.js';

/** One queue of a pool, as it is shown. */
interface ShownLine {
  readonly queue: string;
  readonly worker: string;
  /** Whether this process claims nothing of it. */
  readonly resting: boolean;
  readonly runs: ReadonlySet<ShownRun>;
}

/** What operators see of the queues that share these slots: one pool. */
export function shownPool({ total }: Slots, lines: readonly ShownLine[]): ShownPool {
  const queues = lines.map(({ queue }) => queue);
  return {
    queues,
    concurrency: total,
    get paused() {
      return lines.filter(({ resting }) => resting).map(({ queue }) => queue);
    },
    get workers() {
      return lines.map(({ worker }) => worker);
    },
    get runs() {
      const runs = lines.flatMap((line) => [...line.runs]);
      return new Set(lines.length > 1 ? runs.toSorted((a, b) => a.startedAt - b.startedAt) : runs);
    },
  };
}
