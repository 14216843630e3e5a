import type { AgingRule, BreakerRule, LimitField, LimitRule, RateRule } from '../job/limit-rule.js';
import { InvalidOptionError } from '../errors.js';
import { MAX_TIMER_MS, type Duration } from '../job/duration.js';
import { fieldsOf, hasFields } from '../job/fields.js';
import { readData } from '../job/payload.js';
import { faultOfText, pathText, type Path } from '../job/text.js';
import { checkJobName, isPlainName } from '../job/job-id.js';
import { RULES } from '../job/rules.js';
import {
  duration,
  field,
  integer,
  oneOf,
  readable,
  rule,
  shape,
  shapeWith,
  type Field,
  type Rule,
  type Shaped,
} from './check.js';

/** How often jobs may start. Every start counts, also that of a retry or after a stall. */
export interface RateOptions {
  /** Maximum number of starts, or total `cost` if jobs have one: 1 to 1,000,000,000. */
  readonly max: number;
  /** The time in which `max` applies: 10 ms to 24 days. */
  readonly per: Duration;
  /**
   * `'sliding'`: at most `max` starts in any period of length `per`. `'fixed'`: at most `max` starts in each window; a window
   * begins with the first start after the previous window. `'bucket'`: starts are spaced evenly, but `burst` of them may start at
   * once after an idle time.
   *
   * @default 'sliding', or 'bucket' with a `burst`
   */
  readonly window?: 'sliding' | 'fixed' | 'bucket';
  /**
   * For `'bucket'`: how many jobs may start at once after an idle time. With 1, all starts are evenly spaced. For `'sliding'`: how
   * many jobs may start at once, at most `max`; with `max`, all of them.
   *
   * @default `max`; for `'sliding'` with a `max` of 1,000 or more and a `per` of 1 to 10 s, a fiftieth of `max`
   */
  readonly burst?: number;
}

/** How jobs with a priority move up while they wait, so that none waits forever. */
export interface AgingOptions {
  /** How long a job waits before each move up: 1 ms to 24 days. */
  readonly every: Duration;
  /** How many priorities it moves up, 1 to 2,097,151. @default 1 */
  readonly by?: number;
}

/** Limits of the jobs of a queue or of one name, across all processes. */
export interface LimitOptions {
  /** How often jobs may start. @default no limit */
  readonly rate?: RateOptions;
  /** How many jobs may run at the same time, across all processes; 1 to 1,000,000. @default no limit */
  readonly concurrency?: number;
}

/**
 * A circuit breaker: while too many runs fail, no job starts, so that jobs do not use up their attempts. It counts the runs of all processes.
 *
 * @example
 * const breaker = { failures: 20, ratio: 0.5, window: '1m', openFor: '30s' } as const;
 * QueueModule.registerQueue({ name: 'crm', limits: { breaker } });
 */
export interface BreakerOptions {
  /** The breaker opens if this many runs fail within `window`; 1 to 1,000,000. */
  readonly failures: number;
  /** It only opens if the failed runs are at least this share of all runs that ended; 0.01 to 1. @default 0.5 */
  readonly ratio?: number;
  /** The time in which runs are counted; 100 ms to 24 days. @default '1m' */
  readonly window?: Duration;
  /** How long no job starts after the breaker has opened; 10 ms to 24 days. Then `probes` jobs start. @default '30s' */
  readonly openFor?: Duration;
  /**
   * How many jobs start after that time. If one of them completes, the breaker closes; if one fails, it opens again. 1 to 1,000.
   * @default 1
   */
  readonly probes?: number;
  /**
   * Returns whether an error counts as a failure. A run with another error counts like a completed one. `UnrecoverableError`,
   * `RateLimited`, invalid data, cancelled and snoozed jobs never count.
   *
   * @default every error
   */
  readonly isFailure?: (error: unknown) => boolean;
}

