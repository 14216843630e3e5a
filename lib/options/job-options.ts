import { NO_OPTIONS } from '../job/job-record.js';
import { InvalidOptionError } from '../errors.js';
import {
  BackoffName,
  checkBackoff,
  checkBackoffName,
  DEFAULT_MAX_MS,
  namedBackoff,
  type Backoffs,
  type BackoffFunction,
  type BackoffOption,
  type StoredBackoff,
  type CheckedBackoff,
} from '../job/backoff.js';
import { MAX_TIMER_MS, parseDuration, type Duration } from '../job/duration.js';
import { checkHeaders, type JobHeaders } from '../job/headers.js';
import { checkNewJobId } from '../job/job-id.js';
import { ENDED_STATES, type EndedState } from '../job/job-state.js';
import {
  boolean,
  duration,
  field,
  fields,
  integer,
  readable,
  type Report,
  refuse,
  rule,
  shape,
  someOf,
  type Rule,
  type Shaped,
} from './check.js';
import { RULES } from '../job/rules.js';
import { checkGroup, readCost } from './limit-options.js';
import {
  readAggregate,
  readDebounce,
  readThrottle,
  readUnique,
  type AggregateOptions,
  type DebounceOptions,
  type ThrottleOptions,
  type UniqueOptions,
} from './unique-options.js';

/** How long jobs stay readable after their end. */
export interface RetentionOptions {
  /** A completed job and its result. @default 0 */
  readonly completed?: Duration;
  /** A cancelled job and the reason. @default 0 */
  readonly cancelled?: Duration;
}

/** Options of jobs that a queue or the module can set for all jobs. */
export interface JobDefaults {
  /** Maximum number of runs, the first included: 1 to 1,000,000. @default 3 */
  readonly attempts?: number;
  /** Wait before the next attempt. @default { type: 'exponential', delay: '1s', max: '1h', jitter: 0.2 } */
  readonly backoff?: BackoffOption;
  /** Longest run of one attempt, up to 24 days; then `job.signal` aborts and the attempt fails. @default none */
  readonly timeout?: Duration;
  /**
   * How long a completed job and its result stay readable; with 0 it is deleted at once. An object sets it for completed and
   * cancelled jobs: `{ completed: '1h', cancelled: '1d' }`.
   *
   * @default 0
   */
  readonly retention?: Duration | RetentionOptions;
  /** A job that has not started within this time after it was first due becomes dead as `expired`. @default none */
  readonly expiresIn?: Duration;
  /**
   * A failed job is retried as long as the next attempt starts within this time after the job was first due. After that it is
   * dead as `retries-exhausted`. If `attempts` is set too, both limits apply.
   *
   * @default none
   */
  readonly retryFor?: Duration;
  /**
   * States in which an ended job keeps its id from being reused: an `add` with the id of such a job is a duplicate. In other
   * states a new job replaces the ended one. A job that has not ended always keeps its id.
   *
   * @default []
   */
  readonly idHeldBy?: readonly EndedState[];
}

/**
 * Second argument of `@Handle`: defaults for the jobs of one handler. They override those of the queue and of the module; options
 * of the job override them.
 */
export interface HandlerPolicy {
  /** Maximum number of runs, the first included: 1 to 1,000,000. @default that of the queue */
  readonly attempts?: number;
  /** Wait before the next attempt. @default that of the queue */
  readonly backoff?: BackoffOption;
  /** Longest run of one attempt, up to 24 days. @default that of the queue */
  readonly timeout?: Duration;
  /** How long a completed job and its result stay readable. @default that of the queue */
  readonly retention?: Duration;
  /**
   * A failed job is retried as long as the next attempt starts within this time after the job was first due. Without `attempts`,
   * this is the only limit.
   *
   * @default that of the queue
   */
  readonly retryFor?: Duration;
}

