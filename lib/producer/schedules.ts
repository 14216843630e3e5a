import type { QueueEngine } from '../contract/engine.js';
import type { StoredSchedule } from '../contract/schedule-verbs.js';
import { InvalidOptionError, ScheduleNotFoundError, WrongStateError } from '../errors.js';
import { generateId, scheduledJobId } from '../job/job-id.js';
import { encodeBody } from '../job/job-record.js';
import type { DataIn, NameIn } from '../job/queue-jobs.js';
import { quoted } from '../job/text.js';
import { field, integer, refuse, shape } from '../options/check.js';
import type { ResolvedQueueOptions } from '../options/module-options.js';
import type { ScheduleRule, ScheduleTemplate } from '../options/schedule-options.js';
import { checkScheduleId, checkScheduleRule } from '../schedule/check.js';
import {
  makeSchedule,
  readRecord,
  nextOf,
  occurrencesFrom,
  remaining,
  type MadeSchedule,
} from '../schedule/record.js';
import { nextAfter } from '../schedule/times.js';
import type { AddResult } from './add-result.js';
import type { MadeJob } from './job-maker.js';
import { date, startTimes, toSnapshot, type JobSnapshot } from './job-snapshot.js';
import { ownerOf } from '../contract/declaration-verbs.js';

/** What `upsert` did. */
export interface UpsertResult {
  /** Id of the schedule. */
  readonly id: string;
  /** Name of its queue. */
  readonly queue: string;
  /** `unchanged`: the same schedule existed already. */
  readonly outcome: 'created' | 'updated' | 'unchanged';
  /** Null while it is paused, and when it has ended. */
  readonly nextAt: Date | null;
}

/** The job that a schedule of a `Queue<Jobs>` adds. */
export type TemplateIn<Jobs = any> = {
  [Name in NameIn<Jobs>]: TemplateOf<Name, DataIn<Jobs, Name>>;
}[NameIn<Jobs>];

/** The data may be omitted if its type allows null. */
type TemplateOf<Name extends string, Data> = ScheduleTemplate<Data, Name> &
  (null extends Data ? unknown : { readonly data: Data });

const readPage = shape({
  offset: field('offset', integer(0, Number.MAX_SAFE_INTEGER)),
  limit: field('limit', integer(1, 1_000)),
});
const checkCount = integer(1, 1_000);

/**
 * Rules that add jobs at times: `queue.schedules`. Times are by the clock of Redis. Each occurrence adds exactly one job, even
 * with many processes; its id is `<schedule>@<time>`. Jobs are added by the processes that have workers for the queue.
 *
 * @example
 * await queue.schedules.upsert('daily', { cron: '0 7 * * MON-FRI', tz: 'Europe/Berlin' }, { name: 'report' });
 * await queue.schedules.upsert('poll', { every: '5m', overlap: 'skip' }, { name: 'poll', data: { feed: 1 } });
 */
export class Schedules<Jobs = any> {
  /** @internal */
  constructor(
    private readonly engine: QueueEngine,
    private readonly options: ResolvedQueueOptions,
    private readonly add: (job: MadeJob) => Promise<AddResult>,
  ) {}