/** How many failed jobs may be retried in a time. Further retries wait until the budget has room, and then for their backoff. */
export interface RetryBudgetOptions {
  /** Maximum number of retries in the time `per`, in addition to those of `percent`; 1 to 1,000,000,000. */
  readonly max: number;
  /** The time: 10 ms to 24 days. */
  readonly per: Duration;
  /** Allows further retries, in percent of the first attempts that end in the time `per`; 0.01 to 100. @default none */
  readonly percent?: number;
}

/** A limit that several queues share. */
export interface SharedLimitOptions extends LimitOptions {
  /** Stops all starts while too many runs fail. @default none */
  readonly breaker?: BreakerOptions;
}

/** Limits of a queue or of one job name. */
export interface NameLimitOptions extends SharedLimitOptions {
  /** How many failed jobs may be retried in a time, in all processes. @default no limit */
  readonly retryBudget?: RetryBudgetOptions;
}

/** Limits of a queue. */
export interface QueueLimitOptions extends NameLimitOptions {
  /**
   * Moves waiting jobs up in priority. With `{ every: '1m' }`, a job with priority 5 runs before every job that is added more
   * than 5 minutes after it.
   *
   * @default none
   */
  readonly aging?: AgingOptions;
  /** Limits of jobs by their name. Not together with `groups`, because a job waits in one line only. @default none */
  readonly names?: Readonly<Record<string, NameLimitOptions>>;
}

/** Limits that apply to each group separately. */
export interface GroupOptions extends LimitOptions {
  /**
   * The field of the data that contains the group, for jobs without the option `group`: `'tenantId'`, `'account.id'`.
   *
   * @default none
   */
  readonly by?: string;
  /**
   * How many jobs of a group may wait; if a group is full, `add` rejects with `GroupFullError`. 1 to 1,000,000,000.
   *
   * @default no limit
   */
  readonly maxSize?: number;
  /**
   * `'fair'`: groups take turns, and several jobs of a group may run at once. `'strict'`: the jobs of each group run one at a
   * time, in the order in which they were added. The next job starts only when the previous one has ended, including its retries.
   * @default 'fair'
   */
  readonly order?: 'fair' | 'strict';
  /**
   * Which group starts the next job. `'turns'`: each group starts one job at its turn, so groups with short and long jobs start equally
   * many. `'in-flight'`: the group with the fewest running jobs, and of these the one that has waited longest, so a group with long jobs
   * does not take most of the workers. Weights apply to both. Not `'in-flight'` with `order: 'strict'`, and then workers claim no jobs
   * ahead.
   *
   * @default 'turns'
   */
  readonly fairness?: 'turns' | 'in-flight';
  /**
   * With `'strict'`: whether the group continues after a dead job, or stops until that job is retried or removed.
   *
   * @default 'continue'
   */
  readonly onDead?: 'continue' | 'block';
}

type IsFailure = (error: unknown) => boolean;

/** The largest cost of a job that counts against a rate. */
interface MaxCost {
  readonly max: number;
  /** The option that sets it, for errors. */
  readonly option: string;
  /** Whose jobs count: those of the queue (`q`), of groups (`g`), of a name (`n:` and the name), or of a shared limit (`s:`). */
  readonly field: LimitField;
}

/** The limits of a queue, from its options. */
export interface ResolvedLimits {
  readonly rules: ReadonlyMap<LimitField, LimitRule>;
  /** The shared limits that the queue uses. */
  readonly shared: ReadonlyMap<string, LimitRule>;
  /** Path of the group within the data of a job. */
  readonly groupBy: readonly string[] | null;
  /** The `max` of each rate: the largest cost of a job that counts against it. */
  readonly maxCosts: readonly MaxCost[];
  /** The functions `isFailure` of breakers that have one. */
  readonly isFailure: ReadonlyMap<LimitField, IsFailure>;
  /** Whether groups have the order 'strict'. Then jobs must not have `lifo`, `debounce` or `aggregate`. */
  readonly isStrict: boolean;
}

/** The smallest weight, ratio and percentage. */
const MIN_FRACTION = 0.01;

export function fractionUpTo(max: number): Rule<number> {
  return rule((value, path) => {
    if (typeof value === 'number' && value >= MIN_FRACTION && value <= max) return value;
    throw new InvalidOptionError(path, `a number from ${MIN_FRACTION} to ${max}`, value);
  });
}

