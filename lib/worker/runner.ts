import type { ClaimedJob, NoteCall } from '../contract/engine.js';
import { tracedEnd } from '../contract/observer.js';
import type { LimitCharge, LimitField } from '../contract/limit-verbs.js';
import { LinkedSet } from '../contract/linked-set.js';
import { Log } from '../contract/log.js';
import { WrongStateError } from '../errors.js';
import { inQuotes } from '../errors/show.js';
import { messageOf, read } from '../errors/thrown.js';
import { MAX_TIMER_MS } from '../job/duration.js';
import { decodeBody, expiresAt, NO_OPTIONS, type StoredJobOptions } from '../job/job-record.js';
import type { KeptResult, Outcome, SettledRun } from '../job/outcome.js';
import { encodeResult, type PayloadMode } from '../job/payload.js';
import { jobText, quoted, whose } from '../job/text.js';
import { isThenable } from '../job/thenable.js';
import { validateItems, validatePayload } from '../job/define-job.js';
import { mergeJobPolicy, type JobPolicy } from '../options/job-options.js';
import { maxResultBytes } from '../options/bounds.js';
import type { ResolvedQueueOptions } from '../options/module-options.js';
import type { RunTrace } from '../options/telemetry.js';
import { obeys, type FindHandler, type HandlerEntry } from './handler.js';
import type { JobListeners } from './job-listeners.js';
import { followStream, isObservable } from './observable.js';
import { FailureLog } from './failure-log.js';
import type { RunReports } from './run-reports.js';
import { Run, type Note, type NoteWriter } from './run.js';
import { heldBack, withinLimits, RELEASED, UnknownJobs, unrunnable, verdictOf } from './verdict.js';

const COMPLETED = { kind: 'completed' } as const;
/** Most job names without a handler that are remembered as logged. Jobs of further names are logged each time. */
const MAX_MISSING = 1_000;

/** A run that is over, or a job that cannot run. */
export interface EndedRun extends Omit<SettledRun, 'outcome'> {
  readonly stalls: number;
  /** The digest of the unique key of the job, if it has one. */
  readonly digest?: string | undefined;
  /** Undefined if the worker has lost the job: then there is nothing to settle. */
  readonly outcome: Outcome | undefined;
}

export interface RunnerParts {
  readonly queue: ResolvedQueueOptions;
  readonly find: FindHandler;
  /** Whether further jobs may come to fill a batch. @default never */
  readonly mayWait?: () => boolean;
  /** The store's clock. */
  readonly now: () => number;
  /** How long no live process has had a handler for this job name. */
  readonly unhandledMs: (name: string) => Promise<number>;
  /** Stores progress or a log line of a running job. Resolves to whether the worker still holds the job. */
  readonly note: (call: Omit<NoteCall, 'worker'>) => Promise<boolean>;
  /** Reports the cost of a run to limits, or stops all starts for a while. */
  readonly charge: (changes: readonly LimitCharge[]) => Promise<void>;
  /** Called when a hold is stored: jobs that were claimed ahead must not start. */
  readonly held?: () => void;
  /** Set if the queue has circuit breakers or retry budgets. */
  readonly reports?: Pick<RunReports, 'completed' | 'failed' | 'unbooked'> | undefined;
  /** Methods with `@OnJob`. */
  readonly listeners?: JobListeners | undefined;
  /** Begins the trace of a run. */
  readonly trace?: ((run: Run) => RunTrace) | undefined;
  /** Called exactly once for each job that was started. */
  readonly ended: (run: EndedRun) => void;
  /** Called for each claimed job that goes back without a run. */
  readonly goesBack?: (id: string, digest: string | undefined) => void;
}

