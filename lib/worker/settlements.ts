import type { Outcome, SettledRun } from '../job/outcome.js';
import type { JobListeners } from './job-listeners.js';

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

type Confirmed = Pick<JobListeners, 'confirmed' | 'dropped'>;

/**
 * Frees the keys of `unique` and `debounce` whose jobs have ended, once the store has confirmed the end. Where this process dies before, upkeep
 * frees them.
 */
export class EndedKeys implements Confirmed {
  /** Of runs whose end is not confirmed, by the id of the job. */
  private readonly digests = new Map<string, string>();
  private readonly calls = new Set<Promise<void>>();

  constructor(
    private readonly listeners: Confirmed | undefined,
    /** Never rejects. */
    private readonly free: (digests: readonly string[]) => Promise<void>,
  ) {}

  ended(id: string, digest: string | undefined, outcome: Outcome | undefined): void {
    if (digest !== undefined && outcome && outcome.kind !== 'retried') this.digests.set(id, digest);
  }

  confirmed(settled: readonly { readonly id: string }[], lost: readonly string[]): void {
    this.listeners?.confirmed(settled, lost);
    if (this.digests.size === 0) return;
    const digests = settled.map(({ id }) => this.digests.get(id)).filter((digest) => digest !== undefined);
    for (const { id } of settled) this.digests.delete(id);
    if (digests.length === 0) return;
    const call = this.free(digests).finally(() => this.calls.delete(call));
    this.calls.add(call);
  }

  dropped(): void {
    this.listeners?.dropped();
    this.digests.clear();
  }

  /** Resolves when no call is under way. */
  async idle(): Promise<void> {
    await Promise.all(this.calls);
  }
}
