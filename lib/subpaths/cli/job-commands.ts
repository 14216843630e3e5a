import { MOST_EXAMINED, type DataMatch } from '../../contract/admin-verbs.js';
import { RedisUnavailableError } from '../../errors.js';
import { silentWorkers, waitReasons } from '../../inspect/serving.js';
import { fingerprintOf } from '../../job/fingerprint.js';
import type { JobState } from '../../job/job-state.js';
import type { BulkPace, CancelFilter, JobFilter } from '../../producer/bulk-acts.js';
import type { DeadListOptions } from '../../producer/dead-jobs.js';
import { parseWhere, type JobListOptions, type JobPage } from '../../producer/job-list.js';
import type { Queue } from '../../producer/queue.js';
import type { Inspector } from '../inspector.js';
import { ageOf, duration, given, numberOf, rateOf, type Command, type Context } from './context.js';
import { DONE, FAILED, NOT_THERE, STOPPED } from './failure.js';
import { add, dataOf, NEW_DATA, update } from './data-commands.js';
import { UsageError } from './usage-error.js';
import {
  attemptRows,
  deadJobsOf,
  detailOf,
  fieldRows,
  jobOf,
  jobsOf,
  type ShownDeadJob,
  type ShownJob,
} from './job-view.js';
import { cut, right, type Cell } from './table.js';
import { counted } from '../../job/text.js';

const FILTER = {
  name: { type: 'string', about: 'only jobs with this name' },
  contains: { type: 'string', about: 'only jobs with this text in id, name or last error' },
  where: { type: 'string', about: 'only jobs with this value in a field of the data, e.g. tenant.id=7' },
  limit: { type: 'string', about: 'the most jobs to take' },
} as const;
const GROUP = { type: 'string', about: 'only jobs of this group' } as const;
const AGES = {
  'older-than': duration('only jobs that died longer ago than this, e.g. 2h'),
  'newer-than': duration('only jobs that died within this time, e.g. 2h'),
} as const;
const RATE = {
  rate: { type: 'string', about: 'the most jobs to change in a time, e.g. 50/s, 100/5m' },
} as const;
const CLEAN_STATES = ['waiting', 'delayed', 'completed', 'dead', 'cancelled'] as const;
type CleanState = (typeof CLEAN_STATES)[number];
/** How many dead jobs are read before an act on all that match. */
const MOST = 10_000;
/** A list of dead jobs reads fewer, because more would take too long. */
const MOST_LISTED = 5_000;
const MORE = 'there may be more: see --limit';

const jobs: Command = {
  name: 'jobs',
  usage: '<queue> [state]',
  about: 'lists the jobs of one state, in their order',
  words: [1, 2],
  options: {
    state: {
      type: 'string',
      about: 'waiting, active, delayed, completed, dead, cancelled (default: waiting; active with --worker)',
    },
    ...FILTER,
    group: GROUP,
    priority: { type: 'string', about: 'only jobs with this priority: 5, ">5", "<=5" or 1-5' },
    worker: {
      type: 'string',
      about: 'only running jobs of this host, process (<host>:<pid>) or worker',
    },
    cursor: { type: 'string', about: 'the cursor that the page before printed' },
    newest: { type: 'boolean', about: 'newest first' },
  },
  async run(context) {
    const { inspector, words, values, print } = context;
    const [queue, word] = words;
    await inspector.queues([queue!]);
    if (word !== undefined && values['state'] !== undefined)
      throw new UsageError('give the state once: as a word or as --state', '');
    const otherwise = values['worker'] === undefined ? 'waiting' : 'active';
    const state = (word ?? values['state'] ?? otherwise) as JobState;
    const match = { ...given(context, 'name', 'contains', 'group', 'priority', 'worker'), ...where(context) };
    const asked = {
      state,
      data: print.isJson,
      ...match,
      ...(values['newest'] === true && { order: 'desc' as const }),
    };
    const page = await searched(context, queue!, asked, numberOf(context, 'limit', 50));
    const rows = page.jobs.map((job): Cell[] => [
      job.id,
      job.name,
      job.attempts === null ? job.attempt : `${job.attempt}/${job.attempts}`,
      job.createdAt ? ageOf(job.createdAt, inspector) : '-',
      detailOf(job),
    ]);
    const columns = [cut('ID'), cut('NAME'), right('ATTEMPT'), right('AGE'), cut('DETAIL')];
    const isAll = page.cursor === null || Object.keys(match).length === 0;
    const none = isAll ? `no ${state} jobs` : `no match among ${page.examined} ${state} jobs so far`;
    print.rows(page, columns, rows, isAll && Object.keys(match).length > 0 ? `${none} match` : none);
    if (page.cursor === null) return DONE;
    if (values['group'] !== undefined) print.line(`looked at ${counted(page.examined, `${state} job`)}`);
    print.line(`more: --cursor ${page.cursor}`);
    return DONE;
  },
};

