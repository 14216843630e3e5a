import type { MemoryJob } from './memory-job.js';

/** The last exchange, which may be repeated. */
export interface LastExchange {
  readonly seq: number;
  /** Ids that it claimed, and settled ids that were lost or ended as cancelled. */
  readonly claimedIds: readonly string[];
  readonly lost: readonly string[];
  readonly cancelled: readonly string[];
}

/** The last claim of a queue with limits. It has its own number. */
interface LastClaim {
  readonly seq: number;
  readonly claimedIds: readonly string[];
}

/** The record of a worker. */
interface WorkerRecord {
  /** Null: the worker is unknown. */
  last: LastExchange | null;
  /** The last pipelined exchange. */
  pipelined: LastExchange | null;
  /** The last claim with limits, and the last pipelined one. */
  limited: LastClaim | null;
  limitedPipelined: LastClaim | null;
  /** Its lease duration. */
  leaseMs: number | null;
  /** The lease that was found to be over, and when that was first. */
  doubt: { readonly lease: number; readonly since: number } | null;
  until: number;
}

/** A worker: the jobs it holds, its lease, and its last exchanges. */
export class MemoryWorker {
  readonly held = new Map<string, MemoryJob>();
  /** End of its lease; null while it holds nothing. */
  leaseAt: number | null = null;
  record: WorkerRecord | null = null;

  constructor(readonly name: string) {}

  /** Whether it can be deleted. */
  isForgotten(now: number): boolean {
    return this.held.size === 0 && this.leaseAt === null && this.recordAt(now) === null;
  }

  recordAt(now: number): WorkerRecord | null {
    if (this.record && this.record.until <= now) this.record = null;
    return this.record;
  }

  /** Changes the record; other fields stay. */
  note(change: Partial<WorkerRecord> & { until: number }): void {
    const none = {
      last: null,
      pipelined: null,
      limited: null,
      limitedPipelined: null,
      leaseMs: null,
      doubt: null,
    };
    this.record = { ...none, ...this.record, ...change };
  }
}
