import { InvalidOptionError } from '../errors.js';
import type { Duration } from '../job/duration.js';
import { checkQueueName, isPlainName } from '../job/job-id.js';
import { DEFAULT_MAX_PAYLOAD_BYTES, type PayloadMode } from '../job/payload.js';
import { boolean, duration, field, integer, oneOf, refuse, rule, shape, type Report } from './check.js';
import { checkConnection, DEFAULT_CONNECTION, type ConnectionOption } from './connection.js';
import {
  type JobDefaults,
  readDurability,
  type DurabilityOption,
  type Replication,
  mergeJobPolicy,
  readDefaults,
  type CheckedDefaults,
  type JobPolicy,
} from './job-options.js';
import {
  checkHeadersHook,
  readEnhancerKinds,
  DEFAULT_WORKING,
  readLog,
  readWrap,
  resolveLog,
  resolveWorking,
  timer,
  WORKER_FIELDS,
  WORKING_FIELDS,
  type EnhancerKind,
  type EnhancerOptions,
  type LeaseOptions,
  type LogOptions,
  type LogsOptions,
  type QueueLogOptions,
  type ResolvedLog,
  type ResolvedWorking,
  type ShutdownOptions,
  type WorkerOptions,
  type WrapHook,
  type WrapOption,
} from './worker-options.js';
import { checkBackoffName, checkBackoffs, type BackoffOption, type Backoffs } from '../job/backoff.js';
import type { HeadersHook } from '../job/headers.js';
import {
  readGroups,
  readQueueLimits,
  readSharedLimits,
  readUses,
  resolveLimits,
  resolveUses,
  type GivenLimit,
  type GroupOptions,
  type QueueLimitOptions,
  type ResolvedLimits,
  type SharedLimitOptions,
} from './limit-options.js';
import { checkTelemetry, headersHook, type QueueTelemetry } from './telemetry.js';
import {
  eventsOf,
  readEvents,
  readMaxWaiting,
  type EventsOption,
  type MaxWaitingOptions,
  type ResolvedEvents,
  type ResolvedMaxWaiting,
} from './bounds.js';

export type { ConnectionOption, EventsOption };

