import type { ClaimedJob, ExchangeAnswer, QueueEngine } from '../../contract/engine.js';
import { JobFailedError, ResultNotKeptError, WaitTimeoutError, type GodwitError } from '../../errors.js';
import { deathOf, NO_RETENTION, resultOf } from '../../events/job-wait.js';
import { MAX_DURATION_MS } from '../../job/duration.js';
import { decodeBody } from '../../job/job-record.js';
import type { SettledRun } from '../../job/outcome.js';
import { counted, quoted } from '../../job/text.js';
import type { QueueRegistry } from '../../module/queue.registry.js';
import type { QueueRuntime } from '../../module/queue.runtime.js';
import type { ResolvedQueueOptions } from '../../options/module-options.js';
import type { EndWait } from '../../producer/add-and-wait.js';
import type { QueuePlan } from '../../handlers/discovery/handler.registry.js';
import type { JobListeners } from '../../worker/job-listeners.js';
import type { FindHandler } from '../../worker/handler.js';
import type { Run } from '../../worker/run.js';
import { Runner, type EndedRun, type RunnerParts } from '../../worker/runner.js';
import type { Ending, JobRun, Records } from './records.js';
import { QueueTestingError, type TestBench } from './test-bench.js';
import type { TimeWalk } from './time-walk.js';

/** The fields of a job that a filter receives. */
export interface FilteredJob {
  /** The id that was passed, or generated. */
  readonly id: string;
  /** Name of the job; selects the handler. */
  readonly name: string;
  /** Data as it was added. */
  readonly data: any;
}

export type Matches = (job: FilteredJob) => boolean;

/** Runs jobs when the test calls for it, in all queues that have a processor. */
export class ManualWorkers {
  private readonly workers = new Map<string, ManualWorker>();

  constructor(
    private readonly bench: TestBench,
    private readonly runtime: QueueRuntime,
    private readonly registry: QueueRegistry,
  ) {}

  /** Whether jobs run only when the test calls for it. */
  get isManual(): boolean {
    return this.runtime.state !== 'running' && this.runtime.state !== 'draining';
  }

  /** Queues that have a processor, in the order of their registration. */
  get queues(): readonly string[] {
    const plans = this.plans();
    return this.registry.names().filter((name) => plans.has(name));
  }

  /** The handlers of this queue. */
  finderOf(queue: string): FindHandler {
    return this.planOf(queue).find;
  }

  private planOf(queue: string): QueuePlan {
    const plan = this.plans().get(queue);
    if (plan) return plan;
    throw new QueueTestingError(
      `no processor of queue '${queue}' is among the providers of this module, so its jobs cannot run here`,
    );
  }

  /** Runs the next job, or the first waiting job that matches. */
  async runNext(queue: string, what: string, matches?: Matches): Promise<JobRun> {
    const run = await this.tryNext(queue, what, matches);
    if (run) return run;
    const isMissing = matches !== undefined && !this.waiting(queue).some(matches);
    throw new QueueTestingError(`${what}: ${await this.whyNothing(queue, isMissing)}`);
  }

  /** Like `runNext`, but resolves to null if no such job can start. */
  async tryNext(queue: string, what: string, matches?: Matches): Promise<JobRun | null> {
    this.refuseWhileWorkersRun(what);
    const worker = this.workerOf(queue);
    // Due jobs count as waiting, but nothing has moved them yet.
    await this.bench.promoteDue(queue);
    const next = matches && this.waiting(queue).find(matches);
    const first = next ? () => this.bringForward(queue, next.id) : undefined;
    return matches && !next ? null : worker.runNext(first);
  }

  /** When limits allow the next start in one of these queues, as of their last claims. Infinity if no time is known. */
  opensAt(queues: readonly string[]): number {
    return Math.min(Infinity, ...queues.map((queue) => this.workers.get(queue)?.opensAt ?? Infinity));
  }

  /**
   * Runs all waiting jobs of these queues, and the jobs that those add, one at a time; the queues take turns. Appends to `runs`.
   */
  async drain(queues: readonly string[], what: string, limit: number, runs: JobRun[]): Promise<void> {
    this.refuseWhileWorkersRun(what);
    const workers = queues.map((queue) => this.workerOf(queue));
    for (let before = -1; before < runs.length;) {
      before = runs.length;
      for (const worker of workers) {
        // oxlint-disable-next-line no-await-in-loop -- one at a time, so that a test sees the same order every time
        const run = await worker.runNext();
        if (run) runs.push(run);
        if (run && runs.length > limit) throw this.endless(what, limit, run);
      }
    }
  }

