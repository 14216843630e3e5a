import { Log } from '../contract/log.js';
import type { BeatAnswer, ClaimedJob, QueueEngine, QueueLook, Supply } from '../contract/engine.js';
import { LinkedSet } from '../contract/linked-set.js';
import { RedisUnavailableError } from '../errors.js';
import { decodeBody } from '../job/job-record.js';
import type { Outcome, SettledRun } from '../job/outcome.js';
import { counted, jobText } from '../job/text.js';
import type { ResolvedQueueOptions } from '../options/module-options.js';
import { PendingWake, type Doorbell, type Sleeper } from './doorbell.js';
import { drainPool, type DrainLimits, type DrainReport, type Pool } from './drain.js';
import { DueJobs } from './due-jobs.js';
import { Exchanger, type Answered, type ExchangeSide } from './exchanger.js';
import { Executor } from './executor.js';
import type { FindHandler } from './handler.js';
import { HeldJobsReconciler, type HeldJobsSide } from './held-jobs.js';
import type { Holder, LeaseKeeper } from './lease-keeper.js';
import { Claims, Prefetch, PrefetchTimeout } from './prefetch.js';
import { isSuspect, openClaim, type Opening } from './opened-claim.js';
import { writeNote, type Run, type RunVoice } from './run.js';
import type { Seat, Slots, SlotUser } from './slots.js';
import { UnknownJobs } from './unknown-jobs.js';
import { RELEASED, UNSTARTED } from './verdict.js';

const MAX_MISSING = 1_000;

export interface WorkerPoolParts {
  readonly engine: QueueEngine;
  readonly queue: ResolvedQueueOptions;
  /** Its own, or those it shares with other queues. */
  readonly slots: Slots;
  /** Its share of them. @default 1 */
  readonly weight?: number;
  readonly find: FindHandler;
  readonly leaseMs: number;
  readonly doorbell: Doorbell;
  readonly leases: LeaseKeeper;
  /** Told what an exchange says of others: leases that end, and schedules that are due. */
  readonly heard: (
    queue: string,
    worker: string,
    told: Pick<QueueLook, 'leaseInMs' | 'scheduleInMs'>,
  ) => void;
}

/** The running side of one queue in this process: claims through its exchanger, runs through its executor, sleeps at the doorbell. */
export class WorkerPool implements Pool, ExchangeSide, Sleeper, Holder, RunVoice, SlotUser, HeldJobsSide {
  readonly queue: string;
  readonly leaseMs: number;
  readonly maxPayloadBytes: number;
  readonly slots: Slots;
  readonly concurrency: number;
  readonly runs = new LinkedSet<Run>();
  readonly exchanger: Exchanger;
  readonly logger = new Log('QueueWorker');
  private readonly claims = new Claims();
  private suspects = 0;
  /** Names without a handler that the log has told of. */
  private readonly missing = new Set<string>();
  /** Of the pause of the queue that is in force, as far as it is known here. */
  private pauseMark = '';
  private readonly pendingWake = new PendingWake(() => this.parts.doorbell.passOn(this));
  private state: 'new' | 'running' | 'paused' | 'stopping' = 'new';
  private readonly prefetch = new Prefetch();
  private readonly executor: Executor;
  private readonly reconciler: HeldJobsReconciler;
  private readonly seat: Seat;
  private readonly opening: Opening;
  private readonly dueJobs: DueJobs;
  private readonly prefetchTimeout = new PrefetchTimeout(this.claims, () => {
    this.prefetch.forget();
    this.giveBack();
  });
  private drained: Promise<DrainReport> | undefined;
  private slotFreed: (() => void) | undefined;

  constructor(private readonly parts: WorkerPoolParts) {
    this.queue = parts.queue.name;
    this.leaseMs = parts.leaseMs;
    this.maxPayloadBytes = parts.queue.maxPayloadBytes;
    this.slots = parts.slots;
    this.concurrency = parts.slots.total;
    this.seat = parts.slots.seat(this, parts.weight);
    this.opening = {
      queue: this.queue,
      policy: parts.queue.policy,
      find: parts.find,
      voice: this,
      unknown: new UnknownJobs(parts.queue.unknownJob, parts.queue.unknownJobTimeoutMs),
      now: () => parts.engine.now(),
    };
    this.exchanger = new Exchanger(parts.engine, this);
    this.reconciler = new HeldJobsReconciler(parts.engine, this);
    this.dueJobs = new DueJobs(parts.engine, this);
    this.executor = new Executor(parts.queue, (run) => this.ended(run), this.logger);
  }