/** `QueueModule.forRoot(options)`. */
export interface QueueModuleOptions {
  /**
   * How to reach Redis; or `'memory'` for development: jobs are in the memory of this process and are lost when it exits.
   *
   * @default 'redis://localhost:6379'
   */
  readonly connection?: ConnectionOption;
  /** First part of every key; `[A-Za-z0-9._-]{1,64}`. Applications that share a Redis use different prefixes. @default 'godwit' */
  readonly prefix?: string;
  /** Defaults for every job; options of a queue or a job override them. @default those of `JobDefaults` */
  readonly defaults?: JobDefaults;
  /**
   * Backoffs with names, which the option `backoff` of jobs, defaults and handlers may refer to. The options of a job are stored,
   * so a job can use a function only by such a name. Processes that add or run such jobs must all define the names; only the
   * function in the worker's process is called.
   *
   * @default none
   */
  readonly backoffs?: Readonly<Record<string, BackoffOption>>;
  /** Whether this process adds jobs, runs them, or both. @default 'both' */
  readonly role?: 'producer' | 'worker' | 'both';
  /** Start the workers with the application; otherwise call `QueueRuntime.start()`. @default true */
  readonly autoStart?: boolean;
  /**
   * How long `add` may take before it rejects, including the time in which Redis is unreachable; 1 ms to 24 days. With the default, a large
   * add on a slow connection may take longer while its data is being transferred. A time that you set is never exceeded.
   *
   * @default '5s'
   */
  readonly enqueueTimeout?: Duration;
  /** How many adds of a queue may wait in this process for Redis, 1 to 10,000,000. @default 20000 */
  readonly enqueueBuffer?: number;
  /** Largest encoded data of a job, in bytes; up to 64 MiB. @default 1048576 */
  readonly maxPayloadBytes?: number;
  /**
   * How to treat data that JSON drops or changes: `undefined` in lists, `NaN`, `Map`, functions, invalid dates. `'strict'`:
   * `add` throws an error that names the place. `'json'`: the data is stored as `JSON.stringify` writes it. A job without data
   * has `null`.
   * @default 'strict'
   */
  readonly payloads?: PayloadMode;
  /** When a worker counts as lost, and what happens to its jobs. @default { duration: '8s', maxStalls: 5, maxBlock: '60s' } */
  readonly lease?: LeaseOptions;
  /** How long running jobs may take when the application stops. @default { timeout: '25s', grace: '1s' } */
  readonly shutdown?: ShutdownOptions;
  /** Which lines are written to Nest's logger; `false`: none of these. @default { failures: true, deaths: true, start: true, stop: true } */
  readonly log?: boolean | LogOptions;
  /** How many log lines each job keeps. @default { max: 100 } */
  readonly logs?: LogsOptions;
  /** Whether queues write events, and how many they keep. @default true */
  readonly events?: EventsOption;
  /** How many dead jobs each queue keeps, and how long. @default { max: 10000, age: '90d', maxBytes: 268435456 } */
  readonly dead?: DeadOptions;
  /** How much progress of its jobs each queue keeps. @default { maxBytes: 67108864 } */
  readonly progress?: ProgressOptions;
  /** How many completed jobs each queue keeps, of those with a `retention`. @default { max: 100000 } */
  readonly completed?: CompletedOptions;
  /** How often jobs and events beyond their maximum number or age are removed. @default { interval: '60s' } */
  readonly upkeep?: UpkeepOptions;
  /**
   * Whether this process counts its jobs by minute, for `QueueInspector.series` and the charts of the dashboard: one or two calls to Redis per 10 s
   * for each queue with new counts. They are kept for 72 hours.
   *
   * @default false
   */
  readonly history?: boolean;
  /** When `add` resolves; options of a queue or a job override it. @default 'local' */
  readonly durability?: DurabilityOption;
  /**
   * How to treat a job that a process claims but has no handler for. `'wait'`: the job is given back until a process with a
   * handler claims it, at most for `unknownJobTimeout`. `'retry'`: counts as a failed attempt. `'dead'`: the job is dead as
   * `no-handler` at once.
   *
   * @default 'wait'
   */
  readonly unknownJob?: UnknownJobRule;
  /** How long a job without a handler waits before it is dead as `no-handler`. @default '1d' */
  readonly unknownJobTimeout?: Duration;
  /** The application that owns the schedules in the code. @default { owner: 'app' } */
  readonly schedules?: ScheduleOwnerOptions;
  /** Which global guards, interceptors, pipes and filters apply to jobs. @default none */
  readonly enhancers?: EnhancerOptions;
  /** Hooks that wrap every job run in this process; the first is outermost. @default none */
  readonly wrap?: WrapOption;
  /**
   * Limits that several queues share, by name. A queue lists those that it `uses`. They apply across all processes.
   *
   * @default none
   */
  readonly limits?: Readonly<Record<string, SharedLimitOptions>>;
  /**
   * Returns headers for each job that this process adds; headers of the job override them. Called in the async context of the
   * caller of `add`; if it throws, `add` rejects with its error. Not called for the jobs of schedules.
   *
   * @default none
   */
  readonly headers?: HeadersHook;
  /** Traces and metrics of the jobs that this process adds and runs: `otel()` of `godwit/otel`. @default none */
  readonly telemetry?: QueueTelemetry;
}

/** The application that owns the schedules in the code. */
export interface ScheduleOwnerOptions {
  /**
   * Name of the application, `[A-Za-z0-9._-]{1,64}`. A schedule is removed when no running process with this name declares it any
   * more. So applications that declare different schedules for the same queue need different names.
   *
   * @default 'app'
   */
  readonly owner?: string;
}

