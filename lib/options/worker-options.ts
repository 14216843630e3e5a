import { InvalidOptionError } from '../errors.js';
import { MAX_TIMER_MS, type Duration } from '../job/duration.js';
import type { HeadersHook } from '../job/headers.js';
import type { Job } from '../job/job.js';
import { RULES } from '../job/rules.js';
import {
  boolean,
  duration,
  field,
  integer,
  oneOf,
  orBoolean,
  orFunction,
  readable,
  refuse,
  rule,
  shape,
  type Report,
  type Rule,
  type Shaped,
} from './check.js';

/** A duration that a timer can wait for. */
export const timer = (min: number) => duration(min, MAX_TIMER_MS);

/** When a worker counts as lost, and what happens to its jobs. */
export interface LeaseOptions {
  /**
   * How long a worker may go without renewing its lease before its jobs run elsewhere, 100 ms to 1 h. It renews the lease four
   * times in this time.
   *
   * @default '8s'
   */
  readonly duration?: Duration;
  /** How many times a job may lose its worker before it is dead as `stalled`; 0 to 1,000. @default 5 */
  readonly maxStalls?: number;
  /** How long a handler may block the event loop before its worker counts as dead, up to 24 days. @default '60s' */
  readonly maxBlock?: Duration;
}

/** How long running jobs may take when the application stops. */
export interface ShutdownOptions {
  /** How long running jobs may take to finish; then their signals abort. Up to 24 days. @default '25s' */
  readonly timeout?: Duration;
  /** How long a handler may take after its signal has aborted; then its job is given back. Up to 24 days. @default '1s' */
  readonly grace?: Duration;
}

/** Which lines about the jobs of a queue are written to Nest's logger. */
export interface QueueLogOptions {
  /**
   * A WARN line for each failed attempt that will be retried: job, attempt, time of the next one, message. At most 10 a second.
   * @default true
   */
  readonly failures?: boolean;
  /** An ERROR with the stack for each dead job: job, reason, message. At most 10 a second. @default true */
  readonly deaths?: boolean;
}

/** Which lines about jobs and workers are written to Nest's logger. No line contains data or results of jobs. */
export interface LogOptions extends QueueLogOptions {
  /** Lines about the Redis server in use and the workers that have started. @default true */
  readonly start?: boolean;
  /** Lines about the jobs that a shutdown waits for, and how they ended. @default true */
  readonly stop?: boolean;
}

/** How many log lines a job keeps. */
export interface LogsOptions {
  /**
   * How many of the last lines of each job are kept; 0 to 1,000. A changed number applies to logs that begin afterwards.
   *
   * @default 100
   */
  readonly max?: number;
}

/** `LeaseOptions` in ms. */
interface ResolvedLease {
  readonly leaseMs: number;
  readonly maxStalls: number;
  readonly maxBlockMs: number;
}

/** `ShutdownOptions` in ms. */
export interface ResolvedShutdown {
  readonly timeoutMs: number;
  readonly graceMs: number;
}

/** The options of a worker of a queue. Options that the queue does not set come from the module. */
export interface ResolvedWorking {
  readonly lease: ResolvedLease;
  readonly shutdown: ResolvedShutdown;
  readonly logs: { readonly max: number };
}

export const DEFAULT_WORKING: ResolvedWorking = {
  lease: { leaseMs: 8_000, maxStalls: 5, maxBlockMs: 60_000 },
  shutdown: { timeoutMs: 25_000, graceMs: 1_000 },
  logs: { max: RULES.logLines },
};

const readLease = shape({
  duration: field('leaseMs', duration(RULES.leaseMinMs, RULES.leaseMaxMs)),
  maxStalls: field('maxStalls', integer(0, 1_000)),
  maxBlock: field('maxBlockMs', timer(1_000)),
});

const readShutdown = shape({ timeout: field('timeoutMs', timer(0)), grace: field('graceMs', timer(0)) });

export const WORKING_FIELDS = {
  lease: field('lease', readLease),
  shutdown: field('shutdown', readShutdown),
  logs: field('logs', shape({ max: field('max', integer(0, RULES.logLinesMax)) })),
} as const;

/** Each field that is not set comes from the module. */
export function resolveWorking(
  given: Shaped<typeof WORKING_FIELDS> | undefined,
  inherited: ResolvedWorking,
): ResolvedWorking {
  return {
    lease: { ...inherited.lease, ...given?.lease },
    shutdown: { ...inherited.shutdown, ...given?.shutdown },
    logs: { ...inherited.logs, ...given?.logs },
  };
}

/** Options of the workers of one queue. */
export interface WorkerOptions {
  /**
   * Jobs a process runs at once for the queue, 1 to 10,000. Set it here or in `@Processor`: two different values are refused.
   *
   * @default that of `@Processor`, or 10
   */
  readonly concurrency?: number;
}

