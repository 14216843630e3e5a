import { breakerText, type LimitField, type LimitRule, type LimitState } from '../contract/limit-verbs.js';
import type { QueueEngine } from '../contract/engine.js';
import { realPause } from '../contract/retry.js';
import { InvalidOptionError } from '../errors.js';
import { RULES } from '../job/rules.js';
import { checkJobName, isPlainName } from '../job/job-id.js';
import { decodeBody } from '../job/job-record.js';
import type { Duration } from '../job/duration.js';
import { hasFields } from '../job/fields.js';
import {
  boolean,
  duration,
  field,
  integer,
  readable,
  refuse,
  rule,
  selecting,
  shape,
} from '../options/check.js';
import {
  readGroupChange,
  readSharedLimitChange,
  readQueueLimitChange,
  type GroupChange,
  type SharedLimitChange,
  type QueueLimitChange,
} from '../options/limit-changes.js';
import { ALONE_IN_STRICT_ORDER, checkGroup, checkLimitedName, readCost } from '../options/limit-options.js';
import type { ResolvedQueueOptions } from '../options/module-options.js';
import { infoOf, reasonOf, type HoldReason, type LimitInfo } from './limit-info.js';

/** A page of groups. */
export interface GroupPage {
  /** Groups with waiting jobs, or with running jobs that count against a limit. */
  readonly groups: readonly LimitInfo[];
  /** Cursor of the next page; null on the last. */
  readonly cursor: string | null;
}

/** The time of a hold that ends the current one. */
const END_HOLD = -1;

const readTarget = shape(selecting({ name: field('name', rule(checkJobName)) }, 'to mean the whole queue'));
const readCreate = shape({ create: field('create', boolean) });
const readPage = shape({
  limit: field('limit', integer(1, 1_000)),
  cursor: field('cursor', rule(checkCursor)),
});

type OptionsOfLimits = Pick<ResolvedQueueOptions, 'uses' | 'sharedLimits' | 'limits'>;

/**
 * The limits of one queue, for all processes: how often its jobs start, and how many run at once. A limit set here overrides the
 * code, at once and until it is cleared.
 *
 * @example
 * await emails.limits.set({ rate: { max: 100, per: '1s' } });
 * await emails.limits.set({ concurrency: 2 }, { name: 'digest' });
 * console.log(await emails.limits.list());
 */
export class QueueLimits {
  /** @internal */
  constructor(
    private readonly engine: QueueEngine,
    private readonly queue: string,
    private readonly options: OptionsOfLimits,
  ) {}

  /**
   * The limits of the queue, of all groups and of job names, and the shared limits that the queue or one of its workers uses.
   * Limits of single groups are in `queue.groups()`.
   *
   * @throws {RedisUnavailableError | RedisRefusedError}
   */
  async list(): Promise<LimitInfo[]> {
    const { limits } = this.engine;
    const { uses = [] } = this.options;
    const [own, shared] = await Promise.all([limits.list(this.queue), limits.shared(this.queue)]);
    // Another process works on the queue, and this one may not know its options, for example `godwit serve`.
    const used = shared.filter(
      ({ field: one, users }) => uses.includes(one.slice(2)) || users.includes(this.queue),
    );
    return [...own, ...used].map(infoOf);
  }

  /**
   * All shared limits of the prefix, whether this queue uses them or not.
   *
   * @throws {RedisUnavailableError | RedisRefusedError}
   */
  async listShared(): Promise<LimitInfo[]> {
    return (await this.engine.limits.shared(this.queue)).map(infoOf);
  }

