import type { LastFull } from '../contract/admin-verbs.js';
import type { Duplicate, QueueLook, QueueLimits } from '../contract/engine.js';
import { DAY_MS } from '../contract/history.js';
import { decodeBody } from '../job/job-record.js';
import { letterOf } from '../job/job-id.js';
import { countedName, readStats, type QueueStats } from '../contract/stats.js';
import { DeclarationBook } from './declaration-book.js';
import { EventLog, sayAll, type Saying } from './event-log.js';
import { byBytes, Line, Ranking } from './lines.js';
import { MemoryJob, type EndRecord } from './memory-job.js';
import { MinuteCounters } from './minute-counters.js';
import { MemoryWorker } from './memory-worker.js';
import { LimitBook, type LineEntry } from './limit-book.js';
import { ScheduleBook } from './schedule-book.js';
import { RULES } from '../job/rules.js';

/** How a queue notifies its store. */
interface Surroundings {
  ring(): void;
  ringSooner(): void;
  clearBells(): void;
  /** Called when events were written. */
  eventsWritten(): void;
}

/** A job that ends as cancelled. */
export interface Ended {
  readonly job: MemoryJob;
  readonly reason: string;
  /** How many ms it is kept. */
  readonly keepMs: number;
}

/** The last call of one lane of a producer, for repetitions. */
export interface LaneRecord {
  readonly seq: number;
  readonly duplicates: readonly Duplicate[];
  /** How many other jobs were removed to make room. Absent if there were none. */
  readonly removed?: number;
  readonly until: number;
}

/** The holder of a key. `shared/unique.lua` has the same rows. */
export interface KeyRow {
  readonly holder: string;
  /** The time until which the key counts in any case. 0: it depends on the state of the holder. */
  readonly till: number;
  readonly since: number;
  /** The job that waits for the end of the holder. Empty if there is none. */
  readonly next: string;
}

/** One queue: its jobs, each in one place, and the moves that several verbs share. */
export class MemoryQueue {
  /** The time of the current verb, in whole ms. */
  now = 0;
  pausedAt: number | null = null;
  lastFull: LastFull | null = null;
  readonly jobs = new Map<string, MemoryJob>();
  readonly wait = new Line('wait');
  readonly suspects = new Line('suspects');
  readonly prioritized = new Ranking('prioritized');
  readonly delayed = new Ranking('delayed');
  readonly completed = new Ranking('completed');
  readonly dead = new Ranking('dead');
  readonly workers = new Map<string, MemoryWorker>();
  /** The keys of `unique`, `debounce` and `throttle`, by digest. */
  readonly keys = new Map<string, KeyRow>();
  readonly lanes = new Map<string, LaneRecord>();
  readonly counters = new DayCounters();
  readonly minutes = { name: new MinuteCounters(), host: new MinuteCounters() };
  readonly schedules = new ScheduleBook(() => this.ring());
  readonly declarations = new DeclarationBook(this.schedules);
  readonly limits = new LimitBook(this);
  readonly events: EventLog;
  /** Number of active jobs that were cancelled. */
  marked = 0;
  /** When and why jobs ended as cancelled. */
  cancelled = new Map<string, { readonly at: number; readonly reason: string }>();
  cancelledUntil = 0;
  private ranks = 0;
  /** The last score given to a job due at this ms. */
  private readonly lastDue = new Map<number, number>();
  /** Jobs with large progress values, the latest writer last. Includes jobs that are gone. */
  private readonly largeProgress = new Set<MemoryJob>();
  /** Job name -> when a process last reported that it handles the name, or when a process first asked. */
  readonly handled = new Map<string, number>();

  constructor(
    readonly name: string,
    private readonly around: Surroundings,
  ) {
    this.events = new EventLog(name);
  }

  // ------------------------------------------------------------------------------------------------- bells and events

  ring(): void {
    this.around.ring();
  }

  ringSooner(): void {
    this.around.ringSooner();
  }

