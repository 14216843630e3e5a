import { Logger } from '@nestjs/common';
import { createHash } from 'node:crypto';
import type { QueueEngine } from '../contract/engine.js';
import type { FireAnswer, FireSchedule, StoredSchedule } from '../contract/schedule-verbs.js';
import { isPassing, repeatDelay } from '../contract/retry.js';
import { RedisUnavailableError } from '../errors.js';
import { MAX_TIMER_MS } from '../job/duration.js';
import { quoted } from '../job/text.js';
import { readRecord, type Schedule } from './record.js';
import { encodeBody } from '../job/job-record.js';
import type { CheckedRule } from '../options/schedule-options.js';
import { lastBetween, nextAfter } from './times.js';

const COMPLAIN_MS = 10_000;
/** Before the next try where trying is of no use at once: Redis refuses, or what is due cannot be read. */
const PATIENCE_MS = 1_000;
/** One call must not hold Redis for long. */
const MAX_JOBS = 500;
const MAX_BYTES = 4 * 1024 * 1024;
/** How often in a row others may have been first before it looks like a fault. */
const MAX_LATE = 10;
const MAX_REMEMBERED = 1_000;

/** The schedules of one queue: a timer for the next occurrence that is known of, and what happens then. */
export class ScheduleLine {
  /** When something was last heard of the queue, of this process' clock. */
  heardAt = 0;
  private timer: NodeJS.Timeout | undefined;
  private plannedAt = Infinity;
  private looking = false;
  /** Heard of while looking. */
  private hintedAt = Infinity;
  /** Due schedules at the head that cannot be read here; they stay for whoever can. */
  private passed = 0;
  /** Hints before this moment can only lead to what the last look found. */
  private notBefore = 0;
  private tries = 0;
  private complainedAt = 0;
  private readonly complainedOf = new Set<string>();
  private stopped = false;

  constructor(
    private readonly engine: QueueEngine,
    private readonly queue: string,
    private readonly logger: Logger,
  ) {}

  hear(dueInMs: number | null): void {
    this.heardAt = performance.now();
    if (dueInMs === null) return;
    this.lookAt(Math.max(this.heardAt + dueInMs, this.notBefore));
  }

  stop(): void {
    this.stopped = true;
    if (this.timer) clearTimeout(this.timer);
  }

  private lookAt(at: number): void {
    if (this.stopped) return;
    if (this.looking) {
      this.hintedAt = Math.min(this.hintedAt, at);
      return;
    }
    if (this.timer && this.plannedAt <= at) return;
    if (this.timer) clearTimeout(this.timer);
    this.plannedAt = at;
    const ms = Math.max(0, at - performance.now());
    this.timer = setTimeout(() => void this.look(), Math.min(ms, MAX_TIMER_MS));
  }

  private async look(): Promise<void> {
    this.timer = undefined;
    this.looking = true;
    this.hintedAt = Infinity;
    let failed = false;
    const nextInMs = await this.fireAll().catch((error: Error) => {
      failed = true;
      return this.trouble(error);
    });
    this.looking = false;
    const now = performance.now();
    const nextAt = nextInMs === null ? Infinity : now + nextInMs;
    // What is due and cannot be made, or not be read, would have us look without end.
    this.notBefore = failed ? nextAt : this.passed > 0 ? now + PATIENCE_MS : 0;
    const at = Math.min(nextAt, Math.max(this.hintedAt, this.notBefore));
    if (at < Infinity) this.lookAt(at);
  }

  /** Makes the jobs of all that is due; answers after how many ms the next one is. */
  async fireAll(): Promise<number | null> {
    let passed = 0;
    let late = 0;
    for (;;) {
      const { due, nextInMs, now } = await this.engine.schedules.due(this.queue, passed);
      const calls = due.map((one) => this.plan(one, now)).filter((call) => call !== null);
      passed += due.length - calls.length;
      this.passed = passed;
      if (due.length === 0) return nextInMs;
      let answer: FireAnswer | undefined;
      for (const batch of batches(calls)) {
        if (this.stopped) return null;
        answer = await this.engine.schedules.fire(this.queue, batch);
        late = answer.made.some((made) => made !== null) ? 0 : late + 1;
      }
      this.tries = 0;
      this.complainedAt = 0;
      if (answer && answer.due <= passed) return answer.nextInMs;
      if (late > MAX_LATE) return PATIENCE_MS;
    }
  }