  /**
   * The limits that keep a waiting job with this name and group from starting now. Empty if none does: then the job waits for a
   * free slot of a worker. It does not tell whether the queue is paused. With the `id` of the job, its own place in a group with strict
   * order does not count. With its `cost`, a rate that has less left than that keeps it from starting too; the shared limits ignore it.
   * The same applies if the first waiting job of its line costs more than that.
   *
   * @throws {InvalidOptionError | InvalidJobNameError}
   * @throws {RedisUnavailableError | RedisRefusedError}
   * @example
   * for (const { text } of await emails.limits.holding({ name: 'digest' })) console.log(text);
   */
  async holding(job: {
    readonly name: string;
    readonly group?: string | null;
    readonly id?: string;
    readonly cost?: number;
  }): Promise<HoldReason[]> {
    const { name, group, id, cost } = readable(job, 'limits.holding()', () => {
      if (!hasFields(job))
        throw new InvalidOptionError('limits.holding()', 'an object with the name of a job', job);
      return { name: job.name, group: job.group, id: job.id, cost: job.cost };
    });
    checkJobName(name);
    if (group !== undefined && group !== null) checkGroup(group, 'limits.holding().group');
    if (cost !== undefined) readCost(cost, 'limits.holding().cost', refuse);
    const [all, own] = await Promise.all([
      this.list(),
      group ? this.engine.limits.group(this.queue, group) : null,
    ]);
    // A job with a group waits in the line of its group, so limits of its name do not apply to it.
    const concerned = all.filter(
      (one) => one.of !== 'groups' && (one.of !== 'name' || (!own && one.name === name)),
    );
    const holder = own?.holder ?? null;
    const holding = holder === null || holder === id ? null : await this.engine.admin.get(this.queue, holder);
    const limits = own ? [...concerned, infoOf(own)] : concerned;
    const reasons = limits.flatMap((one) => reasonOf(one, { id, cost }, holding?.state) ?? []);
    // A job that holds its group waits behind no other one. The jobs without a group are a line that no filter finds.
    const isAlone = holder !== null || (!own && all.some((one) => one.of === 'groups'));
    if (reasons.length > 0 || isAlone || limits.every(({ rate }) => rate === null)) return reasons;
    const first = await firstOf(
      this.engine,
      this.queue,
      own ? { group: group! } : all.some((one) => one.of === 'name') ? { name } : {},
    );
    return first && first.id !== id ? limits.flatMap((one) => reasonOf(one, first) ?? []) : [];
  }

  /**
   * A limit that several queues share (`limits` of `forRoot`), whether this queue uses it or not.
   *
   * @throws {InvalidOptionError}
   * @example
   * await emails.limits.shared('openai').set({ rate: { max: 20_000, per: '1m' } });
   */
  shared(name: string): SharedLimit {
    return new SharedLimit(this.engine, this.queue, name, this.options);
  }

  /**
   * Changes a limit of the queue, or of the jobs of one name. Fields that are left out stay unchanged; `null` removes the limit,
   * even if the code sets one.
   *
   * @throws {InvalidOptionError | InvalidJobNameError} also if the change has no field, or a breaker or retry budget that the code of
   *   the workers does not have
   * @throws {RedisUnavailableError | RedisRefusedError}
   */
  async set(change: QueueLimitChange, target: { readonly name?: string } = {}): Promise<void> {
    const { name } = readTarget(target, 'limits.set()', refuse)!;
    const given = readQueueLimitChange(change, 'limits.set()', refuse)!;
    await checkTarget(this.engine, this.queue, name, 'limits.set()');
    const field = fieldOf(name);
    const own = this.options.limits?.rules.get(field);
    await checkCounted(this.engine, this.queue, { field, own, given }, 'limits.set()');
    await setLive(this.engine, this.queue, field, given);
  }

  /**
   * Clears what was set for the queue, or for the name. The limits of the code apply again.
   *
   * @throws {InvalidOptionError | InvalidJobNameError}
   * @throws {RedisUnavailableError | RedisRefusedError}
   */
  async clear(target: { readonly name?: string } = {}): Promise<void> {
    const { name } = readTarget(target, 'limits.clear()', refuse)!;
    await clearLive(this.engine, this.queue, fieldOf(name));
  }

  /**
   * Lets no job start for a while, like a handler that throws `RateLimited`. If a hold with a later end exists, it stays.
   *
   * @throws {InvalidOptionError | InvalidJobNameError}
   * @throws {RedisUnavailableError | RedisRefusedError}
   */
  async hold(time: Duration, target: { readonly name?: string } = {}): Promise<void> {
    const { name } = readTarget(target, 'limits.hold()', refuse)!;
    const holdMs = duration(1)(time, 'limits.hold()', refuse)!;
    await checkTarget(this.engine, this.queue, name, 'limits.hold()');
    await holdLimit(this.engine, this.queue, fieldOf(name), holdMs);
  }

  /**
   * Ends a hold that `hold()` or a handler began, and closes the circuit breaker. Jobs start at once, within the limits.
   *
   * @throws {InvalidOptionError | InvalidJobNameError}
   * @throws {RedisUnavailableError | RedisRefusedError}
   */
  async release(target: { readonly name?: string } = {}): Promise<void> {
    const { name } = readTarget(target, 'limits.release()', refuse)!;
    await release(this.engine, this.queue, fieldOf(name));
  }
}

