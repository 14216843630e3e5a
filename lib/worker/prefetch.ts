import type { ClaimedJob, Supply } from '../contract/engine.js';
import { decodeBody } from '../job/job-record.js';
import { RULES } from '../job/rules.js';

/** How much work a worker may claim ahead, in ms of its own speed, in addition to the work that it does during a round trip. */
const AHEAD_MS = 5;
/** Longest round trip for which prefetching compensates. */
const MAX_ROUND_TRIP_MS = 25;
/** Maximum number of jobs per claim, so that the script does not take long. */
const MAX_CLAIM = 500;
/**
 * Limits for the bodies of one claim, in bytes. Redis needs about 2 ms to read `most` bytes. At first and on a slow connection the limit is
 * lower: other answers wait behind this one, and no job starts before the last byte has arrived.
 */
const CLAIM_BYTES = { least: 64 * 1024, first: 256 * 1024, most: 1024 * 1024 };
/** A claim faster than `QUICK_MS` may be larger the next time; one slower than `SLOW_MS` must be smaller. */
const QUICK_MS = 300;
const SLOW_MS = 1_000;

/**
 * A process whose event loop is idle for at least this part of its time waits for the store or the network, not for its handlers.
 */
const AT_REST = 0.05;

/**
 * How many jobs to claim beyond the free slots: enough that fast handlers do not wait for the network, and so few that slow jobs
 * are not kept from idle workers. The speed of the handlers is measured only while the queue always has more jobs.
 */
export class Prefetch {
  private perMs = 0;
  private ended = 0;
  private since = performance.now();
  /** Since when there is nothing to run. Null if there is something. */
  private starvedSince: number | null = null;
  private roundTripMs = MAX_ROUND_TRIP_MS;
  private charsPerJob = 0;
  maxBytes = CLAIM_BYTES.first;
  /** Whether the last large claim took so long that no second call should wait behind another one. */
  isNarrow = false;
  /** Whether the last claim found fewer jobs than it asked for. */
  isDry = false;
  private readonly rest = new Rest();

  /** A run ended. */
  count(): void {
    this.ended += 1;
  }

  /**
   * There is nothing to run until jobs arrive. This time says nothing about the speed of the handlers. If it counted, a worker
   * far from Redis would believe its handlers slow, claim few jobs, and so wait even more.
   */
  starves(): void {
    this.starvedSince ??= performance.now();
  }

  /**
   * Called with the reply to an exchange. The speed is learnt only while the queue has more jobs, and is halved when the queue is
   * empty. A paused queue, or one whose limits let no more jobs start, does not change it. Of recent round trips the shortest
   * counts: the others may include time in which a handler blocked the event loop.
   */
  measured(supply: Supply, tookMs: number): void {
    const now = performance.now();
    this.isDry = supply !== 'more';
    if (supply === 'more') this.rest.look();
    this.roundTripMs = Math.min(tookMs, this.roundTripMs * 1.1, MAX_ROUND_TRIP_MS);
    const elapsed = Math.max((this.starvedSince ?? now) - this.since, 0.05);
    if (supply === 'more') this.perMs = (this.perMs + this.ended / elapsed) / 2;
    else if (supply === 'empty') this.perMs /= 2;
    this.since = now;
    this.starvedSince &&= now;
    this.ended = 0;
  }

  /** Called when jobs arrive. `chars`: length of all bodies together. `tookMs`: null if not known. */
  received(jobs: number, chars: number, tookMs: number | null): void {
    if (this.starvedSince !== null) this.since += performance.now() - this.starvedSince;
    this.starvedSince = null;
    this.charsPerJob = (this.charsPerJob + chars / jobs) / 2;
    if (tookMs === null) return;
    this.isNarrow = chars >= CLAIM_BYTES.least && tookMs > QUICK_MS;
    if (this.isNarrow && tookMs > SLOW_MS) this.maxBytes = Math.max(CLAIM_BYTES.least, this.maxBytes / 2);
    else if (!this.isNarrow && chars * 2 > this.maxBytes)
      this.maxBytes = Math.min(CLAIM_BYTES.most, this.maxBytes * 2);
  }

  /** Maximum number of jobs one claim may ask for. */
  get most(): number {
    return Math.max(1, Math.min(MAX_CLAIM, Math.floor(this.maxBytes / Math.max(this.charsPerJob, 1))));
  }

  /**
   * Whether a claim for `want` jobs is worth a second call in flight: it is large, the queue probably has more jobs, and this
   * process waits for the store. If the store is the slower part, a second call only makes other workers wait longer.
   */
  isWorthPipelining(want: number): boolean {
    return !this.isDry && want * 2 >= this.most && this.rest.share > AT_REST;
  }

  /** Forgets the measured speed: jobs that were fast have become slow, or claimed jobs must start at once. */
  forget(): void {
    this.perMs = 0;
  }

  get jobs(): number {
    return Math.floor(this.perMs * (AHEAD_MS + this.roundTripMs));
  }
}

/** The part of recent time in which the event loop was idle. */
class Rest {
  /** The weight of earlier measurements after each new one. */
  private static readonly KEPT = 0.75;
  /** A longer measurement counts as this many ms: a long idle time says nothing about the work after it. */
  private static readonly MOST_MS = 10;
  private idle = 0;
  private active = 0;
  private idleOfLate = 0;
  private allOfLate = 0;