/**
 * A page of jobs. One call looks at about 10,000 jobs, so it takes further ones to find a few among many. Ctrl-C ends it early. The jobs
 * of a group mostly come first, so a search for them ends after one call.
 */
async function searched(
  { inspector, signal, values, print }: Context,
  queue: string,
  asked: JobListOptions,
  limit: number,
): Promise<JobPage<ShownJob>> {
  let cursor = values['cursor'] as string | undefined;
  let examined = 0;
  const found: ShownJob[] = [];
  try {
    while (true) {
      const call = { ...asked, limit: limit - found.length, ...(cursor !== undefined && { cursor }) };
      // oxlint-disable-next-line no-await-in-loop -- page after page
      const page = await jobsOf(inspector, queue, call);
      found.push(...page.jobs);
      examined += page.examined;
      cursor = page.cursor ?? undefined;
      const isEnough = found.length >= limit || (asked.group !== undefined && examined >= MOST_EXAMINED);
      if (cursor === undefined || isEnough || signal.aborted) break;
      print.progress(`looked at ${counted(examined, 'job')}, ${found.length.toLocaleString('en')} match`);
    }
  } finally {
    print.progress('');
  }
  return { jobs: found, cursor: cursor ?? null, examined };
}

function where({ values }: Context): { where?: DataMatch } {
  const given = values['where'];
  if (given === undefined) return {};
  const match = parseWhere(String(given));
  if (match === null)
    throw new UsageError(
      `--where must be a field, = and a value, such as tenant.id=7, got ${JSON.stringify(given)}`,
      '',
    );
  return { where: match };
}

const job: Command = {
  name: 'job',
  usage: '<queue> <id>',
  about: 'shows one job',
  words: [2, 2],
  async run({ inspector, words, print }) {
    const found = await jobOf(inspector, words[0]!, words[1]!);
    if (found === null) {
      await inspector.queues([words[0]!]);
      print.done(`queue ${words[0]} has no job ${words[1]}`, { found: null });
      return NOT_THERE;
    }
    const rows = [...fieldRows(found), ...attemptRows(found), ...(await reasonRows(inspector, found))];
    print.rows(found, [{ title: 'FIELD' }, { title: 'VALUE' }], rows, '');
    return DONE;
  },
};

async function reasonRows(inspector: Inspector, found: ShownJob): Promise<Cell[][]> {
  try {
    const workers = await inspector.workers({ queue: found.queue });
    const isFresh = found.attempt === 0 && found.delay === 0;
    const reasons = await waitReasons(inspector.queue(found.queue), { ...found, isFresh }, workers);
    const rows = reasons.map((text): Cell[] => ['waits because', text]);
    const { engine } = inspector.producer;
    if (found.worker !== null && (await silentWorkers(engine, found.queue)).includes(found.worker))
      rows.push(['lost', 'its worker has gone silent; another one takes the job back']);
    return rows;
  } catch (error) {
    // On Redis Cluster the records of processes and the shared limits may be on a node that is down.
    if (!(error instanceof RedisUnavailableError)) throw error;
    return [['workers', `cannot be read: ${error.message}`]];
  }
}

const BY_FILTER = {
  ...FILTER,
  group: GROUP,
  'older-than': duration('only jobs that were added longer ago than this, e.g. 2h'),
  'newer-than': duration('only jobs that were added within this time, e.g. 2h'),
  all: { type: 'boolean', about: 'take all jobs, without ids or a filter' },
  ...RATE,
} as const;

/** Before the state of a job that has ended. */
const ALREADY = 'already ';

