import { Redis } from 'ioredis';
import { counted, quoted } from '../../job/text.js';
import type { JobOptions } from '../../options/job-options.js';
import type { ScheduleRule, ScheduledJobOptions } from '../../options/schedule-options.js';

/** A job of BullMQ as Godwit adds it. */
export interface FoundJob {
  readonly id: string;
  readonly name: string;
  readonly data: unknown;
  readonly options: JobOptions;
  /** Distinguishes the job from a later one with the same id. */
  readonly stamp: string;
  /** Options of the job in BullMQ that Godwit does not have. */
  readonly lost: readonly string[];
}

/** Jobs or schedules that cannot be moved, and why. */
export interface LeftBehind {
  readonly what: string;
  readonly why: string;
}

export interface FoundSchedule {
  readonly id: string;
  readonly rule: ScheduleRule;
  readonly template: { readonly name: string; readonly data: unknown; readonly options: ScheduledJobOptions };
}

/** The lists of BullMQ whose jobs can be moved, in the order in which its workers take them. */
export const BULL_STATES = ['wait', 'paused', 'prioritized', 'delayed', 'failed'] as const;
export type BullState = (typeof BULL_STATES)[number];

const FIELDS = [
  'name',
  'data',
  'opts',
  'timestamp',
  'atm',
  'attemptsMade',
  'parentKey',
  'rjk',
  'deid',
] as const;
type Hash = Readonly<Record<(typeof FIELDS)[number], string | null>>;

/** How many jobs are read at once. */
const PAGE = 100;
/** A score of `delayed` is a time in ms, followed by 12 bits for the order within this ms. */
const PER_MS = 4_096;

interface BullOptions {
  readonly attempts?: number;
  readonly backoff?: number | { readonly type?: string; readonly delay?: number; readonly jitter?: number };
  readonly priority?: number;
  readonly removeOnComplete?: boolean | number | { readonly age?: number };
}

/** Why completed jobs are left. Nobody needs to do anything about them. */
export const HAVE_RUN = 'they have run';

/** Reads the keys of BullMQ 5 and 6. It writes a single key, which lists the moved jobs. */
export class BullSource {
  private readonly client: Redis;
  /** Why the connection broke. The error of a call does not say it. */
  fault: string | undefined;

  constructor(
    url: string,
    private readonly prefix: string,
  ) {
    this.client = new Redis(url, {
      lazyConnect: true,
      maxRetriesPerRequest: 1,
      retryStrategy: () => null,
      connectTimeout: 5_000,
      commandTimeout: 10_000,
    });
    this.client.on('error', ({ message }: Error) => (this.fault = message));
  }

  async open(): Promise<void> {
    await this.client.connect();
  }

  close(): void {
    this.client.disconnect();
  }

  /** Names of the queues with this prefix. */
  async queues(): Promise<string[]> {
    const pattern = `${this.prefix.replace(/[*?[\]\\]/g, '\\$&')}:*:meta`;
    const names = new Set<string>();
    let cursor = '0';
    do {
      // oxlint-disable-next-line no-await-in-loop -- page after page
      const [next, keys] = await this.client.scan(cursor, 'MATCH', pattern, 'COUNT', 1_000);
      for (const key of keys) names.add(key.slice(this.prefix.length + 1, -':meta'.length));
      cursor = next;
    } while (cursor !== '0');
    return [...names].toSorted();
  }

  async isPaused(queue: string): Promise<boolean> {
    return (await this.client.hget(this.key(queue, 'meta'), 'paused')) === '1';
  }

  /** Kinds of jobs that cannot be moved at all, with their number, and limits of the queue. */
  async others(queue: string): Promise<LeftBehind[]> {
    const [active, parents, groups, completed, limits] = await Promise.all([
      this.client.llen(this.key(queue, 'active')),
      this.client.zcard(this.key(queue, 'waiting-children')),
      this.client.exists(this.key(queue, 'groups')),
      this.client.zcard(this.key(queue, 'completed')),
      this.client.hmget(this.key(queue, 'meta'), 'concurrency', 'max', 'duration'),
    ]);
    const [concurrency, max, duration] = limits;
    const left = (isThere: boolean, what: string, why: string) => (isThere ? [{ what, why }] : []);
    const toSet = (option: string) =>
      `limits are not copied; godwit limits ${queue} set ${option} sets it here`;
    return [
      ...left(
        active > 0,
        counted(active, 'active job'),
        'they run in BullMQ; let them end and run this again',
      ),
      ...left(
        parents > 0,
        counted(parents, 'parent of a flow', 'parents of flows'),
        'they wait for children; Godwit has no flows',
      ),
      ...left(groups > 0, 'jobs of groups', 'groups of BullMQ Pro are not read'),
      ...left(
        concurrency !== null,
        `the global concurrency ${concurrency}`,
        toSet(`--concurrency ${concurrency}`),
      ),
      ...left(
        max !== null,
        `the global rate limit ${max} in ${duration} ms`,
        toSet(`--rate ${max}/${duration}ms`),
      ),
      ...left(completed > 0, counted(completed, 'completed job'), HAVE_RUN),
    ];
  }

