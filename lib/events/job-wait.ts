import { skip, type Subscription } from 'rxjs';
import type { AdminVerbs, StoredJob } from '../contract/admin-verbs.js';
import { within } from '../contract/retry.js';
import {
  JobFailedError,
  JobNotFoundError,
  NotRunningError,
  ResultNotKeptError,
  WaitTimeoutError,
} from '../errors.js';
import { MAX_TIMER_MS } from '../job/duration.js';
import type { FailureRecord } from '../job/outcome.js';
import type { EventsStatus } from './event-status.js';
import type { QueueEvents } from './queue-events.js';
import { isEnd, type EndEvent, type QueueEvent } from './queue-event.js';

interface OutcomeOptions {
  /** @default false */
  readonly duplicate?: boolean;
  /** The whole time of the wait, if `timeoutMs` is what remains of it. The error of the timeout names it. */
  readonly waitMs?: number;
}

/** Waits for one job that is about to be added. */
interface PreparedWait {
  /**
   * Resolves when the end of the job can no longer be missed. Add the job then. Never rejects, and resolves after 2 s in any
   * case, because the wait does not depend on events alone.
   */
  readonly ready: Promise<void>;
  /**
   * Resolves to the result of the handler; undefined only if it returned nothing. Call it once, when the job was added. Waits at most
   * `timeoutMs`. `duplicate`: the job was in the queue before, so it may have ended already.
   *
   * Rejects with `JobFailedError` if the job died, was removed or was cancelled, `ResultNotKeptError` if it completed and its result
   * is not stored, `WaitTimeoutError` after the timeout, `JobNotFoundError` if the job is gone and how it ended is not known,
   * `NotRunningError` if the application stops.
   */
  outcome(timeoutMs: number, options?: OutcomeOptions): Promise<unknown>;
  /** Stops listening if `outcome` will not be called. May be called at any time. */
  cancel(): void;
}

/** The part of the store that a wait needs. */
type WaitVerbs = Pick<AdminVerbs, 'get' | 'cancelled'>;

const READY_MS = 2_000;
/** Events may be lost, so the state is also polled: first after `first` ms, then after twice as long each time, up to `most`. */
const ASK_MS = { first: 250, most: 5_000, withoutEvents: 500 };
/** How long the event of a job that is gone may still be in flight. */
const GONE_MS = 1_500;
/**
 * If a job was cancelled more than this before the wait, it was another job with the same id. The margin covers differences
 * between clocks.
 */
const CLOCKS_MS = 1_000;

export const NO_RETENTION =
  'the job was added without retention, or the queue keeps no more completed jobs (completed.max)';
const REPLACED = 'another job has taken its id since';

type Cancelled = Awaited<ReturnType<AdminVerbs['cancelled']>>;
type Result = { readonly value: unknown } | { readonly error: Error };

class JobWait implements PreparedWait {
  readonly ready: Promise<void>;

  private readonly leave: () => void;
  private watching: Subscription | undefined;
  private finish: ((result: Result) => void) | undefined;
  private over = false;

  /** Whether the awaited job is in the queue. An end seen before that belongs to another job with the same id. */
  private begun = false;
  private end: EndEvent | undefined;

  private asking = false;
  private askAgain = false;
  private askTimer: NodeJS.Timeout | undefined;
  private deadline: NodeJS.Timeout | undefined;
  private askDelay = ASK_MS.first;
  private goneSince: number | undefined;
  private readonly startedAt = performance.now();

  constructor(
    private readonly engine: WaitVerbs,
    private readonly events: QueueEvents,
    private readonly queue: string,
    private readonly id: string,
    private readonly release: () => void,
  ) {
    this.leave = events.reader.listen(queue, { jobId: id }, (event) => this.onEvent(event));
    this.ready = within(READY_MS, events.reader.ready(queue) ?? Promise.resolve());
  }