interface ByIdOptions extends Pick<Command, 'options'> {
  readonly asks?: boolean;
  /** Acts on all jobs that match a filter, if no id is given. */
  readonly all?: {
    readonly done: string;
    readonly act: (queue: Queue, filter: CancelFilter, pace: BulkPace, context: Context) => Promise<number>;
  };
}

/** A command that acts on jobs by their ids. */
function byId(
  name: string,
  about: string,
  act: (queue: Queue, id: string, context: Context) => Promise<string>,
  { options, asks, all }: ByIdOptions = {},
): Command {
  return {
    name,
    usage: all ? '<queue> [<id…>]' : '<queue> <id…>',
    about,
    words: [all ? 1 : 2, 1_001],
    ...((options ?? all) && { options: { ...(all && BY_FILTER), ...options } }),
    async run(context) {
      const { inspector, words, print } = context;
      const [queue, ...ids] = words as [string, ...string[]];
      if (all && ids.length === 0) return byFilter(context, name, all);
      if (all && filterOf(context).length > 0)
        throw new UsageError(`${name}: give ids or a filter, not both`, '');
      const question = `${name} ${counted(ids.length, 'job')} of queue ${queue}?`;
      if (asks && !(await print.confirm(question))) return FAILED;
      const results = [];
      for (const id of ids) {
        // oxlint-disable-next-line no-await-in-loop -- in order, so that an error shows how far the command got
        const result = await act(inspector.queue(queue), id, context);
        results.push({ id, result });
        print.line(`${id} ${result}`);
      }
      if (print.isJson) print.json(results);
      const isAbsent = (result: string) => result === 'not-found' || result.startsWith(ALREADY);
      return results.some(({ result }) => isAbsent(result)) ? NOT_THERE : DONE;
    },
  };
}

/** The filter that these options make, together with `--where` and `--limit`. */
function readFilter(context: Context, ...names: readonly string[]) {
  const isLimited = context.values['limit'] !== undefined;
  return {
    ...given(context, ...names),
    ...where(context),
    ...(isLimited && { limit: numberOf(context, 'limit', 0) }),
  };
}

/** The options that select jobs, as they were given. */
function filterOf({ values }: Context): [string, unknown][] {
  return [...Object.keys(BY_FILTER), 'state'].flatMap((key) =>
    values[key] === undefined ? [] : [[key, values[key]]],
  );
}

async function byFilter(
  context: Context,
  name: string,
  { done, act }: NonNullable<ByIdOptions['all']>,
): Promise<number> {
  const { inspector, words, values, print } = context;
  const [queue] = words as [string];
  const shown = filterOf(context).filter(([key]) => key !== 'rate' && key !== 'all');
  if (shown.length === 0 && values['all'] !== true)
    throw new UsageError(`${name}: give ids, or a filter such as --name, or --all`, '');
  const { pace, failed } = paceOf(context, done);
  const filter = readFilter(context, 'state', 'name', 'contains', 'group', 'older-than', 'newer-than');
  await inspector.queues([queue]);
  const which = shown.map(([key, value]) => `${key} ${String(value)}`).join(', ') || 'all';
  if (!(await print.confirm(`${name} jobs of queue ${queue} (${which})?`))) return FAILED;
  const count = await act(inspector.queue(queue), filter, pace, context).catch(failed);
  print.done(`${count} ${done}`, { queue, ...filter, count });
  return pace.signal?.aborted === true ? STOPPED : DONE;
}