  /** Wakes a worker if `act` frees slots, so that other jobs may start. */
  freeing<A>(act: () => A): A {
    const before = this.limits.slotsInUse;
    const answer = act();
    if (this.limits.slotsInUse < before) this.ring();
    return answer;
  }

  /** Writes the events of a verb as one entry. `null` skips a number. */
  say(sayings: readonly (Saying | null)[], { maxEvents, eventsMaxBytes }: QueueLimits): void {
    if (maxEvents === 0 || sayings.length === 0) return;
    this.events.say(this.now, sayings, maxEvents, eventsMaxBytes);
    this.around.eventsWritten();
  }

  // ------------------------------------------------------------------------------------------------------------- times

  get dueInMs(): number | null {
    const { first } = this.delayed;
    return this.inMs(first && Math.floor(first.score));
  }

  get scheduleInMs(): number | null {
    return this.inMs(this.schedules.firstAt);
  }

  leaseOfAnotherInMs(worker: string): number | null {
    let first: number | null = null;
    for (const { name, leaseAt } of this.workers.values()) {
      if (leaseAt !== null && name !== worker && (first === null || leaseAt < first)) first = leaseAt;
    }
    return this.inMs(first);
  }

  /** Whether a worker that sleeps until a due time must wake now. */
  get isAnythingDue(): boolean {
    return this.dueInMs === 0 || this.scheduleInMs === 0 || this.leaseOfAnotherInMs('') === 0;
  }

  /** The work for a sleeping worker in this queue. Null if there is nothing. */
  look(worker: string): QueueLook | null {
    const waiting =
      this.wait.size + this.suspects.size + this.prioritized.size + this.limits.grouped.size > 0;
    const work = waiting && this.pausedAt === null;
    const { dueInMs, scheduleInMs } = this;
    const leaseInMs = this.leaseOfAnotherInMs(worker);
    if (!work && dueInMs === null && leaseInMs === null && scheduleInMs === null) return null;
    return { queue: this.name, work, dueInMs, leaseInMs, scheduleInMs };
  }

  /** The workers that have a lease, sorted by when the lease ends. A worker that holds jobs has one. */
  leased(): (MemoryWorker & { leaseAt: number })[] {
    const leased = [...this.workers.values()].filter((worker) => worker.leaseAt !== null);
    return (leased as (MemoryWorker & { leaseAt: number })[]).toSorted(
      (a, b) => a.leaseAt - b.leaseAt || byBytes(a.name, b.name),
    );
  }

  private inMs(at: number | null): number | null {
    return at === null ? null : Math.max(0, Math.ceil(at - this.now));
  }

  // ------------------------------------------------------------------------------------------------------------- moves

  /** How many jobs wait. */
  get waiting(): number {
    return this.wait.size + this.suspects.size + this.prioritized.size + this.limits.grouped.size;
  }

  /** The job with this id. Undefined if its retention is over. */
  find(id: string): MemoryJob | undefined {
    const job = this.jobs.get(id);
    return job?.place === 'completed' && job.keptUntil <= this.now ? undefined : job;
  }

  /** Creates a job that is in no place yet. Null if its id is taken. */
  create(id: string, body: string): MemoryJob | null {
    const there = this.jobs.get(id);
    if (there && this.find(id)) return null;
    if (there) this.forget(there);
    const job = new MemoryJob(id, body);
    this.jobs.set(id, job);
    return job;
  }

  /** Puts a job at the end of the line, or of its priority. */
  lineUp(job: MemoryJob, priority: number): void {
    if (priority > 0) this.prioritized.add(job, this.rank(priority));
    else this.wait.push(job);
  }

  /** Puts jobs at the end of the lines of their groups or names. */
  toLines(entries: readonly LineEntry[]): void {
    // In a new queue too, lower ranks are left for jobs that go to the front.
    if (entries.length > 0 && this.ranks + entries.length <= RULES.frontRanks) this.ranks += RULES.frontRanks;
    this.limits.toLines(entries, () => ++this.ranks % RULES.ranks);
  }