  async outcome(timeoutMs: number, options: OutcomeOptions = {}): Promise<unknown> {
    const duplicate = options.duplicate ?? false;
    this.begun ||= duplicate;
    const result = new Promise<Result>((resolve) => (this.finish = resolve));
    this.deadline = setTimeout(
      () => this.expire(options.waitMs ?? timeoutMs),
      Math.min(timeoutMs, MAX_TIMER_MS),
    );
    this.watching = this.events.status$.pipe(skip(1)).subscribe((status) => this.onStatus(status));
    if (this.begun && this.end) this.onEnd(this.end);
    else if (duplicate) void this.ask();
    else this.askLater(this.askDelay);
    const settled = await result;
    this.cancel();
    if ('error' in settled) throw settled.error;
    return settled.value;
  }

  cancel(): void {
    if (this.over) return;
    this.over = true;
    clearTimeout(this.askTimer);
    clearTimeout(this.deadline);
    this.watching?.unsubscribe();
    this.leave();
    this.release();
  }

  private onEvent(event: QueueEvent): void {
    if (event.type === 'added' || event.type === 'delayed') {
      this.begun = true;
      this.end = undefined;
    } else if (isEnd(event)) {
      this.end = event;
      if (this.begun) this.onEnd(event);
    }
  }

  private onEnd(event: EndEvent): void {
    if (event.type === 'completed') void this.ask();
    else if (event.type === 'dead') this.settle({ error: this.died(event.reason, event.error) });
    else if (event.type === 'cancelled') this.settle({ error: this.failed('cancelled', event.reason) });
    else this.settle({ error: this.failed('removed', event.reason || 'it had not ended') });
  }

  /** After an interruption events may be missing, even `added`, so the state is queried. */
  private onStatus(status: EventsStatus): void {
    if (status.state === 'gap') {
      if (status.queue !== this.queue) return;
      this.begun = true;
    } else if (status.state === 'closed') return this.askLater(ASK_MS.withoutEvents);
    else if (status.state !== 'live') return;
    void this.ask();
  }

  private askLater(ms: number): void {
    clearTimeout(this.askTimer);
    if (this.over) return;
    this.askTimer = setTimeout(() => {
      this.askDelay = Math.min(ASK_MS.most, this.askDelay * 2);
      void this.ask();
    }, ms);
  }

  /** Makes one query at a time. A reason that appears during a query causes one more, because the answer may be older. */
  private async ask(): Promise<void> {
    if (!this.finish || this.over) return;
    if (this.asking) {
      this.askAgain = true;
      return;
    }
    this.asking = true;
    const end = this.begun ? this.end : undefined;
    try {
      const job = await this.engine.get(this.queue, this.id);
      const cancelled = job ? null : await this.engine.cancelled(this.queue, this.id);
      this.judge(job, cancelled, end === this.end ? end : undefined);
    } catch (error) {
      if (error instanceof NotRunningError) this.settle({ error });
    }
    this.asking = false;
    if (this.askAgain) {
      this.askAgain = false;
      return this.ask();
    }
    const delay = this.goneSince === undefined ? this.askDelay : GONE_MS + 10;
    this.askLater(this.events.reader.closed ? ASK_MS.withoutEvents : delay);
  }

  /** `end`: the event that had arrived when the state was queried. */
  private judge(job: StoredJob | null, cancelled: Cancelled, end: EndEvent | undefined): void {
    if (job?.state === 'completed') {
      this.settle(resultOf(this.queue, job));
    } else if (end?.type === 'completed') {
      this.settle(notKept(this.queue, this.id, job ? REPLACED : NO_RETENTION));
    } else if (job?.state === 'dead') {
      this.settle({ error: this.died(job.failure?.reason ?? 'unknown', job.failure) });
    } else if (job?.state === 'cancelled') {
      this.settle({ error: this.failed('cancelled', job.cancelReason ?? 'no reason is known') });
    } else if (job) {
      this.goneSince = undefined;
    } else if (cancelled && cancelled.agoMs <= performance.now() - this.startedAt + CLOCKS_MS) {
      this.settle({ error: this.failed('cancelled', cancelled.reason) });
    } else {
      this.goneSince ??= performance.now();
      if (performance.now() - this.goneSince >= GONE_MS) {
        this.settle({ error: new JobNotFoundError(this.queue, this.id) });
      }
    }
  }

