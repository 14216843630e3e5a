import { outside } from '../contract/outside.js';
import { BatchOutcomeError, InvalidOptionError } from '../errors.js';
import type { Job } from '../job/job.js';
import { quoted } from '../job/text.js';
import type { CheckedBatch } from '../options/worker-options.js';
import type { HandledJob } from './handler.js';
import { isObservable } from './observable.js';
import { isSuspect } from './run.js';

/** Second argument of a method with `@HandleBatch`. It completes or fails single jobs of the batch. */
export interface JobBatch<Data = unknown> {
  /** Aborts when the signals of all jobs that have no outcome yet have aborted. Each job also has its own `job.signal`. */
  readonly signal: AbortSignal;
  /**
   * Completes one job now, with a result. Jobs of the batch that get no outcome then fail. Only the first outcome of a job
   * counts.
   *
   * @throws {InvalidOptionError} if the job is not in this batch
   */
  complete(job: Job<Data, any>, result?: unknown): void;
  /**
   * Fails one job now. The error means the same as an error that a handler throws: `Snooze`, `UnrecoverableError`, or a failed
   * attempt. Only the first outcome of a job counts.
   *
   * @throws {InvalidOptionError} if the job is not in this batch
   */
  fail(job: Job<Data, any>, error: unknown): void;
}

/** Calls a method with `@HandleBatch`. */
export type BatchMethod = (jobs: Job<any>[], batch: JobBatch<any>) => unknown;

/** A job of a batch, with the functions that settle the promise of its run. */
interface Member {
  readonly job: HandledJob;
  readonly since: number;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
  isDone: boolean;
}

/**
 * Collects the jobs of one handler, and calls its method with up to `size` of them. A batch has jobs of one group if `isByGroup` is
 * set. Each job is still a separate run: it passes the guards and interceptors alone, occupies a slot, and gets its own outcome.
 */
export class BatchGatherer {
  private waiting: Member[] = [];
  private isLooking = false;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly options: CheckedBatch,
    /** `Class.method`, for messages. */
    private readonly label: string,
    private readonly method: BatchMethod,
  ) {}

  /** Resolves or rejects with the outcome of this job. */
  readonly put = (job: HandledJob): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const member = { job, since: performance.now(), resolve, reject, isDone: false };
      // A suspect runs alone: if it kills the process again, no other job is lost with it.
      if (isSuspect(job)) return this.start([member]);
      this.waiting.push(member);
      this.lookSoon();
    });

  /** Calls the method with the jobs that wait, even if they are fewer than `minSize`. */
  flush(): void {
    const lists = this.lists();
    this.waiting = [];
    clearTimeout(this.timer);
    const { size } = this.options;
    for (const list of lists) while (list.length > 0) this.start(list.splice(0, size));
  }

  /** The jobs that wait, of which each list may run together. */
  private lists(): Member[][] {
    if (!this.options.isByGroup) return [this.waiting];
    const lists = new Map<string, Member[]>();
    for (const member of this.waiting) {
      const { queue, group } = member.job;
      const key = JSON.stringify([queue, group]);
      const list = lists.get(key);
      if (list) list.push(member);
      else lists.set(key, [member]);
    }
    return [...lists.values()];
  }

  // Looks after this tick: jobs of one claim start in the same tick, and so do jobs that take the slots of the previous batch.
  private lookSoon(): void {
    if (this.isLooking) return;
    this.isLooking = true;
    setImmediate(() => {
      this.isLooking = false;
      this.look();
    });
  }

  private look(): void {
    const { size, minSize, timeoutMs } = this.options;
    this.waiting = this.waiting.filter((member) => !hasEnded(member));
    const lists = this.lists();
    this.waiting = [];
    const now = performance.now();
    for (const list of lists) {
      while (list.length >= size) this.start(list.splice(0, size));
      const isComplete = list.length >= minSize || (list[0] && list[0].since + timeoutMs <= now);
      if (isComplete) this.start(list);
      else this.waiting.push(...list);
    }
    clearTimeout(this.timer);
    if (this.waiting.length === 0) return;
    for (const { job } of this.waiting) {
      if (job.onEnd) continue;
      job.onEnd = () => this.lookSoon();
      job.waits!(true);
    }
    if (!this.waiting[0]!.job.mayWait) return this.flush();
    const first = Math.min(...this.waiting.map(({ since }) => since));
    this.timer = setTimeout(() => this.look(), Math.ceil(first + timeoutMs - now));
  }

  private start(members: readonly Member[]): void {
    const alive = members.filter((member) => !hasEnded(member));
    if (alive.length === 0) return;
    for (const { job } of alive) {
      if (job.onEnd) job.waits!(false);
      job.onEnd = undefined;
    }
    // A batch belongs to none of its jobs: it runs in the async context of none of them.
    outside(() => void this.run(new Batch(this.label, alive)));
  }

  private async run(batch: Batch): Promise<void> {
    try {
      batch.returned(await this.method(batch.jobs, batch));
    } catch (error) {
      batch.threw(error);
    }
  }
}

/** Whether a job was aborted or has ended before its batch began. Such a job is left out. */
function hasEnded({ job, reject }: Member): boolean {
  if (job.aborted) reject(job.aborted);
  return job.aborted !== undefined || job.closed === true;
}

