import { randomBytes } from 'node:crypto';
import type {
  ClaimAnswer,
  ClaimedJob,
  ExchangeAnswer,
  ExchangeCall,
  QueueLook,
  RungClaim,
  Supply,
} from '../contract/engine.js';
import { outside } from '../contract/outside.js';
import { Log } from '../contract/log.js';
import { Trouble } from '../contract/trouble.js';
import { nextTryDelay } from '../contract/retry.js';
import { messageOf, stackOf } from '../errors/thrown.js';
import { decodeBody, NO_OPTIONS } from '../job/job-record.js';
import type { Outcome, SettledRun } from '../job/outcome.js';
import { counted } from '../job/text.js';
import type { JobListeners } from './job-listeners.js';
import type { LeaseKeeper } from './lease-keeper.js';
import { Claims, Prefetch, PrefetchTimeout, StartPermit } from './prefetch.js';
import { isSuspect } from './run.js';
import type { EndedRun, Runner } from './runner.js';
import { Settlements, Track, type Took } from './settlements.js';
import { SlotUser, type Slots } from './slots.js';
import { UNSTARTED } from './verdict.js';

/** Redis may have forgotten a worker that made no call for this long. The worker takes a new name before it claims again. */
const FRESH_MS = 300_000;
/** How long to wait after an answer that this process could not process. */
const UNEXPECTED_MS = 1000;
/** A ring that may be for a suspect is passed on at most once in this time: a single worker would wake itself forever. */
const PASS_ON_MS = 250;

const HOST = randomBytes(6).toString('base64url');
let workers = 0;

/** An answer to a claim. */
export type Answered = Extract<ExchangeAnswer, { kind: 'exchanged' }> | ClaimAnswer;

export interface ClaimerParts {
  readonly exchange: (call: ExchangeCall) => Promise<ExchangeAnswer>;
  readonly queue: string;
  readonly leaseMs: number;
  readonly slots: Slots;
  readonly weight?: number | undefined;
  readonly perTurn?: (() => number) | undefined;
  readonly runner: Runner;
  readonly leases: LeaseKeeper;
  /** Called with every answer, after its jobs are taken and before they start. `asked`: how many jobs the call asked for. */
  readonly answered: (answer: Answered, supply: Supply, asked: number, tookMs: number) => void;
  /** Called with the result of a check of the sleeping queue. */
  readonly looked: (look: QueueLook) => void;
  /** Called while the queue is empty. It may sleep at the doorbell if it has a free slot. */
  readonly rests: (hasFreeSlot: boolean) => void;
  /** Whether the queue uses shared limits. */
  readonly isShared?: boolean | undefined;
  readonly listeners?: Pick<JobListeners, 'confirmed' | 'dropped'> | undefined;
  /** Called when this worker cannot use the ring that woke it. Another worker must be woken. */
  readonly passOn: () => void;
}

/**
 * Claims the jobs of one queue for one worker:
 *
 * 1. `want`: decide how many jobs to claim, from the free slots and the prefetch;
 * 2. `exchange`: settle the runs that ended in this tick and claim jobs, in one call. A second call may be in flight if Redis
 *    would otherwise wait for this process. A call without an answer is repeated with its number, so nothing is settled or
 *    claimed twice;
 * 3. `take` the answer: the next exchange is sent before its jobs start, so Redis works while handlers run;
 * 4. `startOne`: pass claimed jobs to the runner, one for each free slot; give back jobs that wait for a slot for too long;
 * 5. `ended`: free the slot and queue the outcome for the next exchange;
 * 6. sleep: when the queue is empty, the next exchange waits at the doorbell (`leaveAtBell`), or the doorbell calls `wake`.
 *
 * The worker holds the runs of the runner, `claims`, and the outcomes that are not confirmed. `known` lists their ids.
 */
