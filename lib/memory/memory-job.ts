import type { ClaimedJob } from '../contract/engine.js';
import { RULES } from '../job/rules.js';
import type { JobState } from '../job/job-state.js';
import type { LogLine } from '../job/job-log.js';
import type { AttemptRecord, FailureRecord, KeptResult } from '../job/outcome.js';

/** The place of a job. A job is in exactly one. */
export type Place =
  'wait' | 'suspects' | 'prioritized' | 'grouped' | 'delayed' | 'active' | 'completed' | 'dead';

const STATES: Readonly<Record<Place, JobState>> = {
  wait: 'waiting',
  suspects: 'waiting',
  prioritized: 'waiting',
  grouped: 'waiting',
  delayed: 'delayed',
  active: 'active',
  completed: 'completed',
  dead: 'dead',
};

/** The end of a completed or cancelled job that is kept. */
export interface EndRecord extends KeptResult {
  readonly at: number;
  readonly attempt: number;
  readonly durationUs?: number;
  readonly stalls?: number | undefined;
  /** The reason, if the job was cancelled. */
  readonly cancelled?: string;
}

/**
 * A line of jobs. Groups, and names with limits, have lines. All other jobs of a queue with lines share the line without a name.
 */
export interface MemoryLine {
  readonly name: string;
  readonly number: number;
  turn: number;
  /** The jobs by priority, in the order in which they came. Priority 0 comes first. */
  readonly jobs: Map<number, Priority>;
  /** Its turn, or 0 if it must be looked at first. Null: it may give no job now. */
  ready: number | null;
  /** When it may give jobs again. */
  restsUntil: number | null;
}

/** The jobs of one priority in a line. They have their own number. */
export interface Priority {
  readonly number: number;
  readonly jobs: Set<MemoryJob>;
}

/** A job with everything that is stored about it. */
export class MemoryJob {
  place: Place | null = null;
  /** The value that sorts it in its place: its rank, its due time, the end of its retention, or the time when it died. */
  score = 0;
  /** Its index in the heap of its place. */
  slot = -1;
  /** The previous and the next job of its line. */
  previous: MemoryJob | null = null;
  next: MemoryJob | null = null;
  /** The line of its group or name. */
  line: MemoryLine | null = null;
  /** The worker that holds it. */
  worker: string | null = null;
  /** Priority of a delayed job. */
  priority = 0;
  /** Attempts that failed. */
  failed = 0;
  /** Whether it has run before or was retried with `retryDead`. Then it does not expire. */
  started = false;
  /** How many workers it has lost. */
  stalls = 0;
  /** Whether it was added with `lifo`, or a worker gave it back, in a queue with lines. The next claim moves it to the front of its line. */
  isReturned = false;
  failure: { readonly at: number; readonly json: string } | null = null;
  /** The last failed attempts, the latest last. */
  failures: readonly AttemptRecord[] = [];
  end: EndRecord | null = null;
  progress: string | null = null;
  logs: readonly LogLine[] = [];
  /** The reason, if it was cancelled while it ran. */
  cancel: string | null = null;
  /** How many ms it is kept after such a cancellation. */
  cancelKeepMs = 0;
  private firstLine: string | undefined;

  constructor(
    readonly id: string,
    private text: string,
  ) {}

  get body(): string {
    return this.text;
  }

  set body(body: string) {
    this.text = body;
    this.firstLine = undefined;
  }

  get state(): JobState {
    return this.end?.cancelled === undefined ? STATES[this.place!] : 'cancelled';
  }

  /** The time until which an ended job is kept. */
  get keptUntil(): number {
    return this.end?.cancelled === undefined ? this.score : this.score - RULES.cancelledFrom;
  }

  /** The job in the form that a worker gets. */
  get claim(): ClaimedJob {
    const { id, body, failed, stalls } = this;
    const claim = { id, body, failed, stalls };
    return this.started && failed === 0 ? { ...claim, started: true } : claim;
  }

  /** The first line of its body. */
  get name(): string {
    if (this.firstLine === undefined) {
      const stop = this.text.indexOf('\n');
      this.firstLine = stop < 0 ? '' : this.text.slice(0, stop);
    }
    return this.firstLine;
  }

  /** A copy, because the reader may change it. */
  get failureRecord(): FailureRecord | null {
    return this.failure && (JSON.parse(this.failure.json) as FailureRecord);
  }

  /** Resets the job as if it had never run. */
  forgetTraces(): void {
    this.failed = 0;
    this.started = false;
    this.stalls = 0;
    this.isReturned = false;
    this.failure = null;
    this.failures = [];
    this.progress = null;
    this.logs = [];
    this.priority = 0;
  }
}