  /**
   * Jobs of a list that were not moved yet, in pages. Each page also has the jobs that cannot be moved. Ids in `refused` are left
   * out, and those that cannot be moved are added to it.
   */
  async *jobs(
    queue: string,
    state: BullState,
    refused: Set<string>,
  ): AsyncGenerator<{ jobs: FoundJob[]; left: LeftBehind[] }> {
    const isList = state === 'wait' || state === 'paused';
    const pages = isList ? this.listed(this.key(queue, state)) : this.sorted(this.key(queue, state));
    for await (const entries of pages) {
      const jobs: FoundJob[] = [];
      const left: LeftBehind[] = [];
      // oxlint-disable-next-line no-await-in-loop -- the same
      const [hashes, moved] = await Promise.all([
        Promise.all(entries.map(([id]) => this.hash(queue, id))),
        this.client.hmget(this.movedKey(queue), ...entries.map(([id]) => id)),
      ]);
      for (const [i, [id, score]] of entries.entries()) {
        const hash = hashes[i]!;
        // Old versions keep a marker in the list, which has no hash.
        if (hash.name === null || moved[i] === (hash.timestamp ?? '') || refused.has(id)) continue;
        // Its schedule is moved instead, and adds the next job here.
        if (state === 'delayed' && hash.rjk !== null) continue;
        try {
          jobs.push(toJob(id, hash, state, score));
        } catch (error) {
          refused.add(id);
          left.push({ what: `job ${quoted(id)}`, why: (error as Error).message });
        }
      }
      yield { jobs, left };
    }
  }

  /** Remembers in BullMQ's Redis that these jobs were moved, so that another run does not add them again. */
  async markMoved(queue: string, jobs: readonly FoundJob[]): Promise<void> {
    if (jobs.length === 0) return;
    await this.client.hset(this.movedKey(queue), ...jobs.flatMap(({ id, stamp }) => [id, stamp]));
  }

  async schedules(queue: string): Promise<{ schedules: FoundSchedule[]; left: LeftBehind[] }> {
    const schedules: FoundSchedule[] = [];
    const left: LeftBehind[] = [];
    for (const [id, score] of await this.pairs('ZRANGE', this.key(queue, 'repeat'), 0, -1, 'WITHSCORES')) {
      // oxlint-disable-next-line no-await-in-loop -- there are few
      const hash = await this.client.hgetall(this.key(queue, `repeat:${id}`));
      try {
        schedules.push(toSchedule(id, hash, score));
      } catch (error) {
        left.push({ what: `schedule ${quoted(id)}`, why: (error as Error).message });
      }
    }
    return { schedules, left };
  }

  /**
   * Ids of a list, with 0. It reads from the right end, where the oldest jobs are, so jobs that are added meanwhile do not shift the
   * pages.
   */
  private async *listed(key: string): AsyncGenerator<[string, number][]> {
    for (let at = 0; ; at += PAGE) {
      // oxlint-disable-next-line no-await-in-loop -- page after page
      const ids = await this.client.lrange(key, -(at + PAGE), -(at + 1));
      if (ids.length === 0) return;
      yield ids.toReversed().map((id) => [id, 0]);
    }
  }

  /** Ids with their scores. A page begins at the last score, so jobs that leave the front meanwhile do not shift it. */
  private async *sorted(key: string): AsyncGenerator<[string, number][]> {
    let from = '-inf';
    let same = new Set<string>();
    for (;;) {
      const limit = same.size + PAGE;
      // oxlint-disable-next-line no-await-in-loop -- page after page
      const found = await this.pairs('ZRANGEBYSCORE', key, from, '+inf', 'WITHSCORES', 'LIMIT', 0, limit);
      const seen = same;
      const page = found.filter(([id]) => !seen.has(id));
      if (page.length === 0) return;
      yield page;
      const last = String(page.at(-1)![1]);
      if (last !== from) same = new Set();
      for (const [id, score] of page) if (String(score) === last) same.add(id);
      from = last;
    }
  }