  delay(job: MemoryJob, dueAt: number, priority: number): void {
    job.priority = priority;
    this.delayed.add(job, this.placeAt(dueAt, letterOf(job.id) === ''));
  }

  /**
   * The score of a delayed job. Jobs due at the same ms run first in, first out: generated ids sort by age, and a custom id goes
   * after all others.
   */
  private placeAt(dueAt: number, isOwn: boolean): number {
    const { lastDue } = this;
    const first = Math.floor(this.delayed.first?.score ?? Infinity);
    if (lastDue.size > 1_000) for (const at of lastDue.keys()) if (at < first) lastDue.delete(at);
    const last = dueAt < first ? undefined : lastDue.get(dueAt);
    const place = isOwn && last !== undefined ? last + 1 / 2048 : dueAt;
    lastDue.set(dueAt, Math.max(place, last ?? place));
    return place;
  }

  /** Puts jobs back at the head of the line, in the given order. Jobs that stalled twice or more become suspects. */
  toHead(jobs: readonly MemoryJob[]): void {
    for (const job of jobs.toReversed()) {
      (job.stalls >= RULES.suspectAfter ? this.suspects : this.wait).unshift(job);
      job.isReturned ||= this.limits.hasLines;
    }
  }

  hold(job: MemoryJob, worker: MemoryWorker): void {
    job.place = 'active';
    job.worker = worker.name;
    worker.held.set(job.id, job);
  }

  /** Moves due jobs to the line. They keep their priority. */
  promoteDue(limit: number): number {
    let promoted = 0;
    for (; promoted < limit && (this.delayed.first?.score ?? Infinity) < this.now + 1; promoted++)
      this.promote(this.delayed.first!);
    return promoted;
  }

  promote(job: MemoryJob): void {
    this.delayed.remove(job);
    const { priority } = job;
    job.priority = 0;
    this.lineUp(job, priority);
  }

  bury(job: MemoryJob, record: string): void {
    this.leave(job);
    this.limits.release(job, 'dead');
    this.dead.add(job, this.now);
    job.failure = { at: this.now, json: record };
  }

  keep(job: MemoryJob, untilMs: number, end: EndRecord): void {
    this.leave(job);
    this.limits.release(job, 'gone');
    job.end = end;
    job.failed = 0;
    job.started = false;
    job.stalls = 0;
    job.isReturned = false;
    this.completed.add(job, untilMs);
  }

  /** Takes a job out of its place. */
  leave(job: MemoryJob): void {
    switch (job.place) {
      case null:
        return;
      case 'active':
        this.workers.get(job.worker!)!.held.delete(job.id);
        job.worker = null;
        job.place = null;
        this.unmark(job);
        return;
      case 'grouped':
        this.limits.leave(job);
        return;
      default:
        this[job.place].remove(job);
    }
  }

  /** Deletes a job with everything that is stored about it. */
  forget(job: MemoryJob): void {
    this.leave(job);
    this.limits.release(job, 'gone');
    this.jobs.delete(job.id);
  }

  // --------------------------------------------------------------------------------------------------------- cancelling

  /** Marks an active job as cancelled: it ends when its worker settles or releases it. The first reason stays. */
  mark(job: MemoryJob, reason: string, keepMs: number): void {
    if (job.cancel !== null) return;
    job.cancel = reason;
    job.cancelKeepMs = keepMs;
    this.marked += 1;
  }

  /** Takes a job that has not completed from its worker. Returns false if it was cancelled and ends now. */
  takeBack(job: MemoryJob, ended: Ended[]): boolean {
    const { cancel: reason, cancelKeepMs: keepMs } = job;
    this.leave(job);
    if (reason !== null) ended.push({ job, reason, keepMs });
    return reason === null;
  }