/** Options of `add`. */
export interface JobOptions extends Omit<JobDefaults, 'backoff'> {
  /**
   * If a job with this id waits, is delayed or runs, `add` adds nothing and returns `duplicate: true` and its state. An ended job
   * with this id is replaced, unless `idHeldBy` names its state. An id that ends in `@` and a time is refused, because jobs of
   * schedules have such ids.
   *
   * @default generated
   */
  readonly id?: string;
  /** The job runs after this time. A negative number runs it now, so the difference to a past time is valid. @default 0 */
  readonly delay?: Duration;
  /** The job runs at this time; not together with `delay`. A number is ms since 1970. @default now */
  readonly runAt?: Date | number;
  /**
   * No attempt starts at or after this time, and a running attempt is aborted then. The job is dead as `expired`. A number is ms
   * since 1970.
   *
   * @default none
   */
  readonly deadline?: Date | number;
  /**
   * 1 (first) to 2,097,151 (last). Jobs with 0 or without a priority run before all others. Refused with a group in strict order.
   *
   * @default 0
   */
  readonly priority?: number;
  /** Allows one job with a key at a time. Not together with `id`. @default none */
  readonly unique?: UniqueOptions;
  /**
   * Several adds with one key become one job, which has the data of the last add and runs some time after it. Not together with
   * `id`, `delay`, `runAt`, `unique` or `throttle`.
   *
   * @default none
   */
  readonly debounce?: DebounceOptions;
  /**
   * The first add with a key makes a job; for some time further adds make none. Not together with `id`, `unique` or `debounce`.
   * @default none
   */
  readonly throttle?: ThrottleOptions;
  /**
   * Collects the data of several adds with one key in one job. The data of the job is a list, in the order of the adds. The job
   * has the other options of the first add. Not together with `id`, `delay`, `runAt`, `lifo`, `unique`, `debounce` or `throttle`.
   * @default none
   */
  readonly aggregate?: AggregateOptions;
  /**
   * Last in, first out: the job is placed before all waiting jobs. The last job of a bulk runs first. Retries are placed as
   * usual. No effect on a job whose group is taken from its data. Not together with `priority`, `group`, `delay`, `runAt`,
   * `debounce` or `aggregate`.
   *
   * @default false
   */
  readonly lifo?: boolean;
  /**
   * The group of the job: a tenant, a customer, an account; 1 to 256 bytes. Groups take turns, so a group with many jobs does not
   * delay the others.
   *
   * @default by `groups.by` of the queue, or none
   */
  readonly group?: string;
  /** How much the job counts against the rates of its queue, name and group: 1 to 1,000,000,000. @default 1 */
  readonly cost?: number;
  /**
   * Small strings that the handler reads from `job.headers`: at most 64, with names as in HTTP, 8,192 bytes in all. They override
   * those of `forRoot({ headers })`.
   *
   * @default none
   */
  readonly headers?: JobHeaders;
  /** Wait before the next attempt. Not a function, because it is stored with the job. @default that of the queue */
  readonly backoff?: Exclude<BackoffOption, BackoffFunction>;
  /** When the `add` of this job resolves. @default that of the queue */
  readonly durability?: DurabilityOption;
  /**
   * Ends the wait for room in a queue whose `maxWaiting` has `onFull: 'wait'`: `add` rejects with the reason of the signal, and
   * nothing is added. Ignored if there is no such wait.
   *
   * @default none
   */
  readonly signal?: AbortSignal;
}

/** The options that decide where a new job is placed. Engines read them. */
const PLACEMENT = [
  'delayMs',
  'dueAt',
  'priority',
  'group',
  'lifo',
] as const satisfies (keyof CheckedJobOptions)[];

export type Placement = Pick<CheckedJobOptions, (typeof PLACEMENT)[number]>;

export function placementOf(checked: CheckedJobOptions): Placement {
  const placement: Placement = {};
  for (const name of PLACEMENT) if (checked[name] !== undefined) placement[name] = checked[name] as never;
  return placement;
}

/** `JobOptions` after checking: milliseconds and plain values, and only the given fields. */
export type CheckedJobOptions = Shaped<typeof JOB_FIELDS>;

/**
 * When `add` resolves. `'local'`: when the primary has stored the job. `'replicated'`: when a replica has confirmed it too, so
 * that the job survives the loss of the primary. This is the same as `{ replicas: 1, timeout: '1s' }`.
 *
 * @default 'local'
 */
export type DurabilityOption = 'local' | 'replicated' | ReplicationOptions;

/** How many replicas `add` waits for, and how long. */
export interface ReplicationOptions {
  /** How many replicas must confirm, 1 to 100. @default 1 */
  readonly replicas?: number;
  /**
   * How long one try waits for the replicas, 1 ms to 24 days. The wait is repeated until `enqueueTimeout` is over.
   *
   * @default '1s'
   */
  readonly timeout?: Duration;
}

