import type { Logger } from '@nestjs/common';
import type { QueueEngine } from '../contract/engine.js';
import type { FireAnswer, FireSchedule, StoredSchedule } from '../contract/schedule-verbs.js';
import { isPassing, repeatDelay } from '../contract/retry.js';
import { RedisUnavailableError } from '../errors.js';
import { MAX_TIMER_MS } from '../job/duration.js';
import { quoted } from '../job/text.js';
import { occurrence } from './occurrence.js';
import { planFiring } from './plan.js';
import { readRecord } from './record.js';

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