  /** Ends jobs as cancelled. `begun` is 1 if they ran: then the last attempt is one more than the failed ones. */
  endCancelled(ended: readonly Ended[], begun: 0 | 1): Saying[] {
    if (ended.length === 0) return [];
    this.dropOldCancelled();
    const says = ended.map(({ job, reason, keepMs }): Saying => {
      const attempt = job.failed + begun;
      if (keepMs > 0) {
        const end = { at: this.now, attempt, cancelled: reason, result: undefined };
        this.keep(job, RULES.cancelledFrom + this.now + keepMs, end);
        job.priority = 0;
      } else this.forget(job);
      this.cancelled.delete(job.id);
      this.cancelled.set(job.id, { at: this.now, reason });
      return { type: 'cancelled', id: job.id, name: job.name, attempt, reason };
    });
    this.cancelledUntil = this.now + RULES.cancelledMs;
    for (const id of this.cancelled.keys()) {
      if (this.cancelled.size <= RULES.cancelledMax) break;
      this.cancelled.delete(id);
    }
    this.counters.cancelled(this.now, ended.length);
    return says;
  }

  /** All records are deleted together, a minute after the last one. */
  dropOldCancelled(): void {
    if (this.cancelledUntil <= this.now) this.cancelled.clear();
  }

  private unmark(job: MemoryJob): void {
    if (job.cancel === null) return;
    job.cancel = null;
    this.marked -= 1;
  }

  // ---------------------------------------------------------------------------------------------------------- retention

  /** Removes dead jobs that are too old. If there are none, removes those beyond the maximum number or bytes. */
  trimDead({ deadMax, deadAgeMs, deadMaxBytes }: QueueLimits): Saying[] {
    const bytesOf = ({ body, failure, failures }: MemoryJob) =>
      Buffer.byteLength(body) +
      Buffer.byteLength(failure?.json ?? '') +
      (failures.length > 0 ? Buffer.byteLength(JSON.stringify(failures)) : 0);
    let bytes = 0;
    for (const job of this.dead) bytes += bytesOf(job);
    let most = this.dead.size;
    for (const job of bytes > deadMaxBytes ? this.dead.sorted() : []) {
      if (bytes <= deadMaxBytes || most === 1) break;
      bytes -= bytesOf(job);
      most -= 1;
    }
    const gone = this.trim(this.dead, this.now - deadAgeMs, Math.min(deadMax, most));
    return sayAll('removed', gone, { reason: 'retention' });
  }

  /** If large progress values exceed the maximum bytes, drops the oldest until three quarters of it are left. */
  boundProgress(job: MemoryJob, { progressMaxBytes: most }: QueueLimits): void {
    const bytesOf = ({ progress }: MemoryJob) => Buffer.byteLength(progress ?? '');
    if (bytesOf(job) <= Math.max(RULES.largeProgress, most / 16_384)) return;
    this.largeProgress.delete(job);
    this.largeProgress.add(job);
    let sum = 0;
    for (const one of this.largeProgress) {
      if (this.jobs.get(one.id) === one) sum += bytesOf(one);
      else this.largeProgress.delete(one);
    }
    const goal = sum > most ? most * 0.75 : sum;
    for (const one of this.largeProgress) {
      if (sum <= goal || one === job) break;
      sum -= bytesOf(one);
      one.progress = null;
      this.largeProgress.delete(one);
    }
  }

  /**
   * Removes completed jobs whose retention is over. If there are none, removes those beyond the maximum number, earliest end
   * first.
   */
  trimCompleted({ completedMax }: QueueLimits): number {
    const ended = this.trim(this.completed, this.now, Infinity);
    return ended.length > 0 ? ended.length : this.trim(this.completed, -Infinity, completedMax).length;
  }

  /** Removes cancelled jobs whose retention is over. */
  trimCancelled(): number {
    const over = this.completed
      .sorted()
      .filter((job) => job.state === 'cancelled' && job.keptUntil <= this.now)
      .slice(0, RULES.trimStep);
    for (const job of over) this.forget(job);
    return over.length;
  }

