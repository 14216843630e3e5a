import type { QueueEngine } from '../contract/engine.js';
import type { DataMatch, JobsAnswer, StoredJob } from '../contract/admin-verbs.js';
import type { DeadMatch } from '../contract/upkeep-verbs.js';
import { DuplicateJobError, JobNotFoundError, WrongStateError } from '../errors.js';
import { checkJobId } from '../job/job-id.js';
import { decodeBody } from '../job/job-record.js';
import type { DataIn, NameIn } from '../job/queue-jobs.js';
import { encodePayload } from '../job/payload.js';
import { DEAD_REASONS, type DeadReason, type FailureRecord } from '../job/outcome.js';
import { quoted } from '../job/text.js';
import { duration, field, integer, oneOf, refuse, rule, selecting, shape } from '../options/check.js';
import { mergeJobPolicy } from '../options/job-options.js';
import type { ResolvedQueueOptions } from '../options/module-options.js';
import { checkText, checkWhere, encodeCursor, readCursor, readNames } from './job-list.js';
import {
  agedBy,
  idsOf,
  lastDeath,
  PAGE,
  paceOf,
  paced,
  type Pacer,
  type BulkPace,
  type JobFilter,
} from './bulk-acts.js';

/** Selects dead jobs. A field that is left out matches any job. In `retry`, a field that is `undefined` is refused. */
export interface DeadFilter<Name extends string = string> extends Omit<
  JobFilter<Name>,
  'state' | 'reason' | 'limit'
> {
  /** Why they died. @default any reason */
  readonly reason?: DeadReason;
  /** Maximum number of jobs; for `list` 1 to 1,000. @default all (`list`: 100) */
  readonly limit?: number;
}

/** Options of `list`. */
export interface DeadListOptions<Name extends string = string> extends DeadFilter<Name> {
  /** The cursor of the page before. @default from the start */
  readonly cursor?: string;
}

/** A page of dead jobs. One call looks at up to 10,000 jobs, so a page may have fewer than `limit` before the last page. */
export interface DeadPage<Data = unknown, Entry = DeadJob<Data>> {
  /** Ordered by when they died, the earliest first. */
  readonly jobs: readonly Entry[];
  /** Cursor of the next page; null on the last. */
  readonly cursor: string | null;
}

/** A dead job. */
export interface DeadJob<Data = unknown, Name extends string = string> {
  /** Id of the job. */
  readonly id: string;
  /** Empty if the job cannot be decoded. */
  readonly name: Name | '';
  /** Data as it was added. Undefined if the job cannot be decoded. */
  readonly data: Data | undefined;
  /** Null if the record of the failure cannot be read. */
  readonly reason: DeadReason | null;
  /** The last error; null if its record cannot be read. */
  readonly failure: FailureRecord | null;
  /** When the job died, by the clock of Redis. */
  readonly diedAt: Date;
  /** How many attempts it had. */
  readonly attempt: number;
  /**
   * Maximum number of attempts: the option of the job, or the default of its queue. `attempts` of `@Handle` is not stored, so it
   * is not included here; handlers see it in `job.attempts`.
   */
  readonly attempts: number;
}

/** A dead job of a `Queue<Jobs>`; `name` discriminates the type of its data. */
export type DeadJobIn<Jobs = any> = {
  [Name in NameIn<Jobs>]: DeadJob<DataIn<Jobs, Name>, Name>;
}[NameIn<Jobs>];

const FILTER = {
  reason: field('reason', oneOf(...DEAD_REASONS)),
  name: field('name', readNames),
  contains: field('contains', rule(checkText)),
  where: field('where', rule(checkWhere)),
  olderThan: field('olderThanMs', duration()),
  newerThan: field('newerThanMs', duration()),
  limit: field('limit', integer(1, Number.MAX_SAFE_INTEGER)),
} as const;

