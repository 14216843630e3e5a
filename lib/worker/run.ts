import type { ClaimedJob } from '../contract/engine.js';
import type { Linked } from '../contract/linked-set.js';
import { JobAbortedError, type AbortReason } from '../errors.js';
import { show } from '../errors/show.js';
import type { DecodedBody } from '../job/job-record.js';
import type { Job } from '../job/job.js';
import { NO_HEADERS, type JobHeaders } from '../job/headers.js';
import type { Outcome } from '../job/outcome.js';
import { checkGiven, validateItems } from '../job/define-job.js';
import { encodePayload, type PayloadRules } from '../job/payload.js';
import { integer, refuse } from '../options/check.js';
import type { JobPolicy } from '../options/job-options.js';
import type { RunTrace } from '../options/telemetry.js';
import { MANY } from '../options/limit-options.js';
import { RULES } from '../job/rules.js';
import type { CallStage, HandledJob, HandlerEntry } from './handler.js';

/** A report or change of a running handler, as JSON or as a log line. */
export interface Note {
  readonly progress?: string;
  readonly log?: string;
  /** New data of the job. A note with `data` has no other field. */
  readonly data?: string;
}

/** Stores what runs of one queue report. */
export interface NoteWriter extends PayloadRules {
  readonly queue: string;
  /** Whether the workers of the queue are stopping. */
  readonly isDraining: boolean;
  /** The clock of the store. */
  now(): number;
  note(run: Run, what: Note): Promise<void>;
  /** Adds to the cost that rates have counted for the run. */
  charge(run: Run, more: number): Promise<void>;
  /** Whether further jobs may come to fill a batch. */
  readonly mayWait: boolean;
  /** Called when the job begins or ends its wait for a batch. While it waits, only its `deadline` counts. */
  waits(run: Run, isWaiting: boolean): void;
}

const MAX_LOG_LINE = 2000;
/** A run may turn out to cost nothing, for example if its answer was cached. */
const readCharge = integer(0, MANY);
const LINE_ENDS = /\s*[\n\r\u0085\u2028\u2029]\s*/g;
/** Control characters could forge lines of the log, or control the terminal that shows it. */
// oxlint-disable-next-line no-control-regex
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

/** JavaScript callers may log any value, and that must not fail the job. */
function textOf(line: unknown): string {
  try {
    return String(line);
  } catch {
    return show(line);
  }
}

/** One run of one job: the job that the handler receives, and the outcome when it ends. */
export class Run implements HandledJob, Linked<Run> {
  readonly id: string;
  readonly name: string;
  readonly queue: string;
  readonly stalls: number;
  readonly attempt: number;
  readonly attempts: number;
  /** Whether this is the first run of the job, as far as is known. */
  readonly isFirst: boolean;
  /** The validated data, if there is a schema. */
  data: unknown;
  outcome: Outcome | undefined;
  durationUs = 0;
  /** When the run started, by `performance.now()`. */
  begunAt = performance.now();
  timer: NodeJS.Timeout | undefined;
  /** Set once the handler has failed or the run is closed. From then on the handler is ignored. */
  isDecided = false;
  /** Set once the run has an outcome or has lost its job. */
  closed = false;
  /** When limits counted its start, by the clock of the store. Null if they did not. */
  countedAt: number | null = null;
  trace: RunTrace | undefined;
  private controller: AbortController | undefined;
  /** Why the signal was aborted, if it was. */
  aborted: JobAbortedError | undefined;
  /** The cost that rates have counted for the run. */
  private costCounted: number;
  stage: CallStage | undefined;
  onEnd: (() => void) | undefined;
  before: Run | undefined;
  after: Run | undefined;
  isIn = false;

  constructor(
    { id, failed, stalls, started }: Pick<ClaimedJob, 'id' | 'failed' | 'stalls' | 'started'>,
    private readonly body: DecodedBody,
    readonly policy: JobPolicy,
    readonly handler: HandlerEntry,
    private readonly notes: NoteWriter,
  ) {
    this.id = id;
    this.name = body.name;
    this.queue = notes.queue;
    this.stalls = stalls;
    this.attempt = failed + 1;
    this.attempts = policy.attempts;
    this.isFirst = failed === 0 && stalls === 0 && !started;
    this.data = body.data;
    this.costCounted = body.options.cost ?? 1;
  }

  get createdAt(): Date {
    return new Date(this.body.createdAt);
  }

  get startedAt(): Date {
    return new Date(Math.round(this.notes.now() - (performance.now() - this.begunAt)));
  }

  get dueAt(): Date | null {
    const { runnableAt } = this.body.options;
    return runnableAt === undefined ? null : new Date(runnableAt);
  }

  get endedAt(): Date | null {
    const { outcome } = this;
    if (outcome?.kind !== 'completed' && outcome?.kind !== 'dead') return null;
    return new Date(Math.round(this.startedAt.getTime() + this.durationUs / 1_000));
  }

  get delay(): number {
    return this.runnableAt - this.body.createdAt;
  }

  /** The digest of the unique key, which becomes free when the job ends. */
  get digest(): string | undefined {
    return this.body.options.digest;
  }

