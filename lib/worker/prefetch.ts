import type { ClaimedJob, Supply } from '../contract/engine.js';
import { RULES } from '../job/rules.js';

/** Work that a worker may hold without having started it, in ms of its own speed: so much, and what it does during a round trip. */
const AHEAD_MS = 5;
/** A network slower than this is not made up for. */
const MAX_ROUND_TRIP_MS = 25;
/** Jobs per claim: one script must not take long. */
const MAX_CLAIM = 500;
/**
 * What the bodies of one claim may take. At most what Redis hands out in some 2 ms; at first, and on a slow line, less: other answers
 * wait behind this one, and no job starts before the last one has arrived.
 */
const CLAIM_BYTES = { least: 64 * 1024, first: 256 * 1024, most: 1024 * 1024 };
/** A claim that took no longer may be larger the next time, and one that took longer must be smaller. */
const QUICK_MS = 300;
const SLOW_MS = 1_000;

/** Share of its time that a process rests where the store, or the way to it, is slower than its handlers. */
const AT_REST = 0.05;

/**
 * How many jobs to claim beyond the free slots: so many that fast handlers need not wait for the network, so few that slow
 * jobs are never kept from idle workers. Speed is measured only while there was always more to do.
 */
export class Prefetch {
  private perMs = 0;
  private ended = 0;
  private since = performance.now();
  private roundTripMs = MAX_ROUND_TRIP_MS;
  private charsPerJob = 0;
  maxBytes = CLAIM_BYTES.first;
  /** The last large claim took so long that nothing else should wait behind another one. */
  isNarrow = false;
  /** The last claim has found less than it asked for. */
  isDry = false;
  private readonly rest = new Rest();

  /** A run ended. */
  count(): void {
    this.ended += 1;
  }

  /**
   * An exchange was answered. Speed is learnt only from a queue that has more, and forgotten where one is empty: one that is paused or
   * limited says nothing of it. The shortest round trip of late counts: in the others
   * the answer may have waited for a handler.
   */
  measured(supply: Supply, tookMs: number, isLimited = false): void {
    const now = performance.now();
    this.isDry = supply !== 'more';
    if (supply === 'more') this.rest.look();
    this.roundTripMs = Math.min(tookMs, this.roundTripMs * 1.1, MAX_ROUND_TRIP_MS);
    const elapsed = Math.max(now - this.since, 0.05);
    if (supply === 'more') this.perMs = (this.perMs + this.ended / elapsed) / 2;
    else if (supply === 'empty') this.perMs /= 2;
    // A limit counts starts at the claim: what is claimed ahead would start later than it was counted.
    if (isLimited) this.perMs = 0;
    this.since = now;
    this.ended = 0;
  }

  /** Jobs came, with bodies of this length together; `tookMs`: null where that is not known. */
  received(jobs: number, chars: number, tookMs: number | null): void {
    this.charsPerJob = (this.charsPerJob + chars / jobs) / 2;
    if (tookMs === null) return;
    this.isNarrow = chars >= CLAIM_BYTES.least && tookMs > QUICK_MS;
    if (this.isNarrow && tookMs > SLOW_MS) this.maxBytes = Math.max(CLAIM_BYTES.least, this.maxBytes / 2);
    else if (!this.isNarrow && chars * 2 > this.maxBytes)
      this.maxBytes = Math.min(CLAIM_BYTES.most, this.maxBytes * 2);
  }

  /** Jobs one claim may ask for. */
  get most(): number {
    return Math.max(1, Math.min(MAX_CLAIM, Math.floor(this.maxBytes / Math.max(this.charsPerJob, 1))));
  }

  /**
   * Whether a claim of so many is worth a call of its own beside another one: it is large, more is likely to be there, and this
   * process waits for the store. Where the store waits for it, a second one would only make others wait longer for their turn.
   */
  isWorthPipelining(want: number): boolean {
    return !this.isDry && want * 2 >= this.most && this.rest.share > AT_REST;
  }

  /** What was fast has become slow. */
  forget(): void {
    this.perMs = 0;
  }

  get jobs(): number {
    return Math.floor(this.perMs * (AHEAD_MS + this.roundTripMs));
  }
}

/** How much of its time the event loop of this process has been at rest of late. */
class Rest {
  /** What was seen before counts so much less with each look. */
  private static readonly KEPT = 0.75;
  /** A long rest counts as one of so many ms: it tells nothing of the work behind it. */
  private static readonly MOST_MS = 10;
  private idle = 0;
  private active = 0;
  private idleOfLate = 0;
  private allOfLate = 0;

  look(): void {
    const { idle, active } = performance.eventLoopUtilization();
    const rested = idle - this.idle;
    const all = rested + active - this.active;
    // Two answers may come at once, with next to no time between them: by time, what was before counts on.
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

/** Jobs that were claimed and have not started, first in first out; taking one moves nothing. */
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
    // Else the last body of a batch would be kept until the next one.
    if (this.next === this.jobs.length) this.reset([]);
    return job;
  }

  /** Answers what was there. */
  clear(): readonly ClaimedJob[] {
    const rest = this.all();
    this.reset([]);
    return rest;
  }

  /** Answers those that were there. */
  drop(ids: { has(id: string): boolean }): readonly ClaimedJob[] {
    const all = this.all();
    const dropped = all.filter(({ id }) => ids.has(id));
    if (dropped.length > 0) this.reset(all.filter(({ id }) => !ids.has(id)));
    return dropped;
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
 * Whether claimed jobs may start. `Queue.pause` waits as long as they may start without asking, so that none does behind it, not even
 * in a process whose event loop was blocked meanwhile.
 */
export class StartPermit {
  private until = -Infinity;
  private arrivedAt = 0;
  /** An exchange is to tell whether they may start. */
  isAsked = false;

  get isValid(): boolean {
    return performance.now() <= this.until;
  }

  /** Jobs came, and none was there. */
  arrive(): void {
    this.arrivedAt = performance.now();
  }

  /** Answers that none may start now, and asks, unless an answer is on its way. */
  ask(exchange: () => void): false {
    if (!this.isAsked) exchange();
    this.isAsked = true;
    return false;
  }

  /**
   * Whether the queue was open was answered, by a call that was made `ms` ago. On a slow line the time counts from the answer to a
   * second question, so that jobs start there too.
   */
  renew(isOpen: boolean, ms: number, isWaiting: boolean): void {
    const now = performance.now();
    const askedAt = now - ms;
    const from = isWaiting && askedAt >= this.arrivedAt ? now : askedAt;
    this.until = isOpen ? Math.max(this.until, from + RULES.startMs) : -Infinity;
    this.isAsked = false;
  }
}

/** Claimed jobs that have not started within this time go back: a slow one must not keep them from idle workers. */
const WAIT_MS = 50;

/** Watches over claimed jobs that wait for a slot: where none of them starts for a while, all go back. */
export class PrefetchTimeout {
  private timer: NodeJS.Timeout | undefined;
  private started = false;

  constructor(
    private readonly claims: { readonly size: number },
    private readonly giveBack: () => void,
  ) {}

  /** Some are there that cannot start yet. */
  watch(): void {
    this.timer ??= setTimeout(() => this.look(), WAIT_MS);
  }

  /** One of them starts. */
  starts(): void {
    this.started = true;
  }

  stop(): void {
    if (this.timer) clearTimeout(this.timer);
    this.timer = undefined;
  }

  private look(): void {
    this.timer = undefined;
    if (this.claims.size === 0) return;
    if (!this.started) return this.giveBack();
    this.started = false;
    this.watch();
  }
}
