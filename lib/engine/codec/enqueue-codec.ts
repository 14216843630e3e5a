import { letterOf } from '../../job/job-id.js';
import type { EnqueueJob } from '../../contract/engine.js';
import { fold, writeGroup } from './event-codec.js';
import type { Value } from '../script.js';
import { END } from '../scripts/enqueue-plain.js';

/** Of a job, on average, up to which bodies travel as one text: a text takes Redis and its client less time than a list. */
const MAX_JOINED_CHARS = 2048;
/** From so many jobs, or characters of their bodies, on they go past Lua. */
const MUCH_JOBS = 250;
const MUCH_CHARS = 64 * 1024;

/**
 * The lists of one enqueue call: jobs by where they go, and the events they make.
 *
 * @param now for the event of a job with a due time, which tells how long that is.
 */
export function encodeJobs(
  jobs: readonly EnqueueJob[],
  withEvents: boolean,
  now: number,
): Record<'plain' | 'ranked' | 'later' | 'times' | 'priorities' | 'said', Value[]> {
  const lists = {
    plain: [] as Value[],
    ranked: [] as Value[],
    later: [] as Value[],
    times: [] as Value[],
    priorities: [] as Value[],
    said: [] as Value[],
  };
  for (const job of jobs) {
    if (isLater(job)) {
      lists.later.push(job.id, job.body);
      lists.times.push(job.dueAt ?? `+${job.delayMs ?? 0}`);
      if (job.priority) lists.priorities.push(job.id, job.priority);
    } else if (job.priority) {
      lists.ranked.push(job.id, job.body, job.priority);
    } else {
      lists.plain.push(job.id, job.body);
    }
  }
  if (withEvents) say(jobs, lists.said, now);
  return lists;
}

/** Id and body of one job, or those of several with `END` behind each; names a line each, or one that all have. */
export interface PlainJobs {
  readonly ids: string;
  readonly bodies: string;
  readonly names: string;
}

/**
 * Jobs without an order or a time of their own; null where one has. Null too where one of several may be there already: they
 * would be sent a second time, and what is added behind them would come before. Where their bodies are kept in more than one
 * hash; and where they are large: Redis would copy them once more to take them apart.
 */
export function encodePlain(jobs: readonly EnqueueJob[]): PlainJobs | null {
  if (jobs.length === 1) {
    const job = jobs[0]!;
    return isPlain(job) ? { ids: job.id, bodies: job.body, names: job.name } : null;
  }
  const ids: string[] = [];
  const bodies: string[] = [];
  const names: string[] = [];
  let chars = 0;
  for (const job of jobs) {
    if (!isMadeHere(job)) return null;
    ids.push(job.id);
    bodies.push(job.body);
    names.push(job.name);
    chars += job.body.length;
  }
  if (chars > MAX_JOINED_CHARS * jobs.length) return null;
  const joined = ids.join(END);
  if (!haveOneLetter(ids, joined)) return null;
  return { ids: joined + END, bodies: bodies.join(END) + END, names: fold(names) as string };
}

/** Whether what Lua would do with each body takes longer than a transaction without it, which has four more commands. */
export function isMuch(jobs: readonly EnqueueJob[]): boolean {
  if (jobs.length >= MUCH_JOBS) return true;
  let chars = 0;
  for (const { body } of jobs) chars += body.length;
  return chars >= MUCH_CHARS;
}

/** Whether it goes to the end of the line under an id that no job has. */
export function isMadeHere(job: EnqueueJob): boolean {
  return !job.hasOwnId && isPlain(job);
}

/**
 * Whether one hash keeps the bodies of all these jobs, whose ids were made here. They are looked at in one text, with a character
 * between two: an id is still in pieces, and V8 would put each together for itself.
 */
function haveOneLetter(ids: readonly string[], joined: string): boolean {
  const first = ids[0]!;
  const letter = letterOf(first);
  if (letter === '') return ids.every((id) => letterOf(id) === '');
  const step = first.length + 1;
  if (joined.length !== ids.length * step - 1) return false;
  const code = letter.charCodeAt(0);
  for (let at = first.length - 1; at < joined.length; at += step)
    if (joined.charCodeAt(at) !== code) return false;
  return true;
}

/** Ids, also a line each, the same each with its body, and names as of `PlainJobs`. */
export interface MuchJobs {
  readonly ids: readonly string[];
  readonly lines: string;
  readonly fields: readonly string[];
  readonly names: string;
}

/** Null where more than one hash keeps their bodies. */
export function encodeMuch(jobs: readonly EnqueueJob[]): MuchJobs | null {
  const ids: string[] = [];
  const fields: string[] = [];
  const names: string[] = [];
  for (const { id, body, name } of jobs) {
    ids.push(id);
    fields.push(id, body);
    names.push(name);
  }
  const lines = ids.join('\n');
  return haveOneLetter(ids, lines) ? { ids, lines, fields, names: fold(names) as string } : null;
}

/** Whether it has neither an order nor a time of its own. */
export function isPlain(job: EnqueueJob): boolean {
  return !job.priority && !isLater(job);
}

function isLater(job: EnqueueJob): boolean {
  return Boolean(job.delayMs) || job.dueAt !== undefined;
}

function say(jobs: readonly EnqueueJob[], fields: Value[], now: number): void {
  const added = { ids: [] as string[], names: [] as string[] };
  const delayed = { ids: [] as string[], names: [] as string[], delays: [] as number[] };
  for (const job of jobs) {
    const group = isLater(job) ? delayed : added;
    group.ids.push(job.id);
    group.names.push(job.name);
    if (group === delayed) delayed.delays.push(job.delayMs ?? Math.max(0, Math.ceil(job.dueAt! - now)));
  }
  writeGroup(fields, 'added', added.ids, [['name', added.names]]);
  writeGroup(fields, 'delayed', delayed.ids, [
    ['name', delayed.names],
    ['delay', delayed.delays],
  ]);
}
