/** What became of the jobs of one name. */
export interface NameStats {
  /** Jobs that completed. */
  readonly processed: number;
  /** Attempts that failed, whatever became of the job then; one that died in its third attempt counts three. */
  readonly failed: number;
  /** Jobs that died. */
  readonly dead: number;
}

/** What became of the jobs of a queue. */
export interface StatsCounts extends NameStats {
  /** Jobs that ended as cancelled. */
  readonly cancelled: number;
  /**
   * The same by job name; the names that occurred and no others. An object without a prototype, so that any name may be looked
   * up. Beyond the first 200 names of a day all others stand together under the empty name, which no job has, and so do jobs whose
   * name is lost.
   */
  readonly byName: Readonly<Record<string, NameStats>>;
}

/** What became of the jobs of a queue on one day. */
export interface DayStats extends StatsCounts {
  /** `yyyy-mm-dd`, UTC by the clock of Redis. */
  readonly date: string;
}

/** What `Queue.stats` answers. */
export interface QueueStats {
  /** The newest first; every day is there, also one without any jobs. */
  readonly days: readonly DayStats[];
  /** Of all these days. */
  readonly total: StatsCounts;
}
