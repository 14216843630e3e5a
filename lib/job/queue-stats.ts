/** Counters of one job name. */
export interface NameStats {
  /** Jobs that completed. */
  readonly processed: number;
  /** Attempts that failed; a job that died in its third attempt counts three. */
  readonly failed: number;
  /** Jobs that died. */
  readonly dead: number;
}

/** Counters of a queue. */
export interface StatsCounts extends NameStats {
  /** Jobs that ended as cancelled. */
  readonly cancelled: number;
  /**
   * The same by job name, for the names that occurred. The object has no prototype, so any name can be looked up. Beyond the first
   * 200 names of a day all others are counted under the empty name, as are jobs whose name is lost.
   */
  readonly byName: Readonly<Record<string, NameStats>>;
}

/** Counters of a queue on one day. */
export interface DayStats extends StatsCounts {
  /** `yyyy-mm-dd`, UTC by the clock of Redis. */
  readonly date: string;
}

/** What `Queue.stats` resolves to. */
export interface QueueStats {
  /** The newest first, including days without jobs. */
  readonly days: readonly DayStats[];
  /** Sum of these days. */
  readonly total: StatsCounts;
}