export const MANY = 1_000_000_000;
export const MOST_RUNNING = 1_000_000;
/** The rule of a group's concurrency in strict order. */
export const ALONE_IN_STRICT_ORDER = "left out with order 'strict', which runs one job of a group at a time";

const RATE_FIELDS = {
  max: field('max', integer(1, MANY)),
  per: field('per', duration(10, MAX_TIMER_MS)),
} as const;

/** How many in a time: a rate without a window. */
export const readPlainRate = shapeWith(RATE_FIELDS, 'max', 'per');

export const readRetryBudget = shapeWith(
  { ...RATE_FIELDS, percent: field('percent', fractionUpTo(100)) },
  'max',
  'per',
);

const readRateFields = shapeWith(
  {
    ...RATE_FIELDS,
    window: field('window', oneOf('sliding', 'fixed', 'bucket')),
    burst: field('burst', integer(1, MANY)),
  },
  'max',
  'per',
);

export const readRate: Rule<RateRule> = (value, path, report) => {
  const given = readRateFields(value, path, report);
  if (given === undefined) return undefined;
  const { max, per, burst } = given;
  const window = given.window ?? (burst === undefined ? 'sliding' : 'bucket');
  const most = { bucket: MANY, sliding: max, fixed: 0 }[window];
  const phrase = `${most ? `at most max (${max})` : 'left out'} with window '${window}'`;
  if (burst !== undefined && burst > most) report(new InvalidOptionError(`${path}.burst`, phrase, burst));
  // In a longer time, jobs that could start at once would wait noticeably.
  const isSpread = window === 'sliding' && max >= 1_000 && per >= 1_000 && per <= 10_000;
  return { max, per, window, burst: burst ?? (isSpread ? Math.floor(max / 50) : max) };
};

const LIMIT_FIELDS = {
  rate: field('rate', readRate),
  concurrency: field('concurrency', integer(1, MOST_RUNNING)),
} as const;

const BREAKER_FIELDS = {
  failures: field('failures', integer(1, 1_000_000)),
  ratio: field('ratio', fractionUpTo(1)),
  window: field('window', duration(100, MAX_TIMER_MS)),
  openFor: field('openFor', duration(10, MAX_TIMER_MS)),
  probes: field('probes', integer(1, 1_000)),
} as const;

export const readBreakerChange = shapeWith(BREAKER_FIELDS, 'failures');
const readBreaker = shapeWith(
  { ...BREAKER_FIELDS, isFailure: field('isFailure', rule(checkIsFailure)) },
  'failures',
);

function checkIsFailure(value: unknown, path: string): IsFailure {
  if (typeof value === 'function') return value as IsFailure;
  throw new InvalidOptionError(path, 'a function', value);
}

type ReadBreaker = BreakerRule & { readonly isFailure?: IsFailure };

export function breakerOf(
  read: Rule<Partial<ReadBreaker> & Pick<BreakerRule, 'failures'>>,
): Rule<ReadBreaker> {
  return (value, path, report) => {
    const given = read(value, path, report);
    return given && { ratio: 0.5, window: 60_000, openFor: 30_000, probes: 1, ...given };
  };
}

/** An object with at least one field: without one it would do nothing. */
export function shapeWithAny<Fields extends Record<string, Field<string, any>>>(
  fields: Fields,
): Rule<Shaped<Fields>> {
  const read = shape(fields);
  const names = Object.keys(fields);
  const phrase = `an object with ${names.slice(0, -1).join(', ')} or ${names.at(-1)}`;
  return (value, path, report) => {
    let faults = 0;
    const given = read(value, path, (fault) => {
      faults += 1;
      report(fault);
    });
    if (given && faults === 0 && Object.keys(given).length === 0)
      report(new InvalidOptionError(path, phrase, value));
    return given;
  };
}

const SHARED_FIELDS = { ...LIMIT_FIELDS, breaker: field('breaker', breakerOf(readBreaker)) } as const;