  /** The run of this job that has begun and not ended. */
  running(queue: string, id: string): Promise<JobRun> | undefined {
    return this.workers.get(queue)?.ends.get(id);
  }

  cancelled(queue: string, id: string, reason: string): void {
    this.workers.get(queue)?.cancel(id, reason);
  }

  private refuseWhileWorkersRun(what: string): void {
    if (this.isManual) return;
    throw new QueueTestingError(
      `${what}: the workers run by themselves here (autoStart); wait for them with testing.idle()`,
    );
  }

  private workerOf(queue: string): ManualWorker {
    let worker = this.workers.get(queue);
    if (!worker) {
      const { bench } = this;
      const plan = this.planOf(queue);
      worker = new ManualWorker(bench.engine, this.registry.optionsOf(queue), plan, bench.recordsOf(queue));
      this.workers.set(queue, worker);
    }
    return worker;
  }

  private plans(): ReadonlyMap<string, QueuePlan> {
    const { prepared } = this.runtime;
    if (prepared === null) {
      throw new QueueTestingError(
        'the module is not initialised, so no handler is known yet: await module.init() after compile() (or app.init())',
      );
    }
    return new Map(prepared.plans.flatMap(({ queues }) => queues.map((plan) => [plan.queue, plan])));
  }

  /** The waiting jobs, in the order in which they would be claimed. */
  private waiting(queue: string): FilteredJob[] {
    const { wait, prioritized, limits } = this.bench.store.at(queue);
    return [...wait, ...prioritized.sorted(), ...limits.grouped.sorted()].map(({ id, name, body }) => ({
      id,
      name,
      data: decodeBody(body)?.data,
    }));
  }

  private bringForward(name: string, id: string): void {
    const queue = this.bench.store.at(name);
    const job = queue.jobs.get(id);
    if (job?.place === 'grouped') return queue.limits.bringForward(job);
    if (job?.place !== 'wait' && job?.place !== 'prioritized') return;
    queue.leave(job);
    queue.wait.unshift(job);
  }

  private async whyNothing(queue: string, isMissing: boolean): Promise<string> {
    const { waiting, delayed, paused } = await this.bench.engine.admin.counts(queue);
    if (paused) return `queue '${queue}' is paused, so none of its ${waiting} waiting jobs is claimed`;
    if (isMissing && waiting > 0) {
      const there = this.waiting(queue).slice(0, 10);
      const names = there.map(({ name, id }) => `${quoted(name)} (${id})`).join(', ');
      const more = waiting > there.length ? ` and ${waiting - there.length} more` : '';
      return `no waiting job of queue '${queue}' matches; waiting: ${names}${more}`;
    }
    const now = new Date(this.bench.clock.now()).toISOString();
    if (waiting > 0) {
      const opensAt = this.opensAt([queue]);
      const groups = this.bench.store.at(queue).limits.groups();
      const paused = groups
        .filter(({ rule, waiting: count }) => rule.paused && count > 0)
        .map(({ field }) => quoted(field.slice(2)));
      if (opensAt === Infinity && paused.length > 0)
        return `no job of queue '${queue}' may start: ${paused.length === 1 ? `group ${paused[0]} is` : `groups ${paused.join(', ')} are`} paused`;
      const until = opensAt < Infinity ? ` before ${new Date(opensAt).toISOString()}` : '';
      return `limits of queue '${queue}' let none of its ${counted(waiting, 'waiting job')} start${until}; now it is ${now}: testing.advance() moves the clock`;
    }
    if (delayed === 0) return `nothing waits in queue '${queue}', and nothing is delayed`;
    const due = new Date(this.bench.store.at(queue).delayed.first!.score).toISOString();
    return `nothing waits in queue '${queue}'; ${delayed} delayed, the first until ${due}, and now it is ${now}: testing.advance() moves the clock`;
  }

