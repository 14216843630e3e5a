import { InvalidOptionError } from '../errors.js';
import { pathStep } from './text.js';

/**
 * The fields of an object of options: its own (enumerable or not), and the getters and methods of its class and base classes.
 * Unknown fields are included if they may be misspelt options. Other methods of a class are left out.
 *
 * @throws whatever a getter throws.
 */
export function fieldsOf(value: object, known: readonly string[]): [name: string, value: unknown][] {
  const names = Object.keys(value);
  const prototype = Object.getPrototypeOf(value) as object | null;
  if (!isRoot(prototype) || Object.getOwnPropertyNames(value).length > names.length) {
    const seen = new Set(names);
    for (let level = value; !isRoot(level); level = Object.getPrototypeOf(level) as object) {
      for (const [name, field] of Object.entries(Object.getOwnPropertyDescriptors(level))) {
        if (name === 'constructor' || seen.has(name)) continue;
        seen.add(name);
        if (field.enumerable || field.get || field.set || known.includes(name)) names.push(name);
      }
    }
  }
  return names.map((name) => [name, (value as Record<string, unknown>)[name]]);
}

/** Whether the value is `Object.prototype`, of this realm or of another one. */
function isRoot(level: object | null): boolean {
  return level === null || level === Object.prototype || Object.hasOwn(level, 'isPrototypeOf');
}

/** Whether the value can be an object of options, and is not a list, date, promise or similar object. */
export function hasFields(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  return Object.getPrototypeOf(value) === Object.prototype || !BUILT_IN.has(kindOf(value));
}

const kindOf = (value: object): string => Object.prototype.toString.call(value);
const BUILT_IN = new Set(
  ['Array', 'Date', 'Error', 'Map', 'Promise', 'RegExp', 'Set', 'String', 'Number', 'Boolean'].map(
    (name) => `[object ${name}]`,
  ),
);

const OF_A_JOB =
  'it is an option of a job: set it in add() or @Handle(), or for all jobs in defaults of forRoot or registerQueue';
const OF_AN_ADD = 'it is an option of a single job: set it in add()';
const OF_A_QUEUE = 'it is an option of the queue: set it in registerQueue';
const SPREAD = 'use the option jitter to spread jobs, or startAt to shift the times';
const LEASE = 'use the option lease of forRoot or registerQueue: { duration, maxStalls }';
const NO_FLOWS =
  'there are no flows: add the next job in the handler of the one before, with an id of its own';
const LIMITS = 'use the option limits of registerQueue: { rate: { max, per } }';
const NOT_NEEDED = 'leave it out: Godwit needs no such option';
const KEYED =
  "for jobs with the same key, use throttle: { key, ttl }, debounce: { key, delay }, or unique: { key, onDuplicate: 'replace' | 'keepLast' }";
const THREADS =
  'handlers run in the main thread; for work that needs more cores, start several worker processes';
const TZ = 'use the option tz for the time zone of a cron expression; the default is UTC';
const SERVER =
  "name the server in the option connection: 'redis://localhost:6379', or an object with host, port and other options of ioredis";
const OF_A_SCHEDULE =
  "it is an option of a schedule: @Schedule({ cron }) on the handler, or queue.schedules.upsert('id', { cron }, { name })";
const OF_A_FACTORY = 'use it in forRootAsync or registerQueueAsync';
const OF_A_PAGE = 'use the options offset and limit for a page of jobs';
const BACKOFFS =
  'give the function a name in the option backoffs of forRoot or registerQueue, or set it in defaults.backoff';