export class Claimer extends SlotUser {
  readonly queue: string;
  /** The name of the worker. It changes when the lease has ended. */
  worker = newWorker();
  open = false;
  private readonly prefetch = new Prefetch();
  private readonly claims = new Claims();
  private readonly permit = new StartPermit();
  private readonly prefetchTimeout = new PrefetchTimeout(this.claims, () => {
    if (this.permit.isAsked) return this.prefetchTimeout.watch();
    this.prefetch.forget();
    this.giveBack();
  });
  /** How many claimed or running jobs of this worker are suspects: at most one. */
  private suspects = 0;
  private readonly first = new Track(false);
  private readonly second = new Track(true);
  private readonly settlements = new Settlements();
  private scheduled = false;
  /** The call that waits at the doorbell. */
  private atBell: ExchangeCall | null = null;
  /** Whether a ring woke this worker and no exchange has used it yet. A ring wakes one worker only, so none may be lost. */
  private hasBell = false;
  private passedOnAt = -Infinity;
  /** Exchange again after the next answer. */
  private again = false;
  /** Exchange even if there is nothing to settle and nothing to claim. */
  private mustExchange = false;
  /** Set while an answer is processed. The next exchange is sent right after it. */
  private taking = false;
  private answeredAt = 0;
  private stopped = false;
  private readonly quiet: (() => void)[] = [];
  private readonly logger = new Log('QueueWorker');
  private readonly trouble: Trouble;

  constructor(private readonly parts: ClaimerParts) {
    super(parts.slots, parts.weight);
    this.queue = parts.queue;
    const queue = `queue '${parts.queue}'`;
    const works = `${queue}: claims and settles jobs again`;
    this.trouble = new Trouble(this.logger, `${queue}: cannot claim or settle jobs now`, works);
  }

  /** Starts to claim. */
  begin(): void {
    this.open = true;
    this.openChanged();
    this.exchangeSoon();
  }

  /** Stops to claim, and gives back the jobs that have not started. */
  end(): void {
    this.open = false;
    this.prefetchTimeout.stop();
    this.giveBack();
  }

  /** Sends no more exchanges. Jobs whose runs are not confirmed run again when the lease ends. */
  stop(): void {
    this.stopped = true;
    this.prefetchTimeout.stop();
    this.first.stop();
    this.second.stop();
    this.tellQuiet();
  }

  /** Resolves when Redis has confirmed all outcomes so far, or when the claimer is stopped. */
  idle(): Promise<void> {
    if (this.isQuiet()) return Promise.resolve();
    return new Promise((resolve) => this.quiet.push(resolve));
  }

  // ------------------------------------------------------------------------------------------- what this worker holds

  /** Whether an exchange is in flight. */
  get busy(): boolean {
    return this.first.call !== null || this.second.call !== null;
  }

  /** Whether an exchange in flight was sent before. The worker does not know what the earlier try claimed. */
  get isRepeating(): boolean {
    return this.first.isRepeating || this.second.isRepeating;
  }

  /** How many exchanges were answered. */
  get answers(): number {
    return this.first.seq + this.second.seq;
  }

  get held(): number {
    return this.claims.size;
  }

  get ahead(): number {
    return this.prefetch.jobs;
  }

  /** Whether the next claim may bring a suspect. */
  maySuspect(): boolean {
    return this.suspects === 0;
  }

  /** How many outcomes the store has not confirmed. */
  unconfirmed(): number {
    return this.settlements.size + this.onItsWay(this.first).length + this.onItsWay(this.second).length;
  }

  /** How many of them run, or are about to. */
  running(): number {
    return this.parts.runner.runs.size + this.claims.size;
  }

  /** How many jobs this worker holds. */
  holding(): number {
    return this.parts.runner.runs.size + this.claims.size + this.unconfirmed();
  }

  /** The ids of all jobs that this worker holds. */
  known(): string[] {
    const settled = [...this.settlements.all(), ...this.onItsWay(this.first), ...this.onItsWay(this.second)];
    return [...this.parts.runner.runs, ...this.claims.all(), ...settled].map(({ id }) => id);
  }

