import { DAY_MS, type CountedBy } from '../contract/history.js';
import type { QueueRef } from '../contract/queue-ref.js';
import { letterOf, LETTERS, type Letter } from '../job/job-id.js';
import { RULES } from '../job/rules.js';

/**
 * The format of the stored data, as written to `meta`. A version reads all formats up to its own and refuses higher ones. So it
 * increases only with a change that older versions cannot work with.
 */
export const QUEUE_FORMAT = 1;

/** The answer of `TYPE` for a key that exists. */
type KeyType = 'string' | 'list' | 'set' | 'zset' | 'hash' | 'stream';

/**
 * Every key of a queue: its name as it is in Redis, its type, and what it holds. All of them share one hash tag, so that a script
 * may use any of them on Redis Cluster. No other file builds a key.
 */
const KEYS_OF_QUEUE = {
  /** id -> body: the job as written. Only of jobs whose ids have no letter. */
  jobs: 'hash',
  /** Ids that can be claimed now, first in first out. */
  wait: 'list',
  /** Ids that have stalled twice or more. A worker holds at most one of them at a time. */
  suspects: 'list',
  /** id -> rank: waiting jobs with a priority, first in first out inside one priority. */
  prioritized: 'zset',
  /** id -> due ms: first runs and retries that wait for a time. */
  delayed: 'zset',
  /** id -> priority, of delayed jobs that have one. Scripts do not read it from the body. */
  priorities: 'hash',
  /** worker -> end of its lease in ms. */
  workers: 'zset',
  /** id -> failed attempts; absent means 0. */
  attempts: 'hash',
  /** id -> workers lost; absent means 0. */
  stalls: 'hash',
  /** id -> when and why the last attempt failed. */
  failures: 'hash',
  /** id -> time of death in ms: jobs that will not run again unless they are retried. */
  dead: 'zset',
  /** id -> kept until (ms): completed jobs with a retention. For cancelled jobs `RULES.cancelledFrom` is added. */
  completed: 'zset',
  /** id -> how the job ended, and what its handler returned. For the same jobs. */
  results: 'hash',
  /** id -> JSON: the progress that a run reported. */
  progress: 'hash',
  /** id -> bytes of all large progress values up to this one, in the order they were written. Includes jobs that are gone. */
  largeProgress: 'zset',
  /** job name -> ms when a process last reported that it handles the name, or when a process first asked. */
  handled: 'hash',
  /** id -> log lines of the job. */
  logs: 'hash',
  /**
   * digest of a key -> the job that holds it, until when the key counts in any case, since when, and the job that waits for its
   * end.
   */
  unique: 'hash',
  /**
   * id -> record of a schedule: JSON as the client wrote it. Schedules from code have a line before it that names their owner.
   */
  schedules: 'hash',
  /** id -> ms of the next occurrence: schedules that are neither paused nor ended. */
  upcoming: 'zset',
  /** id -> counters of a schedule, one per line: revision, jobs made, last occurrence, mode, last job. */
  firings: 'hash',
  /** id -> created-at ms: all schedules, in the order they are listed. */
  scheduleOrder: 'zset',
  /** `process ttl set` -> ms until when it holds: which process declares which set of schedules. */
  declarers: 'zset',
  /** set -> ids, one per line: the sets of schedules that processes declare, or declared when they were last seen. */
  declaredSets: 'hash',
  /** id -> reason, of active jobs that were cancelled. Unless such a job completes, it ends as cancelled. */
  toCancel: 'hash',
  /** id -> when and why: jobs that ended as cancelled, for a minute, for callers that missed the event. */
  cancelled: 'hash',
  /** One entry per script call that changed something; ids are event numbers. */
  events: 'stream',
  /** Number of an event with a large value -> bytes of all such events up to it. */
  large: 'zset',
  /** Number of the format, since when the queue is paused, number of the last event, sequence of the priorities. */
  meta: 'hash',
  /**
   * `q` the queue, `g` all groups, `g:<group>`, `n:<name>`, and in the queue without a name `s:<shared limit>` -> JSON: rules
   * from the code and rules set at run time.
   */
  limits: 'hash',
  /**
   * The same fields -> until when nothing may start, how much of the rate is used, and the circuit breaker; With `b:` before the
   * field: what a breaker counts. With `r:` before it: when the next retry is due.
   */
  limitStates: 'hash',
  /**
   * In the queue without a name: shared limit -> which workers have places of it; `w:` and the limit -> queues that wait for a
   * place.
   */
  shares: 'hash',
  /** id -> number of its line and a rank: waiting jobs of groups, and all other waiting jobs of a queue with lines. */
  grouped: 'zset',
  /** `g:<group>`, `n:<name>` or empty -> number of the line. */
  lines: 'hash',
  /** number of a line -> its turn, priorities and name. */
  lineStates: 'hash',
  /** number of a line -> turn: lines from which a job may start. 0: the line must be examined first. */
  ready: 'zset',
  /** number of a line -> ms: when the line may give a job again. */
  resting: 'zset',
  /** id -> number of its line: jobs that count against a concurrency limit. */
  slots: 'zset',
  /**
   * Has a member while there may be work, and another one for a new earliest time of a job or a schedule. Popping a member wakes
   * exactly one blocked worker.
   */
  doorbell: 'zset',
} as const satisfies Readonly<Record<string, KeyType>>;