  /**
   * Creates a schedule, or updates the one with this id. Repeating the same call changes nothing, so every process may call it at
   * startup. If the timing changed, the next time is computed from now; otherwise it stays. Counters and a pause always stay.
   *
   * @param id 1 to 200 bytes of well-formed text without control characters.
   * @example
   * await queue.schedules.upsert('cleanup', { every: '1h', jitter: '5m' }, { name: 'cleanup', options: { attempts: 1 } });
   * @throws {InvalidOptionError} for the rule, the id or the options
   * @throws {InvalidJobNameError | InvalidPayloadError | PayloadTooLargeError} for the template
   * @throws {RedisUnavailableError | RedisRefusedError}
   */
  async upsert(id: string, rule: ScheduleRule, template: TemplateIn<Jobs>): Promise<UpsertResult> {
    const made = this.made(id, rule, template);
    for (;;) {
      const { now, schedule: there } = await this.engine.schedules.get(this.options.name, id);
      if (there?.record === made.record) return this.upserted(id, 'unchanged', there.nextAt);
      checkEnd(made, now);
      const nextAt = nextOf(made, there, now);
      const revision = there?.revision ?? 0;
      const put = { id, revision, record: made.record, nextAt };
      // Another process has changed the schedule meanwhile. Read it again: it may be up to date now.
      if ((await this.engine.schedules.put(this.options.name, put)) === 'changed') continue;
      const isPaused = there?.mode === 'paused';
      const at = isPaused ? null : nextAt === 'keep' ? there!.nextAt : nextAt;
      return this.upserted(id, there === null ? 'created' : 'updated', at);
    }
  }

  /** @internal The checks of `upsert` for a new schedule. They need no Redis. */
  checkUpsert(id: string, rule: ScheduleRule, template: TemplateIn<Jobs>): void {
    checkEnd(this.made(id, rule, template), this.engine.now());
  }

  /**
   * One schedule, or null if there is none with this id.
   *
   * @example
   * const at = (await queue.schedules.get('daily'))?.nextAt;
   * @throws {InvalidOptionError | RedisUnavailableError | RedisRefusedError}
   */
  async get<Data = unknown>(id: string): Promise<ScheduleSnapshot<Data> | null> {
    const found = await this.find(id, 'schedules.get().id');
    return found && (toScheduleSnapshot(this.options.name, found) as ScheduleSnapshot<Data>);
  }

  /**
   * Lists schedules in the order in which they were created. `limit` is 1 to 1,000 (default 100); `offset` skips the first ones.
   *
   * @example
   * const first = await queue.schedules.list({ limit: 20 });
   * @throws {InvalidOptionError}
   */
  async list(page: { readonly offset?: number; readonly limit?: number } = {}): Promise<ScheduleSnapshot[]> {
    const { offset = 0, limit = 100 } = readPage(page, 'schedules.list()', refuse)!;
    const found: StoredSchedule[] = [];
    for (;;) {
      const rest = { offset: offset + found.length, limit: limit - found.length };
      const { total, schedules } = await this.engine.schedules.list(this.options.name, rest);
      found.push(...schedules);
      if (schedules.length === 0 || found.length >= limit || offset + found.length >= total) break;
    }
    return found.map((one) => toScheduleSnapshot(this.options.name, one));
  }

  /** How many schedules there are. @throws {RedisUnavailableError | RedisRefusedError} */
  async count(): Promise<number> {
    return (await this.engine.schedules.list(this.options.name, { offset: 0, limit: 1 })).total;
  }

  /**
   * Removes a schedule; jobs it has added stay. Resolves to false if there is none with this id.
   *
   * @throws {InvalidOptionError | RedisUnavailableError | RedisRefusedError}
   */
  remove(id: string): Promise<boolean> {
    return this.engine.schedules.remove(this.options.name, checkScheduleId(id, 'schedules.remove().id'));
  }

  /**
   * Stops adding jobs until `resume`; jobs it has added are not affected. Resolves to false if it was paused already.
   *
   * @throws {ScheduleNotFoundError}
   */
  async pause(id: string): Promise<boolean> {
    checkScheduleId(id, 'schedules.pause().id');
    const answer = await this.engine.schedules.pause(this.options.name, id);
    if (answer === 'not-found') throw new ScheduleNotFoundError(this.options.name, id);
    return answer === 'paused';
  }