const readFilter = shape(selecting(FILTER));
// Wrapped in an object, because null is valid data.
export const ANY_DATA = field(
  'data',
  rule((given: unknown) => ({ given })),
);
/** Advice to a caller who wants a job to run again while another job has its key. */
export const WAIT_OR_REMOVE = 'wait for its end, or cancel or remove that job first';
const readRetry = shape({ data: ANY_DATA });
const readList = shape({
  ...FILTER,
  limit: field('limit', integer(1, 1_000)),
  cursor: field('after', rule(readCursor)),
});

/**
 * The dead jobs of a queue. They are kept until you retry them or `queue.remove` removes them, within the number and age of the option `dead`. Every call
 * works in small steps, so none blocks Redis.
 *
 * @example
 * const { jobs, cursor } = await queue.dead.list({ reason: 'retries-exhausted' });
 * for (const job of jobs) if (job.failure?.message.includes('ECONNREFUSED')) await queue.dead.retry(job.id);
 * console.log(cursor); // of the next page
 * await queue.dead.retry({ name: 'welcome', newerThan: '2h' });
 */
export class DeadJobs<Jobs = any> {
  /** @internal */
  constructor(
    private readonly engine: QueueEngine,
    private readonly options: ResolvedQueueOptions,
  ) {}

  /**
   * Lists dead jobs, the earliest first. A cursor stays valid if jobs are retried, removed or die meanwhile. A job that stays
   * dead during the listing is listed exactly once.
   *
   * @example
   * for (let cursor: string | undefined; ; ) {
   *   const page = await queue.dead.list({ cursor });
   *   for (const job of page.jobs) console.log(job.id, job.reason, job.failure?.message);
   *   if (page.cursor === null) break;
   *   cursor = page.cursor;
   * }
   * @throws {InvalidOptionError | InvalidJobNameError}
   */
  async list(options?: DeadListOptions<NameIn<Jobs>>): Promise<DeadPage<DataIn<Jobs>, DeadJobIn<Jobs>>>;
  async list<Data>(options?: DeadListOptions<NameIn<Jobs>>): Promise<DeadPage<Data>>;
  async list(options: DeadListOptions = {}): Promise<DeadPage<any, DeadJob<any, any>>> {
    const page = await listDead(this.engine, this.options.name, options);
    const jobs = page.jobs.map((job) => toDeadJob(job, this.options));
    return { jobs, cursor: encodeCursor(page.next) };
  }

  /**
   * Queues dead jobs again, with their priority. Attempts and stalls start at 0, and `expiresIn` and `deadline` no longer apply. A
   * corrupt job has no data to run with and stays dead. A job with `unique` stays dead while another job that has not ended has its key.
   *
   * @param which the id of one job, or a filter; `{}` matches all. Works in small steps, from the job that died first; a job that
   * dies again meanwhile stays dead.
   * @param changes for one job: new `data` that replaces the data it died with. For a filter: a `rate`, `onProgress` and a `signal`
   * that stops the call. Only jobs that match when the call begins are retried. This process does the work: if it ends, the other
   * jobs stay dead, and the same call continues with them.
   * @returns for a filter, the number of queued jobs.
   * @throws {JobNotFoundError | WrongStateError | DuplicateJobError | InvalidJobIdError} for one job
   * @throws {InvalidPayloadError | PayloadTooLargeError} for `data`
   * @throws {InvalidOptionError | InvalidJobNameError} for a filter
   * @example
   * await queue.dead.retry('invoice-7', { data: { to: 'ada@example.org' } });
   * await queue.dead.retry({ newerThan: '1h' }, { rate: { max: 50, per: '1s' } });
   */
  retry(which: string, changes?: { readonly data?: DataIn<Jobs> }): Promise<void>;
  retry(which: DeadFilter<NameIn<Jobs>>, pace?: BulkPace): Promise<number>;
  async retry(
    which: string | DeadFilter,
    changes?: { readonly data?: unknown } | BulkPace,
  ): Promise<number | void> {
    const { upkeep } = this.engine;
    const { name } = this.options;
    if (typeof which !== 'string') {
      const pace = paceOf(changes, 'dead.retry()');
      const { contains, where, ...match } = choice(which);
      if (pace || (contains ?? where) !== undefined)
        return paced(pace, (pacer) => this.retryFound({ ...match, contains, where }, pacer));
      return (await upkeep.retryDead(name, match)).retried.length;
    }
    const ids = [checkJobId(which)];
    const { data } = (changes && readRetry(changes, 'dead.retry().changes', refuse)) ?? {};
    const json = data && encodePayload(data.given, 'dead.retry().changes.data', this.options);
    const { retried, refused } = await upkeep.retryDead(name, {
      ids,
      ...(json !== undefined && { data: json }),
    });
    if (refused?.[0]) throw await keptOut(this.engine, name, refused[0].holder);
    if (retried.length === 0) await this.refuse(which, 'only dead jobs with a body are retried');
  }