  /** Drops these jobs, because other workers run them now. */
  lose(ids: ReadonlySet<string>): void {
    for (const job of this.claims.drop(ids)) if (isSuspect(job)) this.suspects -= 1;
    for (const run of this.parts.runner.runs) if (ids.has(run.id)) this.parts.runner.lose(run);
    this.fill();
  }

  get gathering(): number {
    return this.parts.runner.gathering;
  }

  flush(): void {
    this.parts.runner.flush();
  }

  giveBack(): void {
    this.giveBackClaims();
    this.openChanged();
  }

  /** Gives back the jobs that have not started, or only those with these ids. */
  giveBackClaims(ids?: { has(id: string): boolean }): void {
    // A closed worker gives them back after the calls in flight, which may bring jobs that come after these.
    if (!ids && !this.open && this.busy) return;
    for (const job of ids ? this.claims.drop(ids) : this.claims.clear()) {
      const { name, options } = decodeBody(job.body) ?? { name: '', options: NO_OPTIONS };
      if (isSuspect(job)) this.suspects -= 1;
      this.parts.runner.goesBack(job.id, name, options);
      this.settle({ id: job.id, name, attempt: job.failed + 1, durationUs: 0 }, UNSTARTED);
    }
  }

  /**
   * Drops all jobs: the lease has ended, so this worker no longer holds any.
   *
   * @param unsettled outcomes that were never sent. They must not be sent under the new name, which may hold the same jobs by then.
   */
  private leaseLost(unsettled: readonly SettledRun[]): void {
    const held = this.parts.runner.runs.size + this.claims.size + unsettled.length;
    this.claims.clear();
    this.parts.listeners?.dropped();
    for (const run of this.parts.runner.runs) this.parts.runner.lose(run);
    this.suspects = 0;
    this.claimAnswered(0, 'more');
    if (held > 0) {
      this.logger.warn(
        `queue '${this.queue}': the lease ended while this worker held ${counted(held, 'job')}; other workers run them now`,
      );
    }
    this.exchangeSoon();
  }

  /** Takes a new name, so that a late answer to the old one is ignored. Returns the outcomes that were never sent. */
  private renew(): readonly SettledRun[] {
    const unsent = this.settlements.clear();
    this.worker = newWorker();
    this.first.seq = 0;
    this.second.seq = 0;
    this.parts.leases.renamed(this.queue, this.worker);
    return unsent;
  }

  // -------------------------------------------------------------------------------------------------------- exchanges

  /** Exchanges at the end of this tick, together with every run that ends until then. */
  exchangeSoon(): void {
    if (this.atBell) return this.recall();
    // If a second call is not worth it, this exchange follows the next answer.
    if (this.busy || this.taking) this.again = true;
    if (this.scheduled || this.stopped || this.taking || !this.freeTrack()) return;
    this.scheduled = true;
    setImmediate(() => {
      this.scheduled = false;
      this.exchange();
    });
  }

  /** Exchanges even if there is nothing to settle or to claim, because the answer itself is needed. */
  exchangeAnyway(): void {
    this.mustExchange = true;
    this.exchangeSoon();
  }

  /** How many jobs to claim now, without those that calls in flight may bring. */
  want(asked = 0): number {
    return this.open ? Math.max(0, Math.min(this.prefetch.most, this.room() - asked)) : 0;
  }

