import type { MemoryJob } from './memory-job.js';

/** An exchange that may be repeated. */
export interface LastExchange {
  readonly seq: number;
  /** What it gave, and which of the settled it found lost. */
  readonly gave: readonly string[];
  readonly lost: readonly string[];
}

/** What is remembered of a worker. */
export interface WorkerRecord {
  /** Without it the worker is not known any more. */
  last: LastExchange | null;
  /** The last of those that went beside others. */
  beside: LastExchange | null;
  /** How long its leases are. */
  leaseMs: number | null;
  /** When a lease was first found over, and which one. */
  doubt: { readonly lease: number; readonly since: number } | null;
  /** Of a pause that it has not said to know of. */
  pause?: string;
  until: number;
}

/** A worker: what it holds, until when, and what it did last. */
export class MemoryWorker {
  readonly held = new Map<string, MemoryJob>();
  /** End of its lease; null while it holds nothing. */
  leaseAt: number | null = null;
  record: WorkerRecord | null = null;

  constructor(readonly name: string) {}

  /** Whether nothing of it would be missed. */
  isForgotten(now: number): boolean {
    return this.held.size === 0 && this.leaseAt === null && this.recordAt(now) === null;
  }

  recordAt(now: number): WorkerRecord | null {
    if (this.record && this.record.until <= now) this.record = null;
    return this.record;
  }

  /** Writes what has changed, and keeps the rest. */
  note(change: Partial<WorkerRecord> & { until: number }): void {
    this.record = { last: null, beside: null, leaseMs: null, doubt: null, ...this.record, ...change };
  }
}
