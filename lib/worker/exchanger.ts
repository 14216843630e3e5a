import { AsyncResource } from 'node:async_hooks';
import { randomBytes } from 'node:crypto';
import type {
  ClaimAnswer,
  ClaimedJob,
  ExchangeAnswer,
  ExchangeCall,
  IdleClaimer,
  QueueEngine,
  RungClaim,
} from '../engine/engine.js';
import { isPassing, repeatDelay } from '../engine/waiting.js';
import type { SettledRun } from '../job/outcome.js';

/** What tells of a claim. */
export type Answered = Extract<ExchangeAnswer, { kind: 'exchanged' }> | ClaimAnswer;

/** What a pool tells its exchanger, and is told by it. */
export interface ExchangeSide {
  readonly queue: string;
  readonly leaseMs: number;
  /** How many jobs may be claimed now. */
  want(): number;
  /** Whether a suspect may be among them. */
  maySuspect(): boolean;
  /** Whether this worker holds anything, settled or not. */
  holdsAny(): boolean;
  /** An exchange goes out that claims so many: it rings for whatever it finds and does not take. */
  asking(want: number): void;
  /** An exchange was asked for, but there is nothing to settle and no slot any more. */
  nothingToAsk(): void;
  /** Takes what was claimed; nothing of it starts before `startClaimed`. */
  exchanged(answer: Answered, asked: number): void;
  /** Starts what was taken. */
  startClaimed(): void;
  /** This worker has a new name. */
  renamed(): void;
  /** The lease is gone, and with it every job this worker held. */
  leaseLost(settled: readonly SettledRun[]): void;
  /** The store is away or refuses; the exchange is made again. Said with the first failure, and every ten seconds. */
  trouble(error: Error): void;
}

/** A worker that has not spoken for this long may have been forgotten; it begins anew before it asks for work. */
const FRESH_MS = 300_000;
const COMPLAIN_MS = 10_000;
/** What one script may have to settle, so that it never takes long: so many that completed, or half as many with other ends. */
const MAX_COST = 500;

const HOST = randomBytes(6).toString('base64url');
let workers = 0;

/**
 * The one line to the store for one queue: settlements of one tick travel together with the next claim; one exchange is on
 * its way at a time; a lost one is made again with the same number, so that nothing is settled or given out twice. With nothing
 * to say, the next one may be left at the bell: it is on its way until the bell rings.
 */
export class Exchanger implements IdleClaimer {
  worker = newIdentity();
  /** The number of the last exchange that was answered. */
  seq = 0;
  private settled: SettledRun[] = [];
  private scheduled = false;
  private inFlight = false;
  /** The one on its way, while it waits at the bell. */
  private atBell: ExchangeCall | null = null;
  private again = false;
  /** Whatever the reason, such as a queue that is paused, it is likely to last: until something is claimed again no add is tried. */
  private refused = false;
  private answeredAt = 0;
  private complainedAt = 0;
  private stopped = false;
  private timer: NodeJS.Timeout | undefined;
  private quiet: (() => void)[] = [];
  /** Where handlers start. Claimed in the add of a request, a job would else run with what that keeps by AsyncLocalStorage. */
  private readonly scope = new AsyncResource('GodwitWorker');

  constructor(
    private readonly engine: QueueEngine,
    private readonly side: ExchangeSide,
  ) {}

  get busy(): boolean {
    return this.inFlight;
  }

  /** Whether an exchange is on its way, or about to be. */
  get active(): boolean {
    return this.inFlight || this.scheduled;
  }

  /** Whether there is nothing to say but that it wants work. The first exchange of a worker is never a repetition, so it waits nowhere. */
  get isIdle(): boolean {
    if (this.stopped || this.active || this.seq === 0 || this.settled.length > 0 || this.isStale())
      return false;
    return !this.side.holdsAny() && this.side.maySuspect() && this.side.want() > 0;
  }

