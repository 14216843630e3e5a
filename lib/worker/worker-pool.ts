import type {
  BeatAnswer,
  ExchangeAnswer,
  ExchangeCall,
  QueueEngine,
  QueueLook,
  Supply,
} from '../contract/engine.js';
import type { ObservedRun } from '../contract/observer.js';
import { HeldBack } from '../contract/held-back.js';
import { Log } from '../contract/log.js';
import { FAREWELL_MS, LAST_WORDS_MS, within } from '../contract/retry.js';
import { messageOf } from '../errors/thrown.js';
import { MAX_TIMER_MS } from '../job/duration.js';
import { ANY_NAME } from '../job/name-pattern.js';
import { counted, quoted } from '../job/text.js';
import type { ResolvedQueueOptions } from '../options/module-options.js';
import type { QueueTelemetry } from '../options/telemetry.js';
import type { ResolvedShutdown } from '../options/worker-options.js';
import { Claimer, type Answered } from './claimer.js';
import type { Doorbell } from './doorbell.js';
import { DueJobs } from './due-jobs.js';
import type { FindHandler } from './handler.js';
import type { JobListeners } from './job-listeners.js';
import { HeldJobsReconciler } from './held-jobs.js';
import type { LeaseKeeper } from './lease-keeper.js';
import type { Run } from './run.js';
import { RunReports } from './run-reports.js';
import { Runner } from './runner.js';
import { EndedKeys } from './settlements.js';
import { SharedStarts } from './shared-starts.js';
import type { Slots } from './slots.js';

/** When a pool first reports which names it handles, and when it tries again after a failure. */
const SAY_HANDLES_MS = 1000;
/**
 * If a worker gets none of the starts of a fast rate for this long, it asks this much later. With 8 processes that saves 20 % of the
 * CPU of Redis.
 */
const OUTRUN_MS = 40;
/** If an answer shows a time that is this much earlier than that of the answer before, the clock of the store was set back. */
const SET_BACK_MS = 1_000;
const LOST = 'a run ended after its job had been given to another worker; its outcome is not counted';

interface WorkerPoolParts {
  readonly engine: QueueEngine;
  readonly queue: ResolvedQueueOptions;
  /** The slots of this queue, or those it shares with other queues. */
  readonly slots: Slots;
  /** Its share of the slots. @default 1 */
  readonly weight?: number;
  readonly find: FindHandler;
  /** The job names with a handler. `''` stands for all others. */
  readonly names: () => readonly string[];
  /** How many jobs a group gives at its turn. @default 1 */
  readonly perTurn?: () => number;
  /** Methods with `@OnJob`. */
  readonly listeners?: JobListeners;
  /** Called when a run is over. */
  readonly observe?: ((queue: string, name: string, run: ObservedRun) => void) | undefined;
  readonly telemetry?: QueueTelemetry | undefined;
  readonly doorbell: Doorbell;
  readonly leases: LeaseKeeper;
  /** Called when an answer reports leases of other workers that end, or schedules that are due. */
  readonly heard: (
    queue: string,
    worker: string,
    answer: Pick<QueueLook, 'leaseInMs' | 'scheduleInMs'>,
  ) => void;
}

/** How a drain ended. */
export interface DrainReport {
  readonly finished: number;
  /** Ids of jobs that were given back unfinished after the deadline. */
  readonly released: readonly string[];
  /** When the last handler or listener had ended, by `performance.now()`. */
  readonly endedAt: number;
}

/** The part of a pool that the runtime uses. */
export type Pool = Pick<
  WorkerPool,
  'queue' | 'shutdown' | 'concurrency' | 'runs' | 'start' | 'pause' | 'resume' | 'quiet' | 'drain'
>;

/**
 * The workers of one queue in this process. It connects the claimer, the runner, and what they share with other queues:
 *
 * 1. the claimer takes jobs from the store and settles them; the runner runs them;
 * 2. an empty queue sleeps at the doorbell of the process;
 * 3. other news in answers and heartbeats: due times, jobs held by mistake, pauses, cancelled jobs, a lost lease;
 * 4. start, pause, resume, quiet and drain.
 */
export class WorkerPool {
  readonly queue: string;
  readonly slots: Slots;
  readonly claimer: Claimer;
  private readonly runner: Runner;
  private readonly logger = new Log('QueueWorker');
  private readonly keys: EndedKeys;
  private readonly shared: SharedStarts | undefined;
  private readonly heldJobs: HeldJobsReconciler;
  private readonly dueJobs: DueJobs;
  private state: 'new' | 'running' | 'paused' | 'stopping' = 'new';
  /** Whether it claims no more jobs until the process ends. */
  isQuiet = false;
  private drained: Promise<DrainReport> | undefined;
  private handlesTimer: NodeJS.Timeout | undefined;
  private readonly heldBack: HeldBack;
  private readonly reports: RunReports | undefined;
  /** When a claim last brought jobs. */
  private claimedAt = -Infinity;
  /** The time of the store at the start of this process, by the last exchange. */
  private clockStart = -Infinity;

