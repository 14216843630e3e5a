import {
  MOST_EXAMINED,
  type DataMatch,
  type JobsAnswer,
  type JobsPlace,
  type PriorityRange,
  type StoredJob,
} from '../contract/admin-verbs.js';
import type { QueueEngine } from '../contract/engine.js';
import type { ProcessList } from '../contract/process-verbs.js';
import { InvalidOptionError } from '../errors.js';
import { decodeBody } from '../job/job-record.js';
import { checkJobName } from '../job/job-id.js';
import type { JobState } from '../job/job-state.js';
import { RULES } from '../job/rules.js';
import { faultOfText } from '../job/text.js';
import { checkGroup } from '../options/limit-options.js';
import { boolean, field, integer, oneOf, refuse, rule, shape, type Rule } from '../options/check.js';

/** Options of `queue.jobs`. */
export interface JobListOptions<Name extends string = string> {
  /** Lists jobs of this state, or of these, one state after the other. */
  readonly state: JobState | readonly JobState[];
  /** Only jobs of this name, or of these. @default any name */
  readonly name?: Name | readonly Name[];
  /** Only jobs with this text in the id, the name or the last error; case is ignored for A to Z. @default any job */
  readonly contains?: string;
  /**
   * Only jobs whose data has these values in these fields. A field of an object in the data is a path: `'customer.id'`.
   * @default any job
   */
  readonly where?: DataMatch;
  /**
   * Only jobs of this group. Of waiting jobs, those in the line of the group come first, and are found at once, however many others
   * wait.
   * @default any group
   */
  readonly group?: string;
  /** Only jobs with this priority: `5`, `'>5'`, `'>=5'`, `'<5'`, `'<=5'` or `'1-5'`. Jobs without one have 0. @default any job */
  readonly priority?: number | string;
  /**
   * Only running jobs of this worker: a host, `host:pid` of a process, or the name of a worker. Only with the state `'active'`.
   * @default any job
   */
  readonly worker?: string;
  /** Jobs per page, 1 to 1,000. @default 100 */
  readonly limit?: number;
  /** The cursor of the page before. @default from the start */
  readonly cursor?: string;
  /**
   * Skips this many jobs, for pages by number; not allowed with a cursor or a filter. Jobs that move meanwhile may be missed.
   * @default 0
   */
  readonly offset?: number;
  /**
   * `'asc'`: waiting jobs as they will run; delayed ones by when they are due; completed ones by when their retention ends; dead ones
   * by when they died; active ones by worker and id. `'desc'`: the opposite order.
   *
   * @default 'asc'
   */
  readonly order?: 'asc' | 'desc';
  /** Whether to read data, progress, log, earlier failures and large results too. @default true */
  readonly data?: boolean;
}

/** A page of jobs. */
export interface JobPage<Entry> {
  /** At most `limit` jobs. One call examines up to 10,000 jobs, so a page may have fewer than `limit` although more pages follow. */
  readonly jobs: readonly Entry[];
  /** Cursor of the next page; null on the last. */
  readonly cursor: string | null;
  /** How many jobs this call looked at. */
  readonly examined: number;
}

const STATE = oneOf('waiting', 'delayed', 'active', 'completed', 'dead', 'cancelled');
const WAITING = "a job that can start is 'waiting', also with a priority or in a paused queue";
/** States of BullMQ and the word of the dashboard, each with the one to use instead. */
const OTHER_STATES: Readonly<Record<string, string>> = {
  running: "a running job is 'active'",
  failed: "a failed job is 'delayed' until its next attempt, and 'dead' after the last one",
  paused: WAITING,
  prioritized: WAITING,
  wait: WAITING,
  'waiting-children': 'there are no flows',
};

/** A state of jobs. The error for a state of BullMQ names the one to use instead. */
export const readState: typeof STATE = (value, path, report) =>
  STATE(value, path, (fault) => {
    const advice = typeof value === 'string' && Object.hasOwn(OTHER_STATES, value) && OTHER_STATES[value];
    const { rule: expected } = fault as InvalidOptionError;
    report(advice ? new InvalidOptionError(path, expected, value, `${fault.message}; ${advice}`) : fault);
  });

