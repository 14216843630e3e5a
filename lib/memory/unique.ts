import type { Duplicate, EnqueueJob, KeyClaim } from '../contract/engine.js';
import { decodeBody, optionsLineOf, withLines } from '../job/job-record.js';
import { RULES } from '../job/rules.js';
import type { MemoryJob } from './memory-job.js';
import type { KeyRow, MemoryQueue } from './memory-queue.js';

/** The outcome of an add of a job with a key. If no field is set, the key is free. */
export interface Met {
  readonly duplicate?: Duplicate;
  /** The job that got the new data. */
  readonly updated?: MemoryJob;
  /** A waiting job went to the line. */
  readonly isWork?: boolean;
}

const NO_ROW: KeyRow = { holder: '', till: 0, since: 0, next: '' };

export function meetHolder(queue: MemoryQueue, job: EnqueueJob, claim: KeyClaim): Met {
  const { digest, on } = claim;
  const { now } = queue;
  const { row, holder, state, waits, isOver, isHeld, next } = standingOf(queue, claim);
  const duplicateOf = (id: string, of: MemoryJob | undefined): Duplicate => ({
    id: job.id,
    ...(of && { state: of.state }),
    holder: id,
  });
  const changed = (of: MemoryJob, body: string): Met => {
    const before = duplicateOf(of.id, of);
    of.body = body;
    return { duplicate: { ...before, replaced: true }, updated: of };
  };
  const { priority = 0 } = job;
  if (next && on === 'keepLast' && !isOver) {
    next.priority = priority;
    return changed(next, job.body);
  }
  if (on === 'again') {
    const rival = rivalOf(queue, job.id, digest);
    return rival ? { duplicate: duplicateOf(rival.id, rival) } : {};
  }
  let isWork = false;
  if (next && (isOver || !isHeld)) {
    if (isOver && on !== 'skip') next.priority = priority;
    handOn(queue, digest, next);
    isWork = true;
    if (isOver)
      return on === 'skip'
        ? { duplicate: duplicateOf(next.id, next), isWork }
        : { ...changed(next, job.body), isWork };
  }
  if (!isHeld) return { isWork };
  if (on === 'keepLast' && state === 'active') {
    queue.delay(queue.create(job.id, job.body)!, RULES.parkedAt, priority);
    queue.keys.set(digest, { ...row, next: job.id });
    return { duplicate: { id: job.id, parked: true } };
  }
  if (on === 'debounce') {
    let due = now + claim.delayMs;
    if (claim.longestMs > 0) due = Math.max(now, Math.min(due, row.since + claim.longestMs));
    queue.delayed.remove(holder!);
    queue.delay(holder!, due, priority);
    return changed(holder!, job.body);
  }
  if (on !== 'skip' && waits && holder!.name === job.name && optionsLineOf(holder!.body) !== null)
    return changed(holder!, withLines(holder!.body, undefined, dataOf(job.body)));
  return { duplicate: duplicateOf(row.holder, holder) };
}

/** Another job that has the key of this job and has not ended. While there is one, a job with `unique` does not run again. */
export function rivalOf(queue: MemoryQueue, id: string, digest: string): MemoryJob | undefined {
  const row = queue.keys.get(digest) ?? NO_ROW;
  const holder = row.holder === id ? undefined : withKey(queue, row.holder, digest, true);
  const isOver = holder?.place === 'dead' || holder?.place === 'completed';
  return nextOf(queue, digest, row) ?? (isOver ? undefined : holder);
}

/** The digest of the key of a job with `unique`. */
export function uniqueOf({ body }: MemoryJob): string | undefined {
  const { digest, isUnique } = decodeBody(body)?.options ?? {};
  return isUnique ? digest : undefined;
}

/** Whether a new job with this key does not go to the line. */
export function isKeptOut(queue: MemoryQueue, id: string, claim: KeyClaim): boolean {
  if (claim.on === 'again') return rivalOf(queue, id, claim.digest) !== undefined;
  const { isOver, isHeld, next } = standingOf(queue, claim);
  return next ? !isOver && (isHeld || claim.on === 'keepLast') : isHeld;
}

