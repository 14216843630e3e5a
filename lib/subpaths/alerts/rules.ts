import { MINUTE_MS } from '../../contract/history.js';
import { InvalidOptionError } from '../../errors.js';
import { parseDuration, type Duration } from '../../job/duration.js';
import { checkQueueName } from '../../job/job-id.js';
import { faultOfText } from '../../job/text.js';
import { duration, field, integer, oneOf, readable, rule, shape, type Report } from '../../options/check.js';

/** Unit of a value: `jobs`, `workers` and `groups` are counts, `ms` a time, `ratio` 0 to 1, `flag` 0 or 1. */
export type AlertUnit = 'jobs' | 'workers' | 'groups' | 'ms' | 'ratio' | 'flag';

/**
 * The value of a rule, for each queue:
 *
 * - `backlog`: waiting jobs.
 * - `oldestWaiting`: how long ago the oldest waiting job was first due.
 * - `dead`: dead jobs; `deadRate`: jobs that died within `window`.
 * - `failureRatio`: failed attempts within `window`, divided by all attempts; 0 with fewer than `min` attempts.
 * - `noWorkers`: jobs wait, and no process claims them, because none works on the queue or all of them have paused it or stop; or jobs
 *   run, and no process works on the queue.
 * - `stalled`: workers whose lease has ended and whose jobs have not been recovered yet.
 * - `paused`: the queue is paused for all processes.
 * - `breakerOpen`: a circuit breaker is not closed: that of the queue, of a job name, or of a limit that it shares with other queues.
 * - `full`: the queue or a group of it has no room, and an add found none within the last 10 minutes.
 * - `stoppedGroups`: groups in strict order that wait until a person retries or removes their dead job.
 * - `scheduleLag`: how late the next occurrence of a schedule is.
 * - `longestRun`: how long the longest running job has been running.
 * - `memory`: used memory of Redis, divided by `maxmemory`; a value of the server, not of a queue.
 */
export type AlertRuleKind =
  | 'backlog'
  | 'oldestWaiting'
  | 'dead'
  | 'deadRate'
  | 'failureRatio'
  | 'noWorkers'
  | 'stalled'
  | 'paused'
  | 'breakerOpen'
  | 'full'
  | 'stoppedGroups'
  | 'scheduleLag'
  | 'longestRun'
  | 'memory';

export const RULE_UNITS: Readonly<Record<AlertRuleKind, AlertUnit>> = {
  backlog: 'jobs',
  oldestWaiting: 'ms',
  dead: 'jobs',
  deadRate: 'jobs',
  failureRatio: 'ratio',
  noWorkers: 'flag',
  stalled: 'workers',
  paused: 'flag',
  breakerOpen: 'flag',
  full: 'flag',
  stoppedGroups: 'groups',
  scheduleLag: 'ms',
  longestRun: 'ms',
  memory: 'ratio',
};

/** When an alert fires, and when it is resolved. */
export interface AlertRule {
  /** Kind of the rule: which value it compares. */
  readonly rule: AlertRuleKind;
  /** Name in messages, up to 100 characters; two rules of one kind need different names. @default the kind */
  readonly name?: string;
  /**
   * The alert fires when the value is above this: a number of jobs, workers or groups, a duration, or a ratio from 0 to 1. Required,
   * except for `stalled` and `stoppedGroups`, and for `noWorkers`, `paused`, `breakerOpen` and `full`, which have no limit.
   *
   * @default 0
   */
  readonly limit?: number | string;
  /**
   * The alert is resolved when the value is at most this; not above `limit`. A lower value avoids alerts that fire and resolve
   * repeatedly.
   *
   * @default limit
   */
  readonly resolve?: number | string;
  /**
   * How long the value must be above `limit` before the alert fires.
   *
   * @default '30s' for `noWorkers`, so that a restart of all workers is no alert; 0 for the others
   */
  readonly for?: Duration;
  /** The alert does not fire again for the same queue within this time. @default '10m' */
  readonly cooldown?: Duration;
  /** Names of queues; not for `memory`, which is a value of the server. @default all queues of the prefix */
  readonly queues?: readonly string[];
  /** Severity of the alert, for the receiver. @default 'warning' */
  readonly severity?: 'info' | 'warning' | 'critical';
  /** For `failureRatio` and `deadRate`: the period that counts, 1 minute to 1 hour. @default '5m' */
  readonly window?: Duration;
  /** For `failureRatio`: minimum number of attempts within `window`. @default 20 */
  readonly min?: number;
}

/** An `AlertRule` with its defaults, in ms and numbers. */
export interface CheckedRule extends Required<Pick<AlertRule, 'rule' | 'name' | 'severity' | 'min'>> {
  readonly limit: number;
  readonly resolve: number;
  readonly forMs: number;
  readonly cooldownMs: number;
  readonly queues: readonly string[] | undefined;
  readonly windowMs: number;
}

const MAX_RULES = 100;
const FLAGS: ReadonlySet<AlertRuleKind> = new Set(['noWorkers', 'paused', 'breakerOpen', 'full']);
const WINDOWS: ReadonlySet<AlertRuleKind> = new Set(['failureRatio', 'deadRate']);
const NO_LIMIT: ReadonlySet<AlertRuleKind> = new Set([...FLAGS, 'stalled', 'stoppedGroups']);