  private plan(stored: StoredSchedule, now: number): FireSchedule | null {
    const { id, revision, nextAt: seenAt } = stored;
    const schedule = readRecord(stored.record);
    if (schedule === null || !Number.isSafeInteger(seenAt)) return this.unreadable(stored);
    const { rule } = schedule;
    const room = Math.max(1, Math.min(MAX_JOBS, Math.floor(MAX_BYTES / stored.record.length)));
    const { occurrences, nextAt } = planFiring(rule, seenAt!, now, room);
    const jobs = occurrences.map((at) => occurrence(id, schedule, at, now));
    return { id, revision, seenAt: seenAt!, nextAt, limit: rule.limit ?? null, overlap: rule.overlap, jobs };
  }

  private unreadable({ id, record }: StoredSchedule): null {
    const what = `${id}\n${record}`;
    if (this.complainedOf.has(what)) return null;
    if (this.complainedOf.size >= MAX_REMEMBERED) this.complainedOf.clear();
    this.complainedOf.add(what);
    this.logger.error(
      `queue '${this.queue}': schedule ${quoted(id)} is due and cannot be read here: its record was written by hand or by ` +
        'a newer version; it is left alone, and the others go on',
    );
    return null;
  }

  /** Answers after how many ms to try again. */
  private trouble(error: Error): number {
    if (this.stopped) return 0;
    this.tries += 1;
    const now = performance.now();
    if (this.complainedAt === 0 || now - this.complainedAt >= COMPLAIN_MS) {
      this.complainedAt = now;
      const text = `queue '${this.queue}': schedules cannot make jobs for now, trying on: ${error.message}`;
      // That Redis cannot be reached is said once for the process, not once per queue.
      if (error instanceof RedisUnavailableError) this.logger.debug(text);
      else this.logger.error(text);
    }
    return isPassing(error) ? repeatDelay(error, this.tries) : PATIENCE_MS;
  }
}

/** What fits one call each. One that replaces a job may have to search a long line for it, so it goes alone. */
function* batches(calls: readonly FireSchedule[]): Generator<FireSchedule[]> {
  let batch: FireSchedule[] = [];
  let jobs = 0;
  let bytes = 0;
  for (const call of calls) {
    const size = call.jobs.reduce((sum, { body }) => sum + body.length, 0);
    const isFull = jobs + call.jobs.length > MAX_JOBS || bytes + size > MAX_BYTES;
    if (call.overlap === 'replace') {
      yield [call];
      continue;
    }
    if (isFull && batch.length > 0) {
      yield batch;
      [batch, jobs, bytes] = [[], 0, 0];
    }
    batch.push(call);
    jobs += call.jobs.length;
    bytes += size;
  }
  if (batch.length > 0) yield batch;
}

/** The job of one occurrence, as the store takes it. */
export interface Occurrence {
  readonly id: string;
  readonly body: string;
  readonly at: number;
  readonly dueAt: number;
  readonly priority?: number;
}

/** The job that every process would make of the same occurrence. */
export function occurrence(scheduleId: string, schedule: Schedule, at: number, now: number): Occurrence {
  const id = `${scheduleId}@${new Date(at).toISOString()}`;
  const dueAt = at + Math.floor(share(id) * schedule.rule.jitterMs);
  const { options, template } = schedule;
  const body = encodeBody(template.name, now, { ...options, dueAt }, JSON.stringify(template.data));
  return { id, body, at, dueAt, ...(options.priority !== undefined && { priority: options.priority }) };
}

