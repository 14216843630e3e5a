import {
  BULK_KINDS,
  BULK_STATES,
  bulkActOf,
  bulkActsOf,
  readBulkAct,
  SILENT_MS,
  type BulkAct,
  type BulkActRecord,
  type BulkKind,
} from '../contract/bulk-act-verbs.js';
import type { QueueEngine } from '../contract/engine.js';
import { isPassing, pause, repeatDelay } from '../contract/retry.js';
import { BulkActNotFoundError, InvalidOptionError, NotRunningError, WrongStateError } from '../errors.js';
import { checkJobId, generateId } from '../job/job-id.js';
import type { NameIn } from '../job/queue-jobs.js';
import { quoted } from '../job/text.js';
import { field, oneOf, refuse, rule, shape } from '../options/check.js';
import { readPlainRate, type RateOptions } from '../options/limit-options.js';
import {
  actOf,
  actOnAll,
  checkCancelReason,
  checkFilter,
  NO_REASON,
  type CheckedFilter,
  type JobFilter,
  type JobMatch,
} from './bulk-acts.js';

/** Selects the jobs of an act. `state` may be left out to retry (`dead`), promote (`delayed`) and cancel (all that have not ended). */
export type BulkActFilter<Name extends string = string> = Omit<JobFilter<Name>, 'state'> &
  Partial<Pick<JobFilter, 'state'>>;

/** Options of `bulkActs.start`. */
export interface BulkActOptions {
  /** At most `max` jobs in `per`, evenly spaced. @default as fast as Redis answers */
  readonly rate?: Pick<RateOptions, 'max' | 'per'>;
  /** Reason of a `cancel`. @default 'no reason was given' */
  readonly reason?: string;
}

/** @internal The parts that the dashboard adds. */
export interface BulkActHost {
  readonly actor?: string | null;
  /** How to read `more` of a record. Without it, acts that have it are not continued here. */
  readonly matchOf?: (more: Readonly<Record<string, string>>) => JobMatch;
}

/** How often a running act is reported, and a stop is noticed. */
const REPORT_MS = 1_000;
/** Records that are kept for each prefix, besides those of running acts. */
const KEPT = 100;
const readKind = oneOf(...BULK_KINDS);
const readOptions = shape({
  rate: field('rate', readPlainRate),
  reason: field('reason', rule(checkCancelReason)),
});

/**
 * Acts on many jobs in the background: `queue.bulkActs`. The process that starts or resumes an act works on it; every process sees
 * how far it is and can stop it. If the process ends, any other can continue. Jobs that are added or end after the start are not
 * affected. About the last 100 acts of the prefix are kept, for 7 days.
 *
 * @example
 * const { id } = await queue.bulkActs.start('retry', { newerThan: '1h' }, { rate: { max: 50, per: '1s' } });
 * const { state, done, total } = (await queue.bulkActs.get(id))!;
 * console.log(state, done, total);
 * await queue.bulkActs.stop(id);
 */
export class BulkActs<Jobs = any> {
  /** @internal */
  constructor(
    private readonly engine: QueueEngine,
    private readonly queue: string,
    private readonly host: BulkActHost = {},
  ) {}

  /** @internal The same acts, for a person or a dashboard. */
  for(host: BulkActHost): BulkActs<Jobs> {
    return new BulkActs(this.engine, this.queue, host);
  }

  /**
   * Starts an act on all jobs that match. Resolves when it is stored; this process then works on it.
   *
   * @throws {InvalidOptionError | InvalidJobNameError}
   * @example
   * await queue.bulkActs.start('remove', { state: 'completed', olderThan: '2d' });
   */
  async start(
    kind: BulkKind,
    filter: BulkActFilter<NameIn<Jobs>> = {},
    options: BulkActOptions = {},
  ): Promise<BulkAct> {
    // A variable that is undefined by mistake must not match all jobs.
    if (arguments.length > 1 && arguments[1] === undefined)
      throw new InvalidOptionError('bulkActs.start().filter', 'an object ({} for all jobs)', undefined);
    return this.begin(kind, filter, options, null);
  }

  /** @internal `start` with a filter of the dashboard. */
  async begin(
    kind: BulkKind,
    filter: BulkActFilter,
    options: BulkActOptions,
    more: BulkActRecord['more'],
  ): Promise<BulkAct> {
    readKind(kind, 'bulkActs.start().kind', refuse);
    const { rate = null, reason = null } = readOptions(options, 'bulkActs.start().options', refuse)!;
    const checked = checkBulkFilter(kind, filter);
    const id = generateId(this.engine.now());
    const at = Math.floor(this.engine.now());
    const record: BulkActRecord = {
      queue: this.queue,
      kind,
      filter: plainFilter(checked),
      rate,
      reason: kind === 'cancel' ? (reason ?? NO_REASON) : null,
      startedBy: this.host.actor ?? null,
      startedAt: at,
      state: 'running',
      total: await this.totalOf(checked),
      examined: 0,
      done: 0,
      unchanged: 0,
      stoppedBy: null,
      error: null,
      updatedAt: at,
      runner: id,
      more,
    };
    await this.prune();
    const run = new BulkRun(this.engine, id, record);
    await run.save({});
    void run.work(checked, this.matchOf(record));
    return bulkActOf(id, record, at);
  }

