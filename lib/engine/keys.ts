import type { QueueRef } from '../contract/queue-ref.js';
import { letterOf, LETTERS, type Letter } from '../job/job-id.js';
import { RULES } from '../job/rules.js';

/**
 * The format of what these keys hold, as `meta` has it. A version reads all numbers up to its own and refuses higher ones, so
 * it becomes higher only with a change that the version before it cannot work with, and cannot read since an earlier version.
 */
export const QUEUE_FORMAT = 1;

/** What `TYPE` answers of a key that is there. */
export type KeyType = 'string' | 'list' | 'set' | 'zset' | 'hash' | 'stream';

/**
 * Every key of a queue, by name, with its type and the reason it exists. All of them share one hash tag, so that a
 * script may touch any of them on Redis Cluster. No other file builds a key.
 */
const KEYS_OF_QUEUE = {
  /** id -> body: the job as written; a run does not rewrite it. Of all jobs whose ids have no letter. */
  jobs: { type: 'hash', suffix: 'jobs' },
  /** Ids that may be claimed now, first in first out. */
  wait: { type: 'list', suffix: 'wait' },
  /** Ids that have stalled twice or more: a worker holds at most one of them at a time. */
  suspects: { type: 'list', suffix: 'suspects' },
  /** id -> rank: waiting jobs with a priority, first in first out inside one priority. */
  prioritized: { type: 'zset', suffix: 'prioritized' },
  /** id -> due ms: first runs and retries that wait for a time. */
  delayed: { type: 'zset', suffix: 'delayed' },
  /** id -> priority, of delayed jobs that have one: the body is opaque when they are promoted. */
  priorities: { type: 'hash', suffix: 'priorities' },
  /** worker -> lease end ms: who holds jobs. */
  workers: { type: 'zset', suffix: 'workers' },
  /** id -> failed attempts; absent means 0. */
  attempts: { type: 'hash', suffix: 'attempts' },
  /** id -> workers lost; absent means 0. */
  stalls: { type: 'hash', suffix: 'stalls' },
  /** id -> when and why the last attempt failed. */
  failures: { type: 'hash', suffix: 'failures' },
  /** id -> died-at ms: gave up, kept for a person. */
  dead: { type: 'zset', suffix: 'dead' },
  /** id -> kept-until ms: only jobs with a retention. Of cancelled ones `RULES.cancelledFrom` more. */
  completed: { type: 'zset', suffix: 'completed' },
  /** id -> how it ended and what the handler returned, of the same jobs. */
  results: { type: 'hash', suffix: 'results' },
  /** id -> JSON: what a run says of its progress. */
  progress: { type: 'hash', suffix: 'progress' },
  /** id -> bytes of all large values up to it, in the order in which they were written; of jobs that are gone too. */
  largeProgress: { type: 'zset', suffix: 'largeProgress' },
  /** job name -> ms when a process last said that it handles it, or when that was first asked. */
  handled: { type: 'hash', suffix: 'handled' },
  /** id -> lines: what a run wrote to its log. */
  logs: { type: 'hash', suffix: 'logs' },
  /** digest of a key -> the job that holds it, until when it counts in any case, since when, and the job that waits for its end. */
  unique: { type: 'hash', suffix: 'unique' },
  /** id -> record of a schedule, JSON as the client wrote it, behind a line that names its owner where it comes from code. */
  schedules: { type: 'hash', suffix: 'schedules' },
  /** id -> ms of the next occurrence: schedules that are neither paused nor ended. */
  upcoming: { type: 'zset', suffix: 'upcoming' },
  /** id -> what is counted of a schedule: revision, jobs made, last occurrence, mode, last job; a line each. */
  firings: { type: 'hash', suffix: 'firings' },
  /** id -> created-at ms: all schedules, in the order they are listed. */
  scheduleOrder: { type: 'zset', suffix: 'scheduleOrder' },
  /** `process ttl set` -> until ms: which process declares which set of schedules. */
  declarers: { type: 'zset', suffix: 'declarers' },
  /** set -> ids, a line each: sets of schedules that processes declare, or did when they were last seen. */
  declaredSets: { type: 'hash', suffix: 'declaredSets' },
  /** id -> reason, of active jobs that were cancelled: whatever their worker says of them but `completed`, they end. */
  toCancel: { type: 'hash', suffix: 'toCancel' },
  /** id -> when and why, for a minute: jobs that ended as cancelled, for those who missed the event. */
  cancelled: { type: 'hash', suffix: 'cancelled' },
  /** One entry per script call that changed something; ids are event numbers. */
  events: { type: 'stream', suffix: 'events' },
  /** Number of an event with a large value -> bytes of all such events up to it. */
  large: { type: 'zset', suffix: 'large' },
  /** Number of the format, since when it is paused, number of the last event, sequence of the priorities. */
  meta: { type: 'hash', suffix: 'meta' },
  /** `q` the queue, `g` all groups, `g:<group>`, `n:<name>` -> JSON: rules of limits, from code and set while it runs. */
  limits: { type: 'hash', suffix: 'limits' },
  /** The same -> until when nobody may start, and how much of the rate is used. */
  limitStates: { type: 'hash', suffix: 'limitStates' },
  /** id -> number of its line and a rank: waiting jobs of groups, and all others of a queue with lines. */
  grouped: { type: 'zset', suffix: 'grouped' },
  /** `g:<group>`, `n:<name>` or empty -> number of the line. */
  lines: { type: 'hash', suffix: 'lines' },
  /** number of a line -> its turn, priorities and name. */
  lineStates: { type: 'hash', suffix: 'lineStates' },
  /** number -> turn: lines that may give a job; 0 for those that must be looked at first. */
  ready: { type: 'zset', suffix: 'ready' },
  /** number -> ms: lines that may give a job again then. */
  resting: { type: 'zset', suffix: 'resting' },
  /** id -> number of its line: jobs that count against a concurrency. */
  slots: { type: 'zset', suffix: 'slots' },
  /**
   * One member while there may be work, and one more for a new first time, of a job or of a schedule: popping one wakes
   * exactly one blocked worker.
   */
  doorbell: { type: 'zset', suffix: 'doorbell' },
} as const satisfies Readonly<Record<string, { type: KeyType; suffix: string }>>;

