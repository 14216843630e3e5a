import type { QueueEngine } from '../contract/engine.js';
import type { LimitState } from '../contract/limit-verbs.js';
import { counted, listed, quoted } from '../job/text.js';

/** Groups that are read, for each queue. */
const MOST_GROUPS = 100;
/** Groups that a text names. */
const MOST_NAMED = 3;

/** Groups in strict order that dead jobs stop, until a person acts. */
export interface StoppedGroups {
  /** Those in which most jobs wait come first. */
  readonly groups: readonly LimitState[];
  /** Whether there are more. */
  readonly isMore: boolean;
}

export async function stoppedGroups(
  engine: Pick<QueueEngine, 'limits'>,
  queue: string,
): Promise<StoppedGroups> {
  const { groups, next } = await engine.limits.stoppedGroups(queue, '0', MOST_GROUPS);
  return { groups: groups.toSorted((a, b) => b.waiting - a.waiting), isMore: next !== null };
}

/** Such as `group "a" is stopped by its dead job a-1, and 3 jobs wait in it`. The list must not be empty. */
export function stoppedText({ groups, isMore }: StoppedGroups): string {
  const waiting = counted(
    groups.reduce((sum, one) => sum + one.waiting, 0),
    'job waits',
    'jobs wait',
  );
  const names = groups.map(({ field }) => quoted(field.slice('g:'.length)));
  if (names.length === 1)
    return `group ${names[0]!} is stopped by its dead job ${groups[0]!.holder}, and ${waiting} in it`;
  const others = names.length - MOST_NAMED;
  const named = listed([
    ...names.slice(0, others > 0 ? MOST_NAMED : undefined),
    ...(others > 0 ? [counted(others, 'other')] : []),
  ]);
  const least = isMore ? 'at least ' : '';
  return `${least}${names.length} groups are stopped by their dead jobs, and ${least}${waiting} in them: ${named}`;
}
