import { randomBytes } from 'node:crypto';
import type { LogLine } from '../../job/job-log.js';
import type { AttemptRecord, FailureRecord, KeptResult } from '../../job/outcome.js';
import { parseOrNull } from '../../job/text.js';
import type { LastFull, StoredJob } from '../../contract/admin-verbs.js';
import type { ClaimedJob } from '../../contract/engine.js';
import type { Place } from '../../contract/upkeep-verbs.js';
import type { Walked } from '../walks.js';
import type { StoredSchedule } from '../../contract/schedule-verbs.js';

/** Helpers to read the replies of scripts. In replies times are in ms, and -1 means "none". */

export function ms(value: number): number | null {
  return value < 0 ? null : value;
}

/** A whole number from 0. Missing and unreadable numbers count as 0. */
export function count(text: string | null | undefined): number {
  const number = Number(text ?? 0);
  return Number.isSafeInteger(number) && number >= 0 ? number : 0;
}

/** Ids contain no line breaks, so a list of ids is sent as one string. */
export function lines(text: string): string[] {
  return text === '' ? [] : text.split('\n');
}

/**
 * Separates bodies that are sent as one string, because a client reads that faster than a list. Bodies contain no control
 * characters except line breaks. The random part protects against bodies that other programs wrote. It is short, so that it is
 * found fast.
 */
export const SEPARATOR = `\u0000${randomBytes(3).toString('base64url')}`;

/** Bodies as one string, or as a list if they are large. */
export function bodiesOf(bodies: string | string[]): string[] {
  return typeof bodies === 'string' ? bodies.split(SEPARATOR) : bodies;
}

/** Ids, bodies, failed attempts, stalls. The last two may be empty if no job has failed or stalled. */
type RawClaims = [string[], string[], (string | null)[], (string | null)[]];

const BAD = { unreadable: true } as const;

/**
 * The claimed jobs. None if the numbers of ids and bodies differ, because somebody wrote an id with a line break. The worker then
 * holds jobs that it does not know, and finds them (`adopt`).
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
    // These two cases are rare. All other jobs keep the same object shape.
    if (failed[i] && job.failed === 0) claimed.push({ ...job, started: true, ...(failed[i] !== '0' && BAD) });
    else claimed.push(stalls[i] && job.stalls === 0 && stalls[i] !== '0' ? { ...job, ...BAD } : job);
  }
  return claimed;
}

/** Body, state, at, worker, failed, stalls, failure, result, progress, logs, mark of a cancellation. */
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
  string,
];

interface StoredEnd extends Partial<KeptResult> {
  readonly attempt?: unknown;
  readonly us?: unknown;
  readonly stalls?: unknown;
  readonly cancelled?: unknown;
}

export function storedJob(raw: RawStoredJob): Omit<StoredJob, 'id'> {
  const [body, state, at, worker, failed, stalls, failure, result, progress, logs, mark] = raw;
  const [failedAt, failureText] = stamped(failure);
  const [completedAt, endText] = stamped(result);
  const end = parseOrNull(endText) as StoredEnd | null;
  const { log, ...last } = (parseOrNull(failureText) ?? {}) as FailureRecord & { readonly log?: unknown };
  return {
    body,
    state,
    worker: worker || null,
    failed: count(failed),
    stalls: count(stalls) || numberIn(end?.stalls) || 0,
    failure: typeof last.name === 'string' && typeof last.message === 'string' ? last : null,
    failedAt,
    failures: Array.isArray(log) ? log.filter(isAttempt).toReversed() : [],
    dueAt: state === 'delayed' ? Number(at) : null,
    endedAt: state === 'dead' ? Number(at) : completedAt,
    progress: progress || null,
    logs: lines(logs).map(logLine),
    result: end?.result ?? null,
    resultFault: end?.resultFault ?? (state === 'completed' && !end ? 'its record cannot be read' : null),
    cancelReason: typeof end?.cancelled === 'string' ? end.cancelled : mark.split('\n', 1)[0] || null,
    attempt: numberIn(end?.attempt),
    durationUs: numberIn(end?.us),
  };
}

/** Time of the store, the place after which to continue (score and id, empty at the end), ids. */
export type RawWalked = [number, string, string, string[]];

export function walked([now, at, id, ids]: RawWalked): Walked {
  return { now, next: placeOf(at, id), ids };
}

export function placeOf(at: string, id: string): Place | null {
  return id === '' ? null : { at, id };
}

/** A record, and the ms before it at which the store wrote it. */
export function stamped(text: string): [number | null, string | null] {
  const stop = text.indexOf('\n');
  const at = Number(text.slice(0, stop));
  return stop < 0 || Number.isNaN(at) ? [null, null] : [at, text.slice(stop + 1)];
}

/** `shared/full.lua` writes it. Null if another program has. */
export function fullIn(text: string): LastFull | null {
  const [, at, limit, what, group = null] =
    /^(\d+) (\d+) (g:(.+)|reject|wait|dropNew|dropOldest)$/s.exec(text) ?? [];
  if (at === undefined) return null;
  const onFull = group === null ? (what as LastFull['onFull']) : 'reject';
  return { at: Number(at), limit: Number(limit), onFull, group };
}

/** A line of a log. `shared/logs.lua` explains how it is stored. */
function logLine(line: string): LogLine {
  const stop = line.indexOf('\u001f');
  const [, attempt] = /^#(\d{1,9}) $/.exec(line.slice(0, Math.max(stop, 0))) ?? [];
  if (attempt === undefined) return { attempt: null, text: line };
  return { attempt: Number(attempt), text: line.slice(stop + 1) };
}

function isAttempt(one: unknown): one is AttemptRecord {
  const { at, attempt, name, message } = (one ?? {}) as Record<keyof AttemptRecord, unknown>;
  return [at, attempt].every(Number.isSafeInteger) && typeof name === 'string' && typeof message === 'string';
}

function numberIn(value: unknown): number | null {
  return typeof value === 'number' ? value : null;
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