  private settle(result: Result): void {
    this.finish?.(result);
  }

  /** Called at the timeout. A job that is known to be gone is not reported as still running. */
  private expire(timeoutMs: number): void {
    const error =
      this.goneSince === undefined
        ? new WaitTimeoutError(this.queue, this.id, timeoutMs)
        : new JobNotFoundError(this.queue, this.id);
    this.settle({ error });
  }

  private died(reason: string, failure: FailureRecord | null): Error {
    return deathOf(this.queue, this.id, reason, failure);
  }

  private failed(reason: string, message: string): Error {
    return new JobFailedError(this.queue, this.id, reason, message);
  }
}

function notKept(queue: string, id: string, why: string): Result {
  return { error: new ResultNotKeptError(queue, id, why) };
}

/** The result of a completed job. */
export function resultOf(queue: string, { id, result, resultFault }: StoredJob): Result {
  if (resultFault !== null) return notKept(queue, id, resultFault);
  try {
    return { value: result === null ? undefined : JSON.parse(result) };
  } catch {
    return notKept(queue, id, 'the stored result is not JSON');
  }
}

/** The error for a job that died. */
export function deathOf(
  queue: string,
  id: string,
  reason: string,
  failure: FailureRecord | null,
): JobFailedError {
  const message = failure?.message ?? 'the record of its failure cannot be read';
  const cause = failure && { name: failure.name, message: failure.message, stack: failure.stack };
  return new JobFailedError(queue, id, reason, message, cause ? { cause } : undefined);
}

/** How long the subscription to a queue outlives the last wait. Often another request waits soon. */
const LINGER_MS = 10_000;

/** The subscription shared by all waits for jobs of one queue. */
interface Hold {
  waits: number;
  readonly leave: () => void;
  timer?: NodeJS.Timeout;
}

/**
 * Waits for jobs to end. Call `prepare` before the job is added, so that no event can come too early:
 *
 * @example
 * const wait = waiter.prepare('thumbnails', id);
 * await wait.ready;
 * const added = await producer.add(job, data, { id });
 * return await wait.outcome(5_000, { duplicate: added.duplicate });
 */
export class JobWaiter {
  private readonly holds = new Map<string, Hold>();

  constructor(
    private readonly engine: WaitVerbs,
    private readonly events: QueueEvents,
  ) {
    events.reader.onClose(() => {
      for (const hold of this.holds.values()) clearTimeout(hold.timer);
      this.holds.clear();
    });
  }

  /** Starts listening for this job. `outcome` or `cancel` must follow. */
  prepare(queue: string, id: string): PreparedWait {
    const release = this.hold(queue);
    return new JobWait(this.engine, this.events, queue, id, release);
  }

  private hold(queue: string): () => void {
    if (this.events.reader.closed) return () => {};
    const hold = this.holds.get(queue) ?? { waits: 0, leave: this.listen(queue) };
    this.holds.set(queue, hold);
    hold.waits += 1;
    clearTimeout(hold.timer);
    return () => {
      hold.waits -= 1;
      if (hold.waits > 0 || this.holds.get(queue) !== hold) return;
      hold.timer = setTimeout(() => {
        this.holds.delete(queue);
        hold.leave();
      }, LINGER_MS).unref();
    };
  }

  /** Listens for an id that no job has, so the subscription is open but delivers nothing. */
  private listen(queue: string): () => void {
    return this.events.reader.listen(queue, { jobId: '' }, () => {});
  }
}
