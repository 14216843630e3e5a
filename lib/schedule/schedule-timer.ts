import { Log } from '../contract/log.js';
import { Trouble } from '../contract/trouble.js';
import { createHash } from 'node:crypto';
import type { QueueEngine } from '../contract/engine.js';
import type { FireAnswer, FireSchedule, OccurrenceJob, StoredSchedule } from '../contract/schedule-verbs.js';
import { nextTryDelay } from '../contract/retry.js';
import { MAX_TIMER_MS } from '../job/duration.js';
import { scheduledJobId } from '../job/job-id.js';
import { quoted } from '../job/text.js';
import { readRecord, type Schedule } from './record.js';
import { encodeBody } from '../job/job-record.js';
import type { CheckedRule } from '../options/schedule-options.js';
import { lastBetween, nextAfter } from './times.js';

/** Pause before the next look if looking at once is useless, because a due schedule cannot be read. */
const PATIENCE_MS = 1_000;
/** Limits of one call, so that it does not block Redis for long. */
const MAX_JOBS = 500;
const MAX_BYTES = 4 * 1024 * 1024;
/** After this many rounds in a row in which other processes added all the jobs, the timer waits before it asks again. */
const MAX_LATE = 10;
const MAX_REMEMBERED = 1_000;

/** The schedules of one queue: waits for the next known occurrence, then makes its jobs. */
export class QueueScheduleTimer {
  /** When an exchange last reported the next occurrence, on the clock of `performance.now()`. */
  heardAt = 0;
  private timer: NodeJS.Timeout | undefined;
  private plannedAt = Infinity;
  private looking = false;
  /** An earlier time that was reported while the timer looked. */
  private hintedAt = Infinity;
  /** Due schedules at the head that this version cannot read; a process that can read them will fire them. */
  private unreadableCount = 0;
  /** Hints of an earlier time are ignored until this time, because a check would find nothing new. */
  private notBefore = 0;
  private tries = 0;
  private readonly complainedOf = new Set<string>();
  private stopped = false;
  private readonly trouble: Trouble;

  constructor(
    private readonly engine: QueueEngine,
    private readonly queue: string,
    private readonly logger: Log,
  ) {
    const fails = `queue '${queue}': schedules cannot make jobs`;
    this.trouble = new Trouble(logger, fails, `queue '${queue}': schedules make jobs again`);
  }

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
      return this.failed(error);
    });
    this.looking = false;
    const now = performance.now();
    const nextAt = nextInMs === null ? Infinity : now + nextInMs;
    // Without this pause, a due schedule that fails or cannot be read would be tried in an endless loop.
    this.notBefore = failed ? nextAt : this.unreadableCount > 0 ? now + PATIENCE_MS : 0;
    const at = Math.min(nextAt, Math.max(this.hintedAt, this.notBefore));
    if (at < Infinity) this.lookAt(at);
  }

  /** Adds the jobs of all due schedules. Returns the ms until the next occurrence, or null if there is none. */
  async fireAll(): Promise<number | null> {
    let passed = 0;
    let late = 0;
    for (;;) {
      const { due, nextInMs, now } = await this.engine.schedules.due(this.queue, passed);
      this.unreadableCount = passed;
      if (due.length === 0) {
        this.worked();
        return nextInMs;
      }
      let answer: FireAnswer | undefined;
      for (const batch of batches(this.planAll(due, now))) {
        if (this.stopped) return null;
        answer = await this.engine.schedules.fire(this.queue, batch);
        late = answer.made.some((made) => made !== null) ? 0 : late + 1;
      }
      passed = this.unreadableCount;
      this.worked();
      if (answer && answer.due <= passed) return answer.nextInMs;
      if (late > MAX_LATE) return PATIENCE_MS;
    }
  }

  /**
   * Plans one schedule after the other, while earlier ones are fired: a hundred with many missed occurrences would block the event
   * loop for seconds.
   */
  private *planAll(due: readonly StoredSchedule[], now: number): Generator<FireSchedule> {
    for (const one of due) {
      const call = this.plan(one, now);
      if (call === null) this.unreadableCount += 1;
      else yield call;
    }
  }

  private plan(stored: StoredSchedule, now: number): FireSchedule | null {
    const { id, revision, nextAt: seenAt } = stored;
    const schedule = readRecord(stored.record);
    if (schedule === null || !Number.isSafeInteger(seenAt)) return this.unreadable(stored);
    const { rule } = schedule;
    const room = Math.max(1, Math.min(MAX_JOBS, Math.floor(MAX_BYTES / stored.record.length)));
    try {
      const { occurrences, nextAt } = planFiring(rule, seenAt!, now, room);
      const jobs = occurrences.map((at) => occurrence(id, schedule, at, now));
      return {
        id,
        revision,
        seenAt: seenAt!,
        nextAt,
        limit: rule.limit ?? null,
        afterEndMs: rule.afterEnd ? rule.everyMs! : null,
        overlap: rule.overlap,
        jobs,
      };
    } catch {
      // No date can represent its next time.
      return this.unreadable(stored);
    }
  }

  private unreadable({ id, record }: StoredSchedule): null {
    const what = `${id}\n${record}`;
    if (this.complainedOf.has(what)) return null;
    if (this.complainedOf.size >= MAX_REMEMBERED) this.complainedOf.clear();
    this.complainedOf.add(what);
    this.logger.error(
      `queue '${this.queue}': schedule ${quoted(id)} is due, but this version cannot read its record (written by hand or by ` +
        'a newer version); it is skipped, the other schedules still run',
    );
    return null;
  }

  private worked(): void {
    this.tries = 0;
    this.trouble.ended();
  }

  /** Returns the ms to wait before the next try. */
  private failed(error: Error): number {
    if (this.stopped) return 0;
    this.tries += 1;
    this.trouble.failed(error);
    return nextTryDelay(error, this.tries);
  }
}