const readRule = shape({
  rule: field('rule', oneOf(...(Object.keys(RULE_UNITS) as AlertRuleKind[]))),
  name: field('name', rule(readShortText)),
  limit: field(
    'limit',
    rule((value: unknown) => value),
  ),
  resolve: field(
    'resolve',
    rule((value: unknown) => value),
  ),
  for: field('forMs', duration()),
  cooldown: field('cooldownMs', duration()),
  queues: field('queues', rule(readQueues)),
  severity: field('severity', oneOf('info', 'warning', 'critical')),
  window: field('windowMs', duration(MINUTE_MS, 60 * MINUTE_MS)),
  min: field('min', integer(1, 1_000_000_000)),
});

/** Checks the rules and fills in defaults. Every fault is reported with its place. */
export function readRules(given: unknown, path: string, report: Report): CheckedRule[] | undefined {
  const list = readable(given, path, () => (Array.isArray(given) ? [...(given as unknown[])] : null));
  if (!list || list.length === 0 || list.length > MAX_RULES) {
    report(new InvalidOptionError(path, `a list of 1 to ${MAX_RULES} rules`, given));
    return undefined;
  }
  const rules = list.map((one, i) => checkRule(one, `${path}[${i}]`, report));
  const names = rules.map((one) => one?.name);
  const double = names.findIndex((name, i) => name !== undefined && names.indexOf(name) < i);
  if (double !== -1)
    report(
      new InvalidOptionError(
        `${path}[${double}].name`,
        'given, and different from those of other rules',
        list[double],
      ),
    );
  return rules.filter((one) => one !== undefined);
}

function checkRule(given: unknown, path: string, report: Report): CheckedRule | undefined {
  const read = readRule(given, path, report);
  if (read === undefined) return undefined;
  const { rule: kind } = read;
  if (kind === undefined) {
    if (!(given as Partial<AlertRule>).rule)
      report(
        new InvalidOptionError(`${path}.rule`, `one of ${Object.keys(RULE_UNITS).join(', ')}`, undefined),
      );
    return undefined;
  }
  const leftOut = (name: 'queues' | 'window' | 'min') =>
    report(
      new InvalidOptionError(`${path}.${name}`, `left out for ${kind}`, (given as Partial<AlertRule>)[name]),
    );
  if (read.queues !== undefined && kind === 'memory') leftOut('queues');
  if (read.windowMs !== undefined && !WINDOWS.has(kind)) leftOut('window');
  if (read.min !== undefined && kind !== 'failureRatio') leftOut('min');
  const limit = readLimit(kind, read.limit, `${path}.limit`, report);
  const resolve =
    read.resolve === undefined ? limit : readLimit(kind, read.resolve, `${path}.resolve`, report);
  if (limit === undefined || resolve === undefined) return undefined;
  if (resolve > limit) report(new InvalidOptionError(`${path}.resolve`, 'at most the limit', read.resolve));
  return {
    rule: kind,
    name: read.name ?? kind,
    limit,
    resolve,
    forMs: read.forMs ?? (kind === 'noWorkers' ? 30_000 : 0),
    cooldownMs: read.cooldownMs ?? 10 * MINUTE_MS,
    queues: read.queues,
    severity: read.severity ?? 'warning',
    windowMs: read.windowMs ?? 5 * MINUTE_MS,
    min: read.min ?? 20,
  };
}

function readLimit(kind: AlertRuleKind, value: unknown, path: string, report: Report): number | undefined {
  if (value === undefined && NO_LIMIT.has(kind)) return 0;
  if (FLAGS.has(kind)) {
    report(new InvalidOptionError(path, `left out for ${kind}`, value));
    return undefined;
  }
  const unit = RULE_UNITS[kind];
  if (unit === 'ms') return rule(parseDuration)(value, path, report);
  if (unit !== 'ratio') return integer(0, Number.MAX_SAFE_INTEGER)(value, path, report);
  if (typeof value === 'number' && value >= 0 && value < 1) return value;
  report(new InvalidOptionError(path, 'a number from 0 to less than 1, such as 0.1', value));
  return undefined;
}

/** 100 characters have at most so many bytes. */
const MAX_BYTES = 300;

/** Lines separate the name from the queue in the stored state, and a lone surrogate cannot be sent in a header. */
export function readShortText(value: unknown, path: string): string {
  if (typeof value === 'string' && value.length <= 100 && faultOfText(value, MAX_BYTES) === undefined)
    return value;
  throw new InvalidOptionError(
    path,
    'well-formed text of 1 to 100 characters, without control characters',
    value,
  );
}

function readQueues(value: unknown, path: string): readonly string[] {
  const list = readable(value, path, () => (Array.isArray(value) ? [...(value as unknown[])] : null));
  if (!list || list.length === 0) throw new InvalidOptionError(path, 'a list of names of queues', value);
  return list.map((name) => checkQueueName(name));
}