  get worker(): string {
    return this.exchanger.worker;
  }

  get isPaused(): boolean {
    return this.state === 'paused' || this.state === 'new';
  }

  // ------------------------------------------------------------------------------------------------------ the runtime

  start(): void {
    if (this.state !== 'new') return;
    this.state = 'running';
    this.parts.leases.add(this);
    this.seat.changed();
    this.exchanger.kick();
  }

  pause(): void {
    if (this.state !== 'running') return;
    this.state = 'paused';
    this.parts.doorbell.leave(this);
    this.releaseClaims();
    this.seat.changed();
  }

  resume(): void {
    if (this.state !== 'paused') return;
    this.state = 'running';
    this.seat.changed();
    this.exchanger.kick();
  }

  drain(limits: DrainLimits): Promise<DrainReport> {
    this.drained ??= drainPool(this, this.parts.engine, limits).finally(() => this.parts.leases.remove(this));
    return this.drained;
  }

  // ------------------------------------------------------------------------------------------ for the drain (drain.ts)

  /** Claims nothing more and gives back what has not started. */
  stopClaiming(): void {
    this.state = 'stopping';
    this.parts.doorbell.leave(this);
    this.dueJobs.stop();
    this.prefetchTimeout.stop();
    this.releaseClaims();
    this.seat.changed();
  }

  /** Resolves at the next end of a run. */
  nextEnd(): Promise<void> {
    return new Promise((resolve) => (this.slotFreed = resolve));
  }

  /** Gives back a job whose handler still runs; what that says later is not heard. */
  giveUp(run: Run): void {
    if (run.closed) return;
    run.close();
    run.outcome = RELEASED;
    this.leaveSlot(run);
    this.exchanger.settle(run);
  }

  // ----------------------------------------------------------------------------------------------------- the exchanger

  want(asked = 0): number {
    return this.open ? Math.min(this.prefetch.most, this.seat.want() - asked) : 0;
  }

  isWorthBeside(want: number): boolean {
    // Those that share slots ask in turn.
    return !this.slots.isShared && this.prefetch.isWorthBeside(want);
  }

  get maxBytes(): number {
    return this.prefetch.maxBytes;
  }

  get isNarrow(): boolean {
    return this.prefetch.isNarrow;
  }

  maySuspect(): boolean {
    return this.suspects === 0;
  }

  holding(): number {
    return this.runs.size + this.claims.size + this.exchanger.unconfirmed();
  }

  holdsAny(): boolean {
    return this.holding() > 0;
  }

  exchanged(answer: Answered, asked: number, tookMs: number, isRepeated: boolean): void {
    const supply = supplyOf(answer, asked);
    const claimed = isRepeated ? this.unknownAmong(answer.claimed) : answer.claimed;
    if (asked > 0) this.prefetch.measured(supply, tookMs);
    // Before a handler runs: it may block everything but the thread that beats.
    this.parts.leases.holds(this, claimed.length > 0 || this.holdsAny());
    // A call that was left at the bell says nothing of the line.
    if (claimed.length > 0) this.take(claimed, answer.kind === 'exchanged' ? tookMs : null);
    this.seat.answered(asked, supply);
    if (answer.held !== null && !this.exchanger.isRepeating) this.reconciler.compare(answer.held);
    if (answer.kind === 'exchanged') {
      for (const id of answer.lost) this.logger.warn(`${jobText(this.queue, id)}: ${LOST}`);
      this.parts.heard(this.queue, this.worker, answer);
      this.dueJobs.plan(soonestOf(answer.dueInMs, supply));
      this.hearPause(answer.pauseMark);
    }
    if (this.state !== 'running') this.releaseClaims();
    else if (asked > 0 && supply === 'more' && this.want() > 0) this.exchanger.kick();
  }