/**
 * Splits calls so that each batch fits one script call. A schedule that replaces a job is sent alone, because the script may
 * search a long list for that job.
 */
function* batches(calls: Iterable<FireSchedule>): Generator<FireSchedule[]> {
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

/** Builds the job of an occurrence. Every process builds the same one, so that the engine can recognise duplicates. */
export function occurrence(scheduleId: string, schedule: Schedule, at: number, now: number): OccurrenceJob {
  const id = scheduledJobId(scheduleId, at);
  const dueAt = at + Math.floor(share(id) * schedule.rule.jitterMs);
  const { options, template } = schedule;
  const body = encodeBody(template.name, now, { ...options, dueAt }, JSON.stringify(template.data));
  return { id, body, at, dueAt, ...(options.priority !== undefined && { priority: options.priority }) };
}

/** A number from 0 to 1 derived from the id: evenly spread, and always the same for the same id. */
function share(id: string): number {
  return createHash('sha1').update(id).digest().readUInt32BE(0) / 2 ** 32;
}

/** The jobs that a due schedule adds now, and when it is due next. */
interface Plan {
  /** Occurrences that add a job now, earliest first. */
  readonly occurrences: readonly number[];
  /** The next occurrence. Null: none is left. It is in the past if more missed jobs are due than fit one plan. */
  readonly nextAt: number | null;
}

/** How often to check whether the job of a schedule that counts from its end has ended. */
const LOOK_MIN_MS = 250;
const LOOK_MAX_MS = 30_000;

/** An occurrence is late after this time, even if the interval is longer. */
const LATE_MS = 60_000;

/**
 * Decides which occurrences from `seenAt` up to now make a job. The last one is on time unless more than a minute, or the
 * next occurrence, has passed since. All others were missed.
 *
 * @param seenAt the stored next time: an occurrence, even if the rules of the time zone have changed since.
 * @param room how many jobs one plan may make.
 */
export function planFiring(rule: CheckedRule, seenAt: number, now: number, room: number): Plan {
  const { missed, overlap } = rule;
  if (rule.afterEnd) {
    const { endAt = Infinity } = rule;
    const lookAfterMs = Math.min(Math.max(Math.ceil(rule.everyMs! / 20), LOOK_MIN_MS), LOOK_MAX_MS);
    // However early its job ends, the next run would begin after `endAt`.
    const isLast = now + rule.everyMs! > endAt;
    return { occurrences: seenAt > endAt ? [] : [seenAt], nextAt: isLast ? null : now + lookAfterMs };
  }
  const second = nextAfter(rule, seenAt);
  const isOnly = second === null || second > now;
  const nextAt = isOnly ? second : nextAfter(rule, now);
  const last = isOnly ? seenAt : (lastBetween(rule, 1, second, now).at(-1) ?? seenAt);
  if (missed === 'skip') {
    const graceMs = Math.min(LATE_MS, (nextAt ?? Infinity) - last);
    return { occurrences: now - last <= graceMs ? [last] : [], nextAt };
  }
  // With overlap 'replace', only the last job would remain, so the others are not added.
  if (isOnly || missed === 'once' || overlap === 'replace') return { occurrences: [last], nextAt };
  const all = lastBetween(rule, rule.maxMissed, second, now);
  if (all.length < rule.maxMissed) all.unshift(seenAt);
  return { occurrences: all.slice(0, room), nextAt: all[room] ?? nextAt };
}

/** If a queue has made no exchange for this long, its schedules are queried. Sleeping workers exchange more often. */
const SILENCE_MS = 6_000;
const ROUND_MS = 2_000;

/**
 * Adds the jobs of schedules when they are due, for the queues that this process serves. Every process does so, and the engine
 * decides which one is first. Each exchange reports when the next occurrence is due, so a schedule that was created or resumed
 * elsewhere is known at once. A queue without exchanges (all slots are busy, or it is paused) is queried within 8 s.
 */
export class Scheduler {
  private readonly timers = new Map<string, QueueScheduleTimer>();
  private readonly logger = new Log('QueueScheduler');
  private timer: NodeJS.Timeout | undefined;
  private stopped = false;

  constructor(private readonly engine: QueueEngine) {}

  /** Fires the schedules of this queue from now on. Its first exchange reports when the next one is due. */
  add(queue: string): void {
    if (this.stopped || this.timers.has(queue)) return;
    this.timers.set(queue, new QueueScheduleTimer(this.engine, queue, this.logger));
    this.timer ??= setTimeout(() => this.askSilent(), ROUND_MS);
  }

  remove(queue: string): void {
    this.timers.get(queue)?.stop();
    this.timers.delete(queue);
  }

  /** Called with the ms until the next occurrence in this queue. Null: it has none. */
  hear(queue: string, dueInMs: number | null): void {
    this.timers.get(queue)?.hear(dueInMs);
  }

  stop(): void {
    this.stopped = true;
    if (this.timer) clearTimeout(this.timer);
    for (const timer of this.timers.values()) timer.stop();
  }

  private askSilent(): void {
    const since = performance.now() - SILENCE_MS;
    const silent = [...this.timers].filter(([, timer]) => timer.heardAt < since).map(([queue]) => queue);
    (silent.length === 0 ? Promise.resolve([]) : this.engine.schedules.scheduled(silent))
      .then((found) => {
        for (const queue of found) this.hear(queue, 0);
      })
      // The connection logs that Redis is unreachable, and the next round asks again.
      .catch(() => undefined)
      .finally(() => {
        if (!this.stopped) this.timer = setTimeout(() => this.askSilent(), ROUND_MS);
      });
  }
}
