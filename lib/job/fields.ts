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
const SPREAD = 'the option jitter delays each job by a part of it; startAt moves the start of counting';
const LEASE =
  'when a worker counts as lost is the option lease of forRoot and registerQueue: { duration, maxStalls }';
const NO_FLOWS =
  'there are no flows: add the next job in the handler of the one before, with an id of its own';
const LIMITS = 'how many jobs start in a time is the option limits of registerQueue: { rate: { max, per } }';
const NOT_NEEDED = 'nothing of the kind is needed: leave it out';
const KEYED =
  "jobs with one key: throttle: { key, ttl }, debounce: { key, delay }, or unique: { key, onDuplicate: 'replace' | 'keepLast' }";
const THREADS =
  'handlers run in the main thread; for work that needs more cores, start several worker processes';
const TZ = 'the time zone of a cron expression is the option tz; the default is UTC';
const SERVER =
  "the server is the option connection: 'redis://localhost:6379', or an object with host, port and other options of ioredis";
const OF_A_SCHEDULE =
  "it is an option of a schedule: @Schedule({ cron }) on the handler, or queue.schedules.upsert('id', { cron }, { name })";
const OF_A_FACTORY = 'options of a factory are those of forRootAsync and registerQueueAsync';
const OF_A_PAGE = 'a page of jobs has the options offset and limit';
const BACKOFFS =
  'functions have names in the option backoffs of forRoot and registerQueue, or stand in defaults.backoff';