/**
 * HASH id -> body, of jobs whose ids have this letter. With a million waiting jobs, a single hash would be larger than any
 * processor cache, and each access would go to memory. Jobs that come and go at the same time are in one or two of these.
 */
export type LetteredJobs = `jobs${Letter}`;

/** In the order of the letters. Scripts that may meet any job declare all of them, and find the right one by its position. */
export const LETTERED_JOBS: readonly LetteredJobs[] = LETTERS.map((letter) => `jobs${letter}` as const);

export function isLetteredJobs(name: string): name is LetteredJobs {
  return (LETTERED_JOBS as readonly string[]).includes(name);
}

export type QueueKeyName = keyof typeof KEYS_OF_QUEUE | LetteredJobs;

/** All keys, for scripts that look at a whole queue. */
export const QUEUE_KEYS = [
  ...(Object.keys(KEYS_OF_QUEUE) as (keyof typeof KEYS_OF_QUEUE)[]),
  ...LETTERED_JOBS,
];

/** Keys whose names also contain a worker, a lane of a producer, the letter of a job id, or a day. */
const DYNAMIC_KEYS = {
  worker: 'hash',
  active: 'set',
  stats: 'hash',
  minutes: 'hash',
  lane: 'string',
  bodies: 'hash',
  undo: 'string',
} as const satisfies Readonly<Record<string, KeyType>>;

type DynamicKeyName = keyof typeof DYNAMIC_KEYS;

/** Keys of all processes of a prefix, not of a queue. They have their own hash tag. */
const KEYS_OF_PROCESSES = {
  /** process -> ms until when its record is valid: the worker processes. */
  processes: { type: 'zset', suffix: 'processes' },
  /** process -> JSON: its record, for operators. */
  processInfo: { type: 'hash', suffix: 'processes:info' },
  /** queue -> ms when a process last reported that it adds jobs to it or works on it. */
  queues: { type: 'zset', suffix: 'queues' },
  /** `owner`, `until`, `state`: which process evaluates the rules of alerts, and what is firing. */
  alerts: { type: 'hash', suffix: 'alerts' },
  /** Who did what, and how it ended; the id of an entry begins with the time of Redis in ms. */
  actions: { type: 'stream', suffix: 'actions' },
  /** id -> JSON: acts on many jobs that run or have ended. */
  bulkActs: { type: 'hash', suffix: 'bulkActs' },
} as const satisfies Readonly<Record<string, { type: KeyType; suffix: string }>>;

type ProcessKeyName = keyof typeof KEYS_OF_PROCESSES;

export type KeyName = QueueKeyName | DynamicKeyName | ProcessKeyName;

/**
 * Keys outside of queues: users name them in full and use them with their own commands. `delayedTasks`: task -> due time.
 * `readyTasks`: tasks.
 */
const TASK_KEYS = { delayedTasks: 'zset', readyTasks: 'list' } as const satisfies Readonly<
  Record<string, KeyType>
>;

export type ScriptKeyName = KeyName | keyof typeof TASK_KEYS;

/**
 * Every key that a script can name. Each script gets those it names in this order: first the ones that are the same in all calls for
 * a queue, then those of a worker.
 */
export const SCRIPT_KEYS = [
  ...QUEUE_KEYS,
  ...(Object.keys(KEYS_OF_PROCESSES) as ProcessKeyName[]),
  ...(Object.keys(TASK_KEYS) as (keyof typeof TASK_KEYS)[]),
  ...(Object.keys(DYNAMIC_KEYS) as DynamicKeyName[]),
] as const satisfies readonly ScriptKeyName[];

/** The type of the value of a key. */
export function typeOfKey(name: ScriptKeyName): KeyType {
  if (isLetteredJobs(name)) return 'hash';
  if (name in KEYS_OF_PROCESSES) return KEYS_OF_PROCESSES[name as ProcessKeyName].type;
  return { ...KEYS_OF_QUEUE, ...DYNAMIC_KEYS, ...TASK_KEYS }[name as Exclude<typeof name, ProcessKeyName>];
}

export type KeysOfWorker = Readonly<Record<QueueKeyName | 'worker' | 'active' | 'stats', string>>;

/** The keys of one queue. */
export class QueueKeys {
  private readonly tag: string;
  readonly fixed: Readonly<Record<QueueKeyName, string>>;
  private readonly byLetter: ReadonlyMap<Letter | '', string>;
  private last: { readonly worker: string; readonly day: string; readonly keys: KeysOfWorker } | undefined;

