import { attemptOf, deadRecord } from '../contract/upkeep-verbs.js';
import type { QueueLimits } from '../contract/engine.js';
import type { Mutable, NameStats } from '../contract/stats.js';
import type { FailureRecord, SettledRun } from '../job/outcome.js';
import { RULES } from '../job/rules.js';
import type { Saying } from './event-log.js';
import type { MemoryJob } from './memory-job.js';
import type { Ended, MemoryQueue } from './memory-queue.js';
import type { MemoryWorker } from './memory-worker.js';

/** The outcome of a batch of settlements. */
interface Settlement {
  /** Ids that the worker no longer held. */
  readonly lost: string[];
  /** Ids that did not complete and were cancelled. */
  readonly cancelled: string[];
  readonly says: (Saying | null)[];
  /** The earliest due time among the retries. */
  readonly soonest: number;
}

type Kind = SettledRun['outcome']['kind'];
type OutcomeOf<K extends Kind> = Extract<SettledRun['outcome'], { kind: K }>;

/** Settles the runs of a worker, each only if the worker still holds the job. */
export function settle(
  queue: MemoryQueue,
  worker: MemoryWorker,
  runs: readonly SettledRun[],
  limits: QueueLimits,
): Settlement {
  return new Settling(queue, worker, runs, limits).settle();
}

class Settling {
  private readonly lost: string[] = [];
  private readonly ended: Ended[] = [];
  private readonly rows = new Map<string, Mutable<NameStats>>();
  private soonest = Infinity;
  private died = 0;

  constructor(
    private readonly queue: MemoryQueue,
    private readonly worker: MemoryWorker,
    private readonly runs: readonly SettledRun[],
    private readonly limits: QueueLimits,
  ) {
    // Names are counted in this order, so that the limit of names per day works as on Redis.
    for (const { name } of runs)
      if (!this.rows.has(name)) this.rows.set(name, { processed: 0, failed: 0, dead: 0 });
  }

  settle(): Settlement {
    const { queue, limits } = this;
    this.completeAll();
    this.each('completed', (run, outcome) => outcome.keep && this.keep(run, outcome.keep));
    if (queue.completed.size > 0) queue.trimCompleted(limits);
    this.each('retried', (run, outcome) => this.retry(run, outcome));
    this.each('dead', (run, outcome) => this.die(run, outcome));
    const released: MemoryJob[] = [];
    this.each('released', (run, { started = false }) => {
      const job = this.goesOn(run);
      if (!job) return;
      queue.limits.release(job, 'moved');
      job.started ||= started;
      released.push(job);
    });
    queue.toHead(released);
    for (const [name, row] of this.rows)
      for (const kind of ['processed', 'failed', 'dead'] as const)
        queue.counters.count(queue.now, kind, name, row[kind]);

    const says = this.sayings();
    says.push(...queue.endCancelled(this.ended, 1));
    if (this.died > 0) says.push(...queue.trimDead(limits));
    return { lost: this.lost, cancelled: this.ended.map(({ job }) => job.id), says, soonest: this.soonest };
  }

  private each<K extends Kind>(kind: K, act: (run: SettledRun, outcome: OutcomeOf<K>) => void): void {
    for (const run of this.runs) if (run.outcome.kind === kind) act(run, run.outcome as OutcomeOf<K>);
  }

  /** If all jobs are held, a job named twice counts once. Otherwise its second entry is reported as lost. */
  private completeAll(): void {
    const { held } = this.worker;
    const plain: SettledRun[] = [];
    this.each('completed', (run, { keep }) => void (keep ?? plain.push(run)));
    const allHeld = plain.every(({ id }) => held.has(id));
    for (const run of plain) {
      const job = held.get(run.id);
      if (job) {
        this.queue.forget(job);
        this.rowOf(run).processed += 1;
      } else if (!allHeld) this.lost.push(run.id);
    }
  }

  private keep(run: SettledRun, { forMs, ...kept }: NonNullable<OutcomeOf<'completed'>['keep']>): void {
    const job = this.held(run);
    if (!job) return;
    const { now } = this.queue;
    const { attempt, durationUs, stalls } = run;
    this.queue.keep(job, now + forMs, { at: now, attempt, durationUs, stalls, ...kept });
    this.rowOf(run).processed += 1;
  }

