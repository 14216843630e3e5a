import {
  MOST_EXAMINED,
  type DataMatch,
  type JobsPlace,
  type PriorityRange,
  type StoredJob,
} from '../../contract/admin-verbs.js';
import type { QueueEngine } from '../../contract/engine.js';
import type { ProcessList } from '../../contract/process-verbs.js';
import { InvalidOptionError } from '../../errors.js';
import { parseDuration } from '../../job/duration.js';
import { fingerprintOf, NO_FAILURE } from '../../job/fingerprint.js';
import { checkJobName, scheduleOf } from '../../job/job-id.js';
import { decodeBody } from '../../job/job-record.js';
import { ENDED_STATES, type JobState } from '../../job/job-state.js';
import { DEAD_REASONS, type FailureRecord } from '../../job/outcome.js';
import { field, integer, oneOf, refuse, rule, shape } from '../../options/check.js';
import { checkGroup } from '../../options/limit-options.js';
import {
  checkPlace,
  checkText,
  checkWhere,
  encodeCursor,
  parseWhere,
  readCursor,
  readPriority,
  workersAt,
} from '../../producer/job-list.js';
import type { JobMatch } from '../../producer/bulk-acts.js';
import type { Redactor } from './redaction.js';

const FILTER = {
  state: field('state', oneOf('waiting', 'delayed', 'active', 'completed', 'dead', 'cancelled')),
  name: field('name', rule(checkJobName)),
  contains: field('contains', rule(checkText)),
  /** A field of the data and its value, as `tenant.id=7`. */
  where: field('where', rule(readWhere)),
  group: field('group', rule(checkGroup)),
  reason: field('reason', oneOf(...DEAD_REASONS)),
  /** A fingerprint of an error, from `fingerprintOf`. */
  error: field('error', rule(checkText)),
  /** A text in the last error. */
  errorText: field('errorText', rule(checkText)),
  priority: field('priority', rule(readPriority)),
  /** Host, `host:pid` or name of the worker of an active job. */
  worker: field('worker', rule(checkPlace)),
  olderThan: field('olderThanMs', rule(readAge)),
  newerThan: field('newerThanMs', rule(readAge)),
  cursor: field('after', rule(readCursor)),
} as const;

const readList = shape({
  ...FILTER,
  order: field('order', oneOf('asc', 'desc')),
  limit: field('limit', rule(wholeNumber('limit', 200))),
});
const readFilter = shape(FILTER);

interface JobSearch {
  readonly state: JobState;
  readonly name?: string;
  readonly contains?: string | undefined;
  readonly where?: DataMatch;
  readonly group?: string | undefined;
  readonly reason?: (typeof DEAD_REASONS)[number];
  readonly error?: string | undefined;
  readonly errorText?: string | undefined;
  readonly priority?: PriorityRange | undefined;
  readonly worker?: string | undefined;
  readonly olderThanMs?: number;
  readonly newerThanMs?: number;
  readonly after: JobsPlace | null;
  readonly limit: number;
  readonly backward: boolean;
}

/** @throws {InvalidOptionError | InvalidJobNameError} */
export function readSearch(query: Readonly<Record<string, string>>): JobSearch {
  const { state = 'waiting', order, limit = 50, after = null, ...match } = readList(query, 'query', refuse)!;
  const ended = (ENDED_STATES as readonly JobState[]).includes(state);
  return checked({
    ...match,
    state,
    after,
    limit,
    backward: order === undefined ? ended : order === 'desc',
  });
}

/** Selects the jobs of an act. @throws {InvalidOptionError | InvalidJobNameError} */
export function readChoice(filter: unknown, cursor: unknown, limit: number): JobSearch {
  const given = { ...(filter as object), ...(cursor !== undefined && cursor !== null && { cursor }) };
  const { state, after = null, ...match } = readFilter(given, 'filter', refuse)!;
  if (state === undefined) throw new InvalidOptionError('filter.state', 'a state', state);
  return checked({ ...match, state, after, limit, backward: false });
}

/** In code a number is milliseconds, but nobody means 5 ms with `olderThan=5`. So a text has a unit, except for 0. */
function readAge(value: unknown, path: string): number {
  const isBare =
    typeof value === 'string' && /^\s*[-+]?(\d+\.?\d*|\.\d+)\s*$/.test(value) && Number(value) !== 0;
  if (isBare) throw new InvalidOptionError(path, 'a duration with a unit, such as 10m or 2h', value);
  return parseDuration(value, path);
}

function readWhere(value: unknown, path: string): DataMatch {
  const match = typeof value === 'string' ? parseWhere(value) : null;
  if (match === null)
    throw new InvalidOptionError(path, 'a field, = and a value, such as tenant.id=7', value);
  return checkWhere(match, path);
}

function checked(search: JobSearch): JobSearch {
  const { state, reason, error, worker } = search;
  if (reason !== undefined && state !== 'dead')
    throw new InvalidOptionError('reason', "left out unless state is 'dead'", reason);
  if (error !== undefined && state !== 'dead')
    throw new InvalidOptionError('error', "left out unless state is 'dead'", error);
  if (worker !== undefined && state !== 'active')
    throw new InvalidOptionError('worker', "left out unless state is 'active'", worker);
  return search;
}

/** Reads a number from a query, which contains it as a string. */
export function wholeNumber(name: string, max: number) {
  const check = integer(1, max);
  return (value: unknown): number => {
    const number = typeof value === 'string' && /^\d{1,9}$/.test(value) ? Number(value) : value;
    return check(number, name, refuse)!;
  };
}

interface FoundJobs {
  readonly jobs: readonly StoredJob[];
  /** Null on the last page. */
  readonly cursor: string | null;
  /** How many jobs were read: at most about 10,000. */
  readonly examined: number;
}

