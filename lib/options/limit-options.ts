import type { AgingRule, LimitField, LimitRule, RateRule } from '../job/limit-rule.js';
import { InvalidOptionError } from '../errors.js';
import { MAX_TIMER_MS, type Duration } from '../job/duration.js';
import { fieldsOf, hasFields } from '../job/fields.js';
import { checkJobName } from '../job/job-id.js';
import { faultOfText } from '../job/text.js';
import { isPlainName } from '../job/job-id.js';
import { RULES } from '../job/rules.js';
import { boolean, duration, field, integer, oneOf, readable, rule, shape, type Rule } from './check.js';

/** How often jobs may start. Each start counts: also of a retry, and after a stall. */
export interface RateOptions {
  /** How many starts; or, where jobs have a `cost`, how much of it. 1 to 1,000,000,000. */
  readonly max: number;
  /** In this time: 10 ms to 24 days. */
  readonly per: Duration;
  /**
   * `'sliding'`: never more than `max` in any time as long as `per`, and as early as that allows. `'fixed'`: `max` in each window, which
   * begins with the first start after the one before. `'bucket'`: evenly, `burst` of them at once after a rest.
   *
   * @default 'sliding', or 'bucket' with a `burst`
   */
  readonly window?: 'sliding' | 'fixed' | 'bucket';
  /** Only of a bucket: how many may start at once after a rest; 1: evenly spaced. @default `max` */
  readonly burst?: number;
}

/** How jobs with a priority move up while they wait, so that none waits without end. */
export interface AgingOptions {
  /** After so long: 1 ms to 24 days. */
  readonly every: Duration;
  /** By so many priorities, 1 to 2,097,151. @default 1 */
  readonly by?: number;
}

/** What limits the jobs of a queue or of one name, in all processes together. */
export interface LimitOptions {
  /** How often jobs may start. @default no limit */
  readonly rate?: RateOptions;
  /** How many may run at the same time, in all processes; 1 to 1,000,000. @default no limit */
  readonly concurrency?: number;
}

/** Limits of a queue. */
export interface QueueLimitOptions extends LimitOptions {
  /**
   * A waiting job moves up in priority: with `{ every: '1m' }`, one with priority 5 is passed only by jobs that are added up to 5 minutes after it.
   *
   * @default none
   */
  readonly aging?: AgingOptions;
  /** Limits of jobs by their name. Not together with `groups`: a job waits in one line. @default none */
  readonly names?: Readonly<Record<string, LimitOptions>>;
}

/** Limits that each group has for itself. */
export interface GroupOptions extends LimitOptions {
  /** The field of the data that names the group of a job which names none: `'tenantId'`, `'account.id'`. @default none */
  readonly by?: string;
  /** How many jobs of a group may wait; an `add` beyond it rejects with `GroupFullError`. 1 to 1,000,000,000. @default no limit */
  readonly maxSize?: number;
  /**
   * `'fair'`: groups take turns, and jobs of one group run side by side. `'strict'`: one job after another in each group, in the order
   * in which they were added; the next one starts when the one before has ended, also where that is retried. @default 'fair'
   */
  readonly order?: 'fair' | 'strict';
  /** In strict order: whether the group goes on behind a dead job, or stops until that is retried or removed. @default 'continue' */
  readonly onDead?: 'continue' | 'block';
}

/** A limit of one group, of one name or of the queue, set while it runs. `null` takes back what the code says. */
export interface LimitChange {
  /** How often jobs may start. @default as the code says */
  readonly rate?: RateOptions | null;
  /** How many may run at the same time. @default as the code says */
  readonly concurrency?: number | null;
}

/** The same for one group. */
export interface GroupChange extends LimitChange {
  /** How many of its jobs may wait. @default as the code says */
  readonly maxSize?: number | null;
  /** How many turns it gets for one of the others: 0.01 to 1,000. @default 1 */
  readonly weight?: number;
  /** Whether none of its jobs starts. @default false */
  readonly paused?: boolean;
}