  /** Until the store has confirmed it, only this is kept of a run: not the data of its job. */
  settle({ id, name, attempt, durationUs, outcome }: SettledRun): void {
    this.settled.push({ id, name, attempt, durationUs, outcome });
    this.kick();
  }

  /** Ids that have an outcome the store has not confirmed. */
  unconfirmed(): number {
    return this.settled.length + (this.inFlight ? this.onItsWay.length : 0);
  }

  /** The ids of those. */
  unconfirmedIds(): string[] {
    return [...this.settled, ...this.onItsWay].map(({ id }) => id);
  }

  /** An exchange soon: with whatever else ends in this tick. */
  kick(): void {
    if (this.atBell) return this.recall();
    if (this.inFlight) {
      this.again = true;
      return;
    }
    if (this.scheduled || this.stopped) return;
    this.scheduled = true;
    setImmediate(() => {
      this.scheduled = false;
      this.exchange();
    });
  }

  /** An exchange now, where none is on its way: something waits, and nothing else ends in this tick that could join it. */
  hurry(): void {
    if (this.inFlight) this.kick();
    else this.exchange();
  }

  /**
   * Leaves the next exchange at the bell. Resolves when it was answered, or when the bell has rung for one that was recalled:
   * then `true`, the bell is still to be answered. Null where it cannot be left.
   */
  leaveAtBell(leave: (call: ExchangeCall) => Promise<RungClaim> | null): Promise<boolean> | null {
    const { side } = this;
    if (!this.isIdle) return null;
    const want = side.want();
    const call = this.callFor(want, []);
    const left = leave(call);
    if (!left) return null;
    side.asking(want);
    this.inFlight = true;
    this.atBell = call;
    return left.then(
      ({ rung, isOfTime, answer }) => {
        if (this.atBell !== call) return rung;
        if (!answer) {
          this.recall();
          return false;
        }
        this.atBell = null;
        // A bell for nothing told of a time too, or of a job that others were given: what is to come is asked for.
        if (isOfTime || (rung && answer.claimed.length === 0)) this.again = true;
        this.answered(call, answer);
        return false;
      },
      (error: unknown) => {
        if (this.atBell === call) this.recall();
        throw error;
      },
    );
  }

  /**
   * The next exchange is made together with an add of this process: the one that waits at the bell, which with its number being
   * used does nothing there any more, or a new one. Null while it has more to say, or where the last such was refused.
   */
  begin(): ExchangeCall | null {
    const { side } = this;
    const call = this.atBell ?? (this.isIdle ? this.callFor(side.want(), []) : null);
    if (!call || this.stopped || this.refused) return null;
    this.atBell = null;
    this.inFlight = true;
    side.asking(call.want);
    return call;
  }

  end(call: ExchangeCall, answer: ClaimAnswer | null): void {
    if (answer) return this.answered(call, answer);
    this.refused = true;
    if (!this.stopped) this.send({ ...call, want: Math.max(0, this.side.want()) }, 1);
  }

  /**
   * An exchange that waits at the bell is made now, on the other connection. It has the same number: when the bell rings, it is a
   * repetition there, and changes nothing.
   */
  recall(): void {
    const call = this.atBell;
    if (!call || this.stopped) return;
    this.atBell = null;
    this.send({ ...call, want: Math.max(0, this.side.want()) }, 1);
  }

  /** Resolves when everything settled so far is confirmed, or the exchanger is stopped. */
  idle(): Promise<void> {
    if (this.isQuiet()) return Promise.resolve();
    return new Promise((resolve) => this.quiet.push(resolve));
  }

  /** Makes no exchange any more; what is not confirmed is left to the lease. */
  stop(): void {
    this.stopped = true;
    if (this.timer) clearTimeout(this.timer);
    this.tellQuiet();
  }

