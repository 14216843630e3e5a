/** Numbers that both engines go by. In Lua each of them is `rule_<name>`. */
export const RULES = {
  /** A job that has stalled so often is a suspect: a worker holds at most one of them. */
  suspectAfter: 2,
  /** The highest priority: with room for a sequence below each, ranks are exact in a double. */
  priorityMax: 2_097_151,
  /** Room for a sequence below each priority, so that ranks are first in first out inside one. */
  ranks: 4_294_967_296,
  /** A claimed job starts within so many ms, or its worker asks first whether the queue was paused meanwhile. */
  startMs: 200,
  /** Jobs that one call claims at most. */
  claimMax: 1_000,
  /** Due delayed jobs that one exchange moves at most. */
  promoteMax: 250,
  /** What one call takes away at most of what is beyond its age or number. */
  trimStep: 500,
  /** Progress of more bytes is large: large values are bounded in bytes, all others by the number of jobs. */
  largeProgress: 4_096,
  /** Bytes of the record of an end from which on lists leave it out but for the time. */
  briefResult: 4_096,
  /** How long it is known of a cancelled job when and why it ended, and of how many jobs. */
  cancelledMs: 60_000,
  cancelledMax: 1_000,
  /** Job names that the counters of a day tell apart: users may make them, and all others stand together under the empty name. */
  namesPerDay: 200,
  /** Counters are kept so long, from the first of a day. */
  statsDays: 90,
  /** What the answer of a script says of more jobs: above 0 it is in how many ms more of them may start. */
  supplyMore: 0,
  supplyPaused: -1,
  supplyEmpty: -2,
  /** There are more, but their bodies are too large for one answer. */
  supplyCut: -3,
} as const;
