/** Numbers that both engines use. In Lua each is `rule_<name>`. */
export const RULES = {
  /** A job with this many stalls is a suspect: a worker holds at most one of them. */
  suspectAfter: 2,
  /** The highest priority: with room for a sequence below each, ranks are exact in a double. */
  priorityMax: 2_097_151,
  /** Room for a sequence below each priority, so that ranks are first in first out inside one. */
  ranks: 4_294_967_296,
  /** A claimed job starts within so many ms, or its worker asks first whether the queue was paused meanwhile. */
  startMs: 200,
  /** Maximum number of jobs that one call claims. */
  claimMax: 1_000,
  /** Maximum number of due delayed jobs that one exchange moves. */
  promoteMax: 250,
  /** Maximum number of entries beyond their age or number that one call trims. */
  trimStep: 500,
  /** Progress of more bytes is large: large values are bounded in bytes, all others by the number of jobs. */
  largeProgress: 4_096,
  /** Bytes of the record of an end from which on lists leave it out but for the time. */
  briefResult: 4_096,
  /** Log lines kept of a job, by default and at most. */
  logLines: 100,
  logLinesMax: 1_000,
  /** How long the time and reason of a cancel are kept after the job is gone, and for how many jobs. */
  cancelledMs: 60_000,
  cancelledMax: 1_000,
  /** The completed job of a call that waits for its end holds its id for so long: longer than such a call takes to read the result. */
  awaitedMs: 10_000,
  /** Added to the time until which a cancelled job is kept, so that it stands behind all completed ones. Above any time that is kept. */
  cancelledFrom: 1_000_000_000_000_000,
  /** The due time of a job that waits for the end of another one: the last moment that a `Date` can hold. */
  parkedAt: 8_640_000_000_000_000,
  /** How many occurrences of a schedule are remembered. */
  recent: 10,
  /** Job names with counters of their own per day, because users may generate names; all further names share the empty name. */
  namesPerDay: 200,
  /** How many days the counters of a day are kept. */
  statsDays: 90,
  /** How many hours the counters of a minute are kept. */
  historyHours: 72,
  /** Whether there are more jobs, in the answer of a script. A number above 0 is the ms until more of them may start. */
  supplyMore: 0,
  supplyPaused: -1,
  supplyEmpty: -2,
  /** There are more, but their bodies are too large for one answer. */
  supplyCut: -3,
  /** The queue has limits or groups: `claim-limited` says. */
  supplyLimited: -4,
  /** Lines of groups and names at most: with room for a rank below each, scores are exact in a double. */
  linesMax: 2_097_150,
  /** How many jobs one claim sorts into lines, and how many lines it looks at in one step. */
  sortMax: 250,
} as const;