/** A state, or several different ones. */
const readStates: Rule<readonly JobState[]> = (value, path, report) => {
  if (!Array.isArray(value)) return [readState(value, path, report)!];
  if (value.length === 0 || new Set(value).size < value.length)
    report(new InvalidOptionError(path, 'a state, or a list of different states', value));
  return value.map((state, i) => readState(state, `${path}[${i}]`, report)!);
};

const MOST_NAMES = 100;

/** The name of a job, or several. */
export const readNames = rule((value, path): readonly string[] => {
  if (!Array.isArray(value)) return [checkJobName(value)];
  if (value.length > 0 && value.length <= MOST_NAMES) return value.map(checkJobName);
  throw new InvalidOptionError(path, `a name, or a list of 1 to ${MOST_NAMES} names`, value);
});

const readOptions = shape({
  state: field('states', readStates),
  name: field('name', readNames),
  contains: field('contains', rule(checkText)),
  where: field('where', rule(checkWhere)),
  group: field('group', rule(checkGroup)),
  priority: field('priority', rule(readPriority)),
  worker: field('worker', rule(checkPlace)),
  limit: field('limit', integer(1, 1000)),
  cursor: field('after', rule(readListCursor)),
  offset: field('offset', integer(0, Number.MAX_SAFE_INTEGER)),
  order: field('order', oneOf('asc', 'desc')),
  data: field('data', boolean),
});

export function checkJobList(options: JobListOptions) {
  const { order, data = true, limit = 100, after = null, ...match } = readOptions(options, 'jobs()', refuse)!;
  const { offset } = match;
  const isFiltered = Object.keys(match).some((key) => key !== 'states' && key !== 'offset');
  if (offset !== undefined && (after !== null || isFiltered))
    refuse(new InvalidOptionError('jobs().offset', 'left out with a cursor or a filter', offset));
  const states = match.states ?? readStates(undefined, 'jobs().state', refuse)!;
  if (match.worker !== undefined && states.some((state) => state !== 'active'))
    refuse(new InvalidOptionError('jobs().worker', "left out unless state is 'active'", match.worker));
  if (after?.state !== undefined && !states.includes(after.state))
    refuse(
      new InvalidOptionError(
        'jobs().cursor',
        'the cursor of a previous page of these states',
        options.cursor,
      ),
    );
  return { ...match, states, limit, after, backward: order === 'desc', brief: !data };
}

/** Lists jobs of several states, one state after the other. */
export async function listJobs(
  engine: QueueEngine,
  queue: string,
  { states, limit, after, offset = 0, worker, ...call }: ReturnType<typeof checkJobList>,
): Promise<Omit<JobPage<StoredJob>, 'cursor'> & { readonly next: ListPlace | null }> {
  const counts = states.length > 1 ? await engine.admin.counts(queue) : null;
  const workers = worker === undefined ? undefined : workersAt(await engine.processes.list(), worker);
  const jobs: StoredJob[] = [];
  let examined = 0;
  let skip = offset;
  let next: ListPlace | null = after;
  for (let i = next?.state === undefined ? 0 : states.indexOf(next.state); i < states.length; i++) {
    const state = states[i]!;
    const isPassed = counts !== null && skip > 0 && skip >= counts[state];
    if (isPassed) skip -= counts[state];
    if (isPassed) continue;
    const from: JobsPlace | null = next?.line ? next : null;
    const page = await engine.admin.jobs(queue, {
      ...call,
      workers,
      state,
      limit: limit - jobs.length,
      after: from,
      offset: skip,
    });
    skip = 0;
    jobs.push(...page.jobs);
    examined += page.examined;
    next = page.next && (counts ? { ...page.next, state } : page.next);
    if (next) break;
    const rest = states.slice(i + 1).find((one) => counts![one] > 0);
    if (rest === undefined) break;
    if (jobs.length >= limit || examined >= MOST_EXAMINED)
      return { jobs, examined, next: { line: '', at: '', id: '', state: rest } };
  }
  return { jobs, examined, next };
}