/**
 * One limit that several queues share.
 *
 * @example
 * const openai = emails.limits.shared('openai');
 * console.log((await openai.state())?.left);
 * await openai.hold('30s'); // no job of any queue that uses it starts
 */
export class SharedLimit {
  private readonly field: LimitField;

  /** @internal */
  constructor(
    private readonly engine: QueueEngine,
    private readonly queue: string,
    /** Its name. */
    readonly name: string,
    private readonly options: OptionsOfLimits,
  ) {
    if (!isPlainName(name, 64))
      throw new InvalidOptionError('limits.shared()', 'a name of 1 to 64 of [A-Za-z0-9._-]', name);
    this.field = `s:${name}`;
  }

  /**
   * The rule of the limit and how much of it is used; null if no process has declared it.
   *
   * @throws {RedisUnavailableError | RedisRefusedError}
   */
  async state(): Promise<LimitInfo | null> {
    const found = await stateOf(this.engine, this.queue, this.field);
    return found ? infoOf(found) : null;
  }

  /**
   * Changes the limit for all queues that use it, at once and until it is cleared. `null` removes a limit, even if the code sets
   * one.
   *
   * @param options `create` sets a limit that is neither in the code of this process nor in Redis.
   * @throws {InvalidOptionError} also if there is no such limit, if the change has no field, or a breaker that the code of the workers
   *   does not have (except with `create`)
   * @throws {RedisUnavailableError | RedisRefusedError}
   */
  async set(change: SharedLimitChange, options: { readonly create?: boolean } = {}): Promise<void> {
    const given = readSharedLimitChange(change, 'shared().set()', refuse)!;
    const { create = false } = readCreate(options, 'shared().set()', refuse)!;
    if (!create) {
      await checkShared(this.engine, this.queue, this.name, this.options.sharedLimits);
      const own = this.options.limits?.shared.get(this.name);
      await checkCounted(this.engine, this.queue, { field: this.field, own, given }, 'shared().set()');
    }
    await setLive(this.engine, this.queue, this.field, given);
  }

  /**
   * Clears everything that was set here: the limits of the code apply again.
   *
   * @throws {RedisUnavailableError | RedisRefusedError}
   */
  async clear(): Promise<void> {
    await clearLive(this.engine, this.queue, this.field);
  }

  /**
   * Lets no job of the queues that use the limit start for a while. If a hold with a later end exists, it stays.
   *
   * @throws {InvalidOptionError} also if there is no such limit
   * @throws {RedisUnavailableError | RedisRefusedError}
   */
  async hold(time: Duration): Promise<void> {
    const holdMs = duration(1)(time, 'shared().hold()', refuse)!;
    await checkShared(this.engine, this.queue, this.name, this.options.sharedLimits);
    await holdLimit(this.engine, this.queue, this.field, holdMs);
  }

  /**
   * Ends a hold, and closes the circuit breaker.
   *
   * @throws {RedisUnavailableError | RedisRefusedError}
   */
  async release(): Promise<void> {
    await release(this.engine, this.queue, this.field);
  }
}

/** No queue uses a limit whose name is wrong. A process that does not know the options of the workers finds their limits in Redis. */
async function checkShared(
  engine: QueueEngine,
  queue: string,
  name: string,
  ofCode: readonly string[] = [],
): Promise<void> {
  if (ofCode.includes(name)) return;
  const stored = (await engine.limits.shared(queue)).map(({ field: one }) => one.slice(2));
  if (stored.includes(name)) return;
  const known = [...new Set([...ofCode, ...stored])].toSorted().map((one) => `'${one}'`);
  const phrase = `one of the shared limits: ${known.join(', ') || 'there are none'}`;
  throw new InvalidOptionError('limits.shared()', phrase, name);
}

/** A change of one limit, and the rule of it in the code of this process. */
interface Change {
  readonly field: LimitField;
  readonly own: LimitRule | undefined;
  readonly given: LimitRule;
}

/** Workers count the ends of runs only if their code has the breaker or the budget. Without it, its numbers would do nothing. */
async function checkCounted(
  engine: QueueEngine,
  queue: string,
  { field, own, given: { breaker, retryBudget } }: Change,
  call: string,
): Promise<void> {
  if (!breaker && !retryBudget) return;
  const code = own ?? (await stateOf(engine, queue, field))?.code;
  const refuseOption = (option: string, value: unknown) => {
    const phrase =
      'left out: workers count runs for it only if their code sets it; set it there and restart the workers';
    throw new InvalidOptionError(`${call}.${option}`, phrase, value);
  };
  if (breaker && !code?.breaker) refuseOption('breaker', breaker);
  if (!retryBudget) return;
  const budget = code?.retryBudget;
  if (!budget) refuseOption('retryBudget', retryBudget);
  else if (retryBudget.percent && !budget.percent) refuseOption('retryBudget.percent', retryBudget.percent);
}