/**
 * A page of the jobs that match. It ends early after 10,000 jobs; the cursor continues there. If texts are changed before they are
 * shown, `contains` and `error` search the changed texts: otherwise a search would reveal what is hidden.
 *
 * @param processes the processes, if the caller reads them anyway.
 */
export async function findJobs(
  engine: QueueEngine,
  queue: string,
  search: JobSearch,
  shown: Pick<Redactor, 'text' | 'hidesText'>,
  processes?: Promise<ProcessList>,
): Promise<FoundJobs> {
  const { error, errorText, contains, worker, after: start, limit, ...rest } = search;
  const own = { error, errorText, contains: shown.hidesText ? contains : undefined };
  const isOwn = Object.values(own).some((value) => value !== undefined);
  const match = matchOf(own, shown);
  const workers =
    worker === undefined ? undefined : workersAt(await (processes ?? engine.processes.list()), worker);
  const asked = { ...rest, workers, contains: (shown.hidesText ? undefined : contains) ?? match.contains };
  // A page must not be cut, because its cursor is after its last job.
  const step = isOwn ? Math.min(limit, 50) : limit;
  const jobs: StoredJob[] = [];
  let after = start;
  let examined = 0;
  do {
    const page = await engine.admin.jobs(queue, { ...asked, after, limit: step, brief: true });
    jobs.push(...(isOwn ? page.jobs.filter(match.isMatch) : page.jobs));
    after = page.next;
    examined += page.examined;
  } while (after !== null && examined < MOST_EXAMINED && jobs.length + step <= limit);
  return { jobs, cursor: encodeCursor(after), examined };
}

/** Conditions by which the store cannot filter, and those that a filter of `JobFilter` does not have. */
export interface MoreFilter {
  readonly error?: string | undefined;
  readonly errorText?: string | undefined;
  readonly group?: string | undefined;
  readonly contains?: string | undefined;
  /** As `readPriority` reads it. */
  readonly priority?: string | undefined;
  /** Names, with a space between two. */
  readonly workers?: string | undefined;
}

export function matchOf(
  { error, errorText, group, contains, priority, workers }: MoreFilter,
  { text: show, hidesText }: Pick<Redactor, 'text' | 'hidesText'>,
): JobMatch {
  const text = contains?.toLowerCase();
  const inError = errorText?.toLowerCase();
  return {
    isMatch: ({ id, failure, body }) =>
      (text === undefined || searchedText(id, body, failure, show).includes(text)) &&
      (inError === undefined || errorOf(failure, show).toLowerCase().includes(inError)) &&
      (error === undefined || fingerprintOf(failure, show) === error),
    group,
    contains: hidesText ? undefined : (pieceOf(error) ?? pieceOf(errorText)),
    priority: priority === undefined ? undefined : readPriority(priority, 'priority'),
    workers: workers?.split(' '),
  };
}

function errorOf(failure: FailureRecord | null, show: Redactor['text']): string {
  return failure ? show(`${failure.name}: ${failure.message}`) : '';
}

/**
 * A text that each error with this fingerprint contains: the store searches for it, so it sends few other jobs. The store searches the
 * record, in which `"`, `\` and characters that are not ASCII may be escaped, and the name and the message are separate fields.
 */
function pieceOf(fingerprint: string | undefined): string | undefined {
  if (fingerprint === undefined || fingerprint === NO_FAILURE) return undefined;
  const pieces = fingerprint.split(/[#"\\]|: |[^\x20-\x7e]/);
  const longest = pieces.reduce((a, b) => (b.length > a.length ? b : a));
  return longest.length >= 3 ? longest : undefined;
}

function searchedText(
  id: string,
  body: string,
  failure: FailureRecord | null,
  show: Redactor['text'],
): string {
  const { name = '' } = decodeBody(`${body}null`) ?? {};
  const error = failure ? [errorOf(failure, show), show(failure.stack ?? '')] : [];
  return [id, name, ...error].join('\n').toLowerCase();
}

/** When it ended, or when it was added. */
export function timeOf(job: StoredJob): number | null {
  const hasEnded = (ENDED_STATES as readonly JobState[]).includes(job.state);
  return hasEnded ? job.endedAt : (decodeBody(`${job.body}null`)?.createdAt ?? null);
}

const MAX_HISTORY = 10;
/** The search is for an id, which is never hidden. */
const AS_STORED = { text: (same: string) => same, hidesText: false };
const STATES = ['waiting', 'delayed', 'active', ...ENDED_STATES] as const;

interface JobsOfSchedule {
  /** The latest first, at most ten. */
  readonly jobs: readonly StoredJob[];
  /** Whether a search ended before it had looked at all jobs of a state. */
  readonly isPartial: boolean;
}

/** The jobs of a schedule that still exist. Their ids begin with its id and an @. */
export async function jobsOfSchedule(
  engine: QueueEngine,
  queue: string,
  id: string,
): Promise<JobsOfSchedule> {
  const contains = `${id}@`.slice(0, 200);
  const searches = STATES.map((state) =>
    readSearch({ state, contains, order: 'desc', limit: String(MAX_HISTORY) }),
  );
  const pages = await Promise.all(searches.map((search) => findJobs(engine, queue, search, AS_STORED)));
  const jobs = pages.flatMap((page) => page.jobs).filter((job) => scheduleOf(job.id) === id);
  return {
    jobs: jobs.toSorted((a, b) => (timeOf(b) ?? 0) - (timeOf(a) ?? 0)).slice(0, MAX_HISTORY),
    isPartial: pages.some(({ cursor, jobs: found }) => cursor !== null && found.length < MAX_HISTORY),
  };
}