/** Second argument of `@Processor`. */
export interface ProcessorOptions {
  /**
   * Jobs this process runs at once for the queue, 1 to 10,000. A function is called once at startup, with the providers of `inject`; it
   * may be asynchronous. `QueueRuntime.setConcurrency` changes it later.
   *
   * @default 10
   */
  readonly concurrency?: number | ((...injected: any[]) => number | Promise<number>);
  /** Providers that the function `concurrency` is called with. @default none */
  readonly inject?: readonly InjectedToken[];
}

/** The token of a provider, as in the `inject` of a Nest factory. */
export type InjectedToken =
  | string
  | symbol
  | (abstract new (...args: any[]) => unknown)
  | {
      /** The token. */
      readonly token: string | symbol | (abstract new (...args: any[]) => unknown);
      /** Whether the provider may be missing; then it is undefined. */
      readonly optional: boolean;
    };

/** Concurrency of a pool if no option sets it. */
export const DEFAULT_CONCURRENCY = 10;

/** How many jobs a process may run at once for a queue. */
export const readConcurrency = integer(1, 10_000);
const QUEUE_LOG = { failures: field('failures', boolean), deaths: field('deaths', boolean) } as const;
const LOG_OF_PROCESS = 'these lines are of the whole process: set it in forRoot({ log })';

/** Fields that exist only in `registerQueue`, or have another meaning in `forRoot`. */
export const WORKER_FIELDS = {
  worker: field('worker', shape({ concurrency: field('concurrency', readConcurrency) })),
  log: field('log', orBoolean(shape(QUEUE_LOG, { start: LOG_OF_PROCESS, stop: LOG_OF_PROCESS }))),
} as const;

export const readLog = orBoolean(
  shape({ ...QUEUE_LOG, start: field('start', boolean), stop: field('stop', boolean) }),
);

/** `LogOptions` with every field. */
export type ResolvedLog = Readonly<Record<keyof LogOptions, boolean>>;

/** A boolean sets every field. */
export function resolveLog(given: boolean | LogOptions | undefined, inherited?: ResolvedLog): ResolvedLog {
  const all = typeof given === 'boolean' ? given : undefined;
  const own: LogOptions = typeof given === 'object' ? given : {};
  const of = (name: keyof LogOptions) => all ?? own[name] ?? inherited?.[name] ?? true;
  return { failures: of('failures'), deaths: of('deaths'), start: of('start'), stop: of('stop') };
}

/** The values of Nest's enum `Scope`; options do not import Nest. */
const REQUEST_SCOPE = 2;
const SCOPES: readonly unknown[] = [0, 1, REQUEST_SCOPE];

const readScope: Rule<number> = (value, path, report) => {
  if (SCOPES.includes(value)) return value as number;
  report(new InvalidOptionError(path, 'Scope.DEFAULT, Scope.REQUEST or Scope.TRANSIENT', value));
  return undefined;
};

const readProcessor = shape({
  concurrency: field<'concurrency', NonNullable<ProcessorOptions['concurrency']>>(
    'concurrency',
    orFunction<number, () => number>(readConcurrency),
  ),
  inject: field('inject', rule(readInject)),
  scope: field('scope', readScope),
  durable: field('durable', boolean),
});

/**
 * @param path how errors call the options, such as `@Processor('email') of EmailProcessor`.
 * @throws {InvalidOptionError} at the first fault, unless `report` collects.
 */
export function checkProcessorOptions(
  options: ProcessorOptions | undefined,
  path: string,
  report: Report = refuse,
): Pick<ProcessorOptions, 'concurrency' | 'inject'> {
  const given = options === undefined ? undefined : readProcessor(options, path, report);
  if (given?.durable && given.scope !== REQUEST_SCOPE) {
    // Without a request scope Nest ignores `durable`, and one instance would serve all tenants.
    const where = `${path}.durable`;
    report(new InvalidOptionError(where, 'left out or given together with scope: Scope.REQUEST', true));
  }
  const { concurrency = DEFAULT_CONCURRENCY, inject } = given ?? {};
  if (inject && typeof concurrency !== 'function')
    report(new InvalidOptionError(`${path}.inject`, 'left out if concurrency is not a function', inject));
  return { concurrency, ...(inject && { inject }) };
}

function readInject(value: unknown, path: string): readonly InjectedToken[] {
  if (readable(value, path, () => Array.isArray(value))) return value as InjectedToken[];
  throw new InvalidOptionError(path, 'a list of providers, such as [ConfigService]', value);
}

/** Options of `@HandleBatch`. */
export interface BatchOptions {
  /** Maximum number of jobs in one call, 2 to 1,000. Each takes a slot, so the maximum is the `concurrency` of the processor. */
  readonly size: number;
  /**
   * A batch with fewer jobs than this waits up to `timeout` for more; 1 to `size`. Its jobs are active and take slots while they
   * wait.
   *
   * @default 1; with `timeout` alone, `size`
   */
  readonly minSize?: number;
  /** How long the first job of a batch waits for others, up to 1 h. @default '1s' */
  readonly timeout?: Duration;
  /**
   * `'group'`: all jobs of a batch have the same group, or none has one. Then up to `size` jobs of a group start at its turn.
   *
   * @default no `by`: a batch may have jobs of several groups
   */
  readonly by?: 'group';
}

