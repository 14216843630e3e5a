import { randomBytes } from 'node:crypto';
import type { FailureRecord, KeptResult } from '../../job/outcome.js';
import type { StoredJob } from '../../contract/admin-verbs.js';
import type { ClaimedJob } from '../../contract/engine.js';
import type { Place } from '../../contract/upkeep-verbs.js';
import type { Walked } from '../walks.js';
import type { StoredSchedule } from '../../contract/schedule-verbs.js';

/** How the answers of scripts are read; every script says times as ms, and -1 for "none". */

export function ms(value: number): number | null {
  return value < 0 ? null : value;
}

/** A whole number from 0 on; 0 where there is none, or somebody wrote over it. */
export function count(text: string | null | undefined): number {
  const number = Number(text ?? 0);
  return Number.isSafeInteger(number) && number >= 0 ? number : 0;
}

/** Ids hold no line breaks, so a list of them is one string. */
export function lines(text: string): string[] {
  return text === '' ? [] : text.split('\n');
}

/**
 * Stands between bodies that come in one string, which a client reads faster than a list of them. Bodies hold no control
 * character but line breaks; should anybody write others into the store, still no one knows this one. Short, so that it is found fast.
 */
export const SEPARATOR = `\u0000${randomBytes(3).toString('base64url')}`;

/** Bodies in one string, or each by itself where they are large. */
export function bodiesOf(bodies: string | string[]): string[] {
  return typeof bodies === 'string' ? bodies.split(SEPARATOR) : bodies;
}

/** Ids, bodies, failed attempts, stalls; the last two may be empty where nothing has failed or stalled. */
type RawClaims = [string[], string[], (string | null)[], (string | null)[]];

const BAD = { unreadable: true } as const;

/**
 * The claimed jobs; none of them where ids and bodies do not pair, since somebody wrote an id with a line break into a line. The
 * worker then finds that it holds more than it knows, and compares (`adopt`).
 */
export function claims([ids, bodies, failed, stalls]: RawClaims): ClaimedJob[] {
  if (ids.length === 0 || ids.length !== bodies.length) return [];
  const claimed: ClaimedJob[] = [];
  for (let i = 0; i < ids.length; i++) {
    const job = {
      id: ids[i]!,
      body: bodies[i]!,
      failed: count(failed[i]),
      stalls: count(stalls[i]),
    };
    // Both are rare, and all others keep one shape.
    if (failed[i] && job.failed === 0) claimed.push({ ...job, started: true, ...(failed[i] !== '0' && BAD) });
    else claimed.push(stalls[i] && job.stalls === 0 && stalls[i] !== '0' ? { ...job, ...BAD } : job);
  }
  return claimed;
}

/** Body, state, at, worker, failed, stalls, failure, result, progress, logs. */
export type RawStoredJob = [
  string,
  StoredJob['state'],
  string,
  string,
  string,
  string,
  string,
  string,
  string,
  string,
];

interface StoredEnd extends Partial<KeptResult> {
  readonly attempt?: unknown;
  readonly us?: unknown;
  readonly stalls?: unknown;
  readonly cancelled?: unknown;
}

export function storedJob(raw: RawStoredJob): Omit<StoredJob, 'id'> {
  const [body, state, at, worker, failed, stalls, failure, result, progress, logs] = raw;
  const [failedAt, failureText] = stamped(failure);
  const [completedAt, endText] = stamped(result);
  const end = parse(endText) as StoredEnd | null;
  return {
    body,
    state,
    worker: worker || null,
    failed: count(failed),
    stalls: count(stalls) || numberIn(end?.stalls) || 0,
    failure: failureIn(failureText),
    failedAt,
    dueAt: state === 'delayed' ? Number(at) : null,
    endedAt: state === 'dead' ? Number(at) : completedAt,
    progress: progress || null,
    logs: lines(logs),
    result: end?.result ?? null,
    resultFault: end?.resultFault ?? (state === 'completed' && !end ? 'its record cannot be read' : null),
    cancelReason: typeof end?.cancelled === 'string' ? end.cancelled : null,
    attempt: numberIn(end?.attempt),
    durationUs: numberIn(end?.us),
  };
}

/** The clock, the place to go on behind (score and id, empty at the end), ids. */
export type RawWalked = [number, string, string, string[]];

export function walked([now, at, id, ids]: RawWalked): Walked {
  return { now, next: placeOf(at, id), ids };
}

export function placeOf(at: string, id: string): Place | null {
  return id === '' ? null : { at, id };
}

/** A record behind the ms at which the store wrote it. */
export function stamped(text: string): [number | null, string | null] {
  const stop = text.indexOf('\n');
  const at = Number(text.slice(0, stop));
  return stop < 0 || Number.isNaN(at) ? [null, null] : [at, text.slice(stop + 1)];
}

function failureIn(text: string | null): FailureRecord | null {
  const failure = parse(text) as FailureRecord | null;
  return typeof failure?.name === 'string' && typeof failure.message === 'string' ? failure : null;
}

function numberIn(value: unknown): number | null {
  return typeof value === 'number' ? value : null;
}

/** Null where it is no JSON text. */
function parse(text: string | null): unknown {
  try {
    return text === null ? null : JSON.parse(text);
  } catch {
    return null;
  }
}

/** Id, record, revision, mode, next, fired, last, job, created, whether there is a record, recent times. */
export type RawSchedule = [
  string,
  string,
  number,
  string,
  string,
  number,
  number,
  string,
  string,
  number,
  string,
];

export function readSchedule(raw: RawSchedule): StoredSchedule {
  const [id, record, revision, mode, next, fired, last, job, created, , recent] = raw;
  return {
    id,
    record,
    revision,
    mode: mode === '' ? 'running' : (mode as StoredSchedule['mode']),
    nextAt: ms(Number(next)),
    fired,
    lastAt: ms(last),
    lastJob: job || null,
    createdAt: Math.max(0, Number(created)),
    recent: recent === '' ? [] : recent.split(',').map(Number),
  };
}