/** Without a breaker, jobs start again. So its removal closes it first, which writes the event. */
async function setLive(
  engine: QueueEngine,
  queue: string,
  field: LimitField,
  change: LimitRule,
): Promise<void> {
  if (change.breaker === false) await closeBreaker(engine, queue, field);
  await engine.limits.set(queue, field, 'live', change);
}

/** Like `setLive`, if the code has no breaker. */
async function clearLive(engine: QueueEngine, queue: string, field: LimitField): Promise<void> {
  const { code, live } = (await stateOf(engine, queue, field)) ?? {};
  if (live?.breaker && !code?.breaker) await closeBreaker(engine, queue, field);
  await engine.limits.set(queue, field, 'live', null);
}

/**
 * Closes a breaker, and writes the event and a log line. The worker logs that a breaker opens; a person closes it here, so this process
 * logs that.
 */
export async function closeBreaker(
  engine: Pick<QueueEngine, 'limits'>,
  queue: string,
  field: LimitField,
  how = 'was closed by a person',
): Promise<void> {
  const noRuns = { completed: 0, failed: 0, retries: 0, firsts: 0 };
  const [answer] = await engine.limits.report(queue, [{ field, ...noRuns, closes: true }]);
  if (answer?.breaker !== 'closed') return;
  // Loaded only here, so that a producer does not load it at its start.
  const { isApplication, Log } = await import('../contract/log.js');
  if (isApplication())
    new Log('QueueLimits').log(`queue '${queue}': ${breakerText(field)} ${how}; jobs start again`);
}

async function release(engine: QueueEngine, queue: string, field: LimitField): Promise<void> {
  await closeBreaker(engine, queue, field);
  await holdLimit(engine, queue, field, END_HOLD);
}

async function holdLimit(engine: QueueEngine, queue: string, of: LimitField, holdMs: number): Promise<void> {
  await engine.limits.charge(queue, [{ field: of, holdMs, count: 0 }]);
}

/** The field of the whole queue, or of one job name. */
function fieldOf(name: string | undefined): LimitField {
  return name === undefined ? 'q' : `n:${name}`;
}

async function stateOf(
  { limits }: QueueEngine,
  queue: string,
  of: LimitField,
): Promise<LimitState | undefined> {
  if (of.startsWith('g:')) return limits.group(queue, of.slice(2));
  const all = await (of.startsWith('s:') ? limits.shared(queue) : limits.list(queue));
  return all.find(({ field: one }) => one === of);
}

/** In a queue with groups, a limit of a job name would hold no job back. */
async function checkTarget(
  engine: QueueEngine,
  queue: string,
  name: string | undefined,
  call: string,
): Promise<void> {
  if (name === undefined) return;
  checkLimitedName(name, `${call}.name`);
  const { limits, groups } = await engine.limits.overview(queue);
  const hasGroups = limits.some(({ field: one }) => one === 'g') || groups.ready + groups.resting > 0;
  if (hasGroups)
    throw new InvalidOptionError(`${call}.name`, 'left out with groups: a job waits in one line', name);
}

/**
 * One group of a queue: a tenant, a customer, an account.
 *
 * @example
 * const tenant = emails.group('tenant-7');
 * await tenant.pause();
 * await tenant.set({ concurrency: 2, weight: 3 });
 * console.log((await tenant.state()).waiting);
 */
export class QueueGroup {
  private readonly field: LimitField;

  /** @internal */
  constructor(
    private readonly engine: QueueEngine,
    private readonly queue: string,
    /** Name of the group. */
    readonly name: string,
  ) {
    this.field = `g:${checkGroup(name, 'group()')}`;
  }

  /**
   * Limits of the group, how many of its jobs wait, and how many run.
   *
   * @throws {RedisUnavailableError | RedisRefusedError}
   */
  async state(): Promise<LimitInfo> {
    return infoOf(await this.engine.limits.group(this.queue, this.name));
  }

