import { GodwitError, InvalidOptionError, PartialBulkError } from '../errors.js';
import { readable } from '../options/check.js';
import { MAX_ATOMIC_JOBS, MAX_CALL_BYTES, MAX_CALL_JOBS, type Enqueuer } from './enqueuer.js';
import type { MadeJob } from './job-maker.js';

/** Sends jobs in chunks, each all or none. A second job with an id of the same chunk is a duplicate of the first. */
export async function addInChunks<Result>(
  jobs: readonly MadeJob[],
  enqueuer: Enqueuer,
  toResult: (job: MadeJob, duplicate: boolean) => Result,
): Promise<Result[]> {
  const results: Result[] = [];
  for (let from = 0; from < jobs.length;) {
    const chunk = nextChunk(jobs, from);
    const seen = new Set<string>();
    const first = new Set<MadeJob>();
    for (const job of chunk) {
      if (!seen.has(job.id)) first.add(job);
      seen.add(job.id);
    }
    try {
      const there = await enqueuer.addAll(first.size === chunk.length ? chunk : [...first]);
      for (const job of chunk) results.push(toResult(job, !first.has(job) || there.has(job.id)));
    } catch (error) {
      if (results.length === 0) throw error;
      throw new PartialBulkError(results, jobs.length, error);
    }
    from += chunk.length;
  }
  return results;
}

/** @throws {InvalidOptionError} unless it is a list of objects. */
export function checkEntries<Entry>(entries: readonly Entry[]): readonly Entry[] {
  return readable(entries, 'addBulk()', () => {
    if (!Array.isArray(entries)) throw new InvalidOptionError('addBulk()', 'a list of jobs', entries);
    for (const [i, entry] of entries.entries()) {
      if (typeof entry !== 'object' || entry === null)
        throw new InvalidOptionError(entryPath(i), 'an object with name and data', entry);
    }
    return entries;
  });
}

/** Errors that do not say themselves which entry of the bulk they mean, such as those of ids and schemas, do so by this. */
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

/** The error, with the entry it means in its message. */
export function naming(index: number, error: unknown): unknown {
  const path = entryPath(index);
  if (error instanceof GodwitError && !error.message.startsWith(path))
    error.message = `${path}: ${error.message}`;
  return error;
}

function nextChunk(jobs: readonly MadeJob[], from: number): readonly MadeJob[] {
  const most = jobs.length <= MAX_ATOMIC_JOBS ? MAX_ATOMIC_JOBS : MAX_CALL_JOBS;
  let bytes = 0;
  let end = from;
  while (end < jobs.length && end - from < most) {
    bytes += jobs[end]!.body.length;
    if (end > from && bytes > MAX_CALL_BYTES) break;
    end += 1;
  }
  return from === 0 && end === jobs.length ? jobs : jobs.slice(from, end);
}