/** `ReplicationOptions` with the defaults filled in, in ms. */
export interface Replication {
  readonly replicas: number;
  readonly timeoutMs: number;
}

const ONE_REPLICA: Replication = Object.freeze({ replicas: 1, timeoutMs: 1_000 });

const readReplication = shape({
  replicas: field('replicas', integer(1, 100)),
  timeout: field('timeoutMs', duration(1, MAX_TIMER_MS)),
});

/** Null: local. */
export const readDurability: Rule<Replication | null> = (value, path, report) => {
  if (value === 'local') return null;
  if (value === 'replicated') return ONE_REPLICA;
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    const given = readReplication(value, path, report);
    return given && { ...ONE_REPLICA, ...given };
  }
  report(
    new InvalidOptionError(path, "'local', 'replicated', or an object with replicas and timeout", value),
  );
  return undefined;
};

/** The stricter of two replications, for jobs that are stored together. */
export function strictest(a: Replication | null, b: Replication | null): Replication | null {
  if (a === null || b === null) return a ?? b;
  return {
    replicas: Math.max(a.replicas, b.replicas),
    timeoutMs: Math.max(a.timeoutMs, b.timeoutMs),
  };
}

export function isSame(a: Replication | null, b: Replication | null): boolean {
  return a === b || (a?.replicas === b?.replicas && a?.timeoutMs === b?.timeoutMs);
}

/** In BullMQ, jobs that are retried forever have this number. */
const MAX_ATTEMPTS = Number.MAX_SAFE_INTEGER;
/** The last moment a `Date` can hold. */
export const MAX_TIME_MS = 8_640_000_000_000_000;

const readRetentions = shape({
  completed: field('retentionMs', duration()),
  cancelled: field('cancelledRetentionMs', duration()),
});

export function readRetention(
  value: unknown,
  path: string,
  report: Report,
): { retentionMs?: number; cancelledRetentionMs?: number } | undefined {
  if (typeof value === 'object' && value !== null) return readRetentions(value, path, report);
  const retentionMs = duration()(value, path, report);
  return retentionMs === undefined ? undefined : { retentionMs };
}

const HANDLER_FIELDS = {
  attempts: field('attempts', integer(1, MAX_ATTEMPTS)),
  backoff: field('backoff', rule(checkBackoff)),
  timeout: field('timeoutMs', duration(1, MAX_TIMER_MS)),
  retention: fields(readRetention),
  retryFor: field('retryForMs', duration(1)),
} as const;

/** The fields that jobs, queues and the module share, each with its rule. */
const POLICY_FIELDS = {
  ...HANDLER_FIELDS,
  expiresIn: field('expiresInMs', duration(1)),
  idHeldBy: field('idHeldBy', someOf(...ENDED_STATES)),
} as const;

/** Reads the second argument of `@Handle`. It has no `expiresIn`, because a job expires before its handler is known. */
export const readHandlerPolicy: Rule<CheckedDefaults> = shape(HANDLER_FIELDS);

const JOB_FIELDS = {
  ...POLICY_FIELDS,
  id: field('id', checkNewJobId),
  delay: field('delayMs', rule(checkDelay)),
  runAt: field('dueAt', rule(checkMoment)),
  deadline: field('deadline', rule(checkMoment)),
  priority: field('priority', integer(0, RULES.priorityMax)),
  group: field('group', rule(checkGroup)),
  cost: field('cost', readCost),
  lifo: field('lifo', boolean),
  unique: field('unique', readUnique),
  debounce: field('debounce', readDebounce),
  throttle: field('throttle', readThrottle),
  aggregate: field('aggregate', readAggregate),
  headers: field('headers', rule(checkHeaders)),
  backoff: field('backoff', rule(checkStoredBackoff)),
  durability: field('durability', readDurability),
  signal: field('signal', rule(checkSignal)),
} as const;