  /**
   * Continues with the next occurrence from now; occurrences during the pause are skipped. Resolves to false if it was not
   * paused.
   *
   * @throws {ScheduleNotFoundError}
   */
  async resume(id: string): Promise<boolean> {
    for (;;) {
      const { now, stored, schedule } = await this.read(id, 'schedules.resume().id');
      const nextAt = remaining(schedule.rule, stored.fired) === 0 ? null : nextAfter(schedule.rule, now);
      const call = { id, revision: stored.revision, nextAt };
      const answer = await this.engine.schedules.resume(this.options.name, call);
      if (answer === 'not-found') throw new ScheduleNotFoundError(this.options.name, id);
      if (answer !== 'changed') return answer === 'resumed';
    }
  }

  /**
   * Adds a job of the schedule now, even if it is paused or has ended. The job has a generated id and does not affect the next
   * time, `limit` or `overlap`.
   *
   * @throws {QueueFullError} also if `Queue.add` would resolve with `dropped: true`
   * @throws {ScheduleNotFoundError} and what `Queue.add` throws
   */
  async runNow(id: string): Promise<AddResult> {
    const { now, schedule } = await this.read(id, 'schedules.runNow().id');
    const { template, options } = schedule;
    const job: MadeJob = {
      id: `${id}@${generateId(now)}`,
      name: template.name,
      body: encodeBody(template.name, now, options, JSON.stringify(template.data)),
      hasOwnId: true,
      replication: this.options.durability,
      ...(options.priority !== undefined && { priority: options.priority }),
      ...(options.group !== undefined && { group: options.group }),
    };
    return this.add(job);
  }

  /**
   * The last occurrences that added a job, at most 10, newest first, each with a snapshot of its job. The snapshot is null if the
   * job has ended and is not kept; give the template a `retention` to see results.
   *
   * @example
   * for (const { at, job } of await queue.schedules.history('daily')) console.log(at, job?.state ?? 'completed', job?.durationUs);
   * @throws {ScheduleNotFoundError | InvalidOptionError}
   */
  async history(id: string): Promise<ScheduleRun[]> {
    const stored = await this.find(id, 'schedules.history().id');
    if (!stored) throw new ScheduleNotFoundError(this.options.name, id);
    const { name } = this.options;
    const ids = stored.recent.toReversed().map((at) => scheduledJobId(id, at));
    const jobs = await Promise.all(ids.map((jobId) => this.engine.admin.get(name, jobId)));
    const starts = await startTimes(
      this.engine,
      name,
      jobs.filter((job) => job !== null),
    );
    return stored.recent.toReversed().map((at, i) => {
      const job = jobs[i] ?? null;
      return { at: new Date(at), jobId: ids[i]!, job: job && toSnapshot(job, this.options, starts) };
    });
  }

  /**
   * The next `count` (1 to 1,000) occurrences, without jitter. Fewer if the schedule ends before; none while it is paused.
   *
   * @example
   * const [next] = await queue.schedules.nextRuns('daily', 1);
   * @throws {ScheduleNotFoundError | InvalidOptionError}
   */
  async nextRuns(id: string, count: number): Promise<Date[]> {
    checkCount(count, 'schedules.nextRuns().count', refuse);
    const { stored, schedule } = await this.read(id, 'schedules.nextRuns().id');
    return occurrencesFrom(schedule.rule, stored.fired, stored.nextAt, count).map((at) => new Date(at));
  }

  /** @internal The next `count` occurrences, if the schedule had this rule; of a paused one, if it were resumed. */
  async preview(id: string, given: unknown, count: number): Promise<Date[]> {
    const rule = checkScheduleRule(given, 'rule')!;
    const { now, stored } = await this.read(id, 'id');
    const next = nextOf({ rule }, stored, now);
    const nextAt = next === 'keep' ? (stored.nextAt ?? nextAfter(rule, now)) : next;
    return occurrencesFrom(rule, stored.fired, nextAt, count).map((at) => new Date(at));
  }

  private made(id: string, rule: ScheduleRule, template: TemplateIn<Jobs>): MadeSchedule {
    checkScheduleId(id, 'schedules.upsert().id');
    return makeSchedule(rule, template, this.options, 'schedules.upsert()');
  }