  private trim(ranking: Ranking, oldAt: number, max: number): MemoryJob[] {
    const isOld = (ranking.first?.score ?? Infinity) <= oldAt;
    const gone: MemoryJob[] = [];
    while (
      gone.length < RULES.trimStep &&
      (isOld ? (ranking.first?.score ?? Infinity) <= oldAt : ranking.size > max)
    ) {
      const job = ranking.first!;
      this.forget(job);
      gone.push(job);
    }
    return gone;
  }

  // ------------------------------------------------------------------------------------------------------------ workers

  /** The worker with this name. Creates it if needed. */
  worker(name: string): MemoryWorker {
    let worker = this.workers.get(name);
    if (!worker) {
      for (const other of this.workers.values())
        if (other.isForgotten(this.now)) this.workers.delete(other.name);
      this.workers.set(name, (worker = new MemoryWorker(name)));
    }
    return worker;
  }

  /** Extends the record of a living worker, because the clock may have jumped past the record's end. */
  vouch(name: string): void {
    const record = this.workers.get(name)?.record;
    if (record) record.until = this.now + RULES.workerRecordMs;
  }

  /** Deletes everything except lanes and records of workers without a lease, which expire, and the number of the last event. */
  obliterate(): void {
    for (const worker of this.leased()) this.workers.delete(worker.name);
    this.jobs.clear();
    for (const place of [this.wait, this.suspects, this.prioritized, this.delayed, this.completed, this.dead])
      place.clear();
    this.lastDue.clear();
    this.largeProgress.clear();
    this.handled.clear();
    this.keys.clear();
    this.cancelled.clear();
    this.counters.clear();
    for (const counters of Object.values(this.minutes)) counters.clear();
    this.schedules.clear();
    this.declarations.clear();
    this.limits.clear();
    this.events.clear();
    this.pausedAt = null;
    this.lastFull = null;
    this.marked = 0;
    this.ranks = 0;
    this.around.clearBells();
  }

  private rank(priority: number): number {
    this.ranks += 1;
    return priority * RULES.ranks + (this.ranks % RULES.ranks);
  }
}

/** How many ms a job is kept after it is cancelled. */
export function keptWhenCancelled({ body }: MemoryJob, { cancelledMs = 0 }: QueueLimits): number {
  return decodeBody(body)?.options.cancelledRetentionMs ?? cancelledMs;
}

/** Counters of outcomes by day (UTC) and job name. */
class DayCounters {
  /** `kind:name` or `cancelled`, for each day since 1970. */
  private readonly days = new Map<number, { readonly counts: Map<string, number>; names: Set<string> }>();

  cancelled(now: number, count: number): void {
    if (count > 0) this.add(now, 'cancelled', count);
  }

  count(now: number, kind: 'processed' | 'failed' | 'dead', name: string, count: number): void {
    if (count === 0) return;
    const { names } = this.dayOf(now);
    const counted = countedName(name, names);
    names.add(counted);
    this.add(now, `${kind}:${counted}`, count);
  }

  /** The counters of today and the days before, `days` in all. */
  read(now: number, days: number): QueueStats {
    const read = Array.from({ length: days }, (_, ago) => {
      const at = now - ago * DAY_MS;
      const counts = this.days.get(Math.floor(at / DAY_MS))?.counts ?? [];
      const counters = [...counts].flatMap(([field, count]) => [field, String(count)]);
      return { date: new Date(at).toISOString().slice(0, 10), counters };
    });
    return readStats(read);
  }

  clear(): void {
    this.days.clear();
  }

  private add(now: number, field: string, count: number): void {
    const { counts } = this.dayOf(now);
    counts.set(field, (counts.get(field) ?? 0) + count);
  }

  private dayOf(now: number) {
    const number = Math.floor(now / DAY_MS);
    let day = this.days.get(number);
    if (!day) {
      this.days.set(number, (day = { counts: new Map(), names: new Set() }));
      for (const old of this.days.keys()) if (old <= number - RULES.statsDays) this.days.delete(old);
    }
    return day;
  }
}