/** The end of a page. With several states: the state, and an empty line if its first page comes next. */
interface ListPlace extends JobsPlace {
  readonly state?: JobState;
}

export function encodeCursor(place: ListPlace | null): string | null {
  if (!place) return null;
  const { line, at, id, state } = place;
  return Buffer.from(JSON.stringify(state ? [line, at, id, state] : [line, at, id])).toString('base64url');
}

/** The cursor of a list of one state. */
export function readCursor(value: unknown, path: string): JobsPlace {
  const place = readListCursor(value, path);
  if (place.state === undefined) return place;
  throw new InvalidOptionError(path, 'the cursor of a previous page', value);
}

function readListCursor(value: unknown, path: string): ListPlace {
  const [line, at, id, state, ...more] = decode(value);
  const isPlace = isText(line) && isText(at) && isText(id) && more.length === 0;
  if (
    !isPlace ||
    (faultOfText(line) !== undefined && (line !== '' || state === undefined)) ||
    !/^(\d{1,16}(\.\d{1,16})?)?$/u.test(at) ||
    // These are Redis lists, so a place is an index.
    ((line === 'wait' || line === 'suspects') && id !== '' && !/^\d+$/.test(at)) ||
    id.length > 2_000
  )
    throw new InvalidOptionError(path, 'the cursor of a previous page', value);
  // `checkJobList` checks the state.
  return state === undefined ? { line, at, id } : { line, at, id, state: state as JobState };
}