  /**
   * Changes limits and weight of this group; they override those of all groups. `null` removes a limit. A concurrency is refused in
   * strict order, which runs one job of a group at a time.
   *
   * @throws {InvalidOptionError}
   * @throws {RedisUnavailableError | RedisRefusedError}
   */
  async set(change: GroupChange): Promise<void> {
    const given = readGroupChange(change, 'group().set()', refuse)!;
    const { concurrency } = given;
    if (concurrency && (await this.engine.limits.group(this.queue, this.name)).rule.order === 'strict')
      throw new InvalidOptionError('group().set().concurrency', ALONE_IN_STRICT_ORDER, concurrency);
    await this.engine.limits.set(this.queue, this.field, 'live', given);
    if (given.paused) await untilNoneStarts(this.engine, this.queue);
  }

  /**
   * Removes everything that was set at run time for this group, also its pause.
   *
   * @throws {RedisUnavailableError | RedisRefusedError}
   */
  async clear(): Promise<void> {
    await this.engine.limits.set(this.queue, this.field, 'live', null);
  }

  /**
   * From now on no job of the group starts. Running jobs continue, and jobs can still be added. Resolves when no worker will start
   * a job of the group that it had claimed before: at once if none is active, otherwise after a quarter of a second.
   *
   * @throws {RedisUnavailableError | RedisRefusedError}
   */
  async pause(): Promise<void> {
    await this.set({ paused: true });
  }

  /**
   * Ends a `pause`.
   *
   * @throws {RedisUnavailableError | RedisRefusedError}
   */
  async resume(): Promise<void> {
    await this.set({ paused: false });
  }

  /**
   * Ends a hold that a handler began by throwing `RateLimited` with the scope `'group'`.
   *
   * @throws {RedisUnavailableError | RedisRefusedError}
   */
  async release(): Promise<void> {
    await holdLimit(this.engine, this.queue, this.field, END_HOLD);
  }
}

/** Jobs that a worker claimed just before a pause reach it within this time, unless its network is slow. */
const ON_ITS_WAY_MS = 50;

/** Resolves when no worker will start a job that it had claimed before a pause. */
export async function untilNoneStarts(engine: QueueEngine, queue: string): Promise<void> {
  const { active } = await engine.admin.counts(queue);
  if (active > 0) await realPause(RULES.startMs + ON_ITS_WAY_MS);
}

/** @throws {InvalidOptionError} */
export async function listGroups(engine: QueueEngine, queue: string, options: unknown): Promise<GroupPage> {
  const { limit = 100, cursor = '0' } = readPage(options, 'groups()', refuse)!;
  const { groups, next } = await engine.limits.groups(queue, cursor, limit);
  return { groups: groups.map(infoOf), cursor: next };
}

/** The waiting job that starts before all others of its line. The others wait for it if a rate has less left than it costs. */
async function firstOf(
  engine: QueueEngine,
  queue: string,
  line: { readonly group?: string; readonly name?: string },
) {
  const call = { ...line, state: 'waiting', after: null, limit: 1, brief: true } as const;
  const [first] = (await engine.admin.jobs(queue, call)).jobs;
  return first && { id: first.id, cost: decodeBody(`${first.body}null`)?.options.cost ?? 1, isFirst: true };
}

const collator = new Intl.Collator('en', { numeric: true });

/**
 * @internal The first groups that dead jobs stop, with jobs, and with a rule of their own, such as a pause; by name, but stopped and
 * paused ones come first.
 */
export async function listFirstGroups(
  engine: QueueEngine,
  queue: string,
  limit: number,
): Promise<{ readonly groups: readonly LimitInfo[]; readonly hasMore: boolean }> {
  const [{ groups, cursor }, ruled, stopped] = await Promise.all([
    listGroups(engine, queue, { limit }),
    engine.limits.ruledGroups(queue, '0', limit),
    engine.limits.stoppedGroups(queue, '0', limit),
  ]);
  const found = [...stopped.groups.map(infoOf), ...groups, ...ruled.groups.map(infoOf)];
  const byName = new Map(found.map((group) => [group.name ?? '', group]));
  return {
    groups: [...byName.values()].toSorted(
      (a, b) => rankOf(a) - rankOf(b) || collator.compare(a.name ?? '', b.name ?? ''),
    ),
    hasMore: cursor !== null || ruled.next !== null || stopped.next !== null,
  };
}

/** Groups that wait for a person come first. */
function rankOf({ isStopped, paused }: LimitInfo): number {
  return isStopped ? 0 : paused ? 1 : 2;
}

function checkCursor(value: unknown, path: string): string {
  if (typeof value === 'string' && /^\d{1,20}$/.test(value)) return value;
  throw new InvalidOptionError(path, 'the cursor of a previous page', value);
}
