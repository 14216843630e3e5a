/** Numbers that both engines use. In Lua each is `rule_<name>`. */
export const RULES = {
  /** A job with this many stalls is a suspect: a worker holds at most one of them. */
  suspectAfter: 2,
  /** The highest priority. The rank of a job combines priority and sequence; up to this priority it is exact in a double. */
  priorityMax: 2_097_151,
  /** Number of sequence values per priority, so that jobs of one priority are first in, first out. */
  ranks: 4_294_967_296,
  /** How many values are left for jobs that go to the front of a line before one that was added earlier. */
  frontRanks: 1_000_000_000,
  /** If a claimed job has not started within this many ms, its worker first asks whether the queue was paused meanwhile. */
  startMs: 200,
  /** Maximum number of jobs that one call claims. */
  claimMax: 1_000,
  /** Maximum number of due delayed jobs that one exchange moves. */
  promoteMax: 250,
  /** Maximum number of jobs that one call takes back from a lost worker. */
  recoverMax: 500,
  /** Maximum number of due schedules that one call looks at. */
  dueSchedulesMax: 100,
  /** How many jobs of a line are examined to find the oldest one that has not failed before. */
  oldestMax: 100,
  /** Maximum number of leases in one answer, both of those that end soon and of those that end too late. */
  overdueMax: 100,
  /** The shortest and the longest lease that a worker may have. */
  leaseMinMs: 100,
  leaseMaxMs: 3_600_000,
  /**
   * How long the record of a worker outlives its last call, so that late calls are recognised. If Redis was away for hours, or its
   * clock was set forward, living workers must still be known: otherwise they lose their jobs, which then run twice.
   */
  workerRecordMs: 86_400_000,
  /** How long the record of a process outlives its lease, so that a log line can name the process of a lost worker. */
  rememberMs: 600_000,
  /** Maximum number of entries beyond their age or number that one call trims. */
  trimStep: 400,
  /** If a queue has more limits than this, a change of one does not read them all to find out whether jobs may be claimed ahead. */
  rulesRead: 200,
  /** Progress with more bytes is large in an event. The total size of such events is limited; the others are limited by number. */
  largeEvent: 1_024,
  /**
   * Progress with more bytes is large. The total size of large values is limited; the others are limited by the number of jobs.
   */
  largeProgress: 4_096,
  /** If the record of an end has this many bytes or more, lists contain only its time. */
  briefResult: 4_096,
  /** Number of failed attempts kept for a job. */
  attemptsKept: 5,
  /** Number of log lines kept for a job: default and maximum. */
  logLines: 100,
  logLinesMax: 1_000,
  /** About how many log lines one call deletes. Each line is a field of a hash, so 2,000 take 2 ms. */
  linesDropped: 2_000,
  /** How long the time and reason of a cancel are kept after the job is gone, and for how many jobs. */
  cancelledMs: 60_000,
  cancelledMax: 1_000,
  /**
   * How long a completed job holds its id if `addAndWait` added it. This is longer than `addAndWait` takes to read the result.
   */
  awaitedMs: 10_000,
  /** Added to the expiry time of a cancelled job, so that it sorts after all completed jobs. It is larger than any time. */
  cancelledFrom: 1_000_000_000_000_000,
  /** The due time of a job that waits for the end of another one: the last time that a `Date` can represent. */
  parkedAt: 8_640_000_000_000_000,
  /** How many occurrences of a schedule are kept. */
  recent: 10,
  /**
   * Maximum number of job names with separate counters per day, because users may generate names. All further names are counted
   * under the empty name.
   */
  namesPerDay: 200,
  /** How many days the daily counters are kept. */
  statsDays: 90,
  /** About how many actions of people are kept for a prefix. */
  actionsMax: 10_000,
  /** How many hours the counters per minute are kept. */
  historyHours: 72,
  /**
   * The codes with which a script reports whether further jobs may start. A number above 0 is the time in ms until more of them
   * may start; `supplyMore` means that there are more.
   */
  supplyMore: 0,
  supplyPaused: -1,
  supplyEmpty: -2,
  /** There are more jobs, but their bodies are too large for one reply. */
  supplyCut: -3,
  /** The queue has limits or groups, so only the script `claim-limited` can tell. */
  supplyLimited: -4,
  /** The same, and claimed jobs must start at once. */
  supplyAtOnce: -5,
  /** Maximum number of lines of groups and names. A score combines line and rank; up to this number it is exact in a double. */
  linesMax: 2_097_150,
  /** A dead job that stops its group has the number of its line plus this one in `slots`. */
  stoppedLines: 5_000_000,
  /** How far the turn of a line with weight 1 moves with each job. */
  turnStep: 1_024,
  /**
   * If groups are served by their running jobs: how much each running job of a line with weight 1 counts more than its turn. Up to
   * `placesMax` such jobs are exact in a double; a line with more counts as one with that many.
   */
  placeStep: 2 ** 42,
  placesMax: 2_047,
  /** How many jobs of a group may run if nothing limits them but they are counted. */
  runningMax: 1_000_000,
  /** In how many slices a sliding window is counted, without and with a `burst` below `max`. */
  slices: 100,
  pacedSlices: 1_000,
  /** How many jobs one claim sorts into lines, and how many lines it examines in one step. */
  sortMax: 250,
  /** The same for jobs that a worker gave back or lost: about as many as one worker holds. */
  returnedMax: 1_000,
  /** A worker that found too few places of a shared limit keeps a share of them for this long. It asks again each second. */
  shortMs: 3_000,
} as const;