  constructor(private readonly parts: WorkerPoolParts) {
    const { engine, doorbell, leases, slots, weight } = parts;
    const { queue, find, listeners, telemetry } = parts;
    this.queue = queue.name;
    this.slots = slots;
    this.heldBack = new HeldBack(
      this.logger,
      `queue '${this.queue}': limits delay its jobs`,
      `queue '${this.queue}': limits no longer delay its jobs`,
    );
    this.reports = RunReports.of(queue.name, engine.limits, queue.limits);
    this.runner = new Runner({
      queue,
      find,
      mayWait: () => this.claimer.open && !slots.areAllGathering,
      now: () => engine.now(),
      unhandledMs: (name) => engine.upkeep.unhandledMs(this.queue, name, this.handledForMs * 2),
      charge: (changes) => engine.limits.charge(this.queue, changes),
      held: () => this.claimer.giveBackClaims(),
      note: (call) => engine.note(this.queue, { worker: this.worker, ...call }),
      ended: (run) => {
        if (parts.observe) parts.observe(this.queue, this.countedName(run.name), run);
        this.keys.ended(run.id, run.digest, run.outcome);
        this.claimer.ended(run);
      },
      goesBack: (id, digest) => this.keys.goesBack(id, digest),
      reports: this.reports,
      listeners,
      ...(telemetry && { trace: (run) => telemetry.running(run, this.worker) }),
    });
    this.shared =
      queue.uses &&
      new SharedStarts({
        engine,
        queue: queue.name,
        limits: queue.uses,
        leaseMs: queue.lease.leaseMs,
        running: () => this.claimer.running(),
        lost: () => void leases.onDataLost(queue.name),
      });
    this.keys = new EndedKeys(listeners, (digests) => this.freeKeys(digests));
    this.claimer = new Claimer({
      exchange: (call) => this.exchange(call),
      queue: this.queue,
      leaseMs: queue.lease.leaseMs,
      slots,
      weight,
      perTurn: parts.perTurn,
      leases,
      runner: this.runner,
      isShared: this.shared !== undefined,
      listeners: this.keys,
      answered: (...given) => this.answered(...given),
      looked: (look) => this.looked(look),
      rests: (hasFreeSlot) => (hasFreeSlot ? doorbell.join(this.claimer) : doorbell.leave(this.claimer)),
      passOn: () => doorbell.passOn(this.claimer),
    });
    this.heldJobs = new HeldJobsReconciler(engine, this.claimer);
    this.dueJobs = new DueJobs(engine, this.claimer);
  }

  get worker(): string {
    return this.claimer.worker;
  }

  get runs(): Iterable<Run> & { readonly size: number } {
    return this.runner.runs;
  }

  /** How many jobs run at once, of all queues that share the slots. */
  get concurrency(): number {
    return this.slots.total;
  }

  set concurrency(total: number) {
    this.slots.resize(total);
  }

  get shutdown(): ResolvedShutdown {
    return this.parts.queue.shutdown;
  }

  get isPaused(): boolean {
    return this.state === 'paused' || this.state === 'new';
  }

  /** Starts to claim. A second call does nothing. */
  start(): void {
    if (this.state !== 'new' || this.isQuiet) return;
    this.state = 'running';
    const { leases, queue } = this.parts;
    leases.add(this.queue, this.worker, queue.lease, (worker, answer) => this.beaten(worker, answer));
    this.claimer.begin();
    if (this.parts.queue.unknownJob === 'wait')
      this.sayHandlesIn(Math.min(SAY_HANDLES_MS, this.handledForMs / 8));
  }

  /** The name, or `''` if no name or pattern in code fits it. Observers limit how many names they count. */
  private countedName(name: string): string {
    const handler = this.parts.find(name);
    return handler && handler.jobName !== ANY_NAME ? name : '';
  }

  /** How long a report of the handled names stays valid. */
  private get handledForMs(): number {
    return Math.max(this.parts.queue.unknownJobTimeoutMs, 1_000);
  }

  private sayHandlesIn(ms: number): void {
    this.handlesTimer = setTimeout(() => void this.sayHandles(), Math.min(ms, MAX_TIMER_MS)).unref();
  }