  /** Retries dead jobs page by page: those that only `jobs` can filter, or at a rate. */
  private async retryFound({ limit, ...match }: Choice, pacer: Pacer): Promise<number> {
    const { admin, upkeep } = this.engine;
    const { name } = this.options;
    const met = new Set<string>();
    let after: JobsAnswer['next'] = null;
    let retried = 0;
    do {
      // The ages are those at the start: a job that dies or becomes old enough meanwhile stays dead.
      const page: JobsAnswer = await admin.jobs(name, {
        ...agedBy(match, pacer.passedMs),
        state: 'dead',
        limit: Math.min(PAGE, limit - retried),
        after,
        brief: true,
      });
      const found = page.jobs.filter(({ id }) => !met.has(id));
      for (let at = 0, some; (some = await pacer.step(found, at)); at += some.length) {
        for (const { id } of some) met.add(id);
        // A job that another call has retried meanwhile, and that died again, stays dead.
        const choice = { ids: idsOf(some), until: lastDeath(some) };
        const count = (await upkeep.retryDead(name, choice)).retried.length;
        retried += count;
        pacer.add(count);
      }
      after = page.next;
    } while (after !== null && retried < limit && !pacer.isStopped);
    return retried;
  }

  /** Throws the error that says why this job was not changed. */
  private async refuse(id: string, advice: string): Promise<never> {
    const { name } = this.options;
    const stored = await this.engine.admin.get(name, id);
    if (!stored) throw new JobNotFoundError(name, id);
    const state = stored.state === 'dead' ? 'corrupt' : stored.state;
    throw new WrongStateError(name, `job ${quoted(id)}`, state, advice);
  }
}

/** The error of a job that stays dead, because another job has its key. */
export async function keptOut(
  engine: QueueEngine,
  queue: string,
  holder: string,
): Promise<DuplicateJobError> {
  const stored = await engine.admin.get(queue, holder);
  return new DuplicateJobError(queue, holder, stored?.state, WAIT_OR_REMOVE);
}

interface Choice extends DeadMatch {
  readonly contains?: string | undefined;
  readonly where?: DataMatch | undefined;
  readonly limit: number;
}

/** `undefined` is not a filter: `retry(job.id)` with an object that has no id must not retry all jobs. */
function choice(which: unknown): Choice {
  const { limit = Number.MAX_SAFE_INTEGER, ...match } = readFilter(which, 'dead.retry()', refuse)!;
  return { ...match, limit };
}

/** Reads a page of dead jobs. `backward`: the latest first. */
export function listDead(
  engine: QueueEngine,
  queue: string,
  options: DeadListOptions,
  backward = false,
): Promise<JobsAnswer> {
  const { limit = 100, after = null, ...match } = readList(options, 'dead.list()', refuse)!;
  return engine.admin.jobs(queue, { ...match, state: 'dead', limit, after, backward });
}

export function toDeadJob(stored: StoredJob, queue: ResolvedQueueOptions): DeadJob {
  const { id, failure, failed } = stored;
  const body = decodeBody(stored.body);
  return {
    id,
    name: body?.name ?? '',
    data: body?.data,
    reason: failure?.reason ?? null,
    failure,
    diedAt: new Date(stored.endedAt ?? 0),
    attempt: failed,
    attempts: body
      ? mergeJobPolicy(body.options, queue.policy, queue.policy).attempts
      : queue.policy.attempts,
  };
}