  private exchange(): void {
    const track = this.freeTrack();
    if (this.stopped || !track) return;
    if (this.running() === 0) this.prefetch.starves();
    const isSecond = this.busy;
    let want = this.want((this.first.call?.want ?? 0) + (this.second.call?.want ?? 0));
    if (isSecond && this.prefetch.isNarrow) {
      this.again ||= want > 0;
      want = 0;
      if (this.settlements.size === 0) return;
    } else if (isSecond && !this.isWorthSecond(want)) return;
    if (want === 0 && this.settlements.size === 0 && !this.mustExchange) {
      if (!this.getsTurn) this.noSlot();
      return this.tellQuiet();
    }
    if (!isSecond && this.isStale() && this.holding() === 0) this.renew();
    this.mustExchange = false;
    const call = this.callFor(track, want, this.settlements.take());
    this.sending(track, call);
    this.send(track, call, 1);
    if (!isSecond) this.exchange();
  }

  /** Not with shared limits: a worker asks for their places with one call at a time. */
  private isWorthSecond(want: number): boolean {
    return !this.parts.isShared && !this.slots.isShared && this.prefetch.isWorthPipelining(want);
  }

  private callFor(track: Track, want: number, settled: readonly SettledRun[]): ExchangeCall {
    const { pipelined } = track;
    return {
      worker: this.worker,
      seq: track.seq + 1,
      pipelined,
      leaseMs: this.parts.leaseMs,
      want: this.settlements.isReturning ? 0 : want,
      maxBytes: this.prefetch.maxBytes,
      // If two calls are in flight, only one of them may bring a suspect.
      maySuspect: !pipelined && this.maySuspect(),
      perTurn: this.parts.perTurn?.(),
      settled,
    };
  }

  private sending(track: Track, call: ExchangeCall): void {
    track.sent(call);
    this.claimSent(call.want);
    if (this.hasBell) this.useBell(call.maySuspect);
  }

  private send(track: Track, call: ExchangeCall, tries: number): void {
    this.parts.exchange(call).then(
      (answer) => this.answered(track, call, answer),
      (error: Error) => {
        if (this.stopped) return;
        this.claimFailed();
        this.trouble.failed(error);
        track.again(nextTryDelay(error, tries), () => this.send(track, call, tries + 1));
      },
    );
  }

  private answered(track: Track, call: ExchangeCall, answer: ExchangeAnswer | ClaimAnswer): void {
    try {
      // The context of handlers is never that of a request that resumed this worker, nor of the handler that ended before.
      outside(() => this.take(track, call, answer));
    } catch (error) {
      // The worker continues after any error. `HeldJobsReconciler` finds jobs that the worker holds without knowing them.
      this.taking = false;
      this.claimFailed();
      this.logger.error(
        `queue '${this.queue}': an answer could not be processed: ${messageOf(error)}`,
        stackOf(error),
      );
      setTimeout(() => this.exchangeSoon(), UNEXPECTED_MS);
    }
  }

  private take(track: Track, call: ExchangeCall, answer: ExchangeAnswer | ClaimAnswer): void {
    if (this.stopped) return;
    const { isRepeating } = track;
    track.call = null;
    this.trouble.ended();
    this.answeredAt = performance.now();
    this.taking = true;
    // A heartbeat or the other exchange may have found that the lease has ended. Then an answer to the old name does not count.
    if (call.worker === this.worker) {
      if (answer.kind === 'exchanged' || answer.kind === 'claimed') {
        track.seq = call.seq;
        if (answer.kind === 'exchanged')
          this.parts.listeners?.confirmed(call.settled, [...answer.lost, ...(answer.cancelled ?? [])]);
        this.takeJobs(answer, call.want, track.took(this.answeredAt), isRepeating);
      } else {
        const other = this.onItsWay(track === this.first ? this.second : this.first);
        this.leaseLost([...call.settled, ...other, ...this.renew()]);
      }
    }
    this.taking = false;
    const isWanted = this.again || this.settlements.size > 0;
    this.again = false;
    if (isWanted) this.exchange();
    this.fill();
    // Sleep only after jobs have started: joining the doorbell may interrupt a blocking call.
    if (this.open && this.prefetch.isDry) this.parts.rests(this.slots.running < this.slots.total);
    this.tellQuiet();
  }