  /** With RESP2 scores are texts between the members, with RESP3 numbers in pairs. */
  private async pairs(command: string, ...args: (string | number)[]): Promise<[string, number][]> {
    const answer = (await this.client.call(command, ...args)) as unknown[];
    const flat = answer.flat();
    return Array.from({ length: flat.length / 2 }, (_, i) => [String(flat[2 * i]), Number(flat[2 * i + 1])]);
  }

  private async hash(queue: string, id: string): Promise<Hash> {
    const values = await this.client.hmget(this.key(queue, id), ...FIELDS);
    return Object.fromEntries(FIELDS.map((field, i) => [field, values[i] ?? null])) as unknown as Hash;
  }

  private movedKey(queue: string): string {
    return this.key(queue, 'moved-to-godwit');
  }

  private key(queue: string, suffix: string): string {
    return `${this.prefix}:${queue}:${suffix}`;
  }
}

function toJob(id: string, hash: Hash, state: BullState, score: number): FoundJob {
  if (hash.parentKey !== null) throw new Error('it is the child of a flow; Godwit has no flows');
  const opts = JSON.parse(hash.opts ?? '{}') as BullOptions;
  const made = Number(hash.atm ?? hash.attemptsMade ?? 0);
  const rest = state === 'failed' ? (opts.attempts ?? 1) : (opts.attempts ?? 1) - made;
  const { priority } = opts;
  const { known, lost } = sharedOptions(opts);
  return {
    id,
    name: hash.name!,
    data: JSON.parse(hash.data ?? 'null'),
    stamp: hash.timestamp ?? '',
    options: {
      ...known,
      id,
      attempts: Math.max(1, rest),
      ...(state === 'delayed' && { runAt: Math.floor(score / PER_MS) }),
      ...(priority !== undefined && priority > 0 && { priority }),
    },
    lost: hash.deid === null ? lost : [...lost, 'deduplication'],
  };
}

/** Options of jobs and schedules, and those that Godwit does not have. */
function sharedOptions({ backoff, removeOnComplete }: BullOptions) {
  const lost: string[] = [];
  const known: { backoff?: Exclude<JobOptions['backoff'], undefined>; retention?: number } = {};
  if (typeof backoff === 'number') known.backoff = backoff;
  else if (backoff?.type === 'fixed' || backoff?.type === 'exponential') {
    const { type, delay = 0, jitter } = backoff;
    known.backoff = { type, delay, ...(jitter !== undefined && { jitter }) };
  } else if (backoff !== undefined) lost.push(`backoff ${quoted(String(backoff.type))}`);
  if (removeOnComplete === true) known.retention = 0;
  else if (typeof removeOnComplete === 'object' && removeOnComplete.age !== undefined)
    known.retention = removeOnComplete.age * 1_000;
  return { known, lost };
}

function toSchedule(
  id: string,
  hash: Readonly<Record<string, string | undefined>>,
  nextAt: number,
): FoundSchedule {
  const { pattern, every, tz, limit, endDate, startDate, ic, name, data, opts } = hash;
  if (pattern === undefined && every === undefined)
    throw new Error('it is a repeatable job of an old version; upsertJobScheduler makes a schedule of it');
  const rest = limit === undefined ? undefined : Number(limit) - Math.max(0, Number(ic ?? 0) - 1);
  if (rest !== undefined && rest <= 0) throw new Error('it has reached its limit');
  const limits = {
    ...(rest !== undefined && { limit: rest }),
    ...(endDate !== undefined && { endAt: Number(endDate) }),
  };
  const start = startDate === undefined ? undefined : Number(startDate);
  const rule: ScheduleRule =
    pattern === undefined
      ? // The interval is counted from the next time in BullMQ, so that the following times stay the same.
        { every: Number(every), startAt: nextAt, ...limits }
      : {
          cron: pattern,
          ...(tz !== undefined && { tz }),
          ...(start !== undefined && { startAt: start }),
          ...limits,
        };
  const given = JSON.parse(opts ?? '{}') as BullOptions;
  const { attempts, priority } = given;
  const options = {
    ...sharedOptions(given).known,
    ...(attempts !== undefined && attempts > 0 && { attempts }),
    ...(priority !== undefined && priority > 0 && { priority }),
  };
  return { id, rule, template: { name: name ?? id, data: JSON.parse(data ?? 'null'), options } };
}