/** `BatchOptions` with every field. */
export interface CheckedBatch {
  readonly size: number;
  readonly minSize: number;
  readonly timeoutMs: number;
  /** Whether all jobs of a batch have the same group. */
  readonly isByGroup: boolean;
}

const MAX_BATCH = 1_000;
const MAX_BATCH_WAIT_MS = 3_600_000;

const readBatchFields = shape({
  size: field('size', integer(2, MAX_BATCH)),
  minSize: field('minSize', integer(1, MAX_BATCH)),
  timeout: field('timeoutMs', duration(1, MAX_BATCH_WAIT_MS)),
  by: field('by', oneOf('group')),
});

/** Reads the second argument of `@HandleBatch`. */
export const readBatchOptions: Rule<CheckedBatch> = (value, path, report) => {
  const given = readBatchFields(value, path, report);
  if (given === undefined) return undefined;
  const { size, timeoutMs } = given;
  if (size === undefined) {
    if ((value as BatchOptions).size === undefined)
      report(new InvalidOptionError(`${path}.size`, `an integer from 2 to ${MAX_BATCH}`, undefined));
    return undefined;
  }
  const minSize = given.minSize ?? (timeoutMs === undefined ? 1 : size);
  if (minSize > size) report(new InvalidOptionError(`${path}.minSize`, `at most size, ${size}`, minSize));
  return { size, minSize, timeoutMs: timeoutMs ?? 1_000, isByGroup: given.by !== undefined };
};

/** Kinds of enhancers. */
export type EnhancerKind = 'guards' | 'interceptors' | 'pipes' | 'filters';

/** Guards, interceptors, pipes and filters for jobs. Those on a handler and its class always apply. */
export interface EnhancerOptions {
  /**
   * Which global guards, interceptors, pipes and filters (`APP_GUARD`, `useGlobalPipes`, …) also apply to jobs: all, none, or
   * these kinds. Most assume an HTTP request; for a job, `context.getType()` is `'queue'`.
   *
   * @default false
   */
  readonly global?: boolean | readonly EnhancerKind[];
}

const ENHANCER_KINDS: readonly EnhancerKind[] = ['guards', 'interceptors', 'pipes', 'filters'];
export const readEnhancerKinds = rule((value: unknown, path: string): readonly EnhancerKind[] => {
  if (value === true) return ENHANCER_KINDS;
  if (value === false) return [];
  if (Array.isArray(value) && value.every((kind) => ENHANCER_KINDS.includes(kind as EnhancerKind)))
    return value as EnhancerKind[];
  const kinds = ENHANCER_KINDS.map((kind) => `'${kind}'`).join(', ');
  throw new InvalidOptionError(path, `true, false, or a list out of ${kinds}`, value);
});

/**
 * A hook that wraps every job run in this process: guards, interceptors, pipes and the handler. The data has been validated
 * before. `next()` calls the next hook or the handler in the same tick. It returns a promise of the handler's result; for an
 * Observable, of its last value. `job` is the object that the handler receives.
 *
 * A hook cannot change the result: return values and caught errors are ignored. If a hook throws, the attempt fails with that error. If
 * it does not call `next()` exactly once, the attempt fails with `WrapHookError`. A run ends when its handler and all hooks have.
 *
 * @example
 * const requests = new AsyncLocalStorage<{ jobId: string }>();
 * const withRequest: WrapHook = (job, next) => requests.run({ jobId: job.id }, next);
 *
 * QueueModule.forRoot({ wrap: withRequest });
 */
export type WrapHook = (job: Job<any>, next: () => Promise<unknown>) => unknown;

/** Reads the option `headers` of `forRoot`. */
export function checkHeadersHook(value: unknown, path: string): HeadersHook {
  if (typeof value === 'function') return value as HeadersHook;
  throw new InvalidOptionError(
    path,
    "a function that returns headers, such as () => ({ tenant: 'a' })",
    value,
  );
}

/** One hook or a list of hooks; the first is outermost. */
export type WrapOption = WrapHook | readonly WrapHook[];

export const readWrap = rule((value: unknown, path: string): readonly WrapHook[] => {
  const isList = readable(value, path, () => Array.isArray(value));
  const hooks = isList ? readable(value, path, () => [...(value as unknown[])]) : [value];
  for (const [i, hook] of hooks.entries()) {
    if (typeof hook === 'function') continue;
    throw new InvalidOptionError(isList ? `${path}[${i}]` : path, 'a function, (job, next) => next()', hook);
  }
  return hooks as WrapHook[];
});