  private takeJobs(answer: Answered, asked: number, { tookMs, busyMs }: Took, isRepeated: boolean): void {
    const supply = supplyOf(answer, asked);
    const jobs = isRepeated ? this.unknownAmong(answer.claimed) : answer.claimed;
    const { runner } = this.parts;
    const at = answer.kind === 'exchanged' && answer.startsAtOnce ? answer.claimedAt : null;
    // Jobs that were claimed before must not start any more: a group may be paused, or a rate has not counted them.
    if (at !== null && (runner.countedAt === null || (this.permit.returns() && this.claims.haveGroups())))
      this.giveBackClaims();
    const wasWaiting = this.claims.size > 0;
    if (at !== null || (asked > 0 && supply !== 'paused')) runner.answered(at, isRepeated || wasWaiting);
    if (asked > 0) this.prefetch.measured(supply, tookMs);
    if (at !== null) this.prefetch.forget();
    // Tell the heartbeat thread before a handler runs: a handler may block everything but that thread.
    this.parts.leases.holds(this.queue, jobs.length > 0 || this.holding() > 0);
    if (jobs.length > 0) {
      if (!wasWaiting) this.permit.arrive();
      this.claims.put(jobs);
      let chars = 0;
      for (const job of jobs) {
        chars += job.body.length;
        if (isSuspect(job)) this.suspects += 1;
      }
      // A call that waited at the doorbell says nothing about the speed of the connection.
      this.prefetch.received(jobs.length, chars, answer.kind === 'exchanged' ? tookMs : null);
    }
    // If large bodies took long to arrive, the next answer would take long too. So that time is not counted.
    const [age, read] = answer.kind === 'exchanged' ? [tookMs, busyMs] : [answer.ageMs ?? 0, 0];
    const { isNarrow } = this.prefetch;
    this.permit.renew(supply !== 'paused', isNarrow ? 0 : age, wasWaiting, isNarrow ? 0 : read);
    this.claimAnswered(asked, supply);
    this.parts.answered(answer, supply, asked, tookMs);
    if (!this.open || supply === 'paused') this.giveBackClaims();
    else if (asked > 0 && supply === 'more' && this.want() > 0) this.exchangeSoon();
  }

  /** Leaves out jobs that this worker already knows: the answer to a repeated call may name them again. */
  private unknownAmong(claimed: readonly ClaimedJob[]): readonly ClaimedJob[] {
    const known = new Set(this.known());
    return claimed.filter(({ id }) => !known.has(id));
  }

  // ----------------------------------------------------------------------------------------------------- runs and slots

  startOne(): boolean {
    if (!this.permit.starts()) return this.permit.ask(() => this.exchangeAnyway());
    this.prefetchTimeout.starts();
    this.slots.running += 1;
    this.parts.runner.start(this.claims.take());
    return true;
  }

  ended(run: EndedRun): void {
    if (isSuspect(run)) this.suspects -= 1;
    this.slots.free();
    if (run.outcome) {
      this.prefetch.count();
      this.settle(run, run.outcome);
    }
    this.fill();
  }

  private fill(): void {
    this.slots.fill();
    if (this.claims.size > 0) this.prefetchTimeout.watch();
  }

  private settle(run: Omit<SettledRun, 'outcome'>, outcome: Outcome): void {
    this.settlements.add(run, outcome);
    this.exchangeSoon();
  }

  // ---------------------------------------------------------------------------------------------------- sleep and wake

  /** Whether an exchange is in flight or about to be sent. */
  get active(): boolean {
    return this.busy || this.scheduled;
  }

  /** Whether the worker has nothing to do except claim. The first exchange of a worker never waits at the doorbell. */
  get isIdle(): boolean {
    if (this.stopped || this.active || this.first.seq === 0 || this.isStale()) return false;
    return this.holding() === 0 && this.maySuspect() && this.want() > 0;
  }

