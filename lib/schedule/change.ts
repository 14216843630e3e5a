import type { CheckedRule } from '../options/schedule-options.js';
import { isSameTiming, readRecord, type Schedule } from './record.js';
import { nextAfter } from './times.js';

/** What is known of a schedule that is there already. */
export interface KnownSchedule {
  readonly record: string;
  readonly mode: 'running' | 'paused' | 'ended';
  readonly nextAt: number | null;
  readonly fired: number;
}

/** When a schedule goes on once it says this: `keep` where its times stay as they are. */
export function nextOf(made: Schedule, there: KnownSchedule | null, now: number): number | null | 'keep' {
  const before = there && readRecord(there.record);
  const isKept = before !== null && isSameTiming(before.rule, made.rule);
  // One that runs and has no next time was changed by hand.
  if (isKept && (there!.mode !== 'running' || there!.nextAt !== null)) return 'keep';
  return remaining(made.rule, there?.fired ?? 0) === 0 ? null : nextAfter(made.rule, now);
}

/** How many jobs it may still make. */
export function remaining({ limit = Infinity }: CheckedRule, fired: number): number {
  return Math.max(0, limit - fired);
}
