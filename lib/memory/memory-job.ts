import type { ClaimedJob } from '../contract/engine.js';
import type { FailureRecord, KeptResult } from '../job/outcome.js';

/** Where a job stands. It is in one place, since it has but one field for it. */
export type Place = 'wait' | 'suspects' | 'prioritized' | 'delayed' | 'active' | 'completed' | 'dead';

/** How a job ended that is kept. */
export interface EndRecord extends KeptResult {
  readonly at: number;
  readonly attempt: number;
  readonly durationUs: number;
  readonly stalls?: number | undefined;
}

/** A job with all that is known of it. */
export class MemoryJob {
  place: Place | null = null;
  /** What orders it in its place: rank, due, kept until or died at. */
  score = 0;
  /** Where it stands in the heap of its place. */
  slot = -1;
  /** Its neighbours in its line. */
  previous: MemoryJob | null = null;
  next: MemoryJob | null = null;
  /** Under whom it runs. */
  worker: string | null = null;
  /** Of a delayed job that has one. */
  priority = 0;
  /** Attempts that failed. */
  failed = 0;
  /** It has run before, or was retried by a person: it does not expire. */
  started = false;
  /** Workers lost. */
  stalls = 0;
  failure: { readonly at: number; readonly json: string } | null = null;
  end: EndRecord | null = null;
  progress: string | null = null;
  logs: readonly string[] = [];
  /** Why, where it was cancelled while it ran. */
  cancel: string | null = null;
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

  /** As a worker gets it. */
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

  /** As it was written; a copy, since who reads it may change it. */
  get failureRecord(): FailureRecord | null {
    return this.failure && (JSON.parse(this.failure.json) as FailureRecord);
  }

  /** As if it had never been run. */
  forgetTraces(): void {
    this.failed = 0;
    this.started = false;
    this.stalls = 0;
    this.failure = null;
    this.progress = null;
    this.logs = [];
    this.priority = 0;
  }
}
