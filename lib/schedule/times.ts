import { MAX_TIME_MS } from '../options/job-options.js';
import type { CheckedRule } from '../options/schedule-options.js';
import { lastCrons, nextCron } from './cron.js';

/** The first occurrence after a time, in ms since 1970; null if none is left. */
export function nextAfter(rule: CheckedRule, after: number): number | null {
  const { startAt, endAt = MAX_TIME_MS } = rule;
  const from = startAt === undefined ? after : Math.max(after, startAt - 1);
  const next = rule.everyMs === undefined ? nextCron(rule.cron!, rule.tz!, from) : nextStep(rule, from);
  return next === null || next > endAt ? null : next;
}

/** The last `count` occurrences between two times, both included, earliest first. */
export function lastBetween(rule: CheckedRule, count: number, from: number, upTo: number): number[] {
  const first = Math.max(from, rule.startAt ?? from);
  const last = Math.min(upTo, rule.endAt ?? upTo);
  const found =
    rule.everyMs === undefined
      ? lastCrons(rule.cron!, rule.tz!, count, last)
      : lastSteps(rule, count, first, last);
  return found.filter((at) => at >= first && at <= last);
}

/** The next `count` occurrences after a time. */
export function nextTimes(rule: CheckedRule, count: number, after: number): number[] {
  const times: number[] = [];
  let next = nextAfter(rule, after);
  while (next !== null && times.length < count) {
    times.push(next);
    next = nextAfter(rule, next);
  }
  return times;
}

/** Intervals count from 1970 or from `startAt`, so that all processes compute the same times. */
function nextStep({ everyMs = 1, startAt = 0 }: CheckedRule, after: number): number {
  return startAt + (Math.floor((after - startAt) / everyMs) + 1) * everyMs;
}

function lastSteps(rule: CheckedRule, count: number, first: number, last: number): number[] {
  const { everyMs = 1 } = rule;
  const times: number[] = [];
  let at = nextStep(rule, last) - everyMs;
  while (at >= first && times.length < count) {
    times.push(at);
    at -= everyMs;
  }
  return times.toReversed();
}
