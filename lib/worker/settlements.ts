import type { ExchangeCall } from '../contract/engine.js';
import type { Outcome, SettledRun } from '../job/outcome.js';
import type { JobListeners } from './job-listeners.js';

/**
 * Most settlements of one exchange, so that its script does not take long. Every outcome except plain completion counts double.
 */
const MAX_COST = 500;
/**
 * Most characters of results in one exchange, so that each is confirmed soon on a slow connection. A single result may be longer.
 */
const MAX_RESULTS = 256 * 1024;

/** Outcomes that were not sent yet, in the order in which the runs ended. */
export class Settlements {
  private runs: SettledRun[] = [];
  /** Characters of all results. */
  private chars = 0;

  get size(): number {
    return this.runs.length;
  }

  all(): readonly SettledRun[] {
    return this.runs;
  }

  /** Keeps only these fields of a run until the store has confirmed its outcome. The data of the job is not kept. */
  add({ id, name, attempt, durationUs, stalls }: Omit<SettledRun, 'outcome'>, outcome: Outcome): void {
    this.runs.push({ id, name, attempt, durationUs, outcome, stalls });
    this.chars += charsOf(outcome);
  }

  /** Removes as many outcomes as one exchange may carry, and returns them. */
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

/** How many of these runs, counted from the first, one exchange may settle. */
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
  if (outcome.kind !== 'completed') return 0;
  return (outcome.keep?.result?.length ?? 0) + (outcome.eventResult?.result?.length ?? 0);
}

/** One of the two sequences of exchanges of a worker. Each has its own numbers and one call in flight. */
export class Track {
  /** The number of the last answered call. */
  seq = 0;
  /** The call in flight. */
  call: ExchangeCall | null = null;
  sentAt = 0;
  private isRepeated = false;
  private timer: NodeJS.Timeout | undefined;

  constructor(readonly pipelined: boolean) {}

  /** Whether the call in flight was sent before. */
  get isRepeating(): boolean {
    return this.call !== null && this.isRepeated;
  }

  sent(call: ExchangeCall): void {
    this.call = call;
    this.sentAt = performance.now();
    this.isRepeated = false;
  }

  again(afterMs: number, send: () => void): void {
    this.isRepeated = true;
    this.timer = setTimeout(send, afterMs);
  }

  stop(): void {
    clearTimeout(this.timer);
  }
}

type Confirmed = Pick<JobListeners, 'confirmed' | 'dropped'>;

/**
 * Frees the keys of `unique` and `debounce` whose jobs have ended, once the store has confirmed the outcome. Only the store knows
 * which jobs have ended: it ends a cancelled job after any outcome. If the process dies before that, upkeep frees them.
 */
export class EndedKeys implements Confirmed {
  /** The digests of runs whose outcome is not confirmed, by job id. */
  private readonly digests = new Map<string, string>();
  private readonly calls = new Set<Promise<void>>();

  constructor(
    private readonly listeners: Confirmed | undefined,
    /** Never rejects. */
    private readonly free: (digests: readonly string[]) => Promise<void>,
  ) {}

  ended(id: string, digest: string | undefined, outcome: Outcome | undefined): void {
    if (digest !== undefined && outcome) this.digests.set(id, digest);
  }

  confirmed(settled: readonly { readonly id: string }[], refused: readonly string[]): void {
    this.listeners?.confirmed(settled, refused);
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

  /** Resolves when no call is in flight. */
  async idle(): Promise<void> {
    await Promise.all(this.calls);
  }
}
