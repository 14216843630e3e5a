import { AsyncResource } from 'node:async_hooks';
import { randomBytes } from 'node:crypto';
import type {
  ClaimAnswer,
  ClaimedJob,
  ExchangeAnswer,
  ExchangeCall,
  QueueEngine,
  RungClaim,
} from '../contract/engine.js';
import { isPassing, repeatDelay } from '../contract/retry.js';
import type { SettledRun } from '../job/outcome.js';

/** What tells of a claim. */
export type Answered = Extract<ExchangeAnswer, { kind: 'exchanged' }> | ClaimAnswer;

/** What a pool tells its exchanger, and is told by it. */
export interface ExchangeSide {
  readonly queue: string;
  readonly leaseMs: number;
  /** How many jobs may be claimed now, beside so many that are asked for already. */
  want(asked: number): number;
  /** Whether so many are worth an exchange beside the one that is on its way. */
  isWorthBeside(want: number): boolean;
  /** Bytes of bodies that one claim may bring. */
  readonly maxBytes: number;
  /** Whether claims take so long that what is settled must not wait for the answer to one. */
  readonly isNarrow: boolean;
  /** Whether a suspect may be among them. */
  maySuspect(): boolean;
  /** Whether this worker holds anything, settled or not. */
  holdsAny(): boolean;
  /** An exchange goes out that claims so many: it rings for whatever it finds and does not take, but for suspects only if it may. */
  asking(want: number, maySuspect: boolean): void;
  /** An exchange was asked for, but there is nothing to settle and no slot any more. */
  nothingToAsk(): void;
  /**
   * Takes what was claimed, `tookMs` after it was asked for; nothing of it starts before `startClaimed`.
   *
   * @param isRepeated the exchange was made before, and its answer did not arrive.
   */
  exchanged(answer: Answered, asked: number, tookMs: number, isRepeated: boolean): void;
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
/** Before the next exchange where an answer could not be taken. */
const UNEXPECTED_MS = 1000;
/** What one script may have to settle, so that it never takes long: so many that completed, or half as many with other ends. */
const MAX_COST = 500;
/** Characters of the results in one exchange, so that each of them is confirmed soon on a slow line too; one result of any size. */
const MAX_RESULTS = 256 * 1024;

const HOST = randomBytes(6).toString('base64url');
let workers = 0;

/**
 * The one line to the store for one queue: settlements of one tick travel together with the next claim; a lost exchange is made
 * again with the same number, so that nothing is settled or given out twice. One is on its way at a time, or two where each claims
 * so much that the store would wait for the worker, or both for the network. With nothing to say, the next one may be left at the
 * bell: it is on its way until the bell rings.
 */
export class Exchanger {
  worker = newIdentity();
  private readonly first = new Track(false);
  private readonly second = new Track(true);
  private settled: SettledRun[] = [];
  /** Of the results among them. */
  private resultChars = 0;
  private scheduled = false;
  /** The one on its way, while it waits at the bell. */
  private atBell: ExchangeCall | null = null;
  private again = false;
  /** The next exchange is made whatever there is to say. */
  private mustAsk = false;
  /** An answer is being taken, behind which the next exchange goes out at once. */
  private hearing = false;
  private answeredAt = 0;
  private complainedAt = 0;
  private stopped = false;
  private quiet: (() => void)[] = [];
  /** The async context of handlers: never that of the request that resumed this worker, nor that of the handler that ended before. */
  private readonly scope = new AsyncResource('GodwitWorker');

  constructor(
    private readonly engine: QueueEngine,
    private readonly side: ExchangeSide,
  ) {}

  /** Whether an exchange is on its way. */
  get busy(): boolean {
    return this.first.call !== null || this.second.call !== null;
  }

  /** Whether one on its way was tried before: what the store holds for this worker is not what was heard then. */
  get isRepeating(): boolean {
    return this.first.isRepeating || this.second.isRepeating;
  }

  /** How many exchanges were answered. */
  get answers(): number {
    return this.first.seq + this.second.seq;
  }

  /** Whether an exchange is on its way, or about to be. */
  get active(): boolean {
    return this.busy || this.scheduled;
  }

  /** Whether there is nothing to say but that it wants work. The first exchange of a worker is never a repetition, so it waits nowhere. */
  get isIdle(): boolean {
    if (this.stopped || this.active || this.first.seq === 0 || this.settled.length > 0 || this.isStale())
      return false;
    return !this.side.holdsAny() && this.side.maySuspect() && this.side.want(0) > 0;
  }

  /** Until the store has confirmed it, only this is kept of a run: not the data of its job. */
  settle({ id, name, attempt, durationUs, outcome }: SettledRun): void {
    this.settled.push({ id, name, attempt, durationUs, outcome });
    this.resultChars += charsOf(outcome);
    this.kick();
  }

  /** Ids that have an outcome the store has not confirmed. */
  unconfirmed(): number {
    return this.settled.length + this.onItsWay(this.first).length + this.onItsWay(this.second).length;
  }