  /** The acts in this queue, the latest first. @throws {RedisUnavailableError | RedisRefusedError} */
  async list(): Promise<BulkAct[]> {
    return bulkActsOf(await this.engine.bulkActs.list(), this.engine.now()).filter(
      ({ queue }) => queue === this.queue,
    );
  }

  /** One act; null if there is none with this id. @throws {InvalidJobIdError | RedisUnavailableError | RedisRefusedError} */
  async get(id: string): Promise<BulkAct | null> {
    checkJobId(id);
    return (await this.list()).find((act) => act.id === id) ?? null;
  }

  /**
   * Stops an act, in whatever process it runs; it ends within a second. One that has ended stays as it is.
   *
   * @throws {BulkActNotFoundError | InvalidJobIdError}
   */
  async stop(id: string): Promise<void> {
    for (;;) {
      const { text, record } = await this.read(id);
      const now = Math.floor(this.engine.now());
      if (record.state !== 'running') return;
      const isSilent = bulkActOf(id, record, now).state === 'interrupted';
      const stopped: BulkActRecord = {
        ...record,
        stoppedBy: this.host.actor ?? '',
        ...(isSilent && { state: 'stopped', updatedAt: now }),
      };
      if (await this.put(id, text, stopped)) return;
    }
  }

  /**
   * Continues an act that was interrupted or stopped, or has failed, in this process. The filter is the same, and ages still count
   * from `startedAt`.
   *
   * @throws {BulkActNotFoundError | InvalidJobIdError}
   * @throws {WrongStateError} if it is running or done
   */
  async resume(id: string): Promise<void> {
    for (;;) {
      const { text, record } = await this.read(id);
      const now = Math.floor(this.engine.now());
      const { state } = bulkActOf(id, record, now);
      if (state === 'running' || state === 'done')
        throw new WrongStateError(this.queue, `bulk act ${quoted(id)}`, state, 'start another one');
      const match = this.matchOf(record);
      const filtered = checkBulkFilter(record.kind, record.filter);
      const checked = { ...filtered, limit: Math.max(0, filtered.limit - record.done) };
      const next: BulkActRecord = {
        ...record,
        state: 'running',
        // Jobs that were changed before are not found again.
        total: record.done + (await this.totalOf(checked)),
        examined: record.done,
        stoppedBy: null,
        error: null,
        updatedAt: now,
        runner: generateId(now),
      };
      if (!(await this.put(id, text, next))) continue;
      void new BulkRun(this.engine, id, next, JSON.stringify(next)).work(checked, match);
      return;
    }
  }

  private async read(id: string): Promise<{ readonly text: string; readonly record: BulkActRecord }> {
    checkJobId(id);
    const text = (await this.engine.bulkActs.list()).get(id);
    const record = text === undefined ? null : readBulkAct(text);
    if (text === undefined || record?.queue !== this.queue) throw new BulkActNotFoundError(this.queue, id);
    return { text, record };
  }

  private put(id: string, before: string, after: BulkActRecord): Promise<boolean> {
    return this.engine.bulkActs.put({ id, queue: this.queue, before, after: JSON.stringify(after) });
  }

  private matchOf({ more }: BulkActRecord): JobMatch {
    if (more === null) return { isMatch: () => true };
    const { matchOf } = this.host;
    if (matchOf) return matchOf(more);
    const advice = 'its filter can only be read by a dashboard; resume it there';
    throw new WrongStateError(this.queue, 'this bulk act', 'from a dashboard', advice);
  }

  private async totalOf({ states }: CheckedFilter): Promise<number> {
    const counts = await this.engine.admin.counts(this.queue);
    return states.reduce((sum, state) => sum + counts[state], 0);
  }

  /** Removes the oldest records of acts that have ended. */
  private async prune(): Promise<void> {
    const records = await this.engine.bulkActs.list();
    const ended = bulkActsOf(records, this.engine.now()).filter(({ state }) => state !== 'running');
    for (const { id, queue } of ended.slice(KEPT - 1))
      await this.engine.bulkActs.put({ id, queue, before: records.get(id)!, after: '' });
  }
}

function checkBulkFilter(kind: BulkKind, filter: unknown): CheckedFilter {
  return checkFilter(filter, 'bulkActs.start().filter', BULK_STATES[kind], kind === 'remove');
}