/**
 * Runs claimed jobs of one queue, each from its body to its outcome:
 *
 * 1. `resolve`: decode the body, merge its options with those of the queue, find the handler. A job that cannot run ends here;
 * 2. `limit`: start the timer of its `timeout` or `deadline`;
 * 3. `validate`: check the data against the schema of its definition;
 * 4. `call` the handler, and wait for the promise or the Observable that it returns;
 * 5. `returned` or `failed`: decide the outcome from what the handler returned or threw;
 * 6. `end`: close the run and pass it on to be settled, exactly once.
 *
 * If a handler returns or throws after its run was closed (it exceeded its time, or lost its job), that is logged and ignored.
 */
export class Runner implements NoteWriter {
  /** The runs that have not ended, in the order in which they began. */
  readonly runs = new LinkedSet<Run>();
  readonly queue: string;
  readonly maxPayloadBytes: number;
  readonly payloads: PayloadMode;
  isDraining = false;
  /**
   * When limits counted the starts of the claimed jobs, in ms since 1970 by the clock of the store. Null if they count none, so jobs
   * may be claimed ahead.
   */
  countedAt: number | null = null;
  private readonly logger = new Log('QueueWorker');
  private readonly failureLog: FailureLog;
  private readonly unknownJobs: UnknownJobs;
  /** The starts that limits have counted for jobs whose handler was not called. */
  private unused = new Map<LimitField, number>();
  /** The longest hold of each limit that is not sent yet, and the call that will send it. */
  private holds = new Map<LimitField, LimitCharge>();
  private sendingHolds: Promise<void> | undefined;
  /** Names without a handler, and unknown limits in quotes, that were logged. */
  private readonly missing = new Set<string>();
  /** Whether `completed` events contain results. */
  private readonly hasResultEvents: boolean;
  private readonly policies = new WeakMap<HandlerEntry, JobPolicy>();
  private onEnd: (() => void) | undefined;

  constructor(private readonly parts: RunnerParts) {
    const { name, maxPayloadBytes, payloads, events, unknownJob, unknownJobTimeoutMs } = parts.queue;
    this.queue = name;
    this.hasResultEvents = events.results && events.max > 0;
    this.maxPayloadBytes = maxPayloadBytes;
    this.payloads = payloads;
    this.failureLog = new FailureLog(name, parts.queue.log);
    this.unknownJobs = new UnknownJobs(unknownJob, unknownJobTimeoutMs, parts.unhandledMs);
  }

  start(job: ClaimedJob): void {
    if (job.unreadable)
      this.logger.warn(
        `${jobText(this.queue, job.id)}: the number of its failed attempts or of its stalls cannot be read and counts as 0; Queue.repair() fixes it`,
      );
    const run = this.resolve(job);
    if (!run) return;
    this.runs.add(run);
    run.countedAt = this.countedAt;
    run.trace = this.parts.trace?.(run);
    this.limit(run);
    this.validate(run);
  }

  now(): number {
    return this.parts.now();
  }

  get mayWait(): boolean {
    return this.parts.mayWait?.() ?? false;
  }

  /** How many runs wait for a batch. */
  get gathering(): number {
    let count = 0;
    for (const run of this.runs) if (run.onEnd) count += 1;
    return count;
  }

  waits(run: Run, isWaiting: boolean): void {
    // It begins now, after the runs that began while it waited.
    this.runs.delete(run);
    this.runs.add(run);
    this.limit(run, isWaiting);
  }

  /** Starts the jobs that wait for a batch. */
  flush(): void {
    for (const run of this.runs) run.handler.flush?.();
  }

  /** Resolves when the next run ends. */
  nextEnd(): Promise<void> {
    return new Promise((resolve) => (this.onEnd = resolve));
  }

  /** Called when no further run will begin. */
  drained(): void {
    this.failureLog.flush();
  }

  /**
   * The last answer says when its jobs were counted.
   *
   * @param isLate whether some were counted earlier. A time that is too early is safe: what it takes back frees no later start.
   */
  answered(at: number | null, isLate: boolean): void {
    this.countedAt = at !== null && isLate ? (this.countedAt ?? 0) : at;
  }

  /** A claimed job goes back without a run. */
  goesBack(id: string, name: string, options: StoredJobOptions): void {
    this.parts.goesBack?.(id, options.digest);
    this.notStarted(name, options);
  }