  /** The ids of those. */
  unconfirmedIds(): string[] {
    return [...this.settled, ...this.onItsWay(this.first), ...this.onItsWay(this.second)].map(({ id }) => id);
  }

  /** An exchange soon: with whatever else ends in this tick. */
  kick(): void {
    if (this.atBell) return this.recall();
    // Behind the next answer, where it is not worth one beside what is on its way.
    if (this.busy || this.hearing) this.again = true;
    if (this.scheduled || this.stopped || this.hearing || !this.freeTrack()) return;
    this.scheduled = true;
    setImmediate(() => {
      this.scheduled = false;
      this.exchange();
    });
  }

  /** An exchange soon, even where there is nothing to settle and nothing to claim: for what its answer tells. */
  ask(): void {
    this.mustAsk = true;
    this.kick();
  }

  /** An exchange now, where none is on its way: something waits, and nothing else ends in this tick that could join it. */
  hurry(): void {
    if (this.busy) this.kick();
    else this.exchange();
  }

  /**
   * Leaves the next exchange at the bell. Resolves when it was answered, or when the bell has rung for one that was recalled:
   * then the bell (`rung`) is still to be answered. Null where it cannot be left.
   */
  leaveAtBell(
    leave: (call: ExchangeCall) => Promise<RungClaim> | null,
  ): Promise<Pick<RungClaim, 'rung' | 'refusal'>> | null {
    if (!this.isIdle) return null;
    const call = this.callFor(this.first, this.side.want(0), []);
    const left = leave(call);
    if (!left) return null;
    this.asks(this.first, call);
    this.atBell = call;
    return left.then(
      ({ rung, refusal, isOfTime, answer }) => {
        if (this.atBell !== call) return { rung, refusal };
        if (!answer) {
          this.recall();
          return { rung: false, refusal };
        }
        this.atBell = null;
        // A bell for nothing told of a time too, or of a job that others were given: what is to come is asked for.
        if (isOfTime || (rung && answer.claimed.length === 0)) this.again = true;
        this.answered(this.first, call, answer);
        return { rung: false, refusal };
      },
      (error: unknown) => {
        if (this.atBell === call) this.recall();
        throw error;
      },
    );
  }

  /**
   * An exchange that waits at the bell is made now, on the other connection, with as many jobs as are wanted now. It has the same
   * number: when the bell rings, it is a repetition there, and changes nothing.
   */
  recall(): void {
    const call = this.atBell;
    if (!call || this.stopped) return;
    this.atBell = null;
    const anew = { ...call, want: Math.max(0, this.side.want(0)) };
    this.first.call = anew;
    this.send(this.first, anew, 1);
  }

  /** Resolves when everything settled so far is confirmed, or the exchanger is stopped. */
  idle(): Promise<void> {
    if (this.isQuiet()) return Promise.resolve();
    return new Promise((resolve) => this.quiet.push(resolve));
  }

  /** Makes no exchange any more; what is not confirmed is left to the lease. */
  stop(): void {
    this.stopped = true;
    this.first.stop();
    this.second.stop();
    this.tellQuiet();
  }

  /**
   * The lease is known to be gone: a new name, so that nothing said under the old one is taken for this one. Answers what
   * was settled and not said yet: it must not be said under the new name, which may hold the same jobs by then.
   */
  private renew(): readonly SettledRun[] {
    const unsaid = this.settled;
    this.settled = [];
    this.resultChars = 0;
    this.worker = newIdentity();
    this.first.seq = 0;
    this.second.seq = 0;
    this.side.renamed();
    return unsaid;
  }

  /** What was settled under the name of now, and is on its way. */
  private onItsWay({ call }: Track): readonly SettledRun[] {
    return call?.worker === this.worker ? call.settled : [];
  }

  /** Where one more exchange could go. A second one is not known before the store knows the worker. */
  private freeTrack(): Track | null {
    if (!this.first.call) return this.first;
    return this.second.call || this.first.seq === 0 ? null : this.second;
  }

  private exchange(): void {
    const { side } = this;
    const track = this.freeTrack();
    if (this.stopped || !track) return;
    const isBeside = this.busy;
    let want = this.wanted();
    if (isBeside && side.isNarrow) {
      this.again ||= want > 0;
      want = 0;
      if (this.settled.length === 0) return;
    } else if (isBeside && !side.isWorthBeside(want)) return;
    if (want === 0 && this.settled.length === 0 && !this.mustAsk) {
      side.nothingToAsk();
      return this.tellQuiet();
    }
    if (!isBeside && !side.holdsAny() && this.isStale()) this.renew();
    this.mustAsk = false;
    const call = this.callFor(track, want, this.takeSettled());
    this.asks(track, call);
    this.send(track, call, 1);
    if (!isBeside) this.exchange();
  }

  private takeSettled(): SettledRun[] {
    const all = this.settled;
    const count = this.resultChars > MAX_RESULTS || all.length > MAX_COST / 2 ? countWithin(all) : all.length;
    this.settled = count < all.length ? all.splice(count) : [];
    this.resultChars = 0;
    for (const { outcome } of this.settled) this.resultChars += charsOf(outcome);
    return all;
  }

