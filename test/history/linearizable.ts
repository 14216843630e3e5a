import { ABSENT, silently, stepsOf, type State, type Step } from './job-model.js';
import type { AddArgs, Call } from './record.js';

/** After this many steps an id counts as undecided. That is a fault of the history: too many calls at once. */
const MAX_LOOKS = 200_000;
const SHOWN = 12;

/**
 * Whether there is an order of the calls on one id, each at some moment between its start and its end, in which every answer
 * is the one that the model gives; null, or why not. The search is that of Wing and Gong, with memory of what was tried (Lowe).
 */
export function findOrder(calls: readonly Call[], settled: ReadonlyMap<string, Call>): string | null {
  const adds = new Map(
    calls
      .filter(({ verb }) => verb === 'add')
      .map(({ args }) => [String(args['tag']), args as unknown as AddArgs]),
  );
  const steps = calls
    .flatMap((call) => stepsOf(call, settled))
    .toSorted((a, b) => a.start - b.start || a.end - b.end);
  const search = new Search(steps, adds);
  if (search.canEnd(0n, ABSENT)) return null;
  if (search.isTooLong) return `undecided after ${MAX_LOOKS} looks: ${steps.length} steps`;
  return `no order explains the answers; the longest that does ends before: ${search.stuckAt()}`;
}

class Search {
  isTooLong = false;
  private readonly tried = new Set<string>();
  private best = { count: -1, left: [] as readonly Step[], state: ABSENT };

  constructor(
    private readonly steps: readonly Step[],
    private readonly adds: ReadonlyMap<string, AddArgs>,
  ) {}

  /** Whether the calls that are not in `done` can follow from this state. */
  canEnd(done: bigint, state: State): boolean {
    const key = `${done} ${state}`;
    if (this.tried.has(key)) return false;
    if (this.tried.size >= MAX_LOOKS) {
      this.isTooLong = true;
      return false;
    }
    this.tried.add(key);
    const left = this.steps.flatMap((step, i) => (done & (1n << BigInt(i)) ? [] : [{ step, i }]));
    const required = left.filter(({ step }) => !step.isOptional);
    this.remember(
      required.map(({ step }) => step),
      state,
    );
    if (required.length === 0) return true;
    const firstEnd = Math.min(...required.map(({ step }) => step.end));
    const states = silently(state, this.adds);
    for (const { step, i } of left) {
      if (step.start > firstEnd) break;
      for (const from of states) {
        for (const to of step.apply(from)) if (this.canEnd(done | (1n << BigInt(i)), to)) return true;
      }
    }
    return false;
  }

  stuckAt(): string {
    const { left, state } = this.best;
    return `(${state}) ${left
      .slice(0, SHOWN)
      .map(({ text }) => text)
      .join('; ')}`;
  }

  private remember(left: readonly Step[], state: State): void {
    const count = this.steps.length - left.length;
    if (count > this.best.count) this.best = { count, left, state };
  }
}