/** How to treat a job that a process claims but has no handler for. */
export type UnknownJobRule = 'wait' | 'retry' | 'dead';

/** How many dead jobs a queue keeps, and how long. */
export interface DeadOptions {
  /** How many jobs, 0 to 10,000,000. @default 10000 */
  readonly max?: number;
  /** How long dead jobs are kept. @default '90d' */
  readonly age?: Duration;
  /**
   * Approximate maximum size of the data and errors of all dead jobs, in bytes; the oldest are removed first.
   *
   * @default 268435456
   */
  readonly maxBytes?: number;
}

/** How much progress of its jobs a queue keeps. */
export interface ProgressOptions {
  /**
   * Approximate maximum size of all progress values of more than 4 KiB, in bytes. The oldest are removed first; their jobs then
   * have no progress.
   *
   * @default 67108864
   */
  readonly maxBytes?: number;
}

/** How many completed jobs a queue keeps, of those with a `retention`. */
export interface CompletedOptions {
  /**
   * 0 to 10,000,000. Beyond it, the jobs whose `retention` ends first are removed. This bounds memory: if results must be readable for
   * all of their retention, choose a number that is not reached within it.
   *
   * @default 100000
   */
  readonly max?: number;
}

/** Removal of jobs and events beyond their maximum number or age; one of the worker processes does it. */
export interface UpkeepOptions {
  /** How often the queues are trimmed, 100 ms to 24 days. @default '60s' */
  readonly interval?: Duration;
}

/** `QueueModule.registerQueue(options)`. */
export interface QueueOptions {
  /** `[A-Za-z0-9._-]{1,128}`. */
  readonly name: string;
  /** Defaults for the jobs of this queue. @default those of `forRoot` */
  readonly defaults?: JobDefaults;
  /**
   * Backoffs with names, in addition to those of `forRoot`; an equal name overrides the one there.
   *
   * @default those of `forRoot`
   */
  readonly backoffs?: Readonly<Record<string, BackoffOption>>;
  /** Whether its events are written, and how many are kept. @default that of `forRoot` */
  readonly events?: EventsOption;
  /** How many dead jobs it keeps, and how long. @default that of `forRoot` */
  readonly dead?: DeadOptions;
  /** How much progress of its jobs it keeps. @default that of `forRoot` */
  readonly progress?: ProgressOptions;
  /** How many completed jobs it keeps, of those with a `retention`. @default that of `forRoot` */
  readonly completed?: CompletedOptions;
  /** When a worker of this queue counts as lost, and what happens to its jobs. @default that of `forRoot`, field by field */
  readonly lease?: LeaseOptions;
  /** How long its running jobs may take when the application stops. @default that of `forRoot`, field by field */
  readonly shutdown?: ShutdownOptions;
  /** Whether its failed attempts and its dead jobs are written to Nest's logger. @default that of `forRoot`, field by field */
  readonly log?: boolean | QueueLogOptions;
  /** How many log lines each of its jobs keeps. @default that of `forRoot` */
  readonly logs?: LogsOptions;
  /** Options of the workers of this queue, in each process that has any. @default those of `@Processor` */
  readonly worker?: WorkerOptions;
  /** How often its jobs may start and how many may run at once, across all processes. @default no limits */
  readonly limits?: QueueLimitOptions;
  /** Names of shared limits (`limits` of `forRoot`) that apply to its jobs. @default none */
  readonly uses?: readonly string[];
  /** How many of its jobs may wait, and what `add` does when the queue is full. @default no limit */
  readonly maxWaiting?: MaxWaitingOptions;
  /** Limits of each group. Groups also take turns without this option. @default no limits */
  readonly groups?: GroupOptions;
  /** Largest encoded data of a job, in bytes; up to 64 MiB. @default that of `forRoot` */
  readonly maxPayloadBytes?: number;
  /** How to treat data that JSON drops or changes; see `payloads` of `forRoot`. @default that of `forRoot` */
  readonly payloads?: PayloadMode;
  /** When `add` resolves. @default that of `forRoot` */
  readonly durability?: DurabilityOption;
  /** How to treat a job without a handler; see `unknownJob` of `forRoot`. @default that of `forRoot` */
  readonly unknownJob?: UnknownJobRule;
  /** How long a job without a handler waits before it is dead as `no-handler`. @default that of `forRoot` */
  readonly unknownJobTimeout?: Duration;
}

