import type { CheckedRule } from '../options/schedule-options.js';
import { lastBetween, nextAfter } from './times.js';

/** What becomes of a schedule whose time has come. */
export interface Plan {
  /** Occurrences that make a job now, earliest first. */
  readonly occurrences: readonly number[];
  /** Where it goes on; null: nowhere. In the past where more is to be made up than fits one plan. */
  readonly nextAt: number | null;
}

/** What is later than this is late, however long the interval. */
const LATE_MS = 60_000;

/**
 * Which of the occurrences from `seenAt` up to now make a job. The last of them is on time unless a minute or the next
 * occurrence has passed since; what is not on time has been missed.
 *
 * @param seenAt the next time as it is stored: an occurrence, whatever the zone's rules have become since.
 * @param room how many jobs one plan may make.
 */
export function planFiring(rule: CheckedRule, seenAt: number, now: number, room: number): Plan {
  const { missed, overlap } = rule;
  const second = nextAfter(rule, seenAt);
  const isOnly = second === null || second > now;
  const nextAt = isOnly ? second : nextAfter(rule, now);
  const last = isOnly ? seenAt : (lastBetween(rule, 1, second, now).at(-1) ?? seenAt);
  if (missed === 'skip') {
    const graceMs = Math.min(LATE_MS, (nextAt ?? Infinity) - last);
    return { occurrences: now - last <= graceMs ? [last] : [], nextAt };
  }
  // Where each replaces the one before, only the last would stay.
  if (isOnly || missed === 'once' || overlap === 'replace') return { occurrences: [last], nextAt };
  const all = lastBetween(rule, rule.maxMissed, second, now);
  if (all.length < rule.maxMissed) all.unshift(seenAt);
  return { occurrences: all.slice(0, room), nextAt: all[room] ?? nextAt };
}
