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

const LEASE =
  'when a worker counts as lost is the option lease of forRoot and registerQueue: { duration, maxStalls }';
const NO_FLOWS =
  'there are no flows: add the next job in the handler of the one before, with an id of its own';
const LIMITS = 'how many jobs start in a time is the option limits of registerQueue: { rate: { max, per } }';
const NOT_NEEDED = 'nothing of the kind is needed: leave it out';
const SERVER =
  "the server is the option connection: 'redis://localhost:6379', or an object with host, port and other options of ioredis";

/** Options of BullMQ and its Nest module that have another name or place in Godwit, each with what to use instead. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  attemptsMade: 'the option attempts sets how many attempts a job has; job.attempt tells which one runs',
  autorun: 'whether workers start with the application is the option autoStart of forRoot',
  backoffStrategy:
    'functions have names in the option backoffs of forRoot and registerQueue, or stand in defaults.backoff',
  blockingConnection: NOT_NEEDED,
  children: NO_FLOWS,
  concurrency: "set it where the jobs are run: @Processor('queue', { concurrency })",
  connection:
    'set it in forRoot({ connection }); queues of another server name a configuration, forRoot(key, …), with configKey',
  deduplication:
    'the options unique, throttle and debounce do that; { id } too lets only one job with that id wait or run',
  defaultJobOptions: 'defaults for jobs are the option defaults',
  drainDelay: NOT_NEEDED,
  extraOptions: 'whether workers start with the application is the option autoStart of forRoot',
  failParentOnFailure: NO_FLOWS,
  forceDisconnectOnShutdown: NOT_NEEDED,
  host: SERVER,
  jobId: 'the id of a job is the option id',
  keepLogs: 'how many log lines a job keeps is the option logs of forRoot and registerQueue: { max }',
  limiter: LIMITS,
  lockDuration: LEASE,
  lockRenewTime: LEASE,
  manualRegistration: 'whether workers start with the application is the option autoStart of forRoot',
  maximumRateLimitDelay: NOT_NEEDED,
  maxStalledCount: LEASE,
  metrics: 'counters are kept without an option: queue.stats()',
  nodes: SERVER,
  opts: 'the options of a job are the field options',
  parent: NO_FLOWS,
  pattern: 'a cron expression is the option cron',
  port: SERVER,
  prefix: 'set it in forRoot({ prefix })',
  processors: 'handlers are methods with @Handle of a class with @Processor, listed in providers',
  rateLimiterKey: LIMITS,
  redis: SERVER,
  removeOnComplete:
    'a completed job is removed at once, unless the option retention says how long it is kept',
  removeOnFail: 'dead jobs are kept as the option dead of forRoot and registerQueue says: { max, age }',
  repeat: "use @Schedule on the handler, or queue.schedules.upsert('id', { cron }, { name })",
  retries: 'how often a job is tried is the option attempts, the first attempt included',
  runRetryDelay: NOT_NEEDED,
  settings: 'backoff functions have names in the option backoffs of forRoot and registerQueue',
  sharedConnection: 'all queues of a process share its connections: leave it out',
  sizeLimit: 'the largest data of a job is the option maxPayloadBytes of forRoot and registerQueue',
  skipLockRenewal: NOT_NEEDED,
  skipMetasUpdate: NOT_NEEDED,
  skipStalledCheck: NOT_NEEDED,
  skipVersionCheck: NOT_NEEDED,
  skipWaitingForReady: 'how long an add may take while Redis is away is the option enqueueTimeout of forRoot',
  stackTraceLimit: 'the stack of the last error is kept, without an option',
  stalledInterval: LEASE,
  streams: 'how many events are kept is the option events of forRoot and registerQueue: { max }',
  telemetry: 'traces and metrics are the option telemetry of forRoot: otel() of godwit/otel',
  timestamp: 'the time of an add is that of Redis; to run a job at a time, use the option runAt',
  ttl: 'how long a job may wait before it is too late is the option expiresIn; how long it is kept when it is done is retention',
  uri: SERVER,
  url: SERVER,
  useWorkerThreads:
    'handlers run in the main thread; for work that needs more cores, start several worker processes',
};

/** The error for an unknown option. Its message does not show the value, which may be a secret. */
export function unknownField(
  path: string,
  field: string,
  known: readonly string[],
  otherwise = `the options are ${known.join(', ')}`,
): InvalidOptionError {
  const near = nearest(field, known);
  const advice = Object.hasOwn(ELSEWHERE, field)
    ? ELSEWHERE[field]
    : near === undefined
      ? otherwise
      : `did you mean ${near}?`;
  const place = path + pathStep(field);
  return new InvalidOptionError(place, 'left out', undefined, `${place} is not an option; ${advice}`);
}

/** The known word that this one is probably a misspelling of. */
function nearest(word: string, known: readonly string[]): string | undefined {
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