function decode(value: unknown): unknown[] {
  try {
    const read: unknown = JSON.parse(Buffer.from(value as string, 'base64url').toString());
    return Array.isArray(read) ? read : [];
  } catch {
    return [];
  }
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

export function checkText(value: unknown, path: string): string {
  if (isText(value) && value !== '' && value.length <= 200 && !value.includes('\n')) return value;
  throw new InvalidOptionError(path, 'a string of 1 to 200 characters without line breaks', value);
}

/** Reads a number, `5`, `>5`, `>=5`, `<5`, `<=5` or `1-5`. */
export function readPriority(value: unknown, path: string): PriorityRange {
  const text = typeof value === 'number' ? String(value) : value;
  const [, sign = '', one, from, to] =
    (isText(text) && /^(?:([<>]=?)?(\d{1,7})|(\d{1,7})-(\d{1,7}))$/.exec(text)) || [];
  const range = one === undefined ? { from: Number(from), to: Number(to) } : rangeOf(sign, Number(one));
  if (range.from <= range.to && range.to <= RULES.priorityMax) return range;
  throw new InvalidOptionError(
    path,
    `a priority from 0 to ${RULES.priorityMax}, such as 5, >5, <=5 or 1-5`,
    value,
  );
}

function rangeOf(sign: string, priority: number): PriorityRange {
  switch (sign[0]) {
    case '>':
      return { from: sign === '>' ? priority + 1 : priority, to: RULES.priorityMax };
    case '<':
      return { from: 0, to: sign === '<' ? priority - 1 : priority };
    default:
      return { from: priority, to: priority };
  }
}

/** A text that `readPriority` reads as this range. */
export function priorityText({ from, to }: PriorityRange): string {
  if (from === to) return String(from);
  if (to === RULES.priorityMax) return `>=${from}`;
  return from === 0 ? `<=${to}` : `${from}-${to}`;
}

export function checkPlace(value: unknown, path: string): string {
  if (isText(value) && /^\S{1,200}$/.test(value)) return value;
  throw new InvalidOptionError(path, 'a host, host:pid or the name of a worker', value);
}

/**
 * The workers of this place: of a host, of a process (`host:pid`), or the one of this name, whose process may be gone. Silent processes
 * still hold their jobs.
 */
export function workersAt({ records, silent }: ProcessList, place: string): string[] {
  const there = [...records, ...silent.map(({ record }) => record)].filter(
    ({ host, pid }) => place === host || place === `${host}:${pid}`,
  );
  return [place, ...there.flatMap(({ pools }) => pools.flatMap(({ workers }) => workers))];
}

const MOST_FIELDS = 16;
const MOST_CHARS = 1_000;

/** An empty match, or a value that got lost, would match all jobs. */
export function checkWhere(value: unknown, path: string): DataMatch {
  const fields = typeof value === 'object' && value !== null ? Object.entries(value) : [];
  if (Array.isArray(value) || fields.length === 0 || fields.length > MOST_FIELDS)
    throw new InvalidOptionError(path, `an object with 1 to ${MOST_FIELDS} fields of the data`, value);
  for (const [name, wanted] of fields) {
    if (faultOfText(name, MOST_CHARS) !== undefined)
      throw new InvalidOptionError(path, `fields with names of 1 to ${MOST_CHARS} bytes`, name);
    if (!isScalar(wanted))
      throw new InvalidOptionError(
        `${path}.${name}`,
        `well-formed text of up to ${MOST_CHARS} characters, a number, a boolean or null`,
        wanted,
      );
  }
  return { ...(value as DataMatch) };
}

/**
 * Reads `tenant.id=7`. A value that is JSON (a number, a boolean, null or a string) is parsed; any other value is a string. Null
 * without a field and `=`.
 */
export function parseWhere(text: string): DataMatch | null {
  const [, path, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  return path === undefined || value === undefined ? null : { [path]: scalarOf(value) };
}

function scalarOf(text: string): DataMatch[string] {
  try {
    const read: unknown = JSON.parse(text);
    return typeof read === 'object' && read !== null ? text : (read as DataMatch[string]);
  } catch {
    return text;
  }
}

function isScalar(value: unknown): boolean {
  if (isText(value)) return value.length <= MOST_CHARS && !/\p{Cs}/u.test(value);
  return value === null || typeof value === 'boolean' || Number.isFinite(value);
}

/** Options of `queue.counts`. */
export interface CountOptions {
  /** Counts jobs by their name or by their priority. */
  readonly by: 'name' | 'priority';
  /** Counts jobs of this state. @default 'waiting' */
  readonly state?: JobState;
}

/** How many jobs of one state there are of each name or priority. */
export interface GroupedCounts {
  /** Number of jobs by name (`''` for jobs that cannot be decoded) or by priority (`'0'` for jobs without one). */
  readonly counts: Readonly<Record<string, number>>;
  /** How many jobs the call looked at, in the order in which `queue.jobs` lists them. */
  readonly examined: number;
  /** True if the call looked at all jobs of the state. */
  readonly isComplete: boolean;
}

const BY = oneOf('name', 'priority');
const readCounts = shape({ by: field('by', BY), state: field('state', readState) });

/** @throws {InvalidOptionError} */
export async function countBy(engine: QueueEngine, queue: string, options: unknown): Promise<GroupedCounts> {
  const { by = BY(undefined, 'counts().by', refuse)!, state = 'waiting' } = readCounts(
    options,
    'counts()',
    refuse,
  )!;
  const counts = new Map<string, number>();
  let after: JobsPlace | null = null;
  let examined = 0;
  do {
    const page: JobsAnswer = await engine.admin.jobs(queue, { state, after, limit: 1_000, brief: true });
    for (const job of page.jobs) {
      const body = decodeBody(job.body);
      const group = by === 'name' ? (body?.name ?? '') : String(body?.options.priority ?? 0);
      counts.set(group, (counts.get(group) ?? 0) + 1);
    }
    examined += page.examined;
    after = page.next;
  } while (after !== null && examined < MOST_EXAMINED);
  return { counts: Object.fromEntries(counts), examined, isComplete: after === null };
}
