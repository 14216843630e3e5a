import { Cron } from 'croner';

/*
 * Cron expressions on the wall clock of a time zone, by croner. Daylight saving (tested for Europe/Berlin, America/New_York and
 * Australia/Lord_Howe):
 *
 * - Fixed times (no `*` or step in seconds, minutes and hours, such as `30 2 * * *`): a time in the skipped hour runs once, right
 *   after the gap; several such times run once together. A time in the repeated hour runs once, at its first occurrence.
 * - Recurring times (`*` or a step in one of these fields, such as every half hour) follow real time: times in the skipped hour
 *   do not run, times in the repeated hour run twice, an hour apart.
 */

const NICKNAMES = /^@(yearly|annually|monthly|weekly|daily|midnight|hourly)$/i;

/** A mistake in an expression or its time zone. */
interface CronFault {
  readonly field: 'cron' | 'tz';
  /** A phrase that follows "must be". */
  readonly rule: string;
}

/** Parsing an expression is slow, so parsed ones are kept; an application uses few. */
const MEMO_SIZE = 1_000;
const memo = new Map<string, Cron>();
const faults = new Map<string, CronFault | undefined>();

/** The mistake in the expression or the zone. Undefined if both are valid. */
export function faultOfCron(cron: string, tz: string): CronFault | undefined {
  const key = keyOf(cron, tz);
  if (!faults.has(key)) remember(faults, key, findFault(cron, tz));
  return faults.get(key);
}

function findFault(cron: string, tz: string): CronFault | undefined {
  if (!isZone(tz)) return { field: 'tz', rule: "an IANA time zone such as 'Europe/Berlin'" };
  const fields = cron.trim().split(/\s+/).length;
  if (fields !== 5 && fields !== 6 && !NICKNAMES.test(cron.trim())) {
    return {
      field: 'cron',
      rule: `a cron expression of 5 fields, or of 6 with seconds first (not of ${fields})`,
    };
  }
  const outside = findOutside(cron);
  if (outside !== undefined)
    return { field: 'cron', rule: `a cron expression that can be read (${outside})` };
  try {
    if (nextCron(cron, tz, 0) !== null) return undefined;
    return { field: 'cron', rule: 'an expression that matches some date; this one never does' };
  } catch (error) {
    const why = (error as Error).message.replace(/^Cron\w+: /, '');
    return { field: 'cron', rule: `a cron expression that can be read (${why})` };
  }
}

/** The fields, starting with the last one: names and limits. */
const FIELDS = [
  ['day of week', 0, 7],
  ['month', 1, 12],
  ['day of month', 1, 31],
  ['hour', 0, 23],
  ['minute', 0, 59],
  ['second', 0, 59],
] as const;

/**
 * A number that is outside the range of its field. croner counts days and months from 0, so its error would name another number.
 */
function findOutside(cron: string): string | undefined {
  const fields = cron.trim().split(/\s+/).toReversed();
  if (fields.length < 5) return undefined;
  for (const [i, text] of fields.entries()) {
    const [name, min, max] = FIELDS[i]!;
    // Steps and the nth weekday of a month have their own limits.
    const wrong = text
      .match(/(?<![/#\d])\d+/g)
      ?.find((number) => Number(number) < min || Number(number) > max);
    if (wrong !== undefined) return `${name} ${wrong} is not from ${min} to ${max}`;
  }
  return undefined;
}

/** The search ends with the year 9999. */
const LAST_MS = Date.UTC(9999, 11, 31);

/** The first occurrence after a time, in ms since 1970. Null if there is none. */
export function nextCron(cron: string, tz: string, after: number): number | null {
  if (after >= LAST_MS) return null;
  return read(cron, tz).nextRun(new Date(after))?.getTime() ?? null;
}

/** The last `count` occurrences up to and including a time, earliest first. */
export function lastCrons(cron: string, tz: string, count: number, upTo: number): number[] {
  return read(cron, tz)
    .previousRuns(count, new Date(Math.min(upTo, LAST_MS) + 1))
    .map((date) => date.getTime())
    .toReversed();
}

function read(cron: string, tz: string): Cron {
  const key = keyOf(cron, tz);
  const known = memo.get(key);
  if (known !== undefined) return known;
  // Without a callback, croner starts no timer.
  const made = new Cron(withRanges(cron), {
    timezone: tz,
    mode: '5-or-6-parts',
    fixedTimeRule: 'no-wildcard',
  });
  remember(memo, key, made);
  return made;
}

/** `5/15`, as Quartz writes it, is `5-59/15`. */
function withRanges(cron: string): string {
  const fields = cron.trim().split(/\s+/);
  return fields
    .map((text, i) => {
      const [name, , max] = FIELDS[fields.length - 1 - i] ?? ['', 0, 0];
      // Day 7 is Sunday again.
      return text.replaceAll(/(?<=^|,)(\d+)\/(?=\d)/g, `$1-${name === 'day of week' ? 6 : max}/`);
    })
    .join(' ');
}

function keyOf(cron: string, tz: string): string {
  return `${tz}\n${cron}`;
}

function remember<T>(known: Map<string, T>, key: string, value: T): void {
  if (known.size >= MEMO_SIZE) known.clear();
  known.set(key, value);
}

/** Offsets such as +02:00 are refused: they are not time zones, and not every Node knows them. */
function isZone(tz: string): boolean {
  if (/^[+-]/.test(tz)) return false;
  try {
    return Boolean(new Intl.DateTimeFormat('en', { timeZone: tz }));
  } catch {
    return false;
  }
}