  /**
   * The lease is known to be gone: a new name, so that nothing said under the old one is taken for this one. Answers what
   * was settled and not said yet: it must not be said under the new name, which may hold the same jobs by then.
   */
  renew(): readonly SettledRun[] {
    const unsaid = this.settled;
    this.settled = [];
    this.worker = newIdentity();
    this.seq = 0;
    this.side.renamed();
    return unsaid;
  }

  private onItsWay: readonly SettledRun[] = [];

  private exchange(): void {
    if (this.stopped || this.inFlight) return;
    const want = Math.max(0, this.side.want());
    if (want === 0 && this.settled.length === 0) {
      this.side.nothingToAsk();
      return this.tellQuiet();
    }
    this.side.asking(want);
    if (!this.side.holdsAny() && this.isStale()) this.renew();
    const count = countWithin(MAX_COST, this.settled);
    this.onItsWay = count < this.settled.length ? this.settled.splice(0, count) : this.settled;
    if (this.onItsWay === this.settled) this.settled = [];
    this.inFlight = true;
    this.send(this.callFor(want, this.onItsWay), 1);
  }

  private callFor(want: number, settled: readonly SettledRun[]): ExchangeCall {
    return {
      worker: this.worker,
      seq: this.seq + 1,
      leaseMs: this.side.leaseMs,
      want,
      maySuspect: this.side.maySuspect(),
      settled,
    };
  }

  private isStale(): boolean {
    return performance.now() - this.answeredAt > FRESH_MS;
  }

  private send(call: ExchangeCall, tries: number): void {
    this.engine.exchange(this.side.queue, call).then(
      (answer) => this.answered(call, answer),
      (error: Error) => {
        if (this.stopped) return;
        this.complain(error);
        const wait = isPassing(error) ? repeatDelay(error, tries) : 1000;
        this.timer = setTimeout(() => this.send(call, tries + 1), wait);
      },
    );
  }

  private answered(call: ExchangeCall, answer: ExchangeAnswer | ClaimAnswer): void {
    this.scope.runInAsyncScope(() => this.hear(call, answer));
  }

  private hear(call: ExchangeCall, answer: ExchangeAnswer | ClaimAnswer): void {
    if (this.stopped) return;
    this.onItsWay = [];
    this.complainedAt = 0;
    this.answeredAt = performance.now();
    if (answer.kind === 'exchanged' || answer.kind === 'claimed') {
      // A beat may have learnt meanwhile that the lease is gone; what an old name was given is not ours.
      if (call.worker === this.worker) {
        this.seq = call.seq;
        if (answer.claimed.length > 0) this.refused = false;
        this.side.exchanged(answer, call.want);
      }
    } else {
      this.side.leaseLost([...call.settled, ...this.renew()]);
    }
    this.inFlight = false;
    const wanted = this.again || this.settled.length > 0;
    this.again = false;
    // Before anything starts: the store works on the next batch while handlers run through this one.
    if (wanted) this.exchange();
    this.side.startClaimed();
    this.tellQuiet();
  }

  private complain(error: Error): void {
    const now = performance.now();
    if (this.complainedAt > 0 && now - this.complainedAt < COMPLAIN_MS) return;
    this.complainedAt = now;
    this.side.trouble(error);
  }

  private isQuiet(): boolean {
    return this.stopped || (!this.inFlight && this.settled.length === 0);
  }

  private tellQuiet(): void {
    if (!this.isQuiet()) return;
    const waiting = this.quiet;
    this.quiet = [];
    for (const resolve of waiting) resolve();
  }
}

/** How many of these runs, from the first, cost no more than so much. */
function countWithin(most: number, runs: readonly SettledRun[]): number {
  if (runs.length <= most / 2) return runs.length;
  let cost = 0;
  const beyond = runs.findIndex(({ outcome }) => {
    cost += outcome.kind === 'completed' && !outcome.keep ? 1 : 2;
    return cost > most;
  });
  return beyond < 0 ? runs.length : beyond;
}

function newIdentity(): string {
  workers += 1;
  return `${HOST}.${workers.toString(36)}`;
}

export type { ClaimedJob };