  /** Of a queue that is paused, no job starts that was claimed before, and the store is told so. */
  private hearPause(mark = ''): void {
    if (mark !== '') this.releaseClaims();
    if (mark === this.pauseMark) return;
    this.pauseMark = mark;
    if (mark === '' || this.runs.size === 0) return;
    // Where it fails, the next beat tells of the pause again.
    this.parts.engine.beat(this.queue, this.worker, this.leaseMs, mark).catch(() => (this.pauseMark = ''));
  }

  /** A repetition may name jobs that are known here, where ids with line breaks were written by hand. */
  private unknownAmong(claimed: readonly ClaimedJob[]): readonly ClaimedJob[] {
    const known = new Set(this.known());
    return claimed.filter(({ id }) => !known.has(id));
  }

  known(): string[] {
    const ids = [...this.runs, ...this.claims.all()].map(({ id }) => id);
    return ids.concat(this.exchanger.unconfirmedIds());
  }

  renamed(): void {
    this.parts.leases.renamed(this);
  }

  leaseLost(settled: readonly SettledRun[]): void {
    const held = this.runs.size + this.claims.size + settled.length;
    this.claims.clear();
    for (const run of this.runs) this.loseRun(run);
    this.suspects = 0;
    this.seat.answered(0, 'more');
    if (held > 0) {
      this.logger.warn(
        `queue '${this.queue}': the lease ended while this worker held ${counted(held, 'job')}; other workers run them now`,
      );
    }
    this.exchanger.kick();
  }

  trouble(error: Error): void {
    this.seat.failed();
    const text = `queue '${this.queue}': cannot claim or settle for now, trying on: ${error.message}`;
    // That Redis cannot be reached is said once for the process, not once per queue.
    if (error instanceof RedisUnavailableError) this.logger.debug(text);
    else this.logger.error(text);
  }

  // ------------------------------------------------------------------------------------------- the doorbell and leases

  wake(): boolean {
    if (!this.seat.rings()) return false;
    this.pendingWake.take();
    this.exchanger.hurry();
    return true;
  }

  looked({ work, dueInMs, leaseInMs, scheduleInMs }: QueueLook): void {
    if (dueInMs !== null) this.dueJobs.plan(dueInMs);
    this.parts.heard(this.queue, this.worker, { leaseInMs, scheduleInMs });
    if (work) this.wake();
  }

  asking(want: number, maySuspect: boolean): void {
    this.seat.asks(want);
    this.pendingWake.asking(maySuspect);
  }

  nothingToAsk(): void {
    if (!this.seat.waits) this.pendingWake.notNeeded();
  }

  beaten(worker: string, answer: BeatAnswer): void {
    if (worker !== this.worker) return;
    if (answer.kind === 'unknown-worker') {
      // The beat may be older than the first exchange, and have waited while the event loop was blocked: an exchange knows.
      if (this.exchanger.answers > 0) this.exchanger.ask();
      return;
    }
    if (answer.cancels.size > 0) this.cancel(answer.cancels);
    // Only an exchange can tell what was claimed before the pause, and all of that.
    if (answer.pauseMark !== undefined && answer.pauseMark !== this.pauseMark) this.exchanger.ask();
    if (!this.exchanger.busy && answer.exchanges === this.exchanger.answers)
      this.reconciler.compare(answer.held);
  }

  lose(ids: ReadonlySet<string>): void {
    for (const run of this.runs) if (ids.has(run.id)) this.loseRun(run);
    for (const job of this.claims.all()) if (ids.has(job.id) && isSuspect(job)) this.suspects -= 1;
    this.claims.drop(ids);
    this.fill();
  }

  async note(run: Run, what: { progress?: string; log?: string }): Promise<void> {
    if (run.closed) return;
    const held = await writeNote(this.parts.engine, this.worker, run, what, this.logger);
    if (!held && !run.closed) this.loseRun(run);
  }

  // --------------------------------------------------------------------------------------------------------- the slots

  private take(claimed: readonly ClaimedJob[], tookMs: number | null): void {
    this.claims.put(claimed);
    let chars = 0;
    for (const job of claimed) {
      chars += job.body.length;
      if (isSuspect(job)) this.suspects += 1;
    }
    this.prefetch.received(claimed.length, chars, tookMs);
  }

