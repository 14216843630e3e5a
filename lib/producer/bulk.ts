import { GodwitError, InvalidOptionError, PartialBulkError } from '../errors.js';
import { isLater } from '../contract/engine.js';
import { unknownField } from '../job/fields.js';
import type { JobState } from '../job/job-state.js';
import { readable } from '../options/check.js';
import { addResult, type AddResult } from './add-result.js';
import {
  MAX_ATOMIC_BYTES,
  MAX_ATOMIC_JOBS,
  MAX_BULK_BYTES,
  MAX_CALL_JOBS,
  type Enqueuer,
} from './enqueuer.js';
import type { MadeJob } from './job-maker.js';

/** Sends jobs in chunks, each all or none. A second job with an id of the same chunk is a duplicate of the first. */
export async function addInChunks(
  queue: string,
  jobs: readonly MadeJob[],
  enqueuer: Enqueuer,
): Promise<AddResult[]> {
  const results: AddResult[] = [];
  const isAtomic = jobs.length <= MAX_ATOMIC_JOBS && sizeOf(jobs) <= MAX_ATOMIC_BYTES;
  for (let from = 0; from < jobs.length;) {
    const chunk = isAtomic ? jobs : nextChunk(jobs, from);
    const repeated = repetitions(chunk);
    try {
      const there = await enqueuer.addAll(
        repeated.size === 0 ? chunk : chunk.filter((job) => !repeated.has(job)),
      );
      for (const job of chunk) results.push(addResult(queue, job, there.get(job.id) ?? repeated.get(job)));
    } catch (error) {
      if (results.length === 0) throw error;
      throw new PartialBulkError(results, jobs.length, error);
    }
    from += chunk.length;
  }
  return results;
}

/** @throws {InvalidOptionError} unless it is a list of objects with these fields and no others. */
export function checkEntries<Entry>(entries: readonly Entry[], known: readonly string[]): readonly Entry[] {
  return readable(entries, 'addBulk()', () => {
    if (!Array.isArray(entries)) throw new InvalidOptionError('addBulk()', 'a list of jobs', entries);
    for (let i = 0; i < entries.length; i++) {
      const entry: unknown = entries[i];
      if (typeof entry !== 'object' || entry === null)
        throw new InvalidOptionError(
          entryPath(i),
          `an object with ${known.slice(0, -1).join(' and ')}`,
          entry,
        );
      for (const field in entry) if (!known.includes(field)) throw unknownField(entryPath(i), field, known);
    }
    return entries;
  });
}

/** Adds the entry of the bulk to errors that do not name it, such as those of ids and schemas. */
export async function namingEntry<T>(index: number, check: () => Promise<T>): Promise<T> {
  try {
    return await check();
  } catch (error) {
    throw naming(index, error);
  }
}

export function entryPath(index: number): string {
  return `addBulk()[${index}]`;
}

/** The error, with its entry in the message. */
export function naming(index: number, error: unknown): unknown {
  const path = entryPath(index);
  if (error instanceof GodwitError && !error.message.startsWith(path))
    error.message = `${path}: ${error.message}`;
  return error;
}

/** Jobs with the id of an earlier one, and the state in which that one is added. */
function repetitions(jobs: readonly MadeJob[]): ReadonlyMap<MadeJob, JobState> {
  const repeated = new Map<MadeJob, JobState>();
  if (!jobs.some((job) => job.hasOwnId)) return repeated;
  const seen = new Map<string, JobState>();
  for (const job of jobs) {
    const first = seen.get(job.id);
    if (first) repeated.set(job, first);
    else seen.set(job.id, isLater(job) ? 'delayed' : 'waiting');
  }
  return repeated;
}

function nextChunk(jobs: readonly MadeJob[], from: number): readonly MadeJob[] {
  let bytes = 0;
  let end = from;
  while (end < jobs.length && end - from < MAX_CALL_JOBS) {
    bytes += jobs[end]!.body.length;
    if (end > from && bytes > MAX_BULK_BYTES) break;
    end += 1;
  }
  return jobs.slice(from, end);
}

function sizeOf(jobs: readonly MadeJob[]): number {
  let bytes = 0;
  for (const { body } of jobs) bytes += body.length;
  return bytes;
}
