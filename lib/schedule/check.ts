import { InvalidOptionError } from '../errors.js';
import { faultOfText } from '../job/text.js';
import { refuse, type Report } from '../options/check.js';
import { readScheduleRule, type CheckedRule } from '../options/schedule-options.js';
import { faultOfCron } from './cron.js';
import { nextAfter } from './times.js';

/**
 * Checks a rule: its fields, its expression and time zone, and that it fires at least once.
 *
 * @param path name of the rule for errors: `schedules.upsert().rule`.
 * @throws {InvalidOptionError} unless `report` collects the faults; then an invalid rule gives undefined.
 */
export function checkScheduleRule(
  given: unknown,
  path: string,
  report: Report = refuse,
): CheckedRule | undefined {
  let isSound = true;
  const fail: Report = (fault) => {
    isSound = false;
    report(fault);
  };
  const rule = readScheduleRule(given, path, fail);
  if (rule === undefined) return undefined;
  if (rule.cron !== undefined) {
    const fault = faultOfCron(rule.cron, rule.tz!);
    if (fault) fail(new InvalidOptionError(`${path}.${fault.field}`, fault.rule, rule[fault.field]));
  }
  // A time in the past is valid: the same program runs before and after it.
  if (isSound && rule.startAt !== undefined && nextAfter(rule, rule.startAt - 1) === null) {
    const [start, end] = [rule.startAt, rule.endAt ?? rule.startAt].map((at) => new Date(at).toISOString());
    const place = `${path}.endAt`;
    const sentence = `${place} must be late enough for one occurrence: there is none from ${start} to ${end}`;
    fail(new InvalidOptionError(place, 'late enough for one occurrence', rule.endAt, sentence));
  }
  return isSound ? rule : undefined;
}

/** Ids of jobs consist of the schedule's id and a time, and must fit 255 bytes. */
const MAX_ID_BYTES = 200;

/** @throws {InvalidOptionError} unless it is 1 to 200 bytes of well-formed text without control characters. */
export function checkScheduleId(value: unknown, path: string): string {
  if (faultOfText(value) === undefined && Buffer.byteLength(value as string) <= MAX_ID_BYTES)
    return value as string;
  const phrase = `1 to ${MAX_ID_BYTES} bytes of well-formed text without control characters`;
  throw new InvalidOptionError(path, phrase, value);
}
