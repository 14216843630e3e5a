import type { CheckedRule } from '../options/schedule-options.js';
import { isSameTiming, readRecord, type Schedule } from './record.js';
import { nextAfter } from './times.js';

/** The stored state of an existing schedule. */
export interface KnownSchedule {
  readonly record: string;
  readonly mode: 'running' | 'paused' | 'ended';
  readonly nextAt: number | null;
  readonly fired: number;
}

/** The next time of a schedule after this change; `keep` if its times do not change. */
export function nextOf(made: Schedule, there: KnownSchedule | null, now: number): number | null | 'keep' {
  const before = there && readRecord(there.record);
  const isKept = before !== null && isSameTiming(before.rule, made.rule);
  // A running schedule without a next time was changed by hand.
  if (isKept && (there!.mode !== 'running' || there!.nextAt !== null)) return 'keep';
  return remaining(made.rule, there?.fired ?? 0) === 0 ? null : nextAfter(made.rule, now);
}

/** How many more jobs the schedule may make. */
export function remaining({ limit = Infinity }: CheckedRule, fired: number): number {
  return Math.max(0, limit - fired);
}
