import type { DeadMatch, Place } from '../contract/upkeep-verbs.js';

/** What the scripts take that walk through jobs, in the words of `shared/walk.lua` and `shared/dead.lua`. */
export const DEAD_WALK = {
  /** Behind which place: a score and an id, both empty at the beginning. */
  afterAt: 'text',
  afterId: 'text',
  /** Jobs to find at most, to look at at most, and bytes to read of them, all but the last of which fit. */
  limit: 'int',
  examine: 'int',
  bytes: 'int',
  name: 'text',
  /** The end of the record of a dead job. */
  reason: 'text',
  olderThan: 'int',
  /** -1: any age. */
  newerThan: 'int',
  /** The latest time of death, ms; 0: any. */
  until: 'int',
} as const;

/** Bounds of one call, so that it never holds Redis for long: moving a job costs several times what a look at it does. */
const EXAMINE = 200;
const MOVE = 100;
const BYTES = 1_048_576;

/** Behind nothing. */
export const BEGINNING: Place = { at: '', id: '' };

/** Where the jobs of a state are, in the order in which they are cleaned. */
export const LINES = {
  waiting: ['wait', 'suspects', 'prioritized', 'grouped'],
  delayed: ['delayed'],
  completed: ['completed'],
  cancelled: ['cancelled'],
  dead: ['dead'],
} as const;

export interface WalkStep {
  readonly after: Place | null;
  readonly limit: number;
  /** Redis' clock when the walk began; 0 at its beginning. */
  readonly until: number;
}

/** The arguments of one call. */
export function walkArgs(step: WalkStep, match: DeadMatch) {
  return {
    afterAt: step.after?.at ?? '',
    afterId: step.after?.id ?? '',
    limit: Math.min(step.limit, MOVE),
    examine: EXAMINE,
    bytes: BYTES,
    name: match.name ?? '',
    // Every record ends so: see `deadRecord`.
    reason: match.reason === undefined ? '' : `"reason":"${match.reason}"}`,
    olderThan: match.olderThanMs ?? 0,
    newerThan: match.newerThanMs ?? -1,
    until: step.until,
  };
}

/** What one call of such a script answered. */
export interface Walked {
  readonly now: number;
  readonly next: Place | null;
  readonly ids: readonly string[];
}

/**
 * Calls a script until `limit` jobs are found or it has come to the end. What dies again meanwhile, after it was given another
 * life by this very walk, is not met twice.
 */
export async function walkOn(limit: number, call: (step: WalkStep) => Promise<Walked>): Promise<string[]> {
  const ids: string[] = [];
  let step: WalkStep = { after: null, limit, until: 0 };
  for (;;) {
    const answer = await call(step);
    ids.push(...answer.ids);
    if (answer.next === null || ids.length >= limit) return ids;
    step = { after: answer.next, limit: limit - ids.length, until: step.until || answer.now };
  }
}
