import type { DeadMatch, Place } from '../contract/upkeep-verbs.js';
import { byBytes } from './by-bytes.js';
import type { MemoryJob } from './memory-job.js';
import type { MemoryQueue } from './memory-queue.js';

/** Dead jobs between two ages, from behind a place on, the one that died first first. */
export function deadBetween(
  { dead, now }: MemoryQueue,
  { olderThanMs = 0, newerThanMs = -1 }: DeadMatch,
  after: Place | null,
): readonly MemoryJob[] {
  const first = newerThanMs >= 0 ? now - newerThanMs : -Infinity;
  const last = olderThanMs > 0 ? now - olderThanMs : Infinity;
  return dead
    .sorted()
    .filter((job) => job.score >= first && job.score <= last && (after === null || isBehind(job, after)));
}

/** Whether a dead job is of the name and reason that are asked for. */
export function isAsked(job: MemoryJob, { name, reason }: DeadMatch): boolean {
  // As a text: the record may have been written by hand, and be anything.
  if (reason !== undefined && !job.failure?.json.endsWith(`"reason":"${reason}"}`)) return false;
  return !name || job.name === name;
}

function isBehind({ score, id }: MemoryJob, { at, id: afterId }: Place): boolean {
  if (afterId === '') return true;
  const place = Number(at);
  return score > place || (score === place && byBytes(id, afterId) > 0);
}
