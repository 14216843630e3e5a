import type { Rate } from '../contender.js';

/**
 * Calls that other processes of a measurement answer. Type aliases, because TypeScript does not accept an interface as
 * a record of functions.
 */

/** An application of a contender that only adds. Jobs are numbered, and a call adds those from `from` to `to - 1`. */
export type ProducerActs = {
  open(opening: { readonly contender: string; readonly url: string }): Promise<void>;
  /** Adds jobs that all become due at one moment of `now()`; returns when the last one was added. */
  addDueAt(batch: { readonly from: number; readonly to: number; readonly dueAt: number }): Promise<number>;
  /** Adds jobs one by one, from `pauseFrom` on with pauses of 3 to 7 ms; returns when each call was made. */
  addWithPauses(batch: {
    readonly from: number;
    readonly to: number;
    readonly pauseFrom: number;
  }): Promise<Float64Array<ArrayBuffer>>;
  /**
   * Adds job `from + i` at `startAt + i · everyMs`, even if earlier calls have not ended; returns when each call was
   * made.
   */
  addOnTime(batch: {
    readonly from: number;
    readonly to: number;
    readonly startAt: number;
    readonly everyMs: number;
  }): Promise<Float64Array<ArrayBuffer>>;
  close(): Promise<void>;
};

/** An application of a contender that works on the queue. Its first jobs wait until all processes are ready. */
export type WorkerActs = {
  open(opening: WorkerOpening): Promise<void>;
  go(): void;
  handled(): number;
  /** Resolves when every job of the queue is acknowledged. */
  record(): Promise<WorkerRecord>;
  close(): Promise<void>;
};

export interface WorkerOpening {
  readonly contender: string;
  readonly url: string;
  /** In all processes together. */
  readonly jobs: number;
  readonly concurrency: number;
  readonly rate?: Rate;
}

/** The work of one process. */
export interface WorkerRecord {
  /** When each job was handled here, by `now()`; 0 for jobs that other processes handled. */
  readonly at: Float64Array<ArrayBuffer>;
  /** CPU time of the process from `go` on, all threads, in microseconds. */
  readonly cpuUs: number;
}