/** Options of BullMQ and its Nest module that have another name or place in Godwit, each with what to use instead. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  age: 'how long completed jobs are kept is the option retention of a job, and dead jobs dead: { age }',
  attempts: OF_A_JOB,
  attemptsMade: 'the option attempts sets how many attempts a job has; job.attempt tells which one runs',
  autorun: 'whether workers start with the application is the option autoStart of forRoot',
  backoff: OF_A_JOB,
  backoffStrategies: BACKOFFS,
  backoffStrategy: BACKOFFS,
  batch: 'a method that gets several jobs at once has @HandleBatch(name, { size })',
  blockingConnection: NOT_NEEDED,
  blockingTimeout: NOT_NEEDED,
  children: NO_FLOWS,
  cluster: SERVER,
  concurrency: "set it where the jobs are run: @Processor('queue', { concurrency })",
  configKey: 'the configuration of a queue is the option configKey of registerQueue',
  connection:
    'set it in forRoot({ connection }); queues of another server name a configuration, forRoot(key, …), with configKey',
  connectTimeout: SERVER,
  continueParentOnFailure: NO_FLOWS,
  count: 'how many ended jobs are kept is completed: { max } and dead: { max } of forRoot and registerQueue',
  createClient: SERVER,
  cron: OF_A_SCHEDULE,
  db: SERVER,
  deduplication:
    'the options unique, throttle and debounce do that; { id } too lets only one job with that id wait or run',
  defaultJobOptions: 'defaults for jobs are the option defaults',
  defaultWorkerOptions:
    'options of workers are those of @Processor, and the options lease and shutdown of forRoot and registerQueue',
  delay: OF_AN_ADD,
  drainDelay: NOT_NEEDED,
  duration: 'the time of a rate is its field per: { max, per }',
  enableOfflineQueue: SERVER,
  enableReadyCheck: SERVER,
  end: OF_A_PAGE,
  endDate: 'the last time of a schedule is the option endAt',
  every: OF_A_SCHEDULE,
  extend: KEYED,
  extraOptions: 'whether workers start with the application is the option autoStart of forRoot',
  failParentOnFailure: NO_FLOWS,
  family: SERVER,
  flows: NO_FLOWS,
  forceDisconnectOnShutdown: NOT_NEEDED,
  grace: 'how old jobs must be is the option olderThan',
  group: 'the group of a job is its option group; limits of groups are the option groups of registerQueue',
  groups: OF_A_QUEUE,
  guardInterval: NOT_NEEDED,
  host: SERVER,
  ignoreDependencyOnFailure: NO_FLOWS,
  imports: OF_A_FACTORY,
  inject: OF_A_FACTORY,
  isGlobal: 'leave it out: forRoot is global',
  isSharedConnection: 'all queues of a process share its connections: leave it out',
  jobId: 'the id of a job is the option id',
  keepLastIfActive: KEYED,
  keepLogs: 'how many log lines a job keeps is the option logs of forRoot and registerQueue: { max }',
  lease: OF_A_QUEUE,
  lifo: OF_AN_ADD,
  limiter: LIMITS,
  limits: OF_A_QUEUE,
  lockDuration: LEASE,
  lockRenewTime: LEASE,
  manualRegistration: 'whether workers start with the application is the option autoStart of forRoot',
  maxDelay: 'the longest wait between two attempts is the option max of backoff',
  maximumRateLimitDelay: NOT_NEEDED,
  maxRetries: 'how often a job is tried is the option attempts, the first attempt included',
  maxRetriesPerRequest: SERVER,
  maxStalledCount: LEASE,
  maxStartedAttempts: LEASE,
  metrics: 'counters are kept without an option: queue.stats()',
  nodes: SERVER,
  offset: SPREAD,
  opts: 'the options of a job are the field options',
  parent: NO_FLOWS,
  password: SERVER,
  pattern: 'a cron expression is the option cron of a schedule: @Schedule or queue.schedules.upsert()',
  port: SERVER,
  prefix: 'set it in forRoot({ prefix })',
  priority: OF_AN_ADD,
  processors: 'handlers are methods with @Handle of a class with @Processor, listed in providers',
  queueName: 'a queue is named by registerQueue({ name }) and by @Processor(name)',
  queueOptions: 'options of queues are those of registerQueue',
  queues: 'queues are registered by QueueModule.registerQueue({ name })',
  queuesOptions: NO_FLOWS,
  rateLimiterKey: LIMITS,
  redis: SERVER,
  removeDependencyOnFailure: NO_FLOWS,
  removeOnComplete:
    'a completed job is removed at once; the option retention keeps it for a time, and completed: { max } of the queue limits how many',
  removeOnFail: 'dead jobs are kept as the option dead of forRoot and registerQueue says: { max, age }',
  repeat: "use @Schedule on the handler, or queue.schedules.upsert('id', { cron }, { name })",
  repeatStrategy: 'a schedule has cron, every or afterEnd, not a function',
  replace: KEYED,
  retention: OF_A_JOB,
  retries: 'how often a job is tried is the option attempts, the first attempt included',
  retryDelay: 'the wait before a retry is the option backoff',
  retryProcessDelay: NOT_NEEDED,
  retryStrategy: SERVER,
  runAt: OF_AN_ADD,
  runRetryDelay: NOT_NEEDED,
  sentinels: SERVER,
  settings:
    'backoff functions are the option backoffs of forRoot and registerQueue; lockDuration and maxStalledCount are the option lease',
  sharedConnection: 'all queues of a process share its connections: leave it out',
  sizeLimit: 'the largest data of a job is the option maxPayloadBytes of forRoot and registerQueue',
  skipLockRenewal: NOT_NEEDED,
  skipMetasUpdate: NOT_NEEDED,
  skipStalledCheck: NOT_NEEDED,
  skipVersionCheck: NOT_NEEDED,
  skipWaitingForReady:
    'how long an add may take while Redis is unreachable is the option enqueueTimeout of forRoot',
  stackTraceLimit: 'the stack of the last error is kept, without an option',
  stalledInterval: LEASE,
  start: OF_A_PAGE,
  startDate: 'the first time of a schedule is the option startAt',
  streams: 'how many events are kept is the option events of forRoot and registerQueue: { max }',
  telemetry: 'traces and metrics are the option telemetry of forRoot: otel() of godwit/otel',
  timeout: OF_A_JOB,
  timestamp: 'the time of an add is that of Redis; to run a job at a time, use the option runAt',
  timezone: TZ,
  timeZone: TZ,
  tls: SERVER,
  ttl: 'how long a key is taken is throttle: { key, ttl }; how long a job may wait is expiresIn; how long it is kept is retention',
  tz: OF_A_SCHEDULE,
  types: 'the states of jobs are the option state',
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
    'options of workers are those of @Processor, and the options lease and shutdown of forRoot and registerQueue',
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
  // `queues` is a typing error where `queue` is an option.
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