/** The job that holds a key, and whether the key counts. */
function standingOf(queue: MemoryQueue, { digest, on, states }: KeyClaim) {
  const row = queue.keys.get(digest) ?? NO_ROW;
  const holder = withKey(queue, row.holder, digest);
  const state = holder?.state;
  const waits = state === 'waiting' || state === 'delayed';
  let isHeld = row.till > queue.now || (state !== undefined && states.includes(state));
  if (on === 'debounce' && isHeld && holder && (holder.started || holder.failed > 0)) isHeld = false;
  const isOver = !waits && state !== 'active';
  return { row, holder, state, waits, isOver, isHeld, next: nextOf(queue, digest, row) };
}

/**
 * Called when the job was added: it holds its key now. A job that runs again keeps the row that it has already. Returns the digest and
 * the row before.
 */
export function takeKey(
  { keys, now }: MemoryQueue,
  id: string,
  { digest, on, forMs }: Pick<KeyClaim, 'digest' | 'on' | 'forMs'>,
): readonly [digest: string, row: KeyRow] {
  const before = keys.get(digest) ?? NO_ROW;
  if (on !== 'again' || before.holder !== id)
    keys.set(digest, { holder: id, till: forMs > 0 ? now + forMs : 0, since: now, next: '' });
  return [digest, before];
}

/** Passes on the key of a holder that has ended, or drops its row. Returns the number of changed keys: 0 or 1. */
export function freeKey(queue: MemoryQueue, digest: string): number {
  const row = queue.keys.get(digest);
  if (!row) return 0;
  const holder = withKey(queue, row.holder, digest, true);
  const next = nextOf(queue, digest, row);
  if (next && (!holder || holder.place === 'dead' || holder.place === 'completed')) {
    handOn(queue, digest, next);
    queue.ring();
    return 1;
  }
  if (holder || next || row.till > queue.now) return 0;
  queue.keys.delete(digest);
  return 1;
}

/** Frees the keys of jobs that ended outside of a worker. */
export function freeKeysOf(queue: MemoryQueue, jobs: readonly MemoryJob[]): void {
  for (const job of jobs) {
    const digest = uniqueOf(job);
    if (digest !== undefined) freeKey(queue, digest);
  }
}

/** Frees all keys. Jobs that wait for the end of another job and have no row move to the line. */
export function freeAllKeys(queue: MemoryQueue): number {
  let changed = 0;
  for (const digest of queue.keys.keys()) changed += freeKey(queue, digest);
  return changed;
}

function handOn(queue: MemoryQueue, digest: string, next: MemoryJob): void {
  queue.promote(next);
  queue.keys.set(digest, { holder: next.id, till: 0, since: queue.now, next: '' });
}

function nextOf(queue: MemoryQueue, digest: string, { next }: KeyRow): MemoryJob | undefined {
  const job = withKey(queue, next, digest);
  return job && isParked(job) ? job : undefined;
}

/** Whether a job waits for the end of the job that has its key. */
export function isParked({ place, score }: MemoryJob): boolean {
  return place === 'delayed' && score === RULES.parkedAt;
}

/** The job with this id, if its body names the key. */
export function withKey(
  queue: MemoryQueue,
  id: string,
  digest: string,
  isKept = false,
): MemoryJob | undefined {
  const job = isKept ? queue.jobs.get(id) : queue.find(id);
  return job && digestOf(job) === digest ? job : undefined;
}

function digestOf({ body }: MemoryJob): unknown {
  try {
    return (JSON.parse(optionsLineOf(body) || '{}') as { unique?: unknown }).unique;
  } catch {
    return undefined;
  }
}

function dataOf(body: string): string {
  return /^[^\n]+\n[^\n]+\n[^\n]*\n([^]*)$/.exec(body)?.[1] ?? '';
}
