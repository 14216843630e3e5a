import { Cron } from 'croner';

/*
 * Cron expressions on the wall clock of a zone, by croner. Where the clock changes (tried for Europe/Berlin, America/New_York
 * and Australia/Lord_Howe, and held by tests):
 *
 * - Fixed times (no `*` or step in seconds, minutes and hours, as `30 2 * * *` or `0,30 2 * * *`): one that falls into the
 *   hour that is left out occurs once, at the first moment after it; two that fall there are one. In the hour that comes twice
 *   each occurs once, the first time.
 * - Times that go on (`*` or a step in one of them, such as every half hour) follow the real time: those in the hour left
 *   out do not occur, those in the hour that comes twice occur twice, an hour apart.
 */

const NICKNAMES = /^@(yearly|annually|monthly|weekly|daily|midnight|hourly)$/i;

/** What is wrong with an expression or its zone. */
export interface CronFault {
  readonly field: 'cron' | 'tz';
  /** As a phrase that follows "must be". */
  readonly rule: string;
}

/** Reading an expression or a zone takes longer than asking it; those in use are few. */
const MEMO_SIZE = 1_000;
const memo = new Map<string, Cron>();
const faults = new Map<string, CronFault | undefined>();

/** Why this is no expression that can be used in this zone; undefined where it is one. */
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
  try {
    if (nextCron(cron, tz, 0) !== null) return undefined;
    return { field: 'cron', rule: 'an expression that fires some day, and there is no such date' };
  } catch (error) {
    const why = (error as Error).message.replace(/^Cron\w+: /, '');
    return { field: 'cron', rule: `a cron expression that can be read (${why})` };
  }
}

/** The calendar that is searched ends with the year 9999. */
const LAST_MS = Date.UTC(9999, 11, 31);

/** The first occurrence after a moment, ms since 1970; null where there is none. */
export function nextCron(cron: string, tz: string, after: number): number | null {
  if (after >= LAST_MS) return null;
  return read(cron, tz).nextRun(new Date(after))?.getTime() ?? null;
}

/** The last `count` occurrences up to and with a moment, earliest first. */
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
  // Without a function nothing is started.
  const made = new Cron(cron, { timezone: tz, mode: '5-or-6-parts', fixedTimeRule: 'no-wildcard' });
  remember(memo, key, made);
  return made;
}

function keyOf(cron: string, tz: string): string {
  return `${tz}\n${cron}`;
}

function remember<T>(known: Map<string, T>, key: string, value: T): void {
  if (known.size >= MEMO_SIZE) known.clear();
  known.set(key, value);
}

/** Offsets such as +02:00 are not known to every Node, and no zone. */
function isZone(tz: string): boolean {
  if (/^[+-]/.test(tz)) return false;
  try {
    return Boolean(new Intl.DateTimeFormat('en', { timeZone: tz }));
  } catch {
    return false;
  }
}