/** The limits of a queue as its options say. */
export interface ResolvedLimits {
  readonly rules: ReadonlyMap<LimitField, LimitRule>;
  /** The fields that lead to the group of a job, within its data. */
  readonly groupBy: readonly string[] | null;
  /** The largest cost that a job may have; null: any. */
  readonly maxCost: number | null;
  /** Why a job may not go to the head of the line; null: it may. */
  readonly isStrict: boolean;
}

const MANY = 1_000_000_000;
const MOST_RUNNING = 1_000_000;

const RATE_SHAPE = shape({
  max: field('max', integer(1, MANY)),
  per: field('per', duration(10, MAX_TIMER_MS)),
  window: field('window', oneOf('sliding', 'fixed', 'bucket')),
  burst: field('burst', integer(1, MANY)),
});

export const readRate: Rule<RateRule> = (value, path, report) => {
  const given = RATE_SHAPE(value, path, report);
  if (given === undefined) return undefined;
  const { max, per, burst } = given;
  const window = given.window ?? (burst === undefined ? 'sliding' : 'bucket');
  if (max === undefined || per === undefined) {
    const read = value as { max?: unknown; per?: unknown };
    if (max === undefined && read.max === undefined) integer(1, MANY)(undefined, `${path}.max`, report);
    if (per === undefined && read.per === undefined)
      duration(10, MAX_TIMER_MS)(undefined, `${path}.per`, report);
    return undefined;
  }
  if (burst !== undefined && window !== 'bucket')
    report(new InvalidOptionError(`${path}.burst`, `left out with window '${window}'`, burst));
  return { max, per, window, burst: burst ?? max };
};

const LIMIT_FIELDS = {
  rate: field('rate', readRate),
  concurrency: field('concurrency', integer(1, MOST_RUNNING)),
} as const;

const readLimit = shape(LIMIT_FIELDS);

const AGING_SHAPE = shape({
  every: field('every', duration(1, MAX_TIMER_MS)),
  by: field('by', integer(1, RULES.priorityMax)),
});

const readAging: Rule<AgingRule> = (value, path, report) => {
  const given = AGING_SHAPE(value, path, report);
  if (given === undefined) return undefined;
  if (given.every !== undefined) return { every: given.every, by: given.by ?? 1 };
  if ((value as { every?: unknown }).every === undefined)
    duration(1, MAX_TIMER_MS)(undefined, `${path}.every`, report);
  return undefined;
};

const readNames: Rule<[string, LimitRule][]> = (value, path, report) => {
  if (!hasFields(value)) {
    report(new InvalidOptionError(path, 'an object of limits by job name', value));
    return undefined;
  }
  const entries: [string, LimitRule][] = [];
  for (const [name, limit] of readable(value, path, () => fieldsOf(value, []))) {
    const checked = rule(checkJobName)(name, `${path}: a name`, report);
    const read = readLimit(limit, `${path}.${name}`, report);
    if (checked !== undefined && read !== undefined) entries.push([name, read]);
  }
  return entries;
};

/** `limits` of `registerQueue`. */
export const readQueueLimits = shape({
  ...LIMIT_FIELDS,
  aging: field('aging', readAging),
  names: field('names', readNames),
});

/** `limits` of `forRoot`: limits that queues share, by name. */
export const readSharedLimits: Rule<ReadonlyMap<string, LimitRule>> = (value, path, report) => {
  if (!hasFields(value)) {
    report(new InvalidOptionError(path, 'an object of limits by name', value));
    return undefined;
  }
  const limits = new Map<string, LimitRule>();
  for (const [name, limit] of readable(value, path, () => fieldsOf(value, []))) {
    const place = `${path}.${name}`;
    if (!isPlainName(name, 64))
      report(new InvalidOptionError(`${path}: a name`, '1 to 64 of [A-Za-z0-9._-]', name));
    const read = readLimit(limit, place, report);
    if (read && Object.keys(read).length === 0)
      report(new InvalidOptionError(place, 'an object with rate or concurrency', limit));
    if (read) limits.set(name, read);
  }
  return limits;
};

