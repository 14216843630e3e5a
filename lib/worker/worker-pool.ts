import { Logger } from '@nestjs/common';
import type { BeatAnswer, ClaimedJob, ExchangeAnswer, QueueEngine } from '../engine/engine.js';
import { RedisUnavailableError } from '../errors.js';
import { decodeBody, expiresAt } from '../job/job-record.js';
import type { Outcome, SettledRun } from '../job/outcome.js';
import { quoted } from '../job/text.js';
import { mergeJobPolicy } from '../options/job-policy.js';
import type { ResolvedQueueOptions } from '../options/module-options.js';
import { Claims } from './claims.js';
import type { Doorbell, Sleeper } from './doorbell.js';
import { drainPool } from './drain.js';
import { Exchanger, type ExchangeSide } from './exchanger.js';
import { Executor } from './executor.js';
import type { FindHandler } from './handler.js';
import { HeldBell } from './held-bell.js';
import type { Holder, LeaseKeeper } from './lease-keeper.js';
import { jobText } from './job-text.js';
import type { DrainLimits, DrainReport, Pool } from './pool.js';
import { Prefetch } from './prefetch.js';
import type { ShownPool } from './registrar.js';
import { Run, type RunVoice } from './run.js';
import { Strays } from './strays.js';
import { RELEASED, unrunnable } from './verdict.js';

export interface WorkerPoolParts {
  readonly engine: QueueEngine;
  readonly queue: ResolvedQueueOptions;
  readonly concurrency: number;
  readonly find: FindHandler;
  readonly leaseMs: number;
  readonly doorbell: Doorbell;
  readonly leases: LeaseKeeper;
  /** Told what an exchange says of others: leases that end, and schedules that are due. */
  readonly heard: (queue: string, worker: string, answer: Exchanged) => void;
}

type Exchanged = Extract<ExchangeAnswer, { kind: 'exchanged' }>;

/** Claimed jobs that have not started within this time go back: a slow one must not keep them from idle workers. */
const HOARD_MS = 50;
const MAX_TIMER_MS = 2_147_483_647;

/**
 * The slots of one queue in this process: claims through its exchanger, runs through its executor, sleeps at the doorbell
 * when the line is empty.
 */
export class WorkerPool implements Pool, ExchangeSide, Sleeper, Holder, RunVoice, ShownPool {
  readonly queue: string;
  readonly concurrency: number;
  readonly leaseMs: number;
  readonly maxPayloadBytes: number;
  readonly runs = new Set<Run>();
  readonly exchanger: Exchanger;
  readonly logger = new Logger('QueueWorker');
  private readonly claims = new Claims();
  private suspects = 0;
  private readonly bell = new HeldBell(() => this.parts.doorbell.passOn(this));
  private state: 'new' | 'running' | 'paused' | 'stopping' = 'new';
  private readonly prefetch = new Prefetch();
  private readonly executor: Executor;
  private readonly strays: Strays;
  private dueTimer: NodeJS.Timeout | undefined;
  private hoardTimer: NodeJS.Timeout | undefined;
  private startedSinceLook = 0;
  private mismatches = 0;
  private drained: Promise<DrainReport> | undefined;
  private slotFreed: (() => void) | undefined;

  constructor(private readonly parts: WorkerPoolParts) {
    this.queue = parts.queue.name;
    this.concurrency = parts.concurrency;
    this.leaseMs = parts.leaseMs;
    this.maxPayloadBytes = parts.queue.maxPayloadBytes;
    this.exchanger = new Exchanger(parts.engine, this);
    this.strays = new Strays(parts.engine, this);
    this.executor = new Executor(parts.queue, (run) => this.ended(run), this.logger);
  }

  get worker(): string {
    return this.exchanger.worker;
  }

  get running(): number {
    return this.runs.size;
  }

  get isPaused(): boolean {
    return this.state === 'paused' || this.state === 'new';
  }

  get slots(): object {
    return this;
  }

  // ------------------------------------------------------------------------------------------------------ the runtime

  start(): void {
    if (this.state !== 'new') return;
    this.state = 'running';
    this.parts.leases.add(this);
    this.exchanger.kick();
  }