  /** The handler of a claimed job is not called, so limits must not count its start. */
  private notStarted(name: string, { group, cost = 1 }: StoredJobOptions): void {
    const { countedAt } = this;
    if (countedAt === null) return;
    // One call takes back the starts of all jobs that one answer brought.
    if (this.unused.size === 0) queueMicrotask(() => this.takeBackUnused(countedAt));
    for (const field of this.limitsOf(name, group ?? null))
      this.unused.set(field, (this.unused.get(field) ?? 0) + cost);
  }

  private takeBackUnused(countedAt: number): void {
    // A handler that runs may be that of a probe.
    const probesAgain = this.runs.size === 0;
    const changes = [...this.unused].map(([field, count]) => ({
      field,
      holdMs: 0,
      count: -count,
      countedAt,
      probesAgain,
    }));
    this.unused = new Map();
    // Not awaited: if this call fails, fewer jobs start for a while.
    this.parts.charge(changes).catch(() => undefined);
  }

  /** Gives back a job whose handler still runs. */
  giveUp(run: Run): void {
    if (!run.closed) this.end(run, RELEASED);
  }

  /** Another worker runs the job now. */
  lose(run: Run): void {
    this.end(run, undefined);
    run.abort('lease-lost', 'this worker was silent for longer than its lease; another one runs the job');
  }

  /** Stores progress or a log line of a run. */
  async note(run: Run, what: Note): Promise<void> {
    if (what.data !== undefined) return this.update(run, what.data);
    if (run.closed) return;
    const { id, name, attempt } = run;
    let isHeld = true;
    try {
      isHeld = await this.parts.note({ id, name, attempt, ...what });
    } catch (error) {
      // Progress is only for display. A failure to write it must not fail the job.
      this.logger.debug(`${jobText(this.queue, id)}: progress or log not written: ${messageOf(error)}`);
    }
    if (!isHeld && !run.closed) this.lose(run);
  }

  async charge({ name, group, countedAt }: Run, more: number): Promise<void> {
    const fields = this.limitsOf(name, group);
    await this.parts.charge(
      fields.map((field) => ({ field, holdMs: 0, count: more, countedAt: countedAt ?? 0 })),
    );
  }

  /** Stores new data of the job. Unlike progress it is part of the job, so the handler gets an error if it cannot be stored. */
  private async update(run: Run, data: string): Promise<void> {
    const { id, name, attempt } = run;
    const isHeld = !run.closed && (await this.parts.note({ id, name, attempt, data }));
    if (isHeld) return;
    if (!run.closed) this.lose(run);
    throw (
      run.aborted ??
      new WrongStateError(this.queue, `job ${quoted(id)}`, 'over', 'update it before its run ends')
    );
  }

  // ------------------------------------------------------------------------------------------------------- the steps

  private resolve(job: ClaimedJob): Run | null {
    const { queue, find, now } = this.parts;
    const body = decodeBody(job.body);
    if (!body)
      return this.cannotRun(job, '', unrunnable('malformed', 'its body cannot be decoded', job.failed));
    const { name, options } = body;
    const handler = find(name);
    const defaults = handler?.policy ? this.defaultsOf(handler) : queue.policy;
    const policy =
      options === NO_OPTIONS ? defaults : mergeJobPolicy(options, defaults, defaults, queue.backoffs);
    const expires = expiresAt(body, policy.expiresInMs);
    if (expires !== undefined && isNew(job) && now() > expires) {
      const why = `it was not started within ${policy.expiresInMs} ms`;
      return this.cannotRun(job, name, unrunnable('expired', why, job.failed));
    }
    const { deadline } = options;
    if (deadline !== undefined && now() >= deadline) {
      const why = `its deadline was ${new Date(deadline).toISOString()}`;
      return this.cannotRun(job, name, unrunnable('expired', why, job.failed));
    }
    if (!handler) {
      const why = `no @Handle('${quoted(name).slice(1, -1)}') in the processors of queue '${this.queue}' (is the class in providers?)`;
      const outcome = this.unknownJobs.outcomeOf(job, body, policy, why, now());
      this.complain(job.id, name, outcome, why);
      return this.cannotRun(job, name, outcome);
    }
    if (body.codec !== undefined) {
      const why = `its data is encoded with ${quoted(body.codec)}, which this version cannot decode; retry it where a newer one runs`;
      const outcome = unrunnable('undecodable', why, job.failed);
      return this.cannotRun(job, name, outcome);
    }
    return new Run(job, body, policy, handler, this);
  }

