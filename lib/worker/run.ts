import type { ClaimedJob } from '../contract/engine.js';
import type { Linked } from '../contract/linked-set.js';
import { JobAbortedError, show, type AbortReason } from '../errors.js';
import type { DecodedBody } from '../job/job-record.js';
import { NO_HEADERS, type JobHeaders } from '../job/headers.js';
import type { Outcome } from '../job/outcome.js';
import { checkGiven } from '../job/define-job.js';
import { encodePayload, type PayloadRules } from '../job/payload.js';
import { refuse } from '../options/check.js';
import type { JobPolicy } from '../options/job-options.js';
import { readCost } from '../options/limit-options.js';
import { RULES } from '../job/rules.js';
import type { CallStage, HandledJob, HandlerEntry } from './handler.js';

/** What a handler reports or changes while it runs: JSON, or a line. */
export interface Note {
  readonly progress?: string;
  readonly log?: string;
  /** New data of the job, alone in its note. */
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
  /** Adds to what rates have counted for the run. */
  charge(run: Run, more: number): Promise<void>;
  /** Whether a job may wait until others of its batch come. */
  readonly mayWait: boolean;
  /** Starts the timer of `timeout` and `deadline`; of `deadline` alone while the job waits for others of its batch. */
  limit(run: Run, isWaiting: boolean): void;
}

const MAX_LOG_LINE = 2000;
const LINE_ENDS = /\s*[\n\r\u0085\u2028\u2029]\s*/g;
/** Control characters could forge lines of the log or of the terminal that shows it. */
// oxlint-disable-next-line no-control-regex
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

/** Plain JavaScript may log anything, and that must not fail the job. */
function textOf(line: unknown): string {
  try {
    return String(line);
  } catch {
    return show(line);
  }
}

/** One run of one job: what the handler gets, and what is settled when it ends. */
export class Run implements HandledJob, Linked<Run> {
  readonly id: string;
  readonly name: string;
  readonly queue: string;
  readonly stalls: number;
  readonly attempt: number;
  readonly attempts: number;
  /** Whether no run of it has begun before, as far as is known. */
  readonly isFirst: boolean;
  /** Replaced by the output of the schema. */
  data: unknown;
  outcome: Outcome | undefined;
  durationUs = 0;
  /** By `performance.now()`. */
  begunAt = performance.now();
  timer: NodeJS.Timeout | undefined;
  /** Set once the run has its outcome, or has lost its job: from then on the handler is ignored. */
  closed = false;
  private controller: AbortController | undefined;
  /** Why its signal is aborted, if it is. */
  aborted: JobAbortedError | undefined;
  /** What rates have counted for it. */
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

  /** The digest of its key, which its end frees. */
  get digest(): string | undefined {
    return this.body.options.digest;
  }

  /** Ms since 1970. */
  get deadline(): number | undefined {
    return this.body.options.deadline;
  }

  /** When it could first have run. */
  get runnableAt(): number {
    return this.body.options.runnableAt ?? this.body.createdAt;
  }

  /** Of the first run only: a later one has waited for other reasons. */
  get firstRunnableAt(): number | undefined {
    return this.isFirst ? this.runnableAt : undefined;
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

  async charge(cost: number): Promise<void> {
    const given = readCost(cost, 'charge()', refuse)!;
    const more = given - this.costCounted;
    this.costCounted = given;
    if (more !== 0) await this.notes.charge(this, more);
  }

  get mayWait(): boolean {
    return this.notes.mayWait;
  }

  waits(isWaiting: boolean): void {
    this.stopTimer();
    this.begunAt = performance.now();
    this.notes.limit(this, isWaiting);
  }

  /** Created at the first access: most handlers never use it. */
  get signal(): AbortSignal {
    if (!this.controller) {
      this.controller = new AbortController();
      if (this.aborted) this.controller.abort(this.aborted);
    }
    return this.controller.signal;
  }

  /** @param outcome undefined if the worker has lost the job. */
  close(outcome: Outcome | undefined): void {
    this.closed = true;
    this.outcome = outcome;
    this.durationUs = Math.round((performance.now() - this.begunAt) * 1000);
    this.stopTimer();
    this.onEnd?.();
  }

  /** It cannot time out any more. */
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

  async update(data: unknown): Promise<void> {
    const json = encodePayload(data, 'update()', this.notes);
    if (this.handler.definition) await checkGiven(this.handler.definition, data, json);
    await this.notes.note(this, { data: json });
    this.data = data;
  }

  private note(encode: () => Note): Promise<void> {
    try {
      const what = encode();
      return what.log === '' ? Promise.resolve() : this.notes.note(this, what);
    } catch (error) {
      const refused = Promise.reject(error as Error);
      // Whoever awaits it gets the error; if nobody does, a wrong value must not end the process.
      refused.catch(() => undefined);
      return refused;
    }
  }
}

/** A job that stalled so often is claimed one at a time. */
export function isSuspect(job: { readonly stalls: number }): boolean {
  return job.stalls >= RULES.suspectAfter;
}
