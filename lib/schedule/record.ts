import { encodePayload } from '../job/payload.js';
import { checkJobName } from '../job/job-id.js';
import type { RecordOptions } from '../job/job-record.js';
import { InvalidOptionError } from '../errors.js';
import { copyFields, field, readable, refuse, shape } from '../options/check.js';
import {
  checkJobOptions,
  JOB_OPTION_NAMES,
  NOT_OF_SCHEDULES,
  type CheckedJobOptions,
} from '../options/job-options.js';
import { withLimits } from '../options/limit-options.js';
import type { ResolvedQueueOptions } from '../options/module-options.js';
import type { CheckedRule, ScheduleRule, ScheduleTemplate } from '../options/schedule-options.js';
import { checkScheduleRule } from './check.js';
import { withoutOwner } from '../contract/declaration-verbs.js';
import type { StoredSchedule } from '../contract/schedule-verbs.js';
import { nextAfter, nextTimes } from './times.js';

/** A schedule after checking. */
export interface Schedule {
  /** The rule as the caller wrote it, with dates as ms. */
  readonly given: ScheduleRule;
  readonly rule: CheckedRule;
  readonly template: ScheduleTemplate;
  /** The checked options of its template, and unknown options that a newer version wrote. */
  readonly options: CheckedJobOptions & Pick<RecordOptions, 'unknown'>;
}

/** A schedule with the record that is stored. */
export interface MadeSchedule extends Schedule {
  readonly record: string;
}

/** Version of the record format. A record with another number was written by a newer version and is not read. */
const VERSION = 1;

const any = (value: unknown) => value;
const readTemplate = shape({
  name: field('name', any),
  data: field('data', any),
  options: field('options', any),
});

/** The order in which the fields of a rule are written, so that equal rules give equal text. */
export const RULE_FIELDS = [
  'cron',
  'tz',
  'every',
  'afterEnd',
  'immediately',
  'startAt',
  'endAt',
  'limit',
  'jitter',
  'overlap',
  'missed',
  'maxMissed',
] as const;

/**
 * Checks a schedule by the rules that its jobs must follow, and builds the record that is stored.
 *
 * @param path name of the call for errors: `schedules.upsert()`.
 * @throws {InvalidOptionError | InvalidJobNameError | InvalidPayloadError | PayloadTooLargeError}
 */
export function makeSchedule(
  givenRule: unknown,
  givenTemplate: unknown,
  queue: Pick<ResolvedQueueOptions, 'maxPayloadBytes' | 'payloads' | 'backoffs' | 'limits'>,
  path: string,
): MadeSchedule {
  checkScheduleRule(givenRule, `${path}.rule`);
  const place = `${path}.template`;
  const { name: givenName, data = null, options } = readTemplate(givenTemplate, place, refuse)!;
  const name = checkJobName(givenName);
  const checked = checkTemplateOptions(options, `${place}.options`, queue.backoffs);
  const dataJson = encodePayload(data, `${place}.data`, queue);
  const group =
    queue.limits && withLimits(queue.limits, checked, { name, data, options: checked }, place).group;
  const given = readable(givenRule, `${path}.rule`, () => plainRule(givenRule as Record<string, unknown>));
  const copied =
    options === undefined ? undefined : copyFields(options, `${place}.options`, JOB_OPTION_NAMES);
  const optionsJson = JSON.stringify(group === undefined ? copied : { ...copied, group });
  // No options and options without a value are the same schedule.
  const hasOptions = optionsJson !== undefined && optionsJson !== '{}';
  const record =
    `{"v":${VERSION},"rule":${JSON.stringify(given)},"template":{"name":${JSON.stringify(name)},` +
    `"data":${dataJson}${hasOptions ? `,"options":${optionsJson}` : ''}}}`;
  const made = readRecord(record);
  // A getter may return another value at the second read.
  if (made === null) throw new InvalidOptionError(path, 'plain data', record);
  return { ...made, record };
}