  private limit(run: Run, isWaiting = false): void {
    const { deadline, policy } = run;
    const { timeoutMs = Infinity } = isWaiting ? {} : policy;
    if (timeoutMs === Infinity && deadline === undefined) return;
    const leftMs = deadline === undefined ? Infinity : deadline - this.parts.now();
    const isDeadline = leftMs < timeoutMs;
    // Node has no timer that long. No run lasts until such a deadline.
    if (isDeadline && leftMs > MAX_TIMER_MS) return;
    const timedOut = () => {
      if (run.closed) return;
      const why = isDeadline ? 'its deadline has passed' : `it took longer than ${timeoutMs} ms`;
      this.failed(run, run.abort(isDeadline ? 'deadline' : 'timeout', `${why}${notCalled(run)}`));
    };
    run.timer = setTimeout(timedOut, Math.min(isDeadline ? leftMs : timeoutMs, MAX_TIMER_MS));
  }

  private validate(run: Run): void {
    const { definition } = run.handler;
    if (!definition?.schema) return this.call(run);
    let checked: unknown;
    let later: PromiseLike<unknown> | undefined;
    try {
      checked =
        run.isCollected && Array.isArray(run.data)
          ? validateItems(definition, run.data, 'handler')
          : validatePayload(definition, run.data, 'handler');
      if (isThenable(checked)) later = checked;
    } catch (error) {
      return this.failed(run, error);
    }
    const use = (data: unknown) => {
      run.data = data;
      this.call(run);
    };
    if (!later) return use(checked);
    later.then(use, (error: unknown) => this.failed(run, error));
  }

  private call(run: Run): void {
    if (run.closed) return;
    // The run was aborted while its data was checked.
    if (run.aborted) return this.failed(run, run.aborted);
    let returned: unknown;
    let promise: Promise<unknown> | undefined;
    this.heard?.began(run);
    try {
      const { trace, handler } = run;
      returned = trace ? trace.call(() => handler.run(run)) : handler.run(run);
      // A foreign thenable may call back twice, or return another thenable. `Promise.resolve` makes sure that the run ends once.
      if (isThenable(returned)) promise = Promise.resolve(returned);
    } catch (error) {
      return this.failed(run, error);
    }
    if (!promise) return this.returned(run, returned);
    promise.then(
      (value) => this.returned(run, value),
      (error: unknown) => this.failed(run, error),
    );
  }

  protected returned(run: Run, value: unknown): void {
    if (run.isDecided) return this.afterEnd(run, 'returned');
    if (isObservable(value)) {
      const ended = (last: unknown) =>
        run.isDecided ? this.afterEnd(run, 'returned') : this.completed(run, last);
      const follow = () => followStream(run, value, ended, (error) => this.failed(run, error));
      return run.trace ? run.trace.call(follow) : follow();
    }
    this.completed(run, value);
  }

  protected completed(run: Run, result: unknown): void {
    this.parts.reports?.completed(run);
    const forMs = run.policy.retentionMs;
    this.end(
      run,
      forMs > 0 || this.hasResultEvents ? this.withResult(run, result, forMs) : COMPLETED,
      result,
    );
  }

