import { InvalidOptionError } from '../errors.js';
import type { Duration } from '../job/duration.js';
import { boolean, duration, field, integer, oneOf, rule, shape, type Report } from './check.js';
import { checkMoment, type JobOptions, type NOT_OF_SCHEDULES } from './job-options.js';

/** Occurrences at the times of a cron expression. */
export interface CronTiming {
  /**
   * Five fields (minute, hour, day of month, month, day of week) or six (seconds first), with names (`MON-FRI`, `JAN`), lists,
   * ranges and steps (`0/15` is `0-59/15`); `L`, `W` and `#` as in Quartz; or `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`.
   */
  readonly cron: string;
  /** IANA time zone of the expression. @default 'UTC' */
  readonly tz?: string;
}

/** Occurrences at an interval, counted from 1970 or from `startAt`, so that all processes agree. */
export interface EveryTiming {
  /** 1 s to 10 years. */
  readonly every: Duration;
  /**
   * Counts the interval from the end of the last run, so that runs never overlap. The end is noticed within a twentieth of the
   * interval, 30 s at most. Not with `overlap`, `missed` and `maxMissed`.
   *
   * @default false
   */
  readonly afterEnd?: boolean;
}

/** Limits of a schedule, and what to do with overlapping and missed occurrences. */
export interface ScheduleLimits {
  /** No occurrence before this time; for `every` also the start of counting. A number is ms since 1970. @default none */
  readonly startAt?: Date | number;
  /** Adds a first occurrence when the schedule is created, but not when it is changed. Not with `startAt`. @default false */
  readonly immediately?: boolean;
  /** No occurrence after this time. In `schedules.upsert()` it must be in the future. @default none */
  readonly endAt?: Date | number;
  /** Maximum number of jobs, 1 to 1,000,000,000; then the schedule has ended. @default none */
  readonly limit?: number;
  /**
   * Delays each job by a part of this time, up to 1 day. The part is derived from the id of the job, so all processes agree on
   * it.
   *
   * @default 0
   */
  readonly jitter?: Duration;
  /**
   * If the job of an earlier occurrence has not ended: `allow` adds another one; `skip` adds none; `replace` removes the earlier job, or
   * cancels it if it runs, and adds the next one.
   *
   * @default 'allow'
   */
  readonly overlap?: Overlap;
  /**
   * Occurrences that came due while no process was running: `skip` adds none of them, `once` the last one, `all` the last `maxMissed`
   * of them. An occurrence is missed if it is more than a minute late, or if the next one is due.
   *
   * @default 'once'
   */
  readonly missed?: Missed;
  /** Maximum number of missed occurrences that `missed: 'all'` adds, 1 to 1,000. @default 100 */
  readonly maxMissed?: number;
}

/** How to treat an occurrence if the job of an earlier one has not ended. */
export type Overlap = 'allow' | 'skip' | 'replace';
/** How to treat occurrences that became due while no process was running. */
export type Missed = 'skip' | 'once' | 'all';

/** When a schedule adds jobs. */
export type ScheduleRule = (CronTiming | EveryTiming) & ScheduleLimits;

/** `JobOptions` without those that the schedule decides. */
export type ScheduledJobOptions = Omit<JobOptions, keyof typeof NOT_OF_SCHEDULES>;

/** The job that a schedule adds. */
export interface ScheduleTemplate<Data = unknown, Name extends string = string> {
  /** Name of the jobs. */
  readonly name: Name;
  /** @default null */
  readonly data?: Data;
  /** Options of every job. @default those of the queue */
  readonly options?: ScheduledJobOptions;
}

/** `ScheduleRule` after checking: ms and plain values. Either `cron` with `tz`, or `everyMs`. */
export interface CheckedRule {
  readonly cron?: string;
  readonly tz?: string;
  readonly everyMs?: number;
  readonly afterEnd?: boolean;
  readonly immediately?: boolean;
  readonly startAt?: number;
  readonly endAt?: number;
  readonly limit?: number;
  readonly jitterMs: number;
  readonly overlap: Overlap;
  readonly missed: Missed;
  readonly maxMissed: number;
}

/** Minimum interval. Use a loop in the process for shorter ones. */
const MIN_EVERY_MS = 1_000;
const MAX_JITTER_MS = 86_400_000;
const MAX_LIMIT = 1_000_000_000;
const MAX_MISSED = 1_000;
/** Maximum length of an expression or a time zone. */
const MAX_TEXT = 500;

const readRule = shape({
  cron: field('cron', text),
  tz: field('tz', text),
  every: field('everyMs', duration(MIN_EVERY_MS)),
  afterEnd: field('afterEnd', boolean),
  immediately: field('immediately', boolean),
  startAt: field('startAt', rule(checkMoment)),
  endAt: field('endAt', rule(checkMoment)),
  limit: field('limit', integer(1, MAX_LIMIT)),
  jitter: field('jitterMs', duration(0, MAX_JITTER_MS)),
  overlap: field('overlap', oneOf('allow', 'skip', 'replace')),
  missed: field('missed', oneOf('skip', 'once', 'all')),
  maxMissed: field('maxMissed', integer(1, MAX_MISSED)),
});

/**
 * Checks the fields of a rule, and that they fit each other. `schedule/check.ts` checks that its expression ever fires.
 *
 * @param path how errors call the rule: `schedules.upsert().rule`.
 * @throws {InvalidOptionError} unless `report` collects the faults; then it may return undefined.
 */
export function readScheduleRule(given: unknown, path: string, report: Report): CheckedRule | undefined {
  const read = readRule(given, path, report);
  if (read === undefined) return undefined;
  const { jitterMs = 0, overlap = 'allow', missed = 'once', maxMissed = 100, ...timing } = read;
  const { cron, tz, everyMs, startAt, endAt } = timing;
  const wrong = (place: string, phrase: string, value: unknown) =>
    report(new InvalidOptionError(`${path}${place}`, phrase, value));
  const fields = given as Readonly<Record<string, unknown>>;
  if (fields.cron !== undefined && fields.every !== undefined)
    wrong('.every', 'left out if cron is given', fields.every);
  else if (fields.cron === undefined && fields.every === undefined)
    wrong('', 'an object with cron or every', given);
  if (tz !== undefined && everyMs !== undefined)
    wrong('.tz', 'left out if every is given: an interval has no time zone', tz);
  if (timing.immediately && startAt !== undefined)
    wrong('.immediately', 'left out if startAt is given', fields.immediately);
  if (timing.afterEnd)
    for (const name of ['cron', 'overlap', 'missed', 'maxMissed'])
      if (fields[name] !== undefined) wrong('.afterEnd', `left out if ${name} is given`, fields.afterEnd);
  if (startAt !== undefined && endAt !== undefined && endAt < startAt)
    wrong('.endAt', 'a moment at or after startAt', fields.endAt);
  if (fields.maxMissed !== undefined && missed !== 'all')
    wrong('.maxMissed', `left out unless missed is 'all'`, maxMissed);
  return { ...timing, ...(cron !== undefined && { tz: tz ?? 'UTC' }), jitterMs, overlap, missed, maxMissed };
}

function text(value: unknown, path: string, report: Report): string | undefined {
  if (typeof value === 'string' && value.length <= MAX_TEXT) return value;
  report(new InvalidOptionError(path, `a string of at most ${MAX_TEXT} characters`, value));
  return undefined;
}