/** Options of `add` that the template of a schedule must not have, each with the reason. */
export const NOT_OF_SCHEDULES = {
  id: 'left out: the id of each job is made from the schedule and its time',
  delay: 'left out: the schedule decides when; give it another time, or jitter',
  runAt: 'left out: the schedule decides when; give the rule startAt',
  deadline: 'left out: it is one moment, and each occurrence has another; use expiresIn',
  idHeldBy: 'left out: each occurrence has an id of its own',
  durability: 'left out: no caller waits until such a job is stored',
  unique: 'left out: each occurrence has an id of its own',
  debounce: 'left out: the schedule decides when',
  throttle: 'left out: the schedule decides when',
  signal: 'left out: a schedule never waits for room',
  aggregate: 'left out: the schedule decides when',
  lifo: 'left out: jobs of schedules go to the end of the line, or by their priority',
} as const satisfies { readonly [Name in keyof JobOptions]?: string };

/** The names of the options of `add`. */
export const JOB_OPTION_NAMES: readonly string[] = Object.keys(JOB_FIELDS);

const readJobOptions = shape(JOB_FIELDS);

/**
 * Checks the options of `add`. Without options it returns one shared frozen object.
 *
 * @param path how errors call the options: `add()`.
 * @param backoffs the named backoffs of the queue; `'any'` for options that were checked before.
 * @throws {InvalidOptionError}
 * @throws {InvalidJobIdError}
 */
export function checkJobOptions(
  options: JobOptions | undefined,
  path: string,
  backoffs?: Backoffs | 'any',
): CheckedJobOptions {
  if (options === undefined) return NO_OPTIONS;
  const checked: CheckedJobOptions = readJobOptions(options, path, refuse)!;
  if (checked.backoff instanceof BackoffName && backoffs !== 'any')
    checkBackoffName(checked.backoff, backoffs, `${path}.backoff`);
  if (checked.delayMs !== undefined && checked.dueAt !== undefined) {
    throw new InvalidOptionError(`${path}.runAt`, 'left out if delay is given', options.runAt);
  }
  // 0 means no priority, and is not stored.
  if (checked.priority === 0) delete checked.priority;
  if (checked.lifo)
    refuseTogether(options, path, 'lifo', ['priority', 'group', 'delay', 'runAt', 'debounce']);
  if (checked.unique) {
    refuseTogether(options, path, 'unique', ['id', 'debounce', 'throttle']);
    if (checked.unique.on === 'keepLast') refuseTimes(options, path);
  }
  if (checked.debounce) refuseTogether(options, path, 'debounce', ['id', 'delay', 'runAt', 'throttle']);
  if (checked.throttle) refuseTogether(options, path, 'throttle', ['id']);
  if (checked.aggregate) {
    const others = ['id', 'delay', 'runAt', 'lifo', 'unique', 'debounce', 'throttle'] as const;
    refuseTogether(options, path, 'aggregate', others);
  }
  return checked;
}

/** @throws {InvalidOptionError} for a time of a job that starts when another one ends. */
function refuseTimes(options: JobOptions, path: string): void {
  const time = (['delay', 'runAt'] as const).find((name) => options[name] !== undefined);
  if (time !== undefined)
    throw new InvalidOptionError(
      `${path}.${time}`,
      "left out if unique.onDuplicate is 'keepLast': the end of the other job decides when this one starts",
      options[time],
    );
}

/** @throws {InvalidOptionError} if options are combined that contradict each other. */
function refuseTogether(
  options: JobOptions,
  path: string,
  option: keyof JobOptions,
  others: readonly (keyof JobOptions)[],
): void {
  // A priority of 0 counts as absent.
  const other = others.find((name) => (name === 'priority' ? options.priority : options[name] !== undefined));
  if (other !== undefined)
    throw new InvalidOptionError(`${path}.${option}`, `left out if ${other} is given`, options[option]);
}

export function checkSignal(value: unknown, path: string): AbortSignal {
  const isSignal = readable(value, path, () => {
    const { aborted, addEventListener } = Object(value) as Partial<AbortSignal>;
    return typeof aborted === 'boolean' && typeof addEventListener === 'function';
  });
  if (isSignal) return value as AbortSignal;
  throw new InvalidOptionError(path, 'an AbortSignal', value);
}

/** A delay in ms. A negative number is a time that has passed: no delay. */
export function checkDelay(value: unknown, path: string): number {
  if (value instanceof Date)
    throw new InvalidOptionError(
      path,
      "a duration in ms or like '10s'; for a moment use the option runAt",
      value,
    );
  return parseDuration(Number.isFinite(value) && (value as number) < 0 ? 0 : value, path);
}

/** A number from here up to a hundred times as much is probably in seconds: as ms, it would be a time of 1970 to 1973. */
const SECONDS_OF_2001 = 1_000_000_000;