  /**
   * Reports the handled names, so that processes without a handler do not make these jobs dead. Reports are rare, and a process
   * that ends soon sends none.
   */
  private async sayHandles(): Promise<void> {
    const { engine, names } = this.parts;
    let nextMs = this.handledForMs / 8;
    try {
      const handled = names();
      if (handled.length > 0) await engine.upkeep.handles(this.queue, handled, this.handledForMs * 2);
    } catch {
      nextMs = Math.min(SAY_HANDLES_MS, nextMs);
    }
    if (this.state !== 'stopping') this.sayHandlesIn(nextMs);
  }

  private exchange(call: ExchangeCall): Promise<ExchangeAnswer> {
    const { engine, queue } = this.parts;
    if (queue.limits && call.seq === 1 && !call.pipelined) return this.firstExchange(call);
    return this.shared ? this.shared.exchange(call) : engine.exchange(this.queue, call);
  }

  /**
   * Redis may have lost its data before it knew this worker. So its first exchange claims nothing, and is followed by writing the
   * limits that are missing. A later loss is noticed, because then Redis does not know the worker any more.
   */
  private async firstExchange(call: ExchangeCall): Promise<ExchangeAnswer> {
    const answer = await this.parts.engine.exchange(this.queue, { ...call, want: 0 });
    if (answer.kind !== 'exchanged') return answer;
    await this.parts.leases.onDataLost(this.queue);
    return answer.supply === 'paused' ? answer : { ...answer, supply: 'more' };
  }

  /** If this fails, upkeep frees the keys. */
  private async freeKeys(digests: readonly string[]): Promise<void> {
    try {
      await this.parts.engine.upkeep.freeKeys(this.queue, digests);
    } catch (error) {
      this.logger.debug(
        `queue '${this.queue}': the unique keys of ended jobs could not be freed yet: ${messageOf(error)}`,
      );
    }
  }

  /** Stops claiming. Running jobs continue. */
  pause(): void {
    if (this.state === 'running') this.stopClaiming('paused');
  }

  resume(): void {
    if (this.state !== 'paused' || this.isQuiet) return;
    this.state = 'running';
    this.claimer.begin();
  }

  /** Pauses permanently: `start` and `resume` do nothing from now on. */
  quiet(): void {
    this.isQuiet = true;
    this.pause();
  }

  /**
   * Stops claiming, gives back jobs that have not started, and waits for running jobs for the time of `shutdown`. Then it aborts
   * their signals, waits for the grace time, and gives the rest back without a counted attempt. Never rejects. A second call
   * returns the same promise.
   */
  drain(): Promise<DrainReport> {
    this.drained ??= this.end(this.shutdown).finally(() => this.parts.leases.remove(this.queue));
    return this.drained;
  }

  private async end({ timeoutMs, graceMs }: ResolvedShutdown): Promise<DrainReport> {
    const { claimer, runner } = this;
    runner.isDraining = true;
    const end = performance.now() + timeoutMs + graceMs + LAST_WORDS_MS;
    this.dueJobs.stop();
    clearTimeout(this.handlesTimer);
    this.stopClaiming('stopping');
    const before = this.runs.size;
    await this.finished(timeoutMs);
    const late = [...this.runs];
    for (const run of late) run.abort('shutdown', 'the application stops');
    await this.finished(graceMs);
    for (const run of this.runs) runner.giveUp(run);
    runner.drained();
    // This includes runs that failed because their signal was aborted.
    const released = late
      .filter((run) => run.outcome?.kind === 'released' && run.aborted?.reason !== 'cancelled')
      .map((run) => run.id);
    if (released.length > 0) {
      const ids = released.slice(0, 20).map(quoted).join(', ');
      this.logger.warn(
        `queue '${this.queue}': ${counted(released.length, 'job')} still running at the deadline, given back: ${ids}`,
      );
    }
    const ranUntil = performance.now();
    const farewell = claimer
      .idle()
      .then(() => this.keys.idle())
      .then(() => this.parts.engine.release(this.queue, { worker: this.worker, ids: [], leave: true }));
    // If they are not confirmed by then, other workers run the rest when the lease ends.
    await within(Math.min(FAREWELL_MS, end - ranUntil), farewell);
    const heardUntil = await this.heard(end);
    const unsettled = claimer.unconfirmed();
    if (unsettled > 0) {
      this.logger.warn(
        `queue '${this.queue}': Redis did not confirm the outcome of ${counted(unsettled, 'job')}; ` +
          'if an outcome was not stored, another worker runs the job again when the lease ends',
      );
    }
    claimer.stop();
    this.shared?.stop();
    this.heldBack.stop();
    this.reports?.stop();
    return { finished: before - released.length, released, endedAt: heardUntil ?? ranUntil };
  }