/** Options of BullMQ and its Nest module that have another name or place in Godwit, each with what to use instead. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  age: 'use the option retention of a job for completed jobs, and dead: { age } for dead jobs',
  attempts: OF_A_JOB,
  attemptsMade:
    'set the number of attempts with the option attempts; job.attempt is the number of the running attempt',
  autorun: 'use the option autoStart of forRoot to start workers later',
  backoff: OF_A_JOB,
  backoffStrategies: BACKOFFS,
  backoffStrategy: BACKOFFS,
  batch: 'use @HandleBatch(name, { size }) on a method that gets several jobs at once',
  blockingConnection: NOT_NEEDED,
  blockingTimeout: NOT_NEEDED,
  children: NO_FLOWS,
  cluster: SERVER,
  concurrency: "set it where the jobs are run: @Processor('queue', { concurrency })",
  configKey: 'use the option configKey of registerQueue',
  connection:
    'set it in forRoot({ connection }); queues of another server name a configuration, forRoot(key, …), with configKey',
  connectTimeout: SERVER,
  continueParentOnFailure: NO_FLOWS,
  count:
    'use completed: { max } and dead: { max } of forRoot or registerQueue for the number of ended jobs that are kept',
  createClient: SERVER,
  cron: OF_A_SCHEDULE,
  db: SERVER,
  deduplication:
    'use the option unique, throttle or debounce; with { id }, too, only one job with that id waits or runs',
  defaultJobOptions: 'use the option defaults for the defaults of jobs',
  defaultWorkerOptions:
    'use the options of @Processor, and the options lease and shutdown of forRoot or registerQueue',
  delay: OF_AN_ADD,
  drainDelay: NOT_NEEDED,
  duration: 'use the field per for the time of a rate: { max, per }',
  enableOfflineQueue: SERVER,
  enableReadyCheck: SERVER,
  end: OF_A_PAGE,
  endDate: 'use the option endAt for the last time of a schedule',
  every: OF_A_SCHEDULE,
  extend: KEYED,
  extraOptions: 'use the option autoStart of forRoot to start workers later',
  failParentOnFailure: NO_FLOWS,
  family: SERVER,
  flows: NO_FLOWS,
  forceDisconnectOnShutdown: NOT_NEEDED,
  grace: 'use the option olderThan for the age of jobs',
  group: 'use the option group of a job, and the option groups of registerQueue for limits of groups',
  groups: OF_A_QUEUE,
  guardInterval: NOT_NEEDED,
  host: SERVER,
  ignoreDependencyOnFailure: NO_FLOWS,
  imports: OF_A_FACTORY,
  inject: OF_A_FACTORY,
  isGlobal: 'leave it out: forRoot is global',
  isSharedConnection: 'all queues of a process share its connections: leave it out',
  jobId: 'use the option id for the id of a job',
  keepLastIfActive: KEYED,
  keepLogs: 'use the option logs of forRoot or registerQueue: { max }',
  lease: OF_A_QUEUE,
  lifo: OF_AN_ADD,
  limiter: LIMITS,
  limits: OF_A_QUEUE,
  lockDuration: LEASE,
  lockRenewTime: LEASE,
  manualRegistration: 'use the option autoStart of forRoot to start workers later',
  maxDelay: 'use the option max of backoff for the longest wait between two attempts',
  maximumRateLimitDelay: NOT_NEEDED,
  maxRetries: 'use the option attempts, which counts the first attempt too',
  maxRetriesPerRequest: SERVER,
  maxStalledCount: LEASE,
  maxStartedAttempts: LEASE,
  metrics: 'leave it out: queue.stats() always has counters',
  nodes: SERVER,
  offset: SPREAD,
  opts: 'use the field options for the options of a job',
  parent: NO_FLOWS,
  password: SERVER,
  pattern: 'use the option cron of @Schedule or queue.schedules.upsert()',
  port: SERVER,
  prefix: 'set it in forRoot({ prefix })',
  priority: OF_AN_ADD,
  processors:
    'write handlers as methods with @Handle in a class with @Processor, and list the class in providers',
  queueName: 'name the queue in registerQueue({ name }) and @Processor(name)',
  queueOptions: 'use the options of registerQueue',
  queues: 'register queues with QueueModule.registerQueue({ name })',
  queuesOptions: NO_FLOWS,
  rateLimiterKey: LIMITS,
  redis: SERVER,
  removeDependencyOnFailure: NO_FLOWS,
  removeOnComplete:
    'completed jobs are removed at once unless they have the option retention; completed: { max } of the queue limits how many are kept',
  removeOnFail:
    'use the option dead of forRoot or registerQueue for how many dead jobs are kept, and how long: { max, age }',
  repeat: "use @Schedule on the handler, or queue.schedules.upsert('id', { cron }, { name })",
  repeatStrategy: 'use cron, every or afterEnd; a function is not possible',
  replace: KEYED,
  retention: OF_A_JOB,
  retries: 'use the option attempts, which counts the first attempt too',
  retryDelay: 'use the option backoff for the wait before a retry',
  retryProcessDelay: NOT_NEEDED,
  retryStrategy: SERVER,
  runAt: OF_AN_ADD,
  runRetryDelay: NOT_NEEDED,
  sentinels: SERVER,
  settings:
    'use the option backoffs of forRoot or registerQueue for backoff functions, and the option lease for lockDuration and maxStalledCount',
  sharedConnection: 'all queues of a process share its connections: leave it out',
  sizeLimit: 'use the option maxPayloadBytes of forRoot or registerQueue',
  skipLockRenewal: NOT_NEEDED,
  skipMetasUpdate: NOT_NEEDED,
  skipStalledCheck: NOT_NEEDED,
  skipVersionCheck: NOT_NEEDED,
  skipWaitingForReady:
    'use the option enqueueTimeout of forRoot for how long an add waits for an unreachable Redis',
  stackTraceLimit: 'leave it out: the stack of the last error is always kept',
  stalledInterval: LEASE,
  start: OF_A_PAGE,
  startDate: 'use the option startAt for the first time of a schedule',
  streams: 'use the option events of forRoot or registerQueue: { max }',
  telemetry: 'use the option telemetry of forRoot, with otel() of godwit/otel',
  timeout: OF_A_JOB,
  timestamp:
    'leave it out: Redis sets the time of an add; to run a job at a given time, use the option runAt',
  timezone: TZ,
  timeZone: TZ,
  tls: SERVER,
  ttl: 'use throttle: { key, ttl } for how long a key is held, expiresIn for how long a job may wait, retention for how long a job is kept',
  tz: OF_A_SCHEDULE,
  types: 'use the option state for the states of jobs',
  uri: SERVER,
  url: SERVER,
  useClass: OF_A_FACTORY,
  useExisting: OF_A_FACTORY,
  useFactory: OF_A_FACTORY,
  username: SERVER,
  useWorkerThreads: THREADS,
  utc: TZ,
  waitTimeout: 'it is an option of addAndWait()',
  workerForkOptions: THREADS,
  workerOptions:
    'use the options of @Processor, and the options lease and shutdown of forRoot or registerQueue',
  workerThreadsOptions: THREADS,
};

/**
 * The error for an unknown option. For a word of BullMQ, it names the option to use instead.
 *
 * @param words words that mean something else in this place than elsewhere.
 */
