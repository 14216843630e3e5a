/** What other processes of a measurement can be asked for; type aliases, since an interface is no record of functions to the compiler. */

/** An application of a contender that only adds. Jobs are numbered; those from `from` to `to - 1` are meant. */
export type ProducerActs = {
  open(opening: { readonly contender: string; readonly url: string }): Promise<void>;
  /** Adds them so that all become due at one moment of `now()`; answers when the last was added. */
  addDueAt(batch: { readonly from: number; readonly to: number; readonly dueAt: number }): Promise<number>;
  /** Adds them one by one, from `pauseFrom` on with pauses of 3 to 7 ms; answers when each call was made. */
  addWithPauses(batch: {
    readonly from: number;
    readonly to: number;
    readonly pauseFrom: number;
  }): Promise<Float64Array<ArrayBuffer>>;
  /** Adds job `from + i` at `startAt + i · everyMs`, whether or not those before are through; answers when each call was made. */
  addOnTime(batch: {
    readonly from: number;
    readonly to: number;
    readonly startAt: number;
    readonly everyMs: number;
  }): Promise<Float64Array<ArrayBuffer>>;
  close(): Promise<void>;
};

/** An application of a contender that works off the queue. Its first jobs wait until all may go. */
export type WorkerActs = {
  open(opening: WorkerOpening): Promise<void>;
  go(): void;
  handled(): number;
  /** Once every job of the queue is acknowledged. */
  record(): Promise<WorkerRecord>;
  close(): Promise<void>;
};

export interface WorkerOpening {
  readonly contender: string;
  readonly url: string;
  /** In all processes together. */
  readonly jobs: number;
  readonly concurrency: number;
}

/** What one process did. */
export interface WorkerRecord {
  /** When each job was handled here, by `now()`; 0 for those handled elsewhere. */
  readonly at: Float64Array<ArrayBuffer>;
  /** CPU time of the process from `go` on, all threads, in microseconds. */
  readonly cpuUs: number;
}