  /** Waits for running `@OnJob` methods. Returns when they had ended, or undefined if none ran. */
  private async heard(end: number): Promise<number | undefined> {
    const { listeners } = this.parts;
    if (!listeners || listeners.pending === 0) return undefined;
    await within(Math.max(0, end - performance.now()), listeners.idle());
    if (listeners.pending > 0) {
      const calls = counted(listeners.pending, 'call');
      this.logger.warn(`queue '${this.queue}': ${calls} of @OnJob methods had not ended at the deadline`);
    }
    return performance.now();
  }

  private async finished(ms: number): Promise<void> {
    const deadline = performance.now() + ms;
    while (this.runs.size > 0) {
      const left = deadline - performance.now();
      if (left <= 0) return;
      await within(left, this.runner.nextEnd());
    }
  }

  private stopClaiming(state: 'paused' | 'stopping'): void {
    this.state = state;
    // End the claimer first: then the doorbell recalls its waiting call as one that claims nothing.
    this.claimer.end();
    this.parts.doorbell.leave(this.claimer);
    // No further jobs come to fill its batches.
    this.runner.flush();
  }

  // ------------------------------------------------------------------------ other news in answers and heartbeats

  private answered(answer: Answered, supply: Supply, asked: number, tookMs: number): void {
    if (answer.held !== null && !this.claimer.isRepeating) this.heldJobs.compare(answer.held);
    if (answer.kind !== 'exchanged') return;
    for (const id of answer.lost) this.runner.tooLate(id, LOST);
    this.parts.heard(this.queue, this.worker, answer);
    // No doorbell rings when a delayed job becomes due or a limit allows more starts, so a timer is set.
    const limitedForMs = typeof supply === 'string' ? Infinity : supply.limitedForMs;
    const laterMs = this.isOutrun(answer.claimed.length, limitedForMs) ? OUTRUN_MS : 0;
    const nextMs = Math.min(answer.dueInMs ?? Infinity, limitedForMs + laterMs);
    this.dueJobs.plan(nextMs === Infinity ? null : nextMs);
    this.tellHeldBack(answer, limitedForMs, asked);
    this.watchClock(tookMs);
  }

  /**
   * Groups and names rest until a time by the clock of the store. If it was set back, that time is too far away, so the next claims
   * examine them again.
   */
  private watchClock(tookMs: number): void {
    const { engine } = this.parts;
    const before = this.clockStart;
    this.clockStart = engine.now() - performance.now();
    // An answer may arrive late. But the store read its clock after the call was sent.
    if (this.clockStart + tookMs >= before - SET_BACK_MS) return;
    // After a failure, the next exchange notices it again.
    engine.limits.wakeLines(this.queue).catch(() => (this.clockStart = before));
  }

  /** Whether other workers start all that a fast rate allows. This worker then asks less often, as each call would find nothing. */
  private isOutrun(claimed: number, limitedForMs: number): boolean {
    const now = performance.now();
    if (claimed > 0) this.claimedAt = now;
    return limitedForMs < OUTRUN_MS && now - this.claimedAt > OUTRUN_MS;
  }

  private tellHeldBack(
    { isHeldBack, isLimited }: Extract<Answered, { kind: 'exchanged' }>,
    limitedForMs: number,
    asked: number,
  ): void {
    const isTimed = limitedForMs < Infinity;
    if (isHeldBack) this.heldBack.now(isTimed ? `; the next may start in ${Math.ceil(limitedForMs)} ms` : '');
    // A claim without limits leaves `isHeldBack` out. If it asked for jobs and was not limited, nothing holds them back.
    else if (isHeldBack === false || (asked > 0 && !isTimed && !isLimited)) this.heldBack.over();
  }

  private looked({ dueInMs, leaseInMs, scheduleInMs }: QueueLook): void {
    if (dueInMs !== null) this.dueJobs.plan(dueInMs);
    this.parts.heard(this.queue, this.worker, { leaseInMs, scheduleInMs });
  }

  private beaten(worker: string, answer: BeatAnswer): void {
    const { claimer } = this;
    if (worker !== claimer.worker) return;
    if (answer.kind === 'unknown-worker') {
      // A heartbeat may be older than the first exchange, and arrive late because the event loop was blocked. An exchange finds
      // out.
      if (claimer.answers > 0) claimer.exchangeAnyway();
      return;
    }
    if (answer.cancels.size > 0) this.cancel(answer.cancels);
    if (!claimer.busy && answer.exchanges === claimer.answers) this.heldJobs.compare(answer.held);
  }

  /**
   * Aborts the signals of running jobs, and gives back claimed jobs that have not started. The store ends jobs that are given
   * back.
   */
  private cancel(reasons: ReadonlyMap<string, string>): void {
    for (const run of this.runs) {
      const reason = reasons.get(run.id);
      if (reason !== undefined) run.abort('cancelled', reason);
    }
    this.claimer.giveBackClaims(reasons);
  }
}