/** `uses` of `registerQueue`: names of limits of `forRoot`. */
export const readUses: Rule<readonly string[]> = (value, path, report) => {
  const list = readable(value, path, () => (Array.isArray(value) ? [...(value as unknown[])] : null));
  if (list && list.length > 0 && list.every((one) => typeof one === 'string'))
    return [...new Set(list as string[])];
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
  limits: ReadonlyMap<string, LimitRule>,
  path: string,
  report: (fault: InvalidOptionError) => void,
): ReadonlyMap<string, LimitRule> {
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
  readonly limits?: (LimitRule & { readonly names?: [string, LimitRule][] }) | undefined;
  readonly groups?: (LimitRule & { readonly by?: readonly string[] }) | undefined;
  readonly maxWaiting?: { readonly onFull: string } | undefined;
};

/** The limits of a queue; undefined if it has none. Reports what contradicts itself. */
export function resolveLimits(
  { limits, groups, maxWaiting }: Given,
  path: string,
  report: (fault: InvalidOptionError) => void,
  shared: ReadonlyMap<string, LimitRule> = new Map(),
): ResolvedLimits | undefined {
  if (!limits && !groups && shared.size === 0) return undefined;
  const rules = new Map<LimitField, LimitRule>();
  const { names = [], ...ofQueue } = limits ?? {};
  if (Object.keys(ofQueue).length > 0) rules.set('q', ofQueue);
  for (const [name, limit] of names) rules.set(`n:${name}`, limit);
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
    report(
      new InvalidOptionError(
        `${path}.groups.concurrency`,
        "left out with order 'strict', which runs one job of a group at a time",
        ofGroups.concurrency,
      ),
    );
  if (ofGroups.onDead !== undefined && ofGroups.order !== 'strict')
    report(
      new InvalidOptionError(`${path}.groups.onDead`, "left out without order 'strict'", ofGroups.onDead),
    );
  const rates = [...rules.values(), ...shared.values()].flatMap(({ rate }) => (rate ? rate.max : []));
  return {
    rules,
    groupBy: by,
    maxCost: rates.length > 0 ? Math.min(...rates) : null,
    isStrict: ofGroups.order === 'strict',
  };
}

/** `null` takes back what the code says, which the store knows as false. */
function orNull<T>(read: Rule<T>): Rule<T | false> {
  return (value, path, report) => (value === null ? false : read(value, path, report));
}

const CHANGE_FIELDS = {
  rate: field('rate', orNull(readRate)),
  concurrency: field('concurrency', orNull(integer(1, MOST_RUNNING))),
} as const;

export const readLimitChange: Rule<LimitRule> = shape(CHANGE_FIELDS);

export const readGroupChange: Rule<LimitRule> = shape({
  ...CHANGE_FIELDS,
  maxSize: field('maxSize', orNull(integer(1, MANY))),
  weight: field('weight', rule(checkWeight)),
  paused: field('paused', boolean),
});

function checkWeight(value: unknown, path: string): number {
  if (typeof value === 'number' && value >= 0.01 && value <= 1_000) return value;
  throw new InvalidOptionError(path, 'a number from 0.01 to 1000', value);
}

/** The name of a group: 1 to 256 bytes without control characters. */
export function checkGroup(value: unknown, path: string): string {
  if (faultOfText(value, 256) === undefined) return value as string;
  throw new InvalidOptionError(path, 'a text of 1 to 256 bytes without control characters', value);
}

/** What a job counts for rates. */
export const readCost = integer(1, MANY);

/**
 * The group of a job by its data.
 *
 * @throws {InvalidOptionError} if the data has no text or whole number there
 */
export function groupOf(data: unknown, by: readonly string[], path: string): string {
  let value = data;
  for (const name of by) value = (value as Record<string, unknown> | null | undefined)?.[name];
  const place = `${path}.${by.join('.')}`;
  return checkGroup(Number.isSafeInteger(value) ? String(value) : value, place);
}