  private upserted(id: string, outcome: UpsertResult['outcome'], nextAt: number | null): UpsertResult {
    const at = nextAt === null ? null : new Date(nextAt);
    return { id, queue: this.options.name, outcome, nextAt: at };
  }

  private async find(id: string, path: string): Promise<StoredSchedule | null> {
    return (await this.engine.schedules.get(this.options.name, checkScheduleId(id, path))).schedule;
  }

  private async read(id: string, path: string) {
    checkScheduleId(id, path);
    const { now, schedule: stored } = await this.engine.schedules.get(this.options.name, id);
    if (!stored) throw new ScheduleNotFoundError(this.options.name, id);
    const schedule = readRecord(stored.record);
    if (!schedule) {
      const advice =
        'its record was written by hand or by a newer version; write it again with schedules.upsert()';
      throw new WrongStateError(this.options.name, `schedule ${quoted(id)}`, 'unreadable', advice);
    }
    return { now, stored, schedule };
  }
}

/** An occurrence of a schedule that has added a job. */
export interface ScheduleRun {
  /** When it occurred, without jitter. */
  readonly at: Date;
  /** Id of the job it added. */
  readonly jobId: string;
  /** The job; null if it has ended and is not kept. */
  readonly job: JobSnapshot | null;
}

/** The state of a schedule at the time of the call. */
export interface ScheduleSnapshot<Data = unknown> {
  /** Id of the schedule. */
  readonly id: string;
  /** Name of its queue. */
  readonly queue: string;
  /** The rule, with times in ms; null if the record cannot be read because a newer version wrote it. */
  readonly rule: ScheduleRule | null;
  /** The job it adds; null if `rule` is null. */
  readonly template: ScheduleTemplate<Data> | null;
  /** The next occurrence, without jitter; null while it is paused, and when it has ended. */
  readonly nextAt: Date | null;
  /** The last occurrence that added a job. */
  readonly lastAt: Date | null;
  /** The id of that job. */
  readonly lastJobId: string | null;
  /** How many jobs the schedule has added. */
  readonly fired: number;
  /** Whether it is paused. */
  readonly paused: boolean;
  /** Whether `limit` or `endAt` is reached: it stays in the list and adds no more jobs. */
  readonly ended: boolean;
  /** The application that declares the schedule with `@Schedule`; null if it was created at run time. */
  readonly owner: string | null;
  /** When it was created, by the clock of Redis. */
  readonly createdAt: Date;
}

/**
 * The parts that a person may edit. A schedule from code would no longer follow it after an edit.
 *
 * @throws {WrongStateError} if it is declared in code, or unreadable
 */
export function editableOf({ queue, id, owner, rule, template }: ScheduleSnapshot) {
  const refused = (state: string, advice: string) =>
    new WrongStateError(queue, `schedule ${quoted(id)}`, state, advice);
  if (owner !== null) throw refused(`declared in the code of ${quoted(owner)}`, 'change it there');
  if (!rule || !template) throw refused('unreadable', 'write it again with schedules.upsert()');
  return { rule, template };
}

function checkEnd({ rule: { endAt }, given }: MadeSchedule, now: number): void {
  if (endAt !== undefined && endAt <= now)
    throw new InvalidOptionError('schedules.upsert().rule.endAt', 'in the future', given.endAt);
}

function toScheduleSnapshot(queue: string, stored: StoredSchedule): ScheduleSnapshot {
  const read = readRecord(stored.record);
  return {
    id: stored.id,
    queue,
    rule: read?.given ?? null,
    template: read?.template ?? null,
    nextAt: date(stored.nextAt),
    lastAt: date(stored.lastAt),
    lastJobId: stored.lastJob ?? (stored.lastAt === null ? null : scheduledJobId(stored.id, stored.lastAt)),
    fired: stored.fired,
    paused: stored.mode === 'paused',
    ended: stored.mode === 'ended',
    owner: ownerOf(stored.record),
    createdAt: new Date(stored.createdAt),
  };
}