  private retry(run: SettledRun, outcome: OutcomeOf<'retried'>): void {
    const { queue } = this;
    const job = this.goesOn(run);
    if (!job) return;
    queue.limits.release(job, 'moved');
    if (outcome.started !== false) job.started = true;
    if (outcome.counted) this.countFailed(job, run);
    if (outcome.failure) job.failure = { at: queue.now, json: JSON.stringify(outcome.failure) };
    this.noteAttempt(job, run);
    const delayMs = Math.ceil(outcome.delayMs);
    if (delayMs > 0) {
      queue.delay(job, queue.now + delayMs, outcome.priority);
      this.soonest = Math.min(this.soonest, queue.now + delayMs);
    } else queue.lineUp(job, outcome.priority);
  }

  private die(run: SettledRun, { failure, reason, counted }: OutcomeOf<'dead'>): void {
    const job = this.goesOn(run);
    if (!job) return;
    this.queue.bury(job, deadRecord(failure, reason));
    this.noteAttempt(job, run);
    if (counted) this.countFailed(job, run);
    this.rowOf(run).dead += 1;
    this.died += 1;
  }

  private noteAttempt(job: MemoryJob, run: SettledRun): void {
    const entry = attemptOf(run, this.worker.name);
    if (!entry) return;
    const earlier = entry.attempt === 1 ? [] : job.failures;
    job.failures = [...earlier, { at: this.queue.now, ...entry }].slice(-RULES.attemptsKept);
  }

  private countFailed(job: MemoryJob, run: SettledRun): void {
    job.failed += 1;
    this.rowOf(run).failed += 1;
  }

  private rowOf({ name }: SettledRun): Mutable<NameStats> {
    return this.rows.get(name)!;
  }

  private held({ id }: SettledRun): MemoryJob | undefined {
    const job = this.worker.held.get(id);
    if (!job) this.lost.push(id);
    return job;
  }

  /** Takes the job from the worker. Undefined if it was lost or cancelled. */
  private goesOn(run: SettledRun): MemoryJob | undefined {
    const job = this.held(run);
    return job && this.queue.takeBack(job, this.ended) ? job : undefined;
  }

  /** One event per run, grouped by outcome. A lost run only uses up a number. */
  private sayings(): (Saying | null)[] {
    const { runs, limits } = this;
    const vain = new Set(this.lost);
    for (const { job } of this.ended) vain.add(job.id);
    if (limits.maxEvents === 0 || runs.length <= this.lost.length + this.ended.length) return [];
    const groups: Record<'completed' | 'retrying' | 'delayed' | 'dead' | 'released', (Saying | null)[]> = {
      completed: [],
      retrying: [],
      delayed: [],
      dead: [],
      released: [],
    };
    for (const run of runs) {
      const saying = sayingOf(run);
      groups[saying.type].push(vain.has(run.id) ? null : saying);
    }
    return Object.values(groups).flat();
  }
}

function sayingOf({ id, name, attempt, durationUs, outcome }: SettledRun) {
  const common = { id, name, attempt };
  switch (outcome.kind) {
    case 'completed':
      return {
        type: outcome.kind,
        ...common,
        durationUs,
        progress: outcome.eventResult?.result,
        reason: outcome.eventResult?.resultFault,
      };
    case 'retried': {
      const delayMs = Math.ceil(outcome.delayMs);
      if (!outcome.counted) return { type: 'delayed' as const, ...common, delayMs };
      return { type: 'retrying' as const, ...common, durationUs, delayMs, error: brief(outcome.failure) };
    }
    case 'dead':
      return {
        type: outcome.kind,
        ...common,
        durationUs,
        reason: outcome.reason,
        error: brief(outcome.failure),
      };
    case 'released':
      return { type: outcome.kind, ...common };
  }
}

/** Events contain the error without its stack. The job keeps the stack. */
function brief(failure: FailureRecord | null): FailureRecord | null {
  return failure && { name: failure.name, message: failure.message.slice(0, 500), attempt: failure.attempt };
}