/**
 * HASH id -> body, of jobs whose ids have this letter. One hash for all would be larger than any cache where a million jobs wait,
 * and each look into it a fetch from memory; of these, what comes and goes at a time is in one or two.
 */
export type LetteredJobs = `jobs${Letter}`;

/** In the order of the letters: scripts that may meet any job name all of them, and find theirs by that order. */
export const LETTERED_JOBS: readonly LetteredJobs[] = LETTERS.map((letter) => `jobs${letter}` as const);

export function isLetteredJobs(name: string): name is LetteredJobs {
  return (LETTERED_JOBS as readonly string[]).includes(name);
}

export type QueueKeyName = keyof typeof KEYS_OF_QUEUE | LetteredJobs;

/** All of them, for scripts that look at a queue as a whole. */
export const QUEUE_KEYS = [
  ...(Object.keys(KEYS_OF_QUEUE) as (keyof typeof KEYS_OF_QUEUE)[]),
  ...LETTERED_JOBS,
];

/** What a job may leave beside its body: the keys of scripts that use the fragment `traces`. */
export const TRACE_KEYS = [
  'attempts',
  'stalls',
  'failures',
  'progress',
  'logs',
  'priorities',
  'toCancel',
  'slots',
  'ready',
] as const satisfies readonly QueueKeyName[];

/** What one job has apart from its body: the keys of scripts that use the fragment `stored`. */
export const STORED_KEYS = [
  'attempts',
  'stalls',
  'failures',
  'results',
  'progress',
  'logs',
] as const satisfies readonly QueueKeyName[];

/** Keys that are made from more than the queue: a worker, a lane of a producer, the ids of jobs, a day. */
const DYNAMIC_KEYS = {
  active: 'set',
  worker: 'hash',
  lane: 'string',
  undo: 'string',
  bodies: 'hash',
  stats: 'hash',
  minutes: 'hash',
} as const satisfies Readonly<Record<string, KeyType>>;

export type DynamicKeyName = keyof typeof DYNAMIC_KEYS;

/** Keys that belong to no queue, but to all processes of a prefix; they share a hash tag of their own. */
const KEYS_OF_PROCESSES = {
  /** process -> ms until when its record holds: the worker processes. */
  processes: { type: 'zset', suffix: 'processes' },
  /** process -> JSON: what it says of itself, for operators. */
  processInfo: { type: 'hash', suffix: 'processes:info' },
  /** queue -> ms when a process last said that it adds jobs to it or works on it. */
  queues: { type: 'zset', suffix: 'queues' },
} as const satisfies Readonly<Record<string, { type: KeyType; suffix: string }>>;

export type ProcessKeyName = keyof typeof KEYS_OF_PROCESSES;

export type KeyName = QueueKeyName | DynamicKeyName | ProcessKeyName;

/**
 * Keys that are no queue's: users name them in full, and fill and empty them with commands of their own. `delayedTasks`: task ->
 * due. `readyTasks`: tasks.
 */
const TASK_KEYS = { delayedTasks: 'zset', readyTasks: 'list' } as const satisfies Readonly<
  Record<string, KeyType>
>;

export type TaskKeyName = keyof typeof TASK_KEYS;

/** Which type of value a key holds, if it is there. */
export function typeOfKey(name: KeyName | TaskKeyName): KeyType {
  if (isLetteredJobs(name)) return 'hash';
  if (name in DYNAMIC_KEYS) return DYNAMIC_KEYS[name as DynamicKeyName];
  if (name in TASK_KEYS) return TASK_KEYS[name as TaskKeyName];
  return { ...KEYS_OF_QUEUE, ...KEYS_OF_PROCESSES }[name as keyof typeof KEYS_OF_QUEUE | ProcessKeyName].type;
}

const DAY_MS = 86_400_000;

export type KeysOfWorker = Readonly<Record<QueueKeyName | 'worker' | 'active' | 'stats', string>>;