  pause(): void {
    if (this.state !== 'running') return;
    this.state = 'paused';
    this.parts.doorbell.leave(this);
    this.releaseClaims();
  }

  resume(): void {
    if (this.state !== 'paused') return;
    this.state = 'running';
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
    if (this.dueTimer) clearTimeout(this.dueTimer);
    if (this.hoardTimer) clearTimeout(this.hoardTimer);
    this.releaseClaims();
  }

  /** Resolves at the next end of a run. */
  nextEnd(): Promise<void> {
    return new Promise((resolve) => {
      this.slotFreed = resolve;
    });
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

  want(): number {
    if (this.state !== 'running') return 0;
    const { jobs, most } = this.prefetch;
    return Math.min(most, this.concurrency + jobs - this.runs.size - this.claims.size);
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

  exchanged(answer: Exchanged, asked: number): void {
    const { claimed } = answer;
    for (const id of answer.lost) this.logger.warn(`${jobText(this.queue, id)}: ${LOST}`);
    const saturated = claimed.length === asked;
    if (asked > 0) this.prefetch.measured(saturated);
    // Before a handler runs: it may block everything but the thread that beats.
    this.parts.leases.holds(this, claimed.length > 0 || this.holdsAny());
    if (claimed.length > 0) this.take(claimed);
    this.parts.heard(this.queue, this.worker, answer);
    this.strays.compare(answer.held);
    if (this.state !== 'running') {
      this.releaseClaims();
    } else if (asked > 0 && !saturated) {
      this.sleepUntil(answer.dueInMs);
    } else if (this.want() > 0 && asked > 0) {
      this.exchanger.kick();
    }
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
    for (const run of this.runs) this.lose(run);
    this.suspects = 0;
    if (held > 0) {
      this.logger.warn(
        `queue '${this.queue}': the lease ended, and with it the hold on ${held} jobs; others run them now`,
      );
    }
    this.exchanger.kick();
  }

  trouble(error: Error): void {
    const text = `queue '${this.queue}': cannot claim or settle for now, trying on: ${error.message}`;
    // That Redis cannot be reached is said once for the process, not once per queue.
    if (error instanceof RedisUnavailableError) this.logger.debug(text);
    else this.logger.error(text);
  }

  // ------------------------------------------------------------------------------------------- the doorbell and leases

  wake(): boolean {
    if (this.want() <= 0) return false;
    this.bell.take();
    this.exchanger.kick();
    return true;
  }

  asking(): void {
    this.bell.asking(this.maySuspect());
  }

  nothingToAsk(): void {
    this.bell.notNeeded();
  }

  beaten(worker: string, answer: BeatAnswer): void {
    if (worker !== this.worker) return;
    if (answer.kind === 'unknown-worker') {
      if (this.exchanger.busy || this.exchanger.seq === 0) return;
      this.leaseLost(this.exchanger.renew());
      return;
    }
    if (answer.cancels.size > 0) this.cancel(answer.cancels);
    const settledFully = !this.exchanger.busy && answer.seq === this.exchanger.seq;
    this.mismatches = settledFully && answer.held !== this.holding() ? this.mismatches + 1 : 0;
    if (this.mismatches >= 2) void this.reconcile(); // once may be a settlement that crossed the beat
  }

  async note(run: Run, what: { progress?: string; log?: string }): Promise<void> {
    if (run.closed) return;
    const { id, name, attempt } = run;
    try {
      const held = await this.parts.engine.note(this.queue, {
        worker: this.worker,
        id,
        name,
        attempt,
        ...what,
      });
      if (!held && !run.closed) this.lose(run);
    } catch (error) {
      // Progress is for people; that it could not be written must not fail the job.
      this.logger.debug(
        `${jobText(this.queue, id)}: progress or log not written: ${(error as Error).message}`,
      );
    }
  }

  // --------------------------------------------------------------------------------------------------------- the slots

  private take(claimed: readonly ClaimedJob[]): void {
    this.claims.put(claimed);
    let chars = 0;
    for (const job of claimed) {
      chars += job.body.length;
      if (isSuspect(job)) this.suspects += 1;
    }
    if (claimed.length > 0) this.prefetch.received(claimed.length, chars);
    this.fill();
  }

  /** Starts what fits. */
  private fill(): void {
    while (this.claims.size > 0 && this.runs.size < this.concurrency && this.state === 'running') {
      this.startedSinceLook += 1;
      this.begin(this.claims.take());
    }
    if (this.claims.size > 0) this.hoardTimer ??= setTimeout(() => this.lookAtHoard(), HOARD_MS);
  }

  private begin(job: ClaimedJob): void {
    const { failed } = job;
    const body = decodeBody(job.body);
    if (!body) return this.cannotRun(job, '', unrunnable('malformed', 'its body cannot be decoded', failed));
    const handler = this.parts.find(body.name);
    if (!handler) {
      const why = `no @Handle('${quoted(body.name).slice(1, -1)}') in the processors of queue '${this.queue}'`;
      this.logger.error(`${jobText(this.queue, job.id)} is dead: ${why}`);
      return this.cannotRun(job, body.name, unrunnable('no-handler', why, failed));
    }
    const { policy } = this.parts.queue;
    const own = mergeJobPolicy(body.options, policy, policy);
    const expires = expiresAt(body, own.expiresInMs);
    if (expires !== undefined && failed === 0 && this.parts.engine.now() > expires) {
      const why = `it was not started within ${own.expiresInMs} ms`;
      return this.cannotRun(job, body.name, unrunnable('expired', why, failed));
    }
    const run = new Run(job.id, failed + 1, isSuspect(job), body, own, this);
    this.runs.add(run);
    this.executor.start(run, handler);
  }

  private cannotRun(job: ClaimedJob, name: string, outcome: Outcome): void {
    if (isSuspect(job)) this.suspects -= 1;
    this.exchanger.settle({ id: job.id, name, attempt: job.failed, durationUs: 0, outcome });
  }

  private ended(run: Run): void {
    this.prefetch.count();
    this.leaveSlot(run);
    this.exchanger.settle(run);
    if (this.claims.size > 0) this.fill();
  }

  private leaveSlot(run: Run): void {
    this.runs.delete(run);
    if (run.suspect) this.suspects -= 1;
    this.slotFreed?.();
  }

  private lose(run: Run): void {
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
      this.exchanger.settle({ id: job.id, name, attempt: job.failed + 1, durationUs: 0, outcome: RELEASED });
    }
  }

  private lookAtHoard(): void {
    this.hoardTimer = undefined;
    if (this.claims.size === 0) return;
    if (this.startedSinceLook === 0) {
      this.prefetch.forget();
      this.releaseClaims();
    } else {
      this.startedSinceLook = 0;
      this.hoardTimer = setTimeout(() => this.lookAtHoard(), HOARD_MS);
    }
  }

  private sleepUntil(dueInMs: number | null): void {
    if (this.dueTimer) clearTimeout(this.dueTimer);
    this.dueTimer =
      dueInMs === null ? undefined : setTimeout(() => this.wake(), Math.min(dueInMs, MAX_TIMER_MS));
    if (this.runs.size < this.concurrency) this.parts.doorbell.join(this);
    else this.parts.doorbell.leave(this);
  }

  /** The store and this worker differ on what it holds: the store's view decides. */
  private async reconcile(): Promise<void> {
    this.mismatches = 0;
    const { worker } = this;
    try {
      const known = this.known();
      const answer = await this.parts.engine.adopt(this.queue, worker, known);
      if (worker !== this.worker || this.exchanger.busy || this.state !== 'running') return;
      const lost = new Set(answer.lost);
      for (const run of this.runs) if (lost.has(run.id)) this.lose(run);
      this.claims.drop(lost);
      const held = new Set(known);
      this.take(answer.unknown.filter((job) => !held.has(job.id)));
    } catch (error) {
      this.trouble(error as Error);
    }
  }
}

/** Jobs that have stalled this often come one at a time. */
function isSuspect(job: ClaimedJob): boolean {
  return job.stalls >= 2;
}

const LOST = 'a run ended after its job had been given to another worker; its outcome is not counted';