  protected failed(run: Run, error: unknown): void {
    if (run.isDecided) {
      if (!obeys(run, error)) this.afterEnd(run, 'failed');
      return;
    }
    run.isDecided = true;
    const held = heldBack(run, error, this.parts.queue.uses);
    if (held) return void this.holdBack(run, held, error);
    const verdict = verdictOf(run, error, (why, delayMs) => this.badBackoff(run, why, delayMs));
    const counted =
      verdict instanceof Promise
        ? verdict.then((one) => this.counted(run, one, error))
        : this.counted(run, verdict, error);
    const { now } = this.parts;
    if (!(counted instanceof Promise)) return this.end(run, withinLimits(run, counted, now()), error);
    run.stopTimer();
    void counted.then((outcome) => {
      // Meanwhile the run may have been given up, lost its job or been cancelled.
      const isOver = run.closed || run.aborted?.reason === 'cancelled';
      const last = isOver ? RELEASED : withinLimits(run, outcome, now());
      if (outcome.kind === 'retried' && outcome.counted && last.kind !== 'retried')
        this.parts.reports?.unbooked(run);
      if (!run.closed) this.end(run, last, error);
    });
  }

  /** Reports a failed run to circuit breakers and retry budgets, and then returns its outcome. */
  private counted(run: Run, outcome: Outcome, error: unknown): Outcome | Promise<Outcome> {
    const later = this.parts.reports?.failed(run, outcome, error);
    if (!later) return outcome;
    return later.then((ms) =>
      outcome.kind === 'retried' && ms > 0 ? { ...outcome, delayMs: outcome.delayMs + ms } : outcome,
    );
  }

  /**
   * First stops all starts for a while, and then gives the job back. In the other order the job would be claimed again at once.
   */
  private async holdBack(run: Run, held: LimitCharge, error: unknown): Promise<void> {
    run.stopTimer();
    const limit = read(error, 'limit');
    if (typeof limit === 'string' && !held.field.startsWith('s:')) this.warnOfLimit(run.id, inQuotes(limit));
    try {
      await this.hold(held);
      this.parts.held?.();
      this.logger.debug(
        `${jobText(this.queue, run.id)}: its handler threw RateLimited: no job of ${whose(held.field)} starts for ${held.holdMs} ms`,
      );
    } catch (why) {
      this.logger.warn(
        `${jobText(this.queue, run.id)}: its handler threw RateLimited, but this could not be stored: ${messageOf(why)}`,
      );
    }
    if (!run.closed) this.end(run, RELEASED, error);
  }

  /** Once for each such limit: the whole queue is held, but other queues go on. */
  private warnOfLimit(id: string, limit: string): void {
    if (this.missing.has(limit) || this.missing.size >= MAX_MISSING) return;
    this.missing.add(limit);
    this.logger.warn(
      `${jobText(this.queue, id)}: its handler threw RateLimited with the limit ${limit}, which is not in the option uses of this queue: ` +
        'instead of the limit, the whole queue is held',
    );
  }

  /** Stores a hold. A batch whose handler throws ends all its runs in one tick: they share one call. */
  private hold(held: LimitCharge): Promise<void> {
    const { field } = held;
    if (held.holdMs > (this.holds.get(field)?.holdMs ?? 0)) this.holds.set(field, held);
    this.sendingHolds ??= Promise.resolve().then(() => {
      const holds = [...this.holds.values()];
      this.holds = new Map();
      this.sendingHolds = undefined;
      return this.parts.charge(holds);
    });
    return this.sendingHolds;
  }

  /** @param value the result, or what was thrown. */
  private end(run: Run, outcome: Outcome | undefined, value?: unknown): void {
    run.close(outcome);
    run.trace?.ended(tracedEnd(run));
    if (outcome) {
      if (outcome.kind !== 'completed') this.failureLog.ended(run, outcome);
      this.heard?.ended(run, outcome, value);
    }
    this.runs.delete(run);
    this.onEnd?.();
    this.parts.ended(run);
  }

  // ------------------------------------------------------------------------------------------------------- helpers