/** The keys of one queue. */
export class QueueKeys {
  private readonly tag: string;
  readonly fixed: Readonly<Record<QueueKeyName, string>>;
  private readonly byLetter: ReadonlyMap<Letter | '', string>;
  private last: { readonly worker: string; readonly day: string; readonly keys: KeysOfWorker } | undefined;

  constructor(prefix: string, queue: QueueRef) {
    this.tag = `{${prefix}:${queue}}:`;
    // Not name by name: V8 makes a dictionary of an object that grows so, and copying that into a call takes ten times as long.
    this.fixed = Object.fromEntries([
      ...Object.entries(KEYS_OF_QUEUE).map(([name, { suffix }]) => [name, this.tag + suffix]),
      ...LETTERS.map((letter) => [`jobs${letter}`, `${this.tag}jobs:${letter}`]),
    ]) as Record<QueueKeyName, string>;
    this.byLetter = new Map(
      (['', ...LETTERS] as const).map((letter) => [letter, this.fixed[`jobs${letter}`]]),
    );
  }

  /** SET of ids this worker holds. Membership is the lease on the job. */
  active(worker: string): string {
    return `${this.tag}active:${worker}`;
  }

  /**
   * All that a call of a worker may name on such a day. Not made for each call: V8 makes a class of its own of each copy that
   * gets more names, which takes 4 µs and 2 KB that live until a full collection.
   */
  ofWorker(worker: string, day: string): KeysOfWorker {
    if (this.last?.worker !== worker || this.last.day !== day) {
      const own = { worker: this.worker(worker), active: this.active(worker), stats: this.stats(day) };
      this.last = { worker, day, keys: { ...this.fixed, ...own } };
    }
    return this.last.keys;
  }

  /** Pattern of the active sets of all workers, for SCAN; neither prefixes nor queue names hold what is special there. */
  get everyActive(): string {
    return this.active('*');
  }

  /** The worker of an active set. */
  workerOf(active: string): string {
    return active.slice(this.active('').length);
  }

  /** HASH with TTL: number of the last exchange and what it gave, for repetitions. */
  worker(worker: string): string {
    return `${this.tag}worker:${worker}`;
  }

  /** STRING with TTL: number of the last enqueue call of a lane and its duplicates, for repetitions. */
  lane(lane: string): string {
    return `${this.tag}lane:${lane}`;
  }

  /** HASH id -> body: of `jobs` and those with a letter, the one that keeps the body of this job. */
  bodies(id: string): string {
    return this.byLetter.get(letterOf(id))!;
  }

  /** STRING, within a transaction: what it stored and must not have. */
  get undo(): string {
    return `${this.tag}undo`;
  }

  /**
   * HASH, kept 90 days: what became of jobs on one day (UTC, `yyyy-mm-dd`): `processed:<name>`, `failed:<name>` and `dead:<name>` for
   * each job name, `cancelled` of all, and how many `names` that are.
   */
  stats(day: string): string {
    return `${this.tag}stats:${day}`;
  }

  /** All there can be, with that of tomorrow: another process may be there already. */
  everyStats(now: number): string[] {
    return this.statsUntil(now + DAY_MS, RULES.statsDays + 2).map(({ key }) => key);
  }

  /**
   * HASH, kept 72 hours: counters of one hour, written by processes with `history`. `<minute>:<name>` -> numbers, see `contract/history.ts`;
   * `~<lane>` -> number of the last call of a process.
   */
  minutes(hour: number): string {
    return `${this.tag}minutes:${new Date(hour).toISOString().slice(0, 13)}`;
  }

  /** All there can be, with that of the next hour. */
  everyMinutes(now: number): string[] {
    const hours = RULES.historyHours + 3;
    return Array.from({ length: hours }, (_, ago) => this.minutes(now + (1 - ago) * 3_600_000));
  }

  /** Those of the day of this moment and of the days before, the newest first, `days` in all. */
  statsUntil(now: number, days: number): { readonly date: string; readonly key: string }[] {
    return Array.from({ length: days }, (_, ago) => {
      const date = new Date(now - ago * DAY_MS).toISOString().slice(0, 10);
      return { date, key: this.stats(date) };
    });
  }

  /** STRING with TTL, of the queue without a name: who looks after a group of queues has it for a while. */
  janitor(group: string): string {
    return `${this.tag}janitor:${group}`;
  }
}

export function processKeys(prefix: string): Readonly<Record<ProcessKeyName, string>> {
  const keys = {} as Record<ProcessKeyName, string>;
  for (const [name, { suffix }] of Object.entries(KEYS_OF_PROCESSES))
    keys[name as ProcessKeyName] = `{${prefix}}:${suffix}`;
  return keys;
}

/** ZSET popped only by one process: ends its own block early. */
export function privateBell(prefix: string, processId: string): string {
  return `{${prefix}}:bell:${processId}`;
}

/** Whether a key is one of those of a prefix, so that nobody takes it for a key of his own. */
export function isKeyOf(prefix: string, key: string): boolean {
  return key.startsWith(`{${prefix}:`) || key.startsWith(`{${prefix}}:`);
}