  private wanted(): number {
    const asked = (this.first.call?.want ?? 0) + (this.second.call?.want ?? 0);
    return Math.max(0, this.side.want(asked));
  }

  private callFor(track: Track, want: number, settled: readonly SettledRun[]): ExchangeCall {
    const beside = track.isBeside;
    return {
      worker: this.worker,
      seq: track.seq + 1,
      beside,
      leaseMs: this.side.leaseMs,
      want,
      maxBytes: this.side.maxBytes,
      // One at a time for a worker, so only one of two on their way may bring it.
      maySuspect: !beside && this.side.maySuspect(),
      settled,
    };
  }

  private asks(track: Track, call: ExchangeCall): void {
    track.sends(call);
    this.side.asking(call.want, call.maySuspect);
  }

  private isStale(): boolean {
    return performance.now() - this.answeredAt > FRESH_MS;
  }

  private send(track: Track, call: ExchangeCall, tries: number): void {
    this.engine.exchange(this.side.queue, call).then(
      (answer) => this.answered(track, call, answer),
      (error: Error) => {
        if (this.stopped) return;
        this.complain(error);
        const wait = isPassing(error) ? repeatDelay(error, tries) : 1000;
        track.again(wait, () => this.send(track, call, tries + 1));
      },
    );
  }

  private answered(track: Track, call: ExchangeCall, answer: ExchangeAnswer | ClaimAnswer): void {
    try {
      this.scope.runInAsyncScope(() => this.hear(track, call, answer));
    } catch (error) {
      // Whatever it was, the worker goes on: what it does not know of what it holds is found by comparing.
      this.hearing = false;
      this.side.trouble(error as Error);
      setTimeout(() => this.kick(), UNEXPECTED_MS);
    }
  }

  private hear(track: Track, call: ExchangeCall, answer: ExchangeAnswer | ClaimAnswer): void {
    if (this.stopped) return;
    const { isRepeating } = track;
    track.call = null;
    this.complainedAt = 0;
    this.answeredAt = performance.now();
    // A beat or the other exchange may have learnt meanwhile that the lease is gone; what an old name was given is not ours.
    this.hearing = true;
    if (call.worker === this.worker) this.hearOwn(track, call, answer, isRepeating);
    this.hearing = false;
    const wanted = this.again || this.settled.length > 0;
    this.again = false;
    // Before anything starts: the store works on the next batch while handlers run through this one.
    if (wanted) this.exchange();
    this.side.startClaimed();
    this.tellQuiet();
  }

  private hearOwn(
    track: Track,
    call: ExchangeCall,
    answer: ExchangeAnswer | ClaimAnswer,
    isRepeated: boolean,
  ): void {
    if (answer.kind === 'exchanged' || answer.kind === 'claimed') {
      track.seq = call.seq;
      this.side.exchanged(answer, call.want, this.answeredAt - track.sentAt, isRepeated);
    } else {
      const other = this.onItsWay(track === this.first ? this.second : this.first);
      this.side.leaseLost([...call.settled, ...other, ...this.renew()]);
    }
  }

  private complain(error: Error): void {
    const now = performance.now();
    if (this.complainedAt > 0 && now - this.complainedAt < COMPLAIN_MS) return;
    this.complainedAt = now;
    this.side.trouble(error);
  }

  private isQuiet(): boolean {
    return this.stopped || (!this.busy && this.settled.length === 0);
  }

  private tellQuiet(): void {
    if (!this.isQuiet()) return;
    const waiting = this.quiet;
    this.quiet = [];
    for (const resolve of waiting) resolve();
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

function charsOf(outcome: SettledRun['outcome']): number {
  return outcome.kind === 'completed' ? (outcome.keep?.result?.length ?? 0) : 0;
}

function newIdentity(): string {
  workers += 1;
  return `${HOST}.${workers.toString(36)}`;
}

export type { ClaimedJob };

/** One of the two ways of a worker to the store: one exchange at a time, with numbers of their own. */
export class Track {
  /** The number of the last one that was answered. */
  seq = 0;
  /** The one on its way. */
  call: ExchangeCall | null = null;
  sentAt = 0;
  private isRepeated = false;
  private timer: NodeJS.Timeout | undefined;

  constructor(readonly isBeside: boolean) {}

  /** Whether one is on its way that was tried before: what it was given then is not known here yet. */
  get isRepeating(): boolean {
    return this.call !== null && this.isRepeated;
  }

  /** From now on this one is on its way. */
  sends(call: ExchangeCall): void {
    this.call = call;
    this.sentAt = performance.now();
    this.isRepeated = false;
  }

  /** It is made again after a while, with the same number. */
  again(afterMs: number, send: () => void): void {
    this.isRepeated = true;
    this.timer = setTimeout(send, afterMs);
  }

  stop(): void {
    clearTimeout(this.timer);
  }
}