  /** The policy of this handler for jobs without options. */
  private defaultsOf(handler: HandlerEntry): JobPolicy {
    let policy = this.policies.get(handler);
    if (policy === undefined) {
      const { policy: ofQueue, backoffs } = this.parts.queue;
      policy = mergeJobPolicy({}, handler.policy!, ofQueue, backoffs);
      this.policies.set(handler, policy);
    }
    return policy;
  }

  /** The listeners. Undefined if there are none. */
  private get heard(): JobListeners | undefined {
    const { listeners } = this.parts;
    return listeners?.isEmpty ? undefined : listeners;
  }

  /** The limits that count the starts of a job. */
  private limitsOf(name: string, group: string | null): LimitField[] {
    const shared = (this.parts.queue.uses ?? []).map((limit) => `s:${limit}`);
    return ['q', group === null ? `n:${name}` : `g:${group}`, ...shared];
  }

  private cannotRun(job: ClaimedJob, name: string, outcome: Outcome): null {
    const { id, failed, stalls } = job;
    const body = decodeBody(job.body);
    this.heard?.unrunnable(id, body, this.parts.queue.policy.attempts, outcome);
    if (outcome.kind === 'dead') this.failureLog.unrunnable(id, outcome);
    const options = body?.options ?? NO_OPTIONS;
    this.notStarted(name, options);
    this.parts.ended({ id, name, attempt: failed, stalls, durationUs: 0, outcome, digest: options.digest });
    return null;
  }

  private complain(id: string, name: string, outcome: Outcome, why: string): void {
    if (outcome.kind === 'dead') return;
    // Log each name once: such jobs are claimed again, and there may be many.
    if (this.missing.has(name)) return;
    if (this.missing.size < MAX_MISSING) this.missing.add(name);
    this.logger.warn(
      `${jobText(this.queue, id)}: ${why}; it and others of its name wait for a process that has one`,
    );
  }

  private withResult(run: Run, value: unknown, forMs: number): Outcome {
    const kept = this.encode(run, value);
    const keep = forMs > 0 ? { forMs, ...kept } : undefined;
    return {
      kind: 'completed',
      keep,
      eventResult: this.hasResultEvents ? this.eventResult(kept) : undefined,
    };
  }

  private eventResult(kept: KeptResult): KeptResult {
    const bytes = Buffer.byteLength(kept.result ?? '');
    const max = maxResultBytes(this.parts.queue.events);
    if (bytes <= max) return kept;
    return {
      result: undefined,
      resultFault: `its JSON has ${bytes} bytes, more than the ${max} of an event`,
    };
  }

  /**
   * A result that cannot be stored does not fail the job: its work is done, and doing it twice would be worse than losing the
   * result.
   */
  private encode(run: Run, value: unknown): KeptResult {
    try {
      return { result: encodeResult(value, this) };
    } catch (error) {
      const resultFault = messageOf(error);
      this.logger.warn(
        `${jobText(this.queue, run.id)}: ${run.handler.label} completed, but its result is not kept: ${resultFault}`,
      );
      return { result: undefined, resultFault };
    }
  }

  private badBackoff(run: Run, error: unknown, delayMs: number): void {
    this.logger.warn(
      `${jobText(this.queue, run.id)}: its backoff function failed, trying again in ${delayMs} ms: ${messageOf(error)}`,
    );
  }

  /** Logs that the end of a run does not count. */
  tooLate(id: string, why: string): void {
    this.failureLog.tooLate(id, why);
  }

  private afterEnd({ id, handler, attempt }: Run, how: string): void {
    const what = `${handler.label}, attempt ${attempt}, ${how} after its run was over`;
    this.tooLate(id, `${what}; that is not counted`);
  }
}

/** Whether the job has not started before, as far as is known, and was not retried. Only such a job expires. */
function isNew({ failed, stalls, started }: ClaimedJob): boolean {
  return failed === 0 && stalls === 0 && !started;
}

/** Text for a job that timed out before its method was called. */
function notCalled({ stage, handler: { label } }: Run): string {
  if (stage !== 'before') return '';
  return `; ${label} was not called by then: the guards and interceptors before it had not let the job through`;
}
