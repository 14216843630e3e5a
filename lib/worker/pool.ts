/** The running side of one queue in this process, as the runtime sees it. */
export interface Pool {
  readonly queue: string;
  /** Begins to claim. Safe twice. */
  start(): void;
  /** Claims nothing more; what runs goes on. */
  pause(): void;
  resume(): void;
  /**
   * Stops claiming, gives back what has not started, lets runs finish for `timeoutMs`, then aborts their signals, waits
   * `graceMs`, gives the rest back. Never rejects; a second call answers the same promise.
   */
  drain(limits: DrainLimits): Promise<DrainReport>;
}

export interface DrainLimits {
  readonly timeoutMs: number;
  readonly graceMs: number;
}

/** How a drain ended. */
export interface DrainReport {
  readonly finished: number;
  /** Given back unfinished after the deadline, by id. */
  readonly released: readonly string[];
}