/** The filter as it is stored, with ages in ms. The caller may change its own object. */
function plainFilter({ states, limit, olderThanMs, newerThanMs, ...match }: CheckedFilter) {
  return {
    ...(states.length === 1 && { state: states[0]! }),
    ...match,
    ...(olderThanMs !== undefined && { olderThan: olderThanMs }),
    ...(newerThanMs !== undefined && { newerThan: newerThanMs }),
    ...(limit < Number.MAX_SAFE_INTEGER && { limit }),
  };
}

/** One act, in the process that works on it. */
class BulkRun {
  private readonly abort = new AbortController();
  private reportedAt = performance.now();
  private isReporting = false;
  private isLost = false;
  private saving: Promise<void> = Promise.resolve();
  private counts: Pick<BulkActRecord, 'examined' | 'done' | 'unchanged'>;

  constructor(
    private readonly engine: QueueEngine,
    private readonly id: string,
    private readonly record: BulkActRecord,
    /** The record as it is stored. */
    private text = '',
  ) {
    const { examined, done, unchanged } = record;
    this.counts = { examined, done, unchanged };
  }

  /** Never rejects: if the store is unreachable, the act is interrupted. */
  async work(filter: CheckedFilter, match: JobMatch): Promise<void> {
    const timer = setInterval(() => void this.report(), REPORT_MS);
    const { signal } = this.abort;
    let end: Partial<BulkActRecord> | undefined;
    for (let tries = 1; !end; tries++) {
      try {
        // oxlint-disable-next-line no-await-in-loop -- each try follows the one before
        await this.actOn(filter, match);
        end = { state: signal.aborted ? 'stopped' : 'done' };
      } catch (error) {
        // A step whose answer was lost may have used up the limit.
        const isLimited = filter.limit < Number.MAX_SAFE_INTEGER;
        if (!isPassing(error) || isLimited) end = { state: 'failed', error: (error as Error).message };
        // oxlint-disable-next-line no-await-in-loop
        else await pause(repeatDelay(error, tries), signal);
        if (signal.aborted) end ??= { state: 'stopped' };
      }
    }
    clearInterval(timer);
    if (!this.isLost) await this.save(end).catch(() => {});
  }

  /** Acts on the jobs that are left: those that were changed before are not found again. */
  private async actOn(filter: CheckedFilter, match: JobMatch): Promise<void> {
    const { queue, kind, reason, rate, startedAt } = this.record;
    const act = actOf(this.engine, queue, kind, reason ?? undefined);
    const pace = { ...(rate && { rate }), signal: this.abort.signal } as Parameters<typeof actOnAll>[4];
    const examinedBefore = this.counts.done;
    await actOnAll(this.engine, queue, filter, act, pace, {
      passedMs: () => Math.max(0, this.engine.now() - startedAt),
      match,
      onStep: ({ matched, changed, examined }) => {
        const { done, unchanged } = this.counts;
        this.counts = {
          examined: examinedBefore + examined,
          done: done + changed,
          unchanged: unchanged + matched - changed,
        };
      },
    });
  }

  private async report(): Promise<void> {
    if (this.isReporting) return;
    this.isReporting = true;
    try {
      await this.save({});
      this.reportedAt = performance.now();
    } catch (error) {
      // By now, other processes treat the act as interrupted. A process that stops must not wait for it.
      const isSilent = performance.now() - this.reportedAt > SILENT_MS;
      if (isSilent || error instanceof NotRunningError) this.lose();
    }
    this.isReporting = false;
  }

  /** This process no longer works on the act. */
  private lose(): void {
    this.isLost = true;
    this.abort.abort();
  }

  /** Stores how far it is, after earlier reports. Stops the act if somebody asked for that, or another process has taken it. */
  save(change: Partial<BulkActRecord>): Promise<void> {
    const saved = this.saving.then(() => this.write(change));
    this.saving = saved.catch(() => {});
    return saved;
  }

  private async write(change: Partial<BulkActRecord>): Promise<void> {
    const { bulkActs } = this.engine;
    for (;;) {
      const known = readBulkAct(this.text) ?? this.record;
      const updatedAt = Math.floor(this.engine.now());
      const after = JSON.stringify({ ...known, ...this.counts, ...change, updatedAt });
      const call = { id: this.id, queue: this.record.queue, before: this.text, after };
      if (await bulkActs.put(call)) {
        this.text = after;
        return;
      }
      const text = (await bulkActs.list()).get(this.id);
      const there = readBulkAct(text ?? '');
      if (there?.runner !== this.record.runner) return this.lose();
      if (there.stoppedBy !== null) this.abort.abort();
      this.text = text!;
    }
  }
}
