import type { DeadMatch, Place } from '../contract/upkeep-verbs.js';
import { inSteps } from '../contract/retry.js';

/** Arguments of scripts that walk through jobs, as used by `shared/walk.lua` and `shared/dead.lua`. */
export const DEAD_WALK = {
  /** The place after which the walk continues: a score and an id. Both are empty at the beginning. */
  afterAt: 'text',
  afterId: 'text',
  /** The most jobs to find, the most to look at, and about how many bytes to read of them. The last job may exceed the bytes. */
  limit: 'int',
  examine: 'int',
  bytes: 'int',
  /** Names, one per line. Empty: any name. */
  name: 'text',
  /** The end of the record of a dead job, which contains the reason. */
  reason: 'text',
  olderThan: 'int',
  /** -1: any age. */
  newerThan: 'int',
  /** The latest time of death, ms; 0: any. */
  until: 'int',
} as const;

/** Limits of one call, so that it does not block Redis for long. Moving a job costs several times as much as looking at it. */
const EXAMINE = 200;
export const MOVE = 100;
export const BYTES = 1_048_576;

/** The place before the first job. */
export const BEGINNING: Place = { at: '', id: '' };

/** Where the jobs of a state are, in the order in which they are cleaned. */
export const LINES = {
  waiting: ['wait', 'suspects', 'prioritized', 'grouped'],
  delayed: ['delayed'],
  completed: ['completed'],
  cancelled: ['cancelled'],
  dead: ['dead'],
} as const;

interface WalkStep {
  readonly after: Place | null;
  readonly limit: number;
  /** The time of the first call by Redis' clock. 0 in the first call. */
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
    // Names have no line breaks.
    name: [match.name ?? []].flat().join('\n'),
    // Every record of a dead job ends with its reason: see `deadRecord`.
    reason: match.reason === undefined ? '' : `"reason":"${match.reason}"}`,
    olderThan: match.olderThanMs ?? 0,
    newerThan: match.newerThanMs ?? -1,
    until: step.until,
  };
}

/** The answer of one call of such a script. */
export interface Walked {
  readonly now: number;
  readonly next: Place | null;
  readonly ids: readonly string[];
}

/**
 * Calls a script until `limit` jobs are found or the end is reached. A job that this walk retried, and that died again meanwhile,
 * is not visited twice. No further call is made once the signal has aborted.
 */
export async function walkOn(
  limit: number,
  signal: AbortSignal | undefined,
  call: (step: WalkStep) => Promise<Walked>,
): Promise<string[]> {
  const ids: string[] = [];
  let step: WalkStep = { after: null, limit, until: 0 };
  return inSteps(async (changed) => {
    for (;;) {
      const answer = await call(step);
      ids.push(...answer.ids);
      changed(ids.length);
      if (answer.next === null || ids.length >= limit || signal?.aborted === true) return ids;
      step = { after: answer.next, limit: limit - ids.length, until: step.until || answer.now };
    }
  });
}