const readSharedLimit = shapeWithAny(SHARED_FIELDS);

const NAME_FIELDS = {
  ...SHARED_FIELDS,
  retryBudget: field('retryBudget', readRetryBudget),
} as const;

const readNameLimit = shapeWithAny(NAME_FIELDS);

/** A rule as the code gives it, with the function of its breaker. */
export type GivenLimit = Omit<LimitRule, 'breaker'> & { readonly breaker?: ReadBreaker };

const readAgingFields = shapeWith(
  {
    every: field('every', duration(1, MAX_TIMER_MS)),
    by: field('by', integer(1, RULES.priorityMax)),
  },
  'every',
);

const readAging: Rule<AgingRule> = (value, path, report) => {
  const given = readAgingFields(value, path, report);
  return given && { by: 1, ...given };
};

/** A limit applies to the jobs of one name: a pattern, as in `@Handle('mail.*')`, would hold none of them back. */
export function checkLimitedName(value: unknown, path: string): string {
  const name = checkJobName(value);
  if (name.includes('*'))
    throw new InvalidOptionError(
      path,
      'the exact name of jobs, without *: each name has its own limits',
      name,
    );
  return name;
}

const readNames: Rule<[string, GivenLimit][]> = (value, path, report) => {
  if (!hasFields(value)) {
    report(new InvalidOptionError(path, 'an object of limits by job name', value));
    return undefined;
  }
  const entries: [string, GivenLimit][] = [];
  for (const [name, limit] of readable(value, path, () => fieldsOf(value, []))) {
    const checked = rule(checkLimitedName)(name, `${path}: a name`, report);
    const read = readNameLimit(limit, `${path}.${name}`, report);
    if (checked !== undefined && read !== undefined) entries.push([name, read]);
  }
  return entries;
};

/** `limits` of `registerQueue`. */
export const readQueueLimits = shape({
  ...NAME_FIELDS,
  aging: field('aging', readAging),
  names: field('names', readNames),
});

/** `limits` of `forRoot`: limits that queues share, by name. */
export const readSharedLimits: Rule<ReadonlyMap<string, GivenLimit>> = (value, path, report) => {
  if (!hasFields(value)) {
    report(new InvalidOptionError(path, 'an object of limits by name', value));
    return undefined;
  }
  const limits = new Map<string, GivenLimit>();
  for (const [name, limit] of readable(value, path, () => fieldsOf(value, []))) {
    const place = `${path}.${name}`;
    if (!isPlainName(name, 64))
      report(new InvalidOptionError(`${path}: a name`, '1 to 64 of [A-Za-z0-9._-]', name));
    const read = readSharedLimit(limit, place, report);
    if (read) limits.set(name, read);
  }
  return limits;
};

/** `uses` of `registerQueue`: names of limits of `forRoot`. */
export const readUses: Rule<readonly string[]> = (value, path, report) => {
  const list = readable(value, path, () => (Array.isArray(value) ? [...(value as unknown[])] : null));
  if (list && list.length > 0 && list.every((one) => typeof one === 'string')) return [...new Set(list)];
  report(new InvalidOptionError(path, 'a list of names of the limits of forRoot()', value));
  return undefined;
};

/**
 * The rules of the shared limits that a queue uses.
 *
 * @param limits those of `forRoot`.
 */
export function resolveUses(
  uses: readonly string[],
  limits: ReadonlyMap<string, GivenLimit>,
  path: string,
  report: (fault: InvalidOptionError) => void,
): ReadonlyMap<string, GivenLimit> {
  const known = [...limits.keys()].map((name) => `'${name}'`).join(', ');
  for (const [i, name] of uses.entries()) {
    if (!limits.has(name))
      report(
        new InvalidOptionError(
          `${path}.uses[${i}]`,
          `one of the limits of forRoot(): ${known || 'there are none'}`,
          name,
        ),
      );
  }
  return new Map([...limits].filter(([name]) => uses.includes(name)));
}