  /** Whether its data is a list, from as many adds. */
  get isCollected(): boolean {
    return this.body.options.items !== undefined;
  }

  /** Ms since 1970. */
  get deadline(): number | undefined {
    return this.body.options.deadline;
  }

  /** The time from which the job could run. */
  get runnableAt(): number {
    return this.body.options.runnableAt ?? this.body.createdAt;
  }

  /** Only for the first run: later runs waited for other reasons. */
  get firstRunnableAt(): number | undefined {
    return this.isFirst ? this.runnableAt : undefined;
  }

  /** How long it waited for its first run, for telemetry. */
  get waitedMs(): number | undefined {
    return this.isFirst ? Math.max(0, Math.round(this.notes.now() - this.runnableAt)) : undefined;
  }

  /** Whether the call that added it waits for its end. */
  get awaited(): boolean {
    return this.body.options.awaited === true;
  }

  get priority(): number {
    return this.body.options.priority ?? 0;
  }

  get group(): string | null {
    return this.body.options.group ?? null;
  }

  get headers(): JobHeaders {
    return this.body.options.headers ?? NO_HEADERS;
  }

  get isDraining(): boolean {
    return this.notes.isDraining;
  }

  charge(cost: number): Promise<void> {
    return handled(this.countCost(cost));
  }

  private async countCost(cost: number): Promise<void> {
    const given = readCharge(cost, 'charge()', refuse)!;
    const more = given - this.costCounted;
    this.costCounted = given;
    if (more === 0) return;
    try {
      await this.notes.charge(this, more);
    } catch (error) {
      // Relative, because another call may have succeeded meanwhile.
      this.costCounted -= more;
      throw error;
    }
  }

  get mayWait(): boolean {
    return this.notes.mayWait;
  }

  waits(isWaiting: boolean): void {
    this.stopTimer();
    this.begunAt = performance.now();
    this.notes.waits(this, isWaiting);
  }

  /** The signal is created at the first access, because most handlers never use it. */
  get signal(): AbortSignal {
    if (!this.controller) {
      this.controller = new AbortController();
      if (this.aborted) this.controller.abort(this.aborted);
    }
    return this.controller.signal;
  }

  /** @param outcome undefined if the worker has lost the job. */
  close(outcome: Outcome | undefined): void {
    this.isDecided = true;
    this.closed = true;
    this.outcome = outcome;
    this.durationUs = Math.round((performance.now() - this.begunAt) * 1000);
    this.stopTimer();
    this.onEnd?.();
  }

  /** From now on the run cannot time out. */
  stopTimer(): void {
    if (this.timer) clearTimeout(this.timer);
  }

  abort(reason: AbortReason, detail: string): JobAbortedError {
    this.aborted ??= new JobAbortedError(reason, this.id, this.attempt, detail);
    this.controller?.abort(this.aborted);
    this.onEnd?.();
    return this.aborted;
  }

  progress(value: unknown): Promise<void> {
    return this.note(() => ({
      progress: encodePayload(value, 'progress()', this.notes, 'the progress of the job'),
    }));
  }

  log(line: string): Promise<void> {
    return this.note(() => ({
      log: textOf(line).slice(0, MAX_LOG_LINE).replace(LINE_ENDS, ' ').replace(CONTROLS, '\ufffd'),
    }));
  }

  update(data: unknown): Promise<void> {
    return handled(this.store(data));
  }

  private async store(data: unknown): Promise<void> {
    const json = encodePayload(data, 'update()', this.notes);
    const checked = await this.checked(data, json);
    await this.notes.note(this, { data: json });
    this.data = checked;
  }

  /** The data as a handler gets it. */
  private checked(data: unknown, json: string): unknown {
    const { definition } = this.handler;
    const isList = this.isCollected && Array.isArray(data);
    if (definition?.schema && !isList) return checkGiven(definition, data, json);
    const stored = JSON.parse(json) as unknown[];
    return definition?.schema ? validateItems(definition, stored, 'json') : stored;
  }

  toJSON(): ReturnType<Job<any>['toJSON']> {
    const { id, name, queue, data, attempt, attempts, createdAt, dueAt, startedAt, endedAt } = this;
    const { stalls, priority, group, headers, delay } = this;
    const about = { id, name, queue, data, attempt, attempts, createdAt, dueAt, startedAt, endedAt };
    return { ...about, stalls, priority, group, headers, delay };
  }

  /** `console.log(job)` shows the fields of the job, not those of the run. */
  [Symbol.for('nodejs.util.inspect.custom')](): unknown {
    return this.toJSON();
  }

  private note(encode: () => Note): Promise<void> {
    try {
      const what = encode();
      return what.log === '' ? Promise.resolve() : this.notes.note(this, what);
    } catch (error) {
      return handled(Promise.reject(error as Error));
    }
  }
}

/** A caller that awaits the promise gets its error. If nobody awaits it, the error must not end the process. */
function handled(promise: Promise<void>): Promise<void> {
  promise.catch(() => undefined);
  return promise;
}

/** Whether the job stalled so often that a worker may hold only one such job. */
export function isSuspect(job: { readonly stalls: number }): boolean {
  return job.stalls >= RULES.suspectAfter;
}