  private endless(what: string, limit: number, { queue, name, id }: JobRun): QueueTestingError {
    return new QueueTestingError(
      `${what} has run more than ${counted(limit, 'job')} and would not end; the last was ${quoted(name)} (${id}) of queue '${queue}'. ` +
        'Do handlers add jobs endlessly? { limit } allows more runs',
    );
  }
}

let workers = 0;

/** A runner that records what handlers returned and threw. */
export class WatchedRunner extends Runner {
  private readonly endings = new WeakMap<EndedRun, Ending>();

  constructor(
    parts: Omit<RunnerParts, 'ended' | 'unhandledMs'>,
    ended: (run: SettledRun, ending: Ending) => void,
  ) {
    // No other process runs these jobs, so none is lost, and no other process could have a missing handler.
    super({
      ...parts,
      queue: { ...parts.queue, unknownJob: 'dead' },
      unhandledMs: async () => 0,
      ended: (run) => ended(run as SettledRun, this.endings.get(run) ?? {}),
    });
  }

  protected override completed(run: Run, result: unknown): void {
    this.endings.set(run, this.ending(run, { result }));
    super.completed(run, result);
  }

  protected override failed(run: Run, error: unknown): void {
    if (!run.isDecided) this.endings.set(run, this.ending(run, { error }));
    super.failed(run, error);
  }

  private ending(run: Run, ending: Ending): Ending {
    return run.aborted?.reason === 'cancelled' ? { ...ending, isCancelled: true } : ending;
  }
}

/** A worker of one queue that runs one job at a time, when the test calls for it. */
class ManualWorker {
  /** Runs in progress, by the id of the job. */
  readonly ends = new Map<string, Promise<JobRun>>();
  /** When limits allow the next start, as of the last claim. Infinity if they do not delay it, or no time is known. */
  opensAt = Infinity;
  private worker = newWorker();
  private seq = 0;
  private turn: Promise<unknown> = Promise.resolve();
  private readonly ended = new Map<string, (run: SettledRun) => void>();
  private readonly runner: WatchedRunner;
  private readonly listeners: JobListeners;

  constructor(
    private readonly engine: QueueEngine,
    private readonly queue: ResolvedQueueOptions,
    { find, listeners }: QueuePlan,
    private readonly records: Records,
  ) {
    const note: RunnerParts['note'] = async (call) => {
      await engine.note(queue.name, { worker: this.worker, ...call });
      return true;
    };
    this.listeners = listeners;
    const charge: RunnerParts['charge'] = (changes) => engine.limits.charge(queue.name, changes);
    const parts = { queue, find, now: () => engine.now(), note, charge, listeners };
    this.runner = new WatchedRunner(parts, (run, ending) => {
      records.ends(run, ending);
      this.ended.get(run.id)!(run);
    });
  }

  /** Runs the next job to its end; resolves to null if none can be claimed. `first` is called right before the claim. */
  async runNext(first?: () => void): Promise<JobRun | null> {
    const answer = await this.exchange([], 1, first);
    if (answer.kind !== 'exchanged') return null;
    this.runner.countedAt = answer.startsAtOnce ? answer.claimedAt : null;
    const { supply } = answer;
    this.opensAt = typeof supply === 'string' ? Infinity : this.engine.now() + supply.limitedForMs;
    const [job] = answer.claimed;
    return job ? this.run(job) : null;
  }

  cancel(id: string, reason: string): void {
    for (const run of this.runner.runs) if (run.id === id) run.abort('cancelled', reason);
  }

  private run({ id, ...job }: ClaimedJob): Promise<JobRun> {
    const ended = new Promise<SettledRun>((resolve) => this.ended.set(id, resolve));
    const end = ended
      .then(async (run) => {
        const answer = await this.exchange([run], 0);
        if (answer.kind === 'exchanged') this.listeners.confirmed([run], answer.lost);
        else this.listeners.dropped();
        const { digest } = run as EndedRun;
        if (digest !== undefined) await this.engine.upkeep.freeKeys(this.queue.name, [digest]);
        await this.listeners.idle();
        return this.records.of(run)!;
      })
      .finally(() => this.ends.delete(id));
    this.ends.set(id, end);
    this.runner.start({ id, ...job });
    return end;
  }