/** `groups` of `registerQueue`. */
export const readGroups = shape({
  ...LIMIT_FIELDS,
  by: field('by', rule(checkDataPath)),
  maxSize: field('maxSize', integer(1, MANY)),
  order: field('order', oneOf('fair', 'strict')),
  fairness: field('fairness', oneOf('turns', 'in-flight')),
  onDead: field('onDead', oneOf('continue', 'block')),
});

function checkDataPath(value: unknown, path: string): readonly string[] {
  if (typeof value === 'string' && value.length <= 256 && /^[^.\s]+(\.[^.\s]+)*$/u.test(value))
    return value.split('.');
  throw new InvalidOptionError(
    path,
    "the path of a field of the data, such as 'tenantId' or 'account.id'",
    value,
  );
}

type Given = {
  readonly limits?: (GivenLimit & { readonly names?: [string, GivenLimit][] }) | undefined;
  readonly groups?: (LimitRule & { readonly by?: readonly string[] }) | undefined;
  readonly maxWaiting?: { readonly onFull: string } | undefined;
};

/** The limits of a queue; undefined if it has none. Reports options that contradict each other. */
export function resolveLimits(
  { limits, groups, maxWaiting }: Given,
  path: string,
  report: (fault: InvalidOptionError) => void,
  shared: ReadonlyMap<string, GivenLimit> = new Map(),
): ResolvedLimits | undefined {
  if (!limits && !groups && shared.size === 0) return undefined;
  const rules = new Map<LimitField, LimitRule>();
  const isFailure = new Map<LimitField, IsFailure>();
  const ruleOf = (of: LimitField, { breaker, ...rest }: GivenLimit): LimitRule => {
    if (!breaker) return rest;
    const { isFailure: own, ...numbers } = breaker;
    if (own) isFailure.set(of, own);
    return { ...rest, breaker: numbers };
  };
  const { names = [], ...ofQueue } = limits ?? {};
  if (Object.keys(ofQueue).length > 0) rules.set('q', ruleOf('q', ofQueue));
  for (const [name, limit] of names) rules.set(`n:${name}`, ruleOf(`n:${name}`, limit));
  const used = new Map([...shared].map(([name, limit]) => [name, ruleOf(`s:${name}`, limit)]));
  const { by = null, ...ofGroups } = groups ?? {};
  if (Object.keys(ofGroups).length > 0) rules.set('g', ofGroups);
  if (groups && maxWaiting?.onFull === 'dropOldest')
    report(
      new InvalidOptionError(
        `${path}.maxWaiting.onFull`,
        "not 'dropOldest' with groups, as the oldest jobs may be those of another group; see groups.maxSize",
        'dropOldest',
      ),
    );
  if (groups && names.length > 0)
    report(
      new InvalidOptionError(
        `${path}.limits.names`,
        'left out with groups: a job waits in one line',
        names[0]![0],
      ),
    );
  if (ofGroups.order === 'strict' && ofGroups.concurrency)
    report(new InvalidOptionError(`${path}.groups.concurrency`, ALONE_IN_STRICT_ORDER, ofGroups.concurrency));
  if (ofGroups.order === 'strict' && ofGroups.fairness === 'in-flight')
    report(new InvalidOptionError(`${path}.groups.fairness`, ALONE_IN_STRICT_ORDER, ofGroups.fairness));
  if (ofGroups.onDead !== undefined && ofGroups.order !== 'strict')
    report(
      new InvalidOptionError(`${path}.groups.onDead`, "left out without order 'strict'", ofGroups.onDead),
    );
  return {
    rules,
    shared: used,
    groupBy: by,
    maxCosts: maxCostsOf(rules, used),
    isFailure,
    isStrict: ofGroups.order === 'strict',
  };
}

function maxCostsOf(
  rules: ReadonlyMap<LimitField, LimitRule>,
  shared: ReadonlyMap<string, LimitRule>,
): MaxCost[] {
  const optionOf = (of: LimitField) =>
    of === 'q' ? 'limits.rate.max' : of === 'g' ? 'groups.rate.max' : `limits.names.${of.slice(2)}.rate.max`;
  const own = [...rules].map(([of, { rate }]) => ({
    rate,
    field: of,
    option: `${optionOf(of)} of the queue`,
  }));
  const used = [...shared].map(([name, { rate }]) => ({
    rate,
    field: `s:${name}` as const,
    option: `limits.${name}.rate.max of forRoot()`,
  }));
  return [...own, ...used].flatMap(({ rate, ...rest }) => (rate ? { max: rate.max, ...rest } : []));
}