/** Options of the module that its queues inherit. */
interface ResolvedShared extends ResolvedWorking {
  readonly log: ResolvedLog;
  readonly maxPayloadBytes: number;
  readonly payloads: PayloadMode;
  readonly events: ResolvedEvents;
  readonly dead: ResolvedDead;
  readonly progress: { readonly maxBytes: number };
  readonly completed: { readonly max: number };
  /** Null: local. */
  readonly durability: Replication | null;
  readonly unknownJob: UnknownJobRule;
  readonly unknownJobTimeoutMs: number;
}

/** `QueueModuleOptions` with every default filled in, in ms. */
export interface ResolvedModuleOptions extends ResolvedShared {
  readonly connection: ConnectionOption;
  readonly prefix: string;
  readonly role: 'producer' | 'worker' | 'both';
  readonly autoStart: boolean;
  readonly enqueue: {
    readonly timeoutMs: number;
    /** Whether the user set the timeout. Then it is never exceeded. */
    readonly isBound: boolean;
    readonly maxBuffered: number;
  };
  readonly upkeepMs: number;
  readonly history: boolean;
  /** The application that owns the schedules in the code. */
  readonly owner: string;
  /** Kinds of global enhancers that apply to jobs. */
  readonly globalEnhancers: readonly EnhancerKind[];
  readonly wrap: readonly WrapHook[];
  readonly headers?: HeadersHook | undefined;
  readonly telemetry?: QueueTelemetry | undefined;
  readonly defaults: CheckedDefaults;
  readonly backoffs?: Backoffs | undefined;
  /** Limits that several queues share, by name. */
  readonly limits: ReadonlyMap<string, GivenLimit>;
}

interface ResolvedDead {
  readonly max: number;
  readonly ageMs: number;
  readonly maxBytes: number;
}

/** The options of one queue. Options that it does not set come from the module. */
export interface ResolvedQueueOptions extends ResolvedShared {
  /** How many jobs may wait; absent if unlimited. */
  readonly maxWaiting?: ResolvedMaxWaiting;
  /** Undefined if only the processor sets it. */
  readonly concurrency?: number;
  readonly name: string;
  /** The limits of the queue; absent if it has none. */
  readonly limits?: ResolvedLimits;
  /** The shared limits that the queue uses; absent if it uses none. */
  readonly uses?: readonly string[];
  /** The shared limits of `forRoot`; absent if it has none. */
  readonly sharedLimits?: readonly string[];
  /** Applies to jobs that set no options themselves. */
  readonly policy: JobPolicy;
  /** The named backoffs of the queue. */
  readonly backoffs?: Backoffs;
  /** Called for each job that is added; returns its headers. */
  readonly headers?: HeadersHook;
  readonly telemetry?: QueueTelemetry;
}

const DEFAULT_DEAD: ResolvedDead = { max: 10_000, ageMs: 7_776_000_000, maxBytes: 268_435_456 };
const MANY = 10_000_000;

const MAX_BYTES = { maxBytes: field('maxBytes', integer(0, Number.MAX_SAFE_INTEGER)) } as const;
const readKept = shape({
  max: field('max', integer(0, MANY)),
  age: field('ageMs', duration()),
  ...MAX_BYTES,
});

