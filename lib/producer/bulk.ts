import { GodwitError, InvalidOptionError, PartialBulkError } from '../errors.js';
import { isLater } from '../contract/engine.js';
import { unknownField } from '../job/fields.js';
import { optionsLineOf, withLines } from '../job/job-record.js';
import type { JobState } from '../job/job-state.js';
import { readable } from '../options/check.js';
import { addResult, type AddResult, type Other } from './add-result.js';
import {
  MAX_ATOMIC_BYTES,
  MAX_ATOMIC_JOBS,
  MAX_BULK_BYTES,
  MAX_CALL_JOBS,
  type Enqueuer,
} from './enqueuer.js';
import type { MadeJob } from './job-maker.js';

/**
 * Sends jobs in chunks; each chunk is stored as a whole or not at all. If two jobs of a chunk have one id, the second is a
 * duplicate.
 */
export async function addInChunks(
  queue: string,
  jobs: readonly MadeJob[],
  enqueuer: Enqueuer,
): Promise<AddResult[]> {
  const results: AddResult[] = [];
  refuseExclusive(jobs);
  const isAtomic = jobs.length <= MAX_ATOMIC_JOBS && sizeOf(jobs) <= MAX_ATOMIC_BYTES;
  for (let from = 0; from < jobs.length;) {
    const chunk = isAtomic ? jobs : nextChunk(jobs, from);
    const repeated = repetitions(chunk);
    const { sent, folded } = foldKeys(
      repeated.size === 0 ? chunk : chunk.filter((job) => !repeated.has(job)),
    );
    try {
      const there = await enqueuer.addAll(sent);
      for (const job of chunk) {
        const first = folded.get(job);
        const other = first ? asFirst(first, job, there.get(first.id)) : there.get(job.id);
        results.push(addResult(queue, job, other ?? repeated.get(job)));
      }
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

/** Adds the index of the entry to errors that do not name it, such as errors of ids and schemas. */
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

/** A bulk is stored as a whole, so it cannot be refused because of one job. */
function refuseExclusive(jobs: readonly MadeJob[]): void {
  const at = jobs.findIndex((job) => job.isExclusive);
  if (at < 0) return;
  throw new InvalidOptionError(
    `${entryPath(at)}.options.unique.onDuplicate`,
    "'skip', 'replace' or 'keepLast' in a bulk, whose results have `duplicate`",
    'error',
  );
}

/**
 * Sends one job for each unique key, with the id of the first job that has the key. Its data is that of the last such job with
 * the same name; with `onDuplicate: 'skip'` it keeps its own.
 */
function foldKeys(jobs: readonly MadeJob[]): {
  readonly sent: readonly MadeJob[];
  /** The jobs that are not sent, each with the first job of its key. */
  readonly folded: ReadonlyMap<MadeJob, MadeJob>;
} {
  const folded = new Map<MadeJob, MadeJob>();
  if (!jobs.some((job) => job.unique)) return { sent: jobs, folded };
  const firsts = new Map<string, MadeJob>();
  const sent = new Map<MadeJob | string, MadeJob>();
  for (const job of jobs) {
    const digest = job.unique?.on === 'aggregate' ? undefined : job.unique?.digest;
    const first = digest === undefined ? undefined : firsts.get(digest);
    if (first) folded.set(job, first);
    else if (digest !== undefined) firsts.set(digest, job);
    const before = first && sent.get(digest!)!;
    if (!before) sent.set(digest ?? job, job);
    else if (replaces(job, first)) sent.set(digest!, folding(before, job));
  }
  return { sent: [...sent.values()], folded };
}

/** With `replace`, the first job keeps its place, its group and its other options, as in two calls. */
function folding(before: MadeJob, job: MadeJob): MadeJob {
  if (job.unique!.on !== 'replace') return { ...job, id: before.id };
  return {
    ...before,
    unique: job.unique!,
    body: withLines(job.body, optionsLineOf(before.body)!, undefined),
  };
}

function replaces({ name, unique }: MadeJob, first: MadeJob): boolean {
  return unique!.on !== 'skip' && name === first.name;
}

/**
 * The result of a job that was not sent: the first job of its key has its data, or it was skipped. The store tells which jobs it did
 * not add, and which wait for the end of a running one.
 */
function asFirst(first: MadeJob, job: MadeJob, other: Other | undefined): Other {
  if (other?.dropped) return other;
  const isNew = !other || other.parked === true;
  const isReplaced = replaces(job, first) && (isNew || other.replaced === true);
  const state = isNew ? (other || isLater(first) ? 'delayed' : 'waiting') : other.state;
  return {
    ...(state !== undefined && { state }),
    holder: other?.holder ?? first.id,
    ...(isReplaced && { replaced: true }),
  };
}

/** Jobs that repeat the id of an earlier job, each with the state that the earlier one is added in. */
function repetitions(jobs: readonly MadeJob[]): ReadonlyMap<MadeJob, { readonly state: JobState }> {
  const repeated = new Map<MadeJob, { readonly state: JobState }>();
  if (!jobs.some((job) => job.hasOwnId)) return repeated;
  const seen = new Map<string, JobState>();
  for (const job of jobs) {
    const first = seen.get(job.id);
    if (first) repeated.set(job, { state: first });
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