const MAX_GROUP_BYTES = 256;
const GROUP_TEXT = `a string of 1 to ${MAX_GROUP_BYTES} bytes without control characters`;

/** The name of a group: 1 to 256 bytes without control characters. */
export function checkGroup(value: unknown, path: string): string {
  if (faultOfText(value, MAX_GROUP_BYTES) === undefined) return value as string;
  // The form of BullMQ Pro: { id }.
  const isObject = typeof value === 'object' && value !== null;
  const hint = isObject ? ': a group is its name, so write it without an object around it' : '';
  throw new InvalidOptionError(path, GROUP_TEXT + hint, value);
}

/** How much a job counts against rates. */
export const readCost = integer(1, MANY);

/** The options of a job that its limits read. */
interface LimitedOptions {
  readonly group?: string;
  readonly cost?: number;
  readonly lifo?: boolean;
  readonly priority?: number;
  readonly debounce?: object;
  readonly aggregate?: object;
}

/** The rule of the priority of a job with a group in strict order. */
export const NO_PRIORITY_IN_STRICT_ORDER =
  "left out of a job with a group whose order is 'strict', which is that of the adds";

/**
 * Reads the group of a job from its data, and refuses options that the limits of its queue contradict.
 *
 * @param options after checking; those in the next argument are as the user wrote them.
 * @param path how errors call the job: its options are `<path>.options`, its data is `<path>.data`.
 * @throws {InvalidOptionError} if the group is not a text or a whole number, or if the cost is larger than the `max` of a rate
 *   that the job counts against
 */
export function withLimits<Options extends LimitedOptions>(
  { groupBy, maxCosts, isStrict }: ResolvedLimits,
  options: Options,
  { name, data, options: given }: { readonly name: string; readonly data: unknown; readonly options?: any },
  path: Path,
): Options {
  const { cost, lifo, priority, debounce, aggregate } = options;
  const refuseOption = (option: keyof LimitedOptions, phrase: string) => {
    throw new InvalidOptionError(`${pathText(path)}.options.${option}`, phrase, given?.[option]);
  };
  const strict = "left out in a queue whose groups have order 'strict'";
  if (lifo && isStrict) refuseOption('lifo', strict);
  if (debounce && isStrict)
    refuseOption('debounce', `${strict}: a job that is delayed again has no place in that order`);
  if (aggregate && isStrict)
    refuseOption('aggregate', `${strict}: a job that collects data has no place in that order`);
  const isRead = options.group === undefined && groupBy !== null;
  const group = isRead ? groupOf(data, groupBy, path) : options.group;
  if (priority && isStrict && group !== undefined) refuseOption('priority', NO_PRIORITY_IN_STRICT_ORDER);
  for (const { max, option, field: of } of cost === undefined ? [] : maxCosts) {
    // A job with a group waits in the line of its group, where no limit of its name applies.
    const line = group === undefined ? `n:${name}` : 'g';
    const counts = of === line || of === 'q' || of.startsWith('s:');
    if (counts && cost! > max) refuseOption('cost', `at most ${max}, ${option}`);
  }
  return isRead ? { ...options, group } : options;
}

function groupOf(data: unknown, by: readonly string[], path: Path): string {
  let value = readData(data);
  for (const name of by) value = (value as Record<string, unknown> | null | undefined)?.[name];
  if (Number.isSafeInteger(value)) return String(value);
  if (faultOfText(value, MAX_GROUP_BYTES) === undefined) return value as string;
  throw new InvalidOptionError(
    `${pathText(path)}.data.${by.join('.')}`,
    `a whole number or ${GROUP_TEXT}: it is the group of the job (groups.by of the queue)`,
    value,
  );
}