  startClaimed(): void {
    this.fill();
    // Behind the start: who waits for the job waits for nothing else.
    if (this.prefetch.isDry && this.state === 'running') this.sleep();
  }

  private fill(): void {
    this.seat.fill();
    if (this.claims.size > 0) this.prefetchTimeout.watch();
  }

  get open(): boolean {
    return this.state === 'running';
  }

  get held(): number {
    return this.claims.size;
  }

  get ahead(): number {
    return this.prefetch.jobs;
  }

  ask(): void {
    this.exchanger.kick();
  }

  noSlot(): void {
    this.pendingWake.notNeeded();
  }

  giveBack(): void {
    this.releaseClaims();
    this.seat.changed();
  }

  startOne(): void {
    this.prefetchTimeout.starts();
    const job = this.claims.take();
    if (job.unreadable)
      this.logger.warn(
        `${jobText(this.queue, job.id)}: the number of its failed attempts or of its stalls cannot be read and counts as 0; Queue.repair() mends it`,
      );
    const opened = openClaim(job, this.opening);
    if ('run' in opened) {
      this.runs.add(opened.run);
      this.seat.begins();
      this.executor.start(opened.run, opened.handler);
      return;
    }
    const { name, outcome, complaint } = opened;
    if (complaint) this.complain(job.id, name, outcome, complaint);
    if (isSuspect(job)) this.suspects -= 1;
    this.exchanger.settle({ id: job.id, name, attempt: job.failed, durationUs: 0, outcome });
  }

  private complain(id: string, name: string, outcome: Outcome, complaint: string): void {
    const job = jobText(this.queue, id);
    if (outcome.kind === 'dead') return this.logger.error(`${job} is dead: ${complaint}`);
    // Once for a name: such jobs come back, and there may be many.
    if (this.missing.has(name)) return;
    if (this.missing.size < MAX_MISSING) this.missing.add(name);
    this.logger.warn(`${job}: ${complaint}; it and others of its name wait for a process that has one`);
  }

  private ended(run: Run): void {
    this.prefetch.count();
    this.leaveSlot(run);
    this.exchanger.settle(run);
    this.fill();
  }

  private leaveSlot(run: Run): void {
    if (!this.runs.delete(run)) return;
    this.seat.leaves();
    if (isSuspect(run)) this.suspects -= 1;
    this.slotFreed?.();
  }

  private loseRun(run: Run): void {
    run.close();
    this.leaveSlot(run);
    run.abort('lease-lost', 'this worker was silent for longer than its lease; another one runs the job');
  }

  /** A run hears of it and decides; what has not started does not start. The store ends what is given back. */
  private cancel(reasons: ReadonlyMap<string, string>): void {
    for (const run of this.runs) {
      const reason = reasons.get(run.id);
      if (reason !== undefined) run.abort('cancelled', reason);
    }
    this.releaseClaims(this.claims.drop(reasons));
  }

  private releaseClaims(jobs = this.claims.clear()): void {
    for (const job of jobs) {
      const name = decodeBody(job.body)?.name ?? '';
      if (isSuspect(job)) this.suspects -= 1;
      this.exchanger.settle({ id: job.id, name, attempt: job.failed + 1, durationUs: 0, outcome: UNSTARTED });
    }
  }

  private sleep(): void {
    if (this.seat.hasFree) this.parts.doorbell.join(this);
    else this.parts.doorbell.leave(this);
  }
}

const LOST = 'a run ended after its job had been given to another worker; its outcome is not counted';

/** What an answer says of more jobs; one that was left at the bell says it by how many it brought. */
function supplyOf(answer: Answered, asked: number): Supply {
  if (answer.kind === 'exchanged') return answer.supply;
  return answer.claimed.length < asked && !answer.isCut ? 'empty' : 'more';
}

/** When to ask again without a bell: a delayed job is due, or more jobs may start. */
function soonestOf(dueInMs: number | null, supply: Supply): number | null {
  return typeof supply === 'string' ? dueInMs : Math.min(dueInMs ?? Infinity, supply.limitedForMs);
}