const dead: Command = {
  name: 'dead',
  usage: '<queue> [list|retry|remove]',
  about: 'lists dead jobs by reason, name and error; retries or removes those that match',
  words: [1, 2],
  options: {
    reason: { type: 'string', about: 'only jobs that died for this reason' },
    ...FILTER,
    ...AGES,
    'dry-run': { type: 'boolean', about: 'only print what would be done' },
    ...RATE,
  },
  async run(context) {
    const { inspector, words, values, print } = context;
    const [name, act = 'list'] = words as [string, string?];
    if (!['list', 'retry', 'remove'].includes(act))
      throw new UsageError(`dead: ${JSON.stringify(act)} must be one of list, retry, remove`, '');
    const { pace, failed } = paceOf(context, act === 'retry' ? 'retried' : 'removed');
    await inspector.queues([name]);
    const queue = inspector.queue(name);
    const filter: DeadListOptions = {
      ...given(context, 'reason', 'name', 'contains', 'older-than', 'newer-than'),
      ...where(context),
    };
    const most = act === 'list' ? MOST_LISTED : MOST;
    const limited = numberOf(context, 'limit', most);
    // An act begins with the oldest. A person who asks why jobs die needs the latest.
    const { found, isAll } = await matching(inspector, name, filter, limited, act === 'list');
    const groups = groupsOf(found);
    if (act === 'list' || values['dry-run'] === true) {
      const json = act === 'list' ? { jobs: found, groups } : { act, count: found.length, groups };
      const rows = groups.map(({ reason, name: of, count, last }): Cell[] => [count, reason, of, last]);
      print.rows(
        json,
        [right('JOBS'), cut('REASON'), cut('NAME'), cut('LAST ERROR')],
        rows,
        'no dead jobs match',
      );
      if (!isAll)
        print.line(
          `of the ${act === 'list' ? 'last' : 'first'} ${counted(found.length, 'dead job')} that match; ${MORE}`,
        );
      return DONE;
    }
    if (found.length === 0) {
      print.done('no dead jobs match', { act, count: 0 });
      return DONE;
    }
    const question = `${act} ${counted(found.length, 'dead job')} of queue ${name}: ${sumOf(groups)}?`;
    if (!(await print.confirm(question))) return FAILED;
    const limit = found.length;
    const ended =
      act === 'retry'
        ? queue.dead.retry({ ...filter, limit }, pace)
        : queue.remove({ state: 'dead', ...filter, limit }, pace);
    const count = await ended.catch(failed);
    const isStopped = pace.signal?.aborted === true && count < limit;
    const done = `${count} ${act === 'retry' ? 'retried' : 'removed'}`;
    const left = isStopped ? `; ${limit - count} are still dead` : isAll ? '' : `; ${MORE}`;
    print.done(`${done}${left}`, { act, count });
    return isStopped ? STOPPED : DONE;
  },
};

/** Minimum time between two lines of progress. */
const PROGRESS_MS = 1_000;

/**
 * Ctrl-C ends the act. At a rate, the act also prints its progress.
 *
 * @returns `failed`: prints how many jobs were changed before an error, as far as the act knows.
 */
function paceOf(context: Context, done: string): { pace: BulkPace; failed: (error: unknown) => never } {
  const rate = rateOf(context);
  const { print, signal } = context;
  let saidAt = performance.now();
  let changed = 0;
  const failed = (error: unknown): never => {
    if (changed > 0) print.line(`${changed} ${done} before it failed`);
    throw error;
  };
  if (rate === undefined) return { pace: { signal }, failed };
  const onProgress = (count: number) => {
    changed = count;
    if (performance.now() - saidAt < PROGRESS_MS) return;
    saidAt = performance.now();
    print.line(`${count} ${done}`);
  };
  return { pace: { signal, rate, onProgress }, failed };
}

const clean: Command = {
  name: 'clean',
  usage: '<queue> <state>',
  about: 'removes jobs of a state: waiting, delayed, completed, dead or cancelled',
  words: [2, 2],
  options: {
    ...FILTER,
    group: GROUP,
    reason: { type: 'string', about: 'only jobs that died for this reason' },
    'older-than': duration('only jobs that ended or were added longer ago than this, e.g. 7d'),
    'newer-than': duration('only jobs that ended or were added within this time, e.g. 7d'),
    ...RATE,
  },
  async run(context) {
    const { inspector, words, print } = context;
    const [name, state] = words as [string, CleanState];
    if (!CLEAN_STATES.includes(state))
      throw new UsageError(`clean: ${JSON.stringify(state)} must be one of ${CLEAN_STATES.join(', ')}`, '');
    const filter = {
      state,
      ...readFilter(context, 'name', 'contains', 'group', 'reason', 'older-than', 'newer-than'),
    };
    const { pace, failed } = paceOf(context, 'removed');
    const [info] = await inspector.queues([name]);
    const shown: object = { ...filter, ...given(context, 'where') };
    const which = Object.entries(shown).map(([key, value]) => `${key} ${String(value)}`);
    const question = `Remove jobs of queue ${name} (${which.join(', ')}); it has ${info!.counts[state]} ${state} in all?`;
    if (!(await print.confirm(question))) return FAILED;
    const count = await inspector
      .queue(name)
      .remove(filter as JobFilter<string, CleanState>, pace)
      .catch(failed);
    print.done(`${count} removed`, { queue: name, ...filter, count });
    return pace.signal?.aborted === true ? STOPPED : DONE;
  },
};