/** Reads a record; null if this version cannot (written by hand, or by a newer version). Never throws. */
export function readRecord(record: string): Schedule | null {
  try {
    const {
      v,
      rule: given,
      template,
    } = JSON.parse(withoutOwner(record)) as { v: number; rule: ScheduleRule; template: ScheduleTemplate };
    if (v !== VERSION) return null;
    const rule = checkScheduleRule(given, 'rule')!;
    checkJobName(template.name);
    if (template.data === undefined) return null;
    return { given, rule, template, options: readTemplateOptions(template.options) };
  } catch {
    return null;
  }
}

/** Whether two rules fire at the same times. */
export function isSameTiming(a: CheckedRule, b: CheckedRule): boolean {
  const fields = ['cron', 'tz', 'everyMs', 'afterEnd', 'startAt', 'endAt', 'limit'] as const;
  return fields.every((name) => a[name] === b[name]);
}

function checkTemplateOptions(
  options: unknown,
  path: string,
  backoffs: Parameters<typeof checkJobOptions>[2],
): CheckedJobOptions {
  if (typeof options === 'object' && options !== null) {
    for (const [name, why] of Object.entries(NOT_OF_SCHEDULES)) {
      const value = readable(options, path, () => (options as Record<string, unknown>)[name]);
      if (value !== undefined) throw new InvalidOptionError(`${path}.${name}`, why, value);
    }
  }
  return checkJobOptions(options as undefined, path, backoffs);
}

/** An unknown field of a rule could change its times, so such a record is not read. Unknown options of the job are kept. */
function readTemplateOptions(options: object = {}): Schedule['options'] {
  const fields = Object.entries(options);
  // A body has single-letter names for the known options.
  const isUnknown = ([name]: [string, unknown]) => name.length > 1 && !JOB_OPTION_NAMES.includes(name);
  const unknown = Object.fromEntries(fields.filter(isUnknown));
  if (Object.keys(unknown).length === 0) return checkTemplateOptions(options, 'options', 'any');
  const known = Object.fromEntries(fields.filter((entry) => !isUnknown(entry)));
  return { ...checkTemplateOptions(known, 'options', 'any'), unknown };
}

function plainRule(given: Record<string, unknown>): ScheduleRule {
  const plain: Record<string, unknown> = {};
  for (const name of RULE_FIELDS) {
    const value = given[name];
    if (value !== undefined) plain[name] = value instanceof Date ? value.getTime() : value;
  }
  return plain as unknown as ScheduleRule;
}

/** The stored state of an existing schedule. */
type KnownSchedule = Pick<StoredSchedule, 'record' | 'mode' | 'nextAt' | 'fired'>;

/** The next time of a schedule after this change. `keep` if its times do not change. */
export function nextOf(
  made: Pick<Schedule, 'rule'>,
  there: KnownSchedule | null,
  now: number,
): number | null | 'keep' {
  const before = there && readRecord(there.record);
  const isKept = before !== null && isSameTiming(before.rule, made.rule);
  // A running schedule without a next time was changed by hand.
  if (isKept && (there!.mode !== 'running' || there!.nextAt !== null)) return 'keep';
  if (there === null && made.rule.immediately) return now <= (made.rule.endAt ?? now) ? now : null;
  return remaining(made.rule, there?.fired ?? 0) === 0 ? null : nextAfter(made.rule, now);
}

/** The first `count` occurrences from `nextAt` on, without jitter. Fewer if the schedule ends before. */
export function occurrencesFrom(
  rule: CheckedRule,
  fired: number,
  nextAt: number | null,
  count: number,
): number[] {
  if (nextAt === null) return [];
  // Later occurrences depend on when the runs end, so they are not known.
  if (rule.afterEnd) return [nextAt];
  const left = Math.min(count, remaining(rule, fired));
  return [nextAt, ...nextTimes(rule, left - 1, nextAt)].slice(0, left);
}

/** How many more jobs the schedule may make. */
export function remaining({ limit = Infinity }: CheckedRule, fired: number): number {
  return Math.max(0, limit - fired);
}