  /** Exchanges are sent one after the other, because they are numbered. */
  private exchange(
    settled: readonly SettledRun[],
    want: number,
    before?: () => void,
  ): Promise<ExchangeAnswer> {
    const answer = this.turn.then(async () => {
      before?.();
      const first = await this.send(settled, want);
      // The queue was obliterated, so its record of this worker is gone: try again as a new worker.
      if (first.kind === 'exchanged' || want === 0) return first;
      before?.();
      const again = await this.send([], want);
      if (again.kind === 'exchanged') return again;
      throw new QueueTestingError(`queue '${this.queue.name}' cannot be run by the test: ${again.kind}`);
    });
    this.turn = answer.catch(() => undefined);
    return answer;
  }

  private async send(settled: readonly SettledRun[], want: number): Promise<ExchangeAnswer> {
    this.seq += 1;
    const { worker, seq } = this;
    // The longest lease, because nothing renews it.
    const call = { worker, seq, leaseMs: MAX_DURATION_MS, want, maySuspect: true, settled };
    const answer = await this.engine.exchange(this.queue.name, call);
    if (answer.kind !== 'exchanged') {
      this.worker = newWorker();
      this.seq = 0;
    }
    return answer;
  }
}

function newWorker(): string {
  workers += 1;
  return `manual.${workers}`;
}

/**
 * Waits for the end of a job when workers do not run by themselves. It runs the job; if the job is delayed, it first moves the
 * clock forward to the due time.
 */
export class ManualWait implements EndWait {
  readonly ready = Promise.resolve();

  constructor(
    private readonly queue: string,
    private readonly id: string,
    private readonly bench: TestBench,
    private readonly workers: ManualWorkers,
    private readonly walk: TimeWalk,
  ) {}

  cancel(): void {
    // There is no subscription to cancel.
  }

  /** The timeout is by the clock of the test, which has stood still until now. */
  async outcome(_: number, { waitMs }: { readonly waitMs: number }): Promise<unknown> {
    const { queue, id, bench } = this;
    const untilMs = bench.clock.now() + waitMs;
    let ran: JobRun | undefined;
    for (;;) {
      // oxlint-disable-next-line no-await-in-loop -- one step after the other
      const job = await bench.engine.admin.get(queue, id);
      if (!job) throw await this.gone(ran);
      if (job.state === 'cancelled')
        throw new JobFailedError(queue, id, 'cancelled', job.cancelReason ?? 'no reason is known');
      if (job.state === 'completed') {
        const result = resultOf(queue, job);
        if ('error' in result) throw result.error;
        return result.value;
      }
      if (job.state === 'dead') throw deathOf(queue, id, job.failure?.reason ?? 'unknown', job.failure);
      if (job.state === 'active') ran = await this.running();
      else if (job.state === 'waiting') ran = await this.start(untilMs, waitMs);
      else await this.delayed(job.dueAt ?? untilMs, untilMs, waitMs);
    }
  }

  private async running(): Promise<JobRun> {
    const run = this.workers.running(this.queue, this.id);
    if (run) return run;
    throw new QueueTestingError(`addAndWait(): job '${this.id}' of queue '${this.queue}' runs elsewhere`);
  }

  /** Runs the waiting job. If limits delay its start, moves the clock to the time when they allow it. */
  private async start(untilMs: number, waitMs: number): Promise<JobRun | undefined> {
    const { queue, id, workers } = this;
    const isThis: Matches = (job) => job.id === id;
    const run = await workers.tryNext(queue, 'addAndWait()', isThis);
    if (run) return run;
    const opensAt = workers.opensAt([queue]);
    if (opensAt === Infinity) return workers.runNext(queue, 'addAndWait()', isThis);
    await this.delayed(opensAt, untilMs, waitMs);
    return undefined;
  }

  private async delayed(dueAt: number, untilMs: number, waitMs: number): Promise<void> {
    await this.walk.to(Math.min(dueAt, untilMs));
    if (dueAt > untilMs) throw new WaitTimeoutError(this.queue, this.id, waitMs);
  }

  private async gone(ran: JobRun | undefined): Promise<GodwitError> {
    if (ran?.outcome === 'completed') return new ResultNotKeptError(this.queue, this.id, NO_RETENTION);
    const cancelled = await this.bench.engine.admin.cancelled(this.queue, this.id);
    const [reason, message] = cancelled ? ['cancelled', cancelled.reason] : ['removed', 'it had not ended'];
    return new JobFailedError(this.queue, this.id, reason, message);
  }
}