  look(): void {
    const { idle, active } = performance.eventLoopUtilization();
    const rested = idle - this.idle;
    const all = rested + active - this.active;
    // Two answers may arrive at almost the same time. The weight follows the elapsed time, so the second one does not replace the
    // first.
    const weight = Math.min(1, Rest.MOST_MS / all);
    this.idleOfLate = this.idleOfLate * Rest.KEPT + rested * weight;
    this.allOfLate = this.allOfLate * Rest.KEPT + all * weight;
    this.idle = idle;
    this.active = active;
  }

  get share(): number {
    return this.allOfLate > 0 ? this.idleOfLate / this.allOfLate : 0;
  }
}

/** Jobs that were claimed and have not started, first in first out. `take` only moves an index. */
export class Claims {
  private jobs: readonly ClaimedJob[] = [];
  private next = 0;

  get size(): number {
    return this.jobs.length - this.next;
  }

  put(claimed: readonly ClaimedJob[]): void {
    this.reset(this.size === 0 ? claimed : this.all().concat(claimed));
  }

  take(): ClaimedJob {
    const job = this.jobs[this.next]!;
    this.next += 1;
    // Release the array, so that the last bodies of a batch can be collected.
    if (this.next === this.jobs.length) this.reset([]);
    return job;
  }

  /** Removes all jobs and returns them. */
  clear(): readonly ClaimedJob[] {
    const rest = this.all();
    this.reset([]);
    return rest;
  }

  /** Removes the jobs with these ids and returns them. */
  drop(ids: { has(id: string): boolean }): readonly ClaimedJob[] {
    const all = this.all();
    const dropped = all.filter(({ id }) => ids.has(id));
    if (dropped.length > 0) this.reset(all.filter(({ id }) => !ids.has(id)));
    return dropped;
  }

  haveGroups(): boolean {
    return this.all().some(({ body }) => decodeBody(body)?.options.group !== undefined);
  }

  all(): readonly ClaimedJob[] {
    return this.jobs.slice(this.next);
  }

  private reset(jobs: readonly ClaimedJob[]): void {
    this.jobs = jobs;
    this.next = 0;
  }
}

/**
 * Whether claimed jobs may start without asking Redis again. The permit is short. `Queue.pause` waits that long, so no job starts
 * after it, not even in a process whose event loop was blocked.
 */
export class StartPermit {
  private until = -Infinity;
  private arrivedAt = 0;
  /** Since when answers do not count because the event loop was blocked. Infinity if the last one counted. */
  private refusedAt = Infinity;
  /** Whether an exchange was asked for, to renew the permit. */
  isAsked = false;
  /** Whether the last call of `returns` returned true, and no job has started since. */
  private hasReturned = false;

  /** Whether a job may start now. */
  starts(): boolean {
    if (performance.now() > this.until) return false;
    this.hasReturned = false;
    return true;
  }

  /** Asks for an exchange, unless one was asked for. Returns false: no job may start now. */
  ask(exchange: () => void): false {
    if (!this.isAsked) exchange();
    this.isAsked = true;
    return false;
  }

  /**
   * Whether jobs that waited for the permit must go back, if a group may be paused by now. Until a job starts, every second call returns
   * false: otherwise none could ever start on a slow connection.
   */
  returns(): boolean {
    this.hasReturned = this.isAsked && !this.hasReturned;
    return this.hasReturned;
  }

  /** Called when jobs arrive and none was waiting. */
  arrive(): void {
    this.arrivedAt = performance.now();
  }

  /**
   * An answer says whether the queue is open. The call was sent `ms` ago, so the permit counts from then. If jobs already waited
   * when it was sent, it counts from when the answer came: otherwise no job could ever start on a slow connection. The answer
   * was unread for at most `busyMs`.
   */
  renew(isOpen: boolean, ms: number, isWaiting: boolean, busyMs: number): void {
    const now = performance.now();
    const askedAt = now - ms;
    const from = isWaiting && askedAt >= this.arrivedAt ? this.cameAt(now, askedAt, busyMs) : askedAt;
    this.until = isOpen ? Math.max(this.until, from + RULES.startMs) : -Infinity;
    this.isAsked = false;
  }

  /**
   * If the event loop was blocked, the queue may have been paused after the answer came. The answer to the next call counts in any
   * case: otherwise no job could start while other handlers block the event loop again and again.
   */
  private cameAt(now: number, askedAt: number, busyMs: number): number {
    const isNext = askedAt >= this.refusedAt;
    this.refusedAt = isNext || busyMs <= RULES.startMs ? Infinity : Math.min(this.refusedAt, now);
    return isNext ? now : now - busyMs;
  }
}

/** Claimed jobs go back if none of them has started for this long. A slow job must not keep them from idle workers. */
const WAIT_MS = 50;
/** They also go back if the last of them would start after more than this many times `WAIT_MS`. */
const MAX_WAITS = 20;

/** Watches claimed jobs that wait for a slot. If they start too slowly, all go back. */
export class PrefetchTimeout {
  private timer: NodeJS.Timeout | undefined;
  private started = 0;

  constructor(
    private readonly claims: { readonly size: number },
    private readonly giveBack: () => void,
  ) {}

  /** Called when claimed jobs wait for a slot. */
  watch(): void {
    this.timer ??= setTimeout(() => this.look(), WAIT_MS);
  }

  /** Called when a claimed job starts. */
  starts(): void {
    this.started += 1;
  }

  stop(): void {
    if (this.timer) clearTimeout(this.timer);
    this.timer = undefined;
  }

  private look(): void {
    this.timer = undefined;
    if (this.claims.size === 0) return;
    const isSlow = this.claims.size > this.started * MAX_WAITS;
    this.started = 0;
    if (isSlow) return this.giveBack();
    this.watch();
  }
}