/** A moment as ms since 1970. */
export function checkMoment(value: unknown, path: string): number {
  const time = value instanceof Date ? value.getTime() : value;
  if (typeof value === 'number' && value >= SECONDS_OF_2001 && value < SECONDS_OF_2001 * 100)
    throw new InvalidOptionError(path, 'ms since 1970, not seconds', value);
  if (Number.isInteger(time) && (time as number) >= 0 && (time as number) <= MAX_TIME_MS)
    // The last ms of all dates is where jobs are that wait for a key.
    return Math.min(time as number, RULES.parkedAt - 1);
  throw new InvalidOptionError(path, 'a valid Date or whole ms since 1970', value);
}

function checkStoredBackoff(value: unknown, path: string): StoredBackoff | BackoffName {
  const backoff = checkBackoff(value, path);
  if (typeof backoff !== 'function') return backoff;
  throw new InvalidOptionError(
    path,
    'plain data, because it is stored with the job; give the function a name in the option "backoffs" of the queue, or set it in its defaults',
    value,
  );
}

/** `JobDefaults` after checking: milliseconds, only the fields that were given. Options of one job fit too. */
export interface CheckedDefaults extends Readonly<Shaped<typeof POLICY_FIELDS>> {
  /** False if `attempts` is only the default of Godwit. */
  readonly limitsAttempts?: boolean;
}

/** The policy of one job, with all defaults. */
export interface JobPolicy {
  readonly attempts: number;
  readonly backoff: CheckedBackoff;
  /** Undefined if there is no limit. */
  readonly timeoutMs: number | undefined;
  readonly retentionMs: number;
  readonly cancelledRetentionMs: number;
  /** Undefined if the job never expires. */
  readonly expiresInMs: number | undefined;
  /** Undefined if only `attempts` limits the retries. */
  readonly retryForMs: number | undefined;
  /** Whether `attempts` was set by the job, handler, queue or module. */
  readonly limitsAttempts: boolean;
  readonly idHeldBy: readonly EndedState[];
}

/** The defaults of Godwit. */
export const DEFAULTS: JobPolicy = Object.freeze({
  attempts: 3,
  backoff: Object.freeze({ type: 'exponential', delay: 1_000, max: DEFAULT_MAX_MS, jitter: 0.2 } as const),
  timeoutMs: undefined,
  retentionMs: 0,
  cancelledRetentionMs: 0,
  expiresInMs: undefined,
  retryForMs: undefined,
  limitsAttempts: false,
  idHeldBy: Object.freeze([]),
});

/** Reads the defaults of a queue or of the module. */
export const readDefaults: Rule<CheckedDefaults> = shape(POLICY_FIELDS);

/** Options of the job override those of its queue, which override those of the module. */
export function mergeJobPolicy(
  job: CheckedDefaults,
  queue: CheckedDefaults,
  module: CheckedDefaults,
  backoffs?: Backoffs,
): JobPolicy {
  const attempts = attemptsSetBy(job) ?? attemptsSetBy(queue) ?? attemptsSetBy(module);
  const retryForMs = job.retryForMs ?? queue.retryForMs ?? module.retryForMs;
  return {
    attempts: attempts ?? (retryForMs === undefined ? DEFAULTS.attempts : MAX_ATTEMPTS),
    limitsAttempts: attempts !== undefined,
    retryForMs,
    backoff: namedBackoff(job.backoff ?? queue.backoff ?? module.backoff ?? DEFAULTS.backoff, backoffs),
    timeoutMs: job.timeoutMs ?? queue.timeoutMs ?? module.timeoutMs,
    retentionMs: job.retentionMs ?? queue.retentionMs ?? module.retentionMs ?? DEFAULTS.retentionMs,
    cancelledRetentionMs:
      job.cancelledRetentionMs ?? queue.cancelledRetentionMs ?? module.cancelledRetentionMs ?? 0,
    expiresInMs: job.expiresInMs ?? queue.expiresInMs ?? module.expiresInMs,
    idHeldBy: job.idHeldBy ?? queue.idHeldBy ?? module.idHeldBy ?? DEFAULTS.idHeldBy,
  };
}

function attemptsSetBy({ attempts, limitsAttempts }: CheckedDefaults): number | undefined {
  return limitsAttempts === false ? undefined : attempts;
}