/** Evenly spread from 0 to 1, and the same for the same id. */
function share(id: string): number {
  return createHash('sha1').update(id).digest().readUInt32BE(0) / 2 ** 32;
}

/** What becomes of a schedule whose time has come. */
export interface Plan {
  /** Occurrences that make a job now, earliest first. */
  readonly occurrences: readonly number[];
  /** Where it goes on; null: nowhere. In the past where more is to be made up than fits one plan. */
  readonly nextAt: number | null;
}

/** What is later than this is late, however long the interval. */
const LATE_MS = 60_000;

/**
 * Which of the occurrences from `seenAt` up to now make a job. The last of them is on time unless a minute or the next
 * occurrence has passed since; what is not on time has been missed.
 *
 * @param seenAt the next time as it is stored: an occurrence, whatever the zone's rules have become since.
 * @param room how many jobs one plan may make.
 */
export function planFiring(rule: CheckedRule, seenAt: number, now: number, room: number): Plan {
  const { missed, overlap } = rule;
  const second = nextAfter(rule, seenAt);
  const isOnly = second === null || second > now;
  const nextAt = isOnly ? second : nextAfter(rule, now);
  const last = isOnly ? seenAt : (lastBetween(rule, 1, second, now).at(-1) ?? seenAt);
  if (missed === 'skip') {
    const graceMs = Math.min(LATE_MS, (nextAt ?? Infinity) - last);
    return { occurrences: now - last <= graceMs ? [last] : [], nextAt };
  }
  // Where each replaces the one before, only the last would stay.
  if (isOnly || missed === 'once' || overlap === 'replace') return { occurrences: [last], nextAt };
  const all = lastBetween(rule, rule.maxMissed, second, now);
  if (all.length < rule.maxMissed) all.unshift(seenAt);
  return { occurrences: all.slice(0, room), nextAt: all[room] ?? nextAt };
}

/** Queues that were silent for so long are asked whether they have schedules that nobody has told of; those that sleep never are. */
const SILENCE_MS = 6_000;
const ROUND_MS = 2_000;

/**
 * Makes the jobs of schedules when their time comes, for the queues that this process serves. Every process does; the store
 * decides which of them was first. Each exchange tells when the next occurrence is due, so that what is made or resumed elsewhere
 * is known at once; a queue that makes no exchanges, since all its slots are taken or it is paused, is asked within 8 s.
 */
export class Scheduler {
  private readonly lines = new Map<string, ScheduleLine>();
  private readonly logger = new Logger('QueueScheduler');
  private timer: NodeJS.Timeout | undefined;
  private stopped = false;

  constructor(private readonly engine: QueueEngine) {}

  /** Looks after this queue from now on; its first exchange tells what there is. */
  add(queue: string): void {
    if (this.stopped || this.lines.has(queue)) return;
    this.lines.set(queue, new ScheduleLine(this.engine, queue, this.logger));
    this.timer ??= setTimeout(() => this.askSilent(), ROUND_MS);
  }

  /** The first occurrence of this queue is due in so many ms; null: it has none. */
  hear(queue: string, dueInMs: number | null): void {
    this.lines.get(queue)?.hear(dueInMs);
  }

  stop(): void {
    this.stopped = true;
    if (this.timer) clearTimeout(this.timer);
    for (const line of this.lines.values()) line.stop();
  }

  private askSilent(): void {
    const since = performance.now() - SILENCE_MS;
    const silent = [...this.lines].filter(([, line]) => line.heardAt < since).map(([queue]) => queue);
    (silent.length === 0 ? Promise.resolve([]) : this.engine.schedules.scheduled(silent))
      .then((found) => {
        for (const queue of found) this.hear(queue, 0);
      })
      // That Redis is away is said by its connection, and the next round asks again.
      .catch(() => undefined)
      .finally(() => {
        if (!this.stopped) this.timer = setTimeout(() => this.askSilent(), ROUND_MS);
      });
  }
}