  /**
   * Sends the next exchange so that it waits at the doorbell. Null if it cannot wait. Resolves when the wait is over. If `recall`
   * has sent the exchange without the doorbell meanwhile, and the doorbell rang nevertheless, `rung` is true: the caller must
   * then pass the ring on.
   */
  leaveAtBell(
    leave: (call: ExchangeCall) => Promise<RungClaim> | null,
  ): Promise<Pick<RungClaim, 'rung' | 'refusal'>> | null {
    if (!this.isIdle || this.parts.isShared) return null;
    const { first } = this;
    const call = this.callFor(first, this.want(), []);
    const left = leave(call);
    if (!left) return null;
    this.sending(first, call);
    this.atBell = call;
    return left.then(
      ({ rung, refusal, isOfTime, answer }) => {
        if (this.atBell !== call) return { rung, refusal };
        if (answer) {
          this.atBell = null;
          // A ring without a job may mean a delayed job, or a job that another worker claimed. The next exchange finds out.
          if (isOfTime || (rung && answer.claimed.length === 0)) this.again = true;
          this.answered(first, call, answer);
        } else {
          // Nothing was claimed at the doorbell. The time of this wait must not count against jobs that the next answer brings.
          first.sent(call);
          this.recall();
        }
        return { rung: false, refusal };
      },
      (error: unknown) => {
        if (this.atBell === call) this.recall();
        throw error;
      },
    );
  }

  /**
   * Sends the call that waits at the doorbell on the other connection now, for as many jobs as are wanted now. It keeps its
   * number, so the waiting call becomes a repetition that changes nothing.
   */
  recall(): void {
    const call = this.atBell;
    if (!call || this.stopped) return;
    this.atBell = null;
    this.first.call = { ...call, want: this.want() };
    this.send(this.first, this.first.call, 1);
  }

  /** Called when the doorbell rang. Returns false if all slots are taken, so this worker will not exchange. */
  wake(): boolean {
    if (!this.rings()) return false;
    this.hasBell = true;
    if (this.busy) this.exchangeSoon();
    else this.exchange();
    return true;
  }

  /** Called with the result of a check while this worker slept. */
  looked(look: QueueLook): void {
    this.parts.looked(look);
    if (look.work) this.wake();
  }

  /** Called when no slot is free: passes on the ring that woke this worker. */
  noSlot(): void {
    if (!this.hasBell) return;
    this.hasBell = false;
    this.parts.passOn();
  }

  /** The next exchange uses the ring: its script rings again for jobs left over, but not for a suspect that it may not claim. */
  private useBell(maySuspect: boolean): void {
    this.hasBell = false;
    const now = performance.now();
    if (maySuspect || now - this.passedOnAt < PASS_ON_MS) return;
    this.passedOnAt = now;
    this.parts.passOn();
  }

  /** Outcomes in this call, if it was sent under the current name. */
  private onItsWay({ call }: Track): readonly SettledRun[] {
    return call?.worker === this.worker ? call.settled : [];
  }

  /** The track for one more exchange, or null. The store only knows the second track after the first exchange. */
  private freeTrack(): Track | null {
    if (!this.first.call) return this.first;
    return this.second.call || this.first.seq === 0 ? null : this.second;
  }

  private isStale(): boolean {
    return performance.now() - this.answeredAt > FRESH_MS;
  }

  private isQuiet(): boolean {
    return this.stopped || (!this.busy && this.settlements.size === 0);
  }

  private tellQuiet(): void {
    if (!this.isQuiet()) return;
    for (const resolve of this.quiet.splice(0)) resolve();
  }
}

/** Whether the queue has more jobs. A call that waited at the doorbell found no more if it brought fewer than requested. */
function supplyOf(answer: Answered, asked: number): Supply {
  if (answer.kind === 'exchanged') return answer.supply;
  return answer.claimed.length < asked && !answer.isCut ? 'empty' : 'more';
}

function newWorker(): string {
  workers += 1;
  return `${HOST}.${workers.toString(36)}`;
}