/** The fields that a queue may set for itself. */
const QUEUE_FIELDS = {
  ...WORKING_FIELDS,
  defaults: field('defaults', readDefaults),
  backoffs: field('backoffs', rule(checkBackoffs)),
  events: field('events', readEvents),
  dead: field('dead', readKept),
  progress: field('progress', shape(MAX_BYTES)),
  completed: field('completed', shape({ max: field('max', integer(0, MANY)) })),
  maxPayloadBytes: field('maxPayloadBytes', integer(1, 67_108_864)),
  payloads: field('payloads', oneOf('strict', 'json')),
  durability: field('durability', readDurability),
  unknownJob: field('unknownJob', oneOf('wait', 'retry', 'dead')),
  unknownJobTimeout: field('unknownJobTimeoutMs', duration()),
} as const;

/** Options that only a queue can have, because the limits of one queue do not fit another. */
const FLOW_FIELDS = {
  limits: field('limits', readQueueLimits),
  groups: field('groups', readGroups),
  uses: field('uses', readUses),
  maxWaiting: field('maxWaiting', readMaxWaiting),
} as const;

const MODULE_FIELDS = {
  ...QUEUE_FIELDS,
  connection: field('connection', rule(checkConnection)),
  log: field('log', readLog),
  prefix: field('prefix', rule(checkPlainName)),
  role: field('role', oneOf('producer', 'worker', 'both')),
  autoStart: field('autoStart', boolean),
  enqueueTimeout: field('enqueueTimeoutMs', timer(1)),
  enqueueBuffer: field('enqueueBuffer', integer(1, MANY)),
  upkeep: field('upkeep', shape({ interval: field('intervalMs', timer(100)) })),
  history: field('history', boolean),
  limits: field('limits', readSharedLimits),
  enhancers: field('enhancers', shape({ global: field('global', readEnhancerKinds) })),
  wrap: field('wrap', readWrap),
  headers: field('headers', rule(checkHeadersHook)),
  telemetry: field('telemetry', rule(checkTelemetry)),
  schedules: field('schedules', shape({ owner: field('owner', rule(checkPlainName)) })),
} as const;

/** The names of the options of `forRoot`. */
export const MODULE_OPTION_NAMES: readonly string[] = Object.keys(MODULE_FIELDS);
/** The names of the options of `registerQueue`. */
export const QUEUE_OPTION_NAMES: readonly string[] = [
  ...Object.keys({ ...QUEUE_FIELDS, ...WORKER_FIELDS, ...FLOW_FIELDS }),
  'name',
];

const readModule = shape(MODULE_FIELDS);
const readQueue = shape({
  ...QUEUE_FIELDS,
  ...WORKER_FIELDS,
  ...FLOW_FIELDS,
  name: field('name', (name) => name),
});

const readName = rule((name, path) => checkQueueName(name, `${path}.name`));

/** @throws {InvalidOptionError} at the first fault, unless `report` collects. */
export function resolveModuleOptions(
  options: QueueModuleOptions = {},
  report: Report = refuse,
  path = 'forRoot()',
  inherited = DEFAULT_WORKING,
): ResolvedModuleOptions {
  const given = readModule(options, path, report) ?? {};
  const readBackoffName = rule((_, where) =>
    checkBackoffName(given.defaults?.backoff, given.backoffs, where),
  );
  readBackoffName(undefined, `${path}.defaults.backoff`, report);
  return {
    connection: given.connection ?? DEFAULT_CONNECTION,
    prefix: given.prefix ?? 'godwit',
    role: given.role ?? 'both',
    autoStart: given.autoStart ?? true,
    log: resolveLog(given.log),
    enqueue: {
      timeoutMs: given.enqueueTimeoutMs ?? 5_000,
      isBound: given.enqueueTimeoutMs !== undefined,
      maxBuffered: given.enqueueBuffer ?? 20_000,
    },
    maxPayloadBytes: given.maxPayloadBytes ?? DEFAULT_MAX_PAYLOAD_BYTES,
    payloads: given.payloads ?? 'strict',
    ...resolveWorking(given, inherited),
    owner: given.schedules?.owner ?? 'app',
    globalEnhancers: given.enhancers?.global ?? [],
    wrap: given.wrap ?? [],
    headers: headersHook(given.headers, given.telemetry),
    telemetry: given.telemetry,
    defaults: given.defaults ?? {},
    backoffs: given.backoffs,
    limits: given.limits ?? new Map(),
    upkeepMs: given.upkeep?.intervalMs ?? 60_000,
    history: given.history ?? false,
    events: eventsOf(given.events),
    dead: { ...DEFAULT_DEAD, ...given.dead },
    progress: { maxBytes: 67_108_864, ...given.progress },
    completed: { max: given.completed?.max ?? 100_000 },
    durability: given.durability ?? null,
    unknownJob: given.unknownJob ?? 'wait',
    unknownJobTimeoutMs: given.unknownJobTimeoutMs ?? 86_400_000,
  };
}