class Batch implements JobBatch<any> {
  readonly jobs: Job<any>[];
  /** A list, because jobs of several queues may have the same id. */
  private readonly byId = new Map<string, Member[]>();
  private controller: AbortController | undefined;
  /** Whether the handler gives outcomes job by job. Then a job without an outcome has failed. */
  private isExplicit = false;

  constructor(
    private readonly label: string,
    private readonly members: readonly Member[],
  ) {
    this.jobs = members.map(({ job }) => job);
    for (const member of members)
      this.byId.set(member.job.id, [...(this.byId.get(member.job.id) ?? []), member]);
  }

  get signal(): AbortSignal {
    if (!this.controller) {
      this.controller = new AbortController();
      for (const { job } of this.members)
        job.signal.addEventListener('abort', () => this.abortIfOver(), { once: true });
      this.abortIfOver();
    }
    return this.controller.signal;
  }

  /** A job with an outcome keeps its signal as it is, so it does not count. */
  private abortIfOver(): void {
    const open = this.members.filter(({ isDone }) => !isDone);
    const [first] = open;
    if (first && open.every(({ job }) => job.signal.aborted)) this.controller?.abort(first.job.signal.reason);
  }

  complete(job: Job<any>, result?: unknown): void {
    const member = this.memberOf(job, 'batch.complete()');
    this.isExplicit = true;
    done(member, () => member.resolve(result));
    if (this.controller) this.abortIfOver();
  }

  fail(job: Job<any>, error: unknown): void {
    const member = this.memberOf(job, 'batch.fail()');
    done(member, () => member.reject(error));
    if (this.controller) this.abortIfOver();
  }

  /** The method threw, or it returned something that cannot be matched to these jobs. */
  threw(error: unknown): void {
    for (const member of this.members) done(member, () => member.reject(error));
  }

  returned(value: unknown): void {
    if (Array.isArray(value)) this.returnedList(value);
    else if (value instanceof Map) this.returnedMap(value);
    else if (isObservable(value))
      this.threw(new BatchOutcomeError(this.label, 'returned an Observable; return a promise'));
    for (const member of this.members) {
      if (member.isDone) continue;
      done(member, () =>
        this.isExplicit ? member.reject(this.missing(member.job.id)) : member.resolve(undefined),
      );
    }
  }

  private returnedList(list: readonly unknown[]): void {
    const { jobs, members } = this;
    if (list.length === members.length) {
      // The method may have sorted its list of jobs. One that it has shortened, for example by `splice`, has no order any more.
      const sorted = new Set(jobs.map((job) => this.find(job)));
      const order = sorted.size === list.length && !sorted.has(undefined) ? sorted : members;
      for (const [i, member] of [...order].entries()) settle(member!, list[i]);
      return;
    }
    const what = `returned a list of ${list.length} outcomes for a batch of ${members.length}`;
    this.threw(
      new BatchOutcomeError(
        this.label,
        `${what}; return one for each job, in their order, or return nothing`,
      ),
    );
  }

  private returnedMap(map: ReadonlyMap<unknown, unknown>): void {
    this.isExplicit = true;
    for (const [key, outcome] of map) {
      const job = typeof key === 'object' && key !== null ? (key as Partial<Job>) : { id: key as string };
      const member = this.find(job);
      if (member) settle(member, outcome);
      else
        return this.threw(
          new BatchOutcomeError(
            this.label,
            `returned an outcome for ${quoted(String(job.id))}, which is not a job of the batch; the keys are the jobs, or their ids`,
          ),
        );
    }
  }

  private missing(id: string): BatchOutcomeError {
    return new BatchOutcomeError(
      this.label,
      `gave other jobs of the batch an outcome, but not job ${quoted(id)}; complete or fail each job`,
    );
  }

  private memberOf(job: Job<any>, path: string): Member {
    const member = this.find((job as Job | undefined) ?? {});
    if (member) return member;
    throw new InvalidOptionError(path, 'given a job of this batch', job);
  }

  private find({ id, queue }: Partial<Job>): Member | undefined {
    const found = this.byId.get(id as string);
    return found?.find(({ job }) => queue === undefined || job.queue === queue);
  }
}

function done(member: Member, tell: () => void): void {
  if (member.isDone) return;
  member.isDone = true;
  tell();
}

/** The outcome that a method returned for one job: an error, an entry of `Promise.allSettled`, or a result. */
function settle(member: Member, outcome: unknown): void {
  if (outcome instanceof Error) done(member, () => member.reject(outcome));
  else if (!isSettled(outcome)) done(member, () => member.resolve(outcome));
  else if (outcome.status === 'rejected') done(member, () => member.reject(outcome.reason));
  else done(member, () => member.resolve(outcome.value));
}

/** An entry has these two fields and no other. A result of the application may have a field `status` too. */
function isSettled(outcome: unknown): outcome is PromiseSettledResult<unknown> {
  if (typeof outcome !== 'object' || outcome === null) return false;
  const { status } = outcome as Partial<PromiseSettledResult<unknown>>;
  const other = status === 'fulfilled' ? 'value' : status === 'rejected' ? 'reason' : undefined;
  return other !== undefined && Object.hasOwn(outcome, other) && Object.keys(outcome).length === 2;
}