/** The matching dead jobs, the oldest first. `isLatest`: if there are more, the latest ones. */
async function matching(
  inspector: Inspector,
  queue: string,
  filter: DeadListOptions,
  most: number,
  isLatest: boolean,
) {
  const found: ShownDeadJob[] = [];
  let cursor: string | null = null;
  do {
    const limit = Math.min(1_000, most - found.length);
    // oxlint-disable-next-line no-await-in-loop -- page after page
    const page: Awaited<ReturnType<typeof deadJobsOf>> = await deadJobsOf(
      inspector,
      queue,
      { ...filter, limit, ...(cursor !== null && { cursor }) },
      isLatest,
    );
    found.push(...page.jobs);
    ({ cursor } = page);
  } while (cursor !== null && found.length < most);
  return { found: isLatest ? found.toReversed() : found, isAll: cursor === null };
}

interface DeadGroup {
  readonly count: number;
  readonly reason: string;
  readonly name: string;
  /** The fingerprint of the errors. */
  readonly error: string;
  /** The message of the latest error. */
  readonly last: string;
}

/** The jobs by reason, name and error, as on the dashboard. @param found the oldest first. */
function groupsOf(found: readonly ShownDeadJob[]): DeadGroup[] {
  const groups = new Map<string, DeadGroup>();
  for (const { reason: why, name, failure } of found) {
    const reason = why ?? '-';
    const error = fingerprintOf(failure);
    const key = JSON.stringify([reason, name, error]);
    const count = (groups.get(key)?.count ?? 0) + 1;
    groups.set(key, { count, reason, name, error, last: failure?.message ?? '' });
  }
  return [...groups.values()].toSorted((a, b) => b.count - a.count);
}

/** The jobs by reason and name, for a question: with the errors, it would be too long. */
function sumOf(groups: readonly DeadGroup[]): string {
  const counts = new Map<string, number>();
  for (const { count, reason, name } of groups) {
    const key = `${name} (${reason})`;
    counts.set(key, (counts.get(key) ?? 0) + count);
  }
  return [...counts].map(([key, count]) => `${count} ${key}`).join(', ');
}

export const JOB_COMMANDS: readonly Command[] = [
  jobs,
  job,
  add,
  byId(
    'retry',
    'runs jobs that have ended again, by id; a dead one with other data; dead <queue> retry takes all that match',
    async (queue, id, { words, values }) => {
      const data = values['data'] as string | undefined;
      if (data !== undefined && words.length > 2)
        throw new UsageError('retry: --data changes one job, so give one id', '');
      if (data === undefined) await queue.retry(id);
      else await queue.dead.retry(id, { data: await dataOf(data) });
      return 'retried';
    },
    { options: { data: NEW_DATA } },
  ),
  update,
  byId(
    'cancel',
    'ends jobs that wait or are delayed, and tells running ones to stop; by id, or those that match',
    async (queue, id, { values }) => {
      const outcome = await queue.cancel(id, values['reason'] as string | undefined);
      const job = outcome === 'not-found' ? await queue.get(id) : null;
      return job === null ? outcome : `${ALREADY}${job.state}`;
    },
    {
      options: {
        state: { type: 'string', about: 'with a filter: waiting, delayed or active (default: all three)' },
        reason: { type: 'string', about: 'the reason that the handler and the event get' },
      },
      all: {
        done: 'cancelled or told to stop',
        act: (queue, filter, pace, { values }) =>
          queue.cancel(filter, values['reason'] as string | undefined, pace),
      },
    },
  ),
  byId(
    'promote',
    'runs delayed jobs now; by id, or those that match',
    async (queue, id) => {
      await queue.promote(id);
      return 'promoted';
    },
    { all: { done: 'promoted', act: (queue, filter, pace) => queue.promote(filter, pace) } },
  ),
  byId(
    'remove',
    'removes jobs that do not run, by id; clean <queue> <state> takes all that match',
    async (queue, id) => {
      await queue.remove(id);
      return 'removed';
    },
    { asks: true },
  ),
  dead,
  clean,
];