/**
 * @throws {InvalidOptionError} at the first fault, unless `report` collects.
 * @throws {InvalidQueueNameError} likewise.
 */
export function resolveQueueOptions(
  options: QueueOptions,
  module: ResolvedModuleOptions,
  report: Report = refuse,
  path = queuePath(options),
): ResolvedQueueOptions {
  const given = readQueue(options, path, report);
  // The only required option, so it is checked even if it is missing.
  const name = given === undefined ? undefined : readName(given.name, path, report);
  const backoffs = given?.backoffs
    ? new Map([...(module.backoffs ?? []), ...given.backoffs])
    : module.backoffs;
  const readBackoffName = rule((_, where) => checkBackoffName(given?.defaults?.backoff, backoffs, where));
  readBackoffName(undefined, `${path}.defaults.backoff`, report);
  const shared = given?.uses && resolveUses(given.uses, module.limits, path, report);
  const limits = given && resolveLimits(given, path, report, shared);
  return {
    name: name ?? '',
    ...(limits && { limits }),
    ...(shared && shared.size > 0 && { uses: [...shared.keys()] }),
    ...(module.limits.size > 0 && { sharedLimits: [...module.limits.keys()] }),
    ...(given?.maxWaiting && { maxWaiting: given.maxWaiting }),
    ...(backoffs && { backoffs }),
    ...(module.headers && { headers: module.headers }),
    ...(module.telemetry && { telemetry: module.telemetry }),
    ...resolveWorking(given, module),
    log: resolveLog(given?.log, module.log),
    ...(given?.worker?.concurrency !== undefined && { concurrency: given.worker.concurrency }),
    policy: mergeJobPolicy({}, given?.defaults ?? {}, module.defaults, backoffs),
    maxPayloadBytes: given?.maxPayloadBytes ?? module.maxPayloadBytes,
    payloads: given?.payloads ?? module.payloads,
    events: eventsOf(given?.events, module.events),
    dead: { ...module.dead, ...given?.dead },
    progress: { ...module.progress, ...given?.progress },
    completed: { max: given?.completed?.max ?? module.completed.max },
    durability: given?.durability === undefined ? module.durability : given.durability,
    unknownJob: given?.unknownJob ?? module.unknownJob,
    unknownJobTimeoutMs: given?.unknownJobTimeoutMs ?? module.unknownJobTimeoutMs,
  };
}

function queuePath(options: Partial<QueueOptions> | null | undefined): string {
  return isPlainName(options?.name, 128) ? `registerQueue('${options?.name}')` : 'registerQueue()';
}

/**
 * Checks a name that becomes part of a Redis key, or the key of a configuration.
 *
 * @throws {InvalidOptionError}
 */
export function checkPlainName(value: unknown, path: string): string {
  if (isPlainName(value, 64)) return value;
  throw new InvalidOptionError(path, '1 to 64 characters out of A-Z a-z 0-9 . _ -', value);
}