  constructor(prefix: string, queue: QueueRef) {
    this.tag = `{${prefix}:${queue}}:`;
    // An object that grows name by name becomes a dictionary in V8, and copying it into a call takes ten times as long.
    this.fixed = Object.fromEntries([
      ...Object.keys(KEYS_OF_QUEUE).map((name) => [name, this.tag + name]),
      ...LETTERS.map((letter) => [`jobs${letter}`, `${this.tag}jobs:${letter}`]),
    ]) as Record<QueueKeyName, string>;
    this.byLetter = new Map(
      (['', ...LETTERS] as const).map((letter) => [letter, this.fixed[`jobs${letter}`]]),
    );
  }

  /** SET of the ids that this worker holds. Membership is the lease on the job. */
  active(worker: string): string {
    return `${this.tag}active:${worker}`;
  }

  /**
   * All keys that a call of this worker may name on this day. The object is kept between calls: V8 makes a new hidden class for
   * each copy that gets more names, which takes 4 µs and 2 KB until a full collection.
   */
  ofWorker(worker: string, day: string): KeysOfWorker {
    if (this.last?.worker !== worker || this.last.day !== day) {
      const own = { worker: this.worker(worker), active: this.active(worker), stats: this.stats(day) };
      this.last = { worker, day, keys: { ...this.fixed, ...own } };
    }
    return this.last.keys;
  }

  /** SCAN pattern for the active sets of all workers. Prefixes and queue names contain no special characters of patterns. */
  get everyActive(): string {
    return this.active('*');
  }

  /** The worker that an active set belongs to. */
  workerOf(active: string): string {
    return active.slice(this.active('').length);
  }

  /** HASH with TTL: number of the last exchange and its answer, for repetitions. */
  worker(worker: string): string {
    return `${this.tag}worker:${worker}`;
  }

  /** STRING with TTL: number of the last enqueue call of a lane and its duplicates, for repetitions. */
  lane(lane: string): string {
    return `${this.tag}lane:${lane}`;
  }

  /** HASH id -> body: the hash that keeps the body of this job, `jobs` or one with a letter. */
  bodies(id: string): string {
    return this.byLetter.get(letterOf(id))!;
  }

  /** STRING, within a transaction: what the transaction stored and may have to take back. */
  get undo(): string {
    return `${this.tag}undo`;
  }

  /**
   * HASH, kept 90 days: counters of one day (UTC, `yyyy-mm-dd`): `processed:<name>`, `failed:<name>` and `dead:<name>` for each
   * job name, `cancelled` for all jobs, and `names`, the number of names.
   */
  stats(day: string): string {
    return `${this.tag}stats:${day}`;
  }

  /** All `stats` keys that can exist. That of tomorrow is included: the clock of another process may be ahead. */
  everyStats(now: number): string[] {
    return this.statsUntil(now + DAY_MS, RULES.statsDays + 2).map(({ key }) => key);
  }

  /**
   * HASH, kept 73 hours: counters of one hour, written by processes with `history`. `<minute>:<name>` -> numbers, see `contract/history.ts`;
   * `~<lane>` -> number of the last call of a process. Those of hosts are in `hosts:<hour>`, with a host in place of the name.
   */
  minutes(hour: number, by: CountedBy): string {
    return `${this.tag}${by === 'host' ? 'hosts' : 'minutes'}:${new Date(hour).toISOString().slice(0, 13)}`;
  }

  /** All `minutes` and `hosts` keys that can exist, including those of the next hour. */
  everyMinutes(now: number): string[] {
    const hours = Array.from({ length: RULES.historyHours + 3 }, (_, ago) => now + (1 - ago) * 3_600_000);
    return hours.flatMap((hour) => [this.minutes(hour, 'name'), this.minutes(hour, 'host')]);
  }

  /** The `stats` keys of this day and the days before, newest first, `days` in all. */
  statsUntil(now: number, days: number): { readonly date: string; readonly key: string }[] {
    return Array.from({ length: days }, (_, ago) => {
      const date = new Date(now - ago * DAY_MS).toISOString().slice(0, 10);
      return { date, key: this.stats(date) };
    });
  }

  /** STRING with TTL, under the queue without a name: held by the process that trims a group of queues. */
  janitor(group: string): string {
    return `${this.tag}janitor:${group}`;
  }
}

export type ProcessKeys = Readonly<Record<ProcessKeyName, string>>;

export function processKeys(prefix: string): ProcessKeys {
  const keys = {} as Record<ProcessKeyName, string>;
  for (const [name, { suffix }] of Object.entries(KEYS_OF_PROCESSES))
    keys[name as ProcessKeyName] = `{${prefix}}:${suffix}`;
  return keys;
}

/** ZSET that only this process pops: it ends its own blocking call early. */
export function privateBell(prefix: string, processId: string): string {
  return `{${prefix}}:bell:${processId}`;
}

/** Whether a key belongs to this prefix. Users cannot use such a key for their own data. */
export function isKeyOf(prefix: string, key: string): boolean {
  return key.startsWith(`{${prefix}:`) || key.startsWith(`{${prefix}}:`);
}
