// The global `performance` may be that of fake timers.
import { performance as hooks } from 'node:perf_hooks';
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
  /** Jobs that go back, in the order in which they start again: those that have run come first. */
  private returned: SettledRun[] = [];
  /** Characters of all results. */
  private chars = 0;

  get size(): number {
    return this.runs.length + this.returned.length;
  }

  /** Whether there are jobs that go back. No job may be claimed before that: it would overtake them. */
  get isReturning(): boolean {
    return this.returned.length > 0;
  }

  all(): readonly SettledRun[] {
    return [...this.runs, ...this.returned];
  }

  /** Keeps only these fields of a run until the store has confirmed its outcome. The data of the job is not kept. */
  add({ id, name, attempt, durationUs, stalls }: Omit<SettledRun, 'outcome'>, outcome: Outcome): void {
    const run = { id, name, attempt, durationUs, outcome, stalls };
    if (outcome.kind === 'released') return this.return(run);
    this.runs.push(run);
    this.chars += charsOf(outcome);
  }

  private return(run: SettledRun): void {
    const at = isStarted(run.outcome) ? this.returned.findIndex(({ outcome }) => !isStarted(outcome)) : -1;
    this.returned.splice(at < 0 ? this.returned.length : at, 0, run);
  }

  /** Removes as many outcomes as one exchange may carry, and returns them. */
  take(): readonly SettledRun[] {
    const { runs } = this;
    const isMany = this.chars > MAX_RESULTS || runs.length > MAX_COST / 2;
    const count = isMany ? countWithin(runs) : runs.length;
    this.runs = count < runs.length ? runs.splice(count) : [];
    this.chars = 0;
    for (const { outcome } of this.runs) this.chars += charsOf(outcome);
    return this.returned.length > 0 ? runs.concat(this.takeReturned(runs)) : runs;
  }

  /** The last ones first: each exchange puts its jobs before all waiting ones. */
  private takeReturned(others: readonly SettledRun[]): readonly SettledRun[] {
    const cost = others.reduce((sum, { outcome }) => sum + costOf(outcome), 0);
    return this.returned.splice(Math.max(0, this.returned.length - Math.floor((MAX_COST - cost) / 2)));
  }

  clear(): readonly SettledRun[] {
    const all = this.all();
    this.runs = [];
    this.returned = [];
    this.chars = 0;
    return all;
  }
}

/** How many of these runs, counted from the first, one exchange may settle. */
function countWithin(runs: readonly SettledRun[]): number {
  let cost = 0;
  let chars = 0;
  const beyond = runs.findIndex(({ outcome }, i) => {
    cost += costOf(outcome);
    chars += charsOf(outcome);
    return cost > MAX_COST || (chars > MAX_RESULTS && i > 0);
  });
  return beyond < 0 ? runs.length : beyond;
}

function isStarted(outcome: Outcome): boolean {
  return outcome.kind === 'released' && outcome.started === true;
}

function costOf(outcome: Outcome): number {
  return outcome.kind === 'completed' && !outcome.keep ? 1 : 2;
}

function charsOf(outcome: Outcome): number {
  if (outcome.kind !== 'completed') return 0;
  return (outcome.keep?.result?.length ?? 0) + (outcome.eventResult?.result?.length ?? 0);
}

/** How long a call took, and how much of that time the event loop was active. The answer may have been unread for that long. */
export interface Took {
  readonly tookMs: number;
  readonly busyMs: number;
}

/** One of the two sequences of exchanges of a worker. Each has its own numbers and one call in flight. */
export class Track {
  /** The number of the last answered call. */
  seq = 0;
  /** The call in flight. */
  call: ExchangeCall | null = null;
  sentAt = 0;
  /** How long the event loop had been active when the call was sent. */
  private activeAtSend = 0;
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
    this.activeAtSend = hooks.eventLoopUtilization().active;
    this.isRepeated = false;
  }

  /** `at`: when the answer was read. */
  took(at: number): Took {
    return { tookMs: at - this.sentAt, busyMs: hooks.eventLoopUtilization().active - this.activeAtSend };
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
  /** The same of jobs that go back without a run. The store ends those that were cancelled. */
  private readonly returned = new Map<string, string>();
  private readonly calls = new Set<Promise<void>>();

  constructor(
    private readonly listeners: Confirmed | undefined,
    /** Never rejects. */
    private readonly free: (digests: readonly string[]) => Promise<void>,
  ) {}

  ended(id: string, digest: string | undefined, outcome: Outcome | undefined): void {
    if (digest !== undefined && outcome) this.digests.set(id, digest);
  }

  goesBack(id: string, digest: string | undefined): void {
    if (digest !== undefined) this.returned.set(id, digest);
  }

  confirmed(settled: readonly { readonly id: string }[], refused: readonly string[]): void {
    this.listeners?.confirmed(settled, refused);
    if (this.digests.size + this.returned.size === 0) return;
    const ids = settled.map(({ id }) => id);
    const digests = [
      ...ids.map((id) => this.digests.get(id)),
      ...refused.map((id) => this.returned.get(id)),
    ].filter((digest) => digest !== undefined);
    for (const id of ids) {
      this.digests.delete(id);
      this.returned.delete(id);
    }
    if (digests.length === 0) return;
    const call = this.free(digests).finally(() => this.calls.delete(call));
    this.calls.add(call);
  }

  dropped(): void {
    this.listeners?.dropped();
    this.digests.clear();
    this.returned.clear();
  }

  /** Resolves when no call is in flight. */
  async idle(): Promise<void> {
    await Promise.all(this.calls);
  }
}
