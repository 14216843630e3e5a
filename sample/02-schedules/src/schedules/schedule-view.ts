import type { ScheduleSnapshot } from 'godwit';

/** A schedule as the page shows it. */
export interface ScheduleView {
  readonly id: string;
  /** `every 5s`, or the cron expression. */
  readonly rule: string;
  /** Of the wall clock that counts; null for intervals. */
  readonly zone: string | null;
  /** Its other options, as text. */
  readonly more: readonly string[];
  /** ISO 8601; null while it is paused, and when it has ended. */
  readonly next: string | null;
  readonly paused: boolean;
  /** How many jobs it has made. */
  readonly fired: number;
}

export function toView({ id, rule, nextAt, paused, fired }: ScheduleSnapshot): ScheduleView {
  const next = nextAt?.toISOString() ?? null;
  // Written by a newer version of the library.
  if (rule === null) return { id, rule: 'unknown', zone: null, more: [], next, paused, fired };
  const zone = 'cron' in rule ? (rule.tz ?? 'UTC') : null;
  const more = [
    zone,
    rule.overlap === 'skip' && 'never two at once',
    rule.overlap === 'replace' && 'the next one replaces the last',
    rule.jitter !== undefined && `up to ${rule.jitter} later`,
  ];
  return {
    id,
    rule: 'cron' in rule ? rule.cron : `every ${rule.every}`,
    zone,
    more: more.filter((words) => typeof words === 'string'),
    next,
    paused,
    fired,
  };
}

/** Which schedule made a job: the id of each begins with it. Null for jobs that were added otherwise. */
export function scheduleOf(jobId: string): string | null {
  const at = jobId.lastIndexOf('@');
  return at === -1 ? null : jobId.slice(0, at);
}