export function unknownField(
  path: string,
  field: string,
  known: readonly string[],
  words: Readonly<Record<string, string>> = {},
): InvalidOptionError {
  if (Object.hasOwn(words, field)) return notAnOption(path, field, words[field]!);
  // `queues` is a typing error if `queue` is an option.
  if (Object.hasOwn(ELSEWHERE, field) && !known.some((one) => `${one}s` === field))
    return notAnOption(path, field, ELSEWHERE[field]!);
  return misspeltField(path, field, known);
}

/** The error for an unknown field of an object that is not Godwit's own, such as options of ioredis. */
export function misspeltField(
  path: string,
  field: string,
  known: readonly string[],
  otherwise = `the options are ${known.join(', ')}`,
): InvalidOptionError {
  const near = nearest(field, known);
  return notAnOption(path, field, near === undefined ? otherwise : `did you mean ${near}?`);
}

/** Its message does not show the value, which may be a secret. */
function notAnOption(path: string, field: string, advice: string): InvalidOptionError {
  const place = path + pathStep(field);
  return new InvalidOptionError(place, 'left out', undefined, `${place} is not an option; ${advice}`);
}

/** The known word that this one is probably a misspelling of. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.ceil(word.length / 3) + 1;
  for (const candidate of known) {
    const distance = editDistance(word.slice(0, 60).toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** Levenshtein distance: how many letters to add, drop or change. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, n) => n);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const change = row[j - 1]! + (from[i - 1] === to[j - 1] ? 0 : 1);
      next[j] = Math.min(change, row[j]! + 1, next[j - 1]! + 1);
    }
    row = next;
  }
  return row[to.length]!;
}
