import type { Log } from '../../contract/log.js';
import { isObservable, lastValueFrom } from 'rxjs';
import { messageOf, stackOf } from '../../errors/thrown.js';
import type { QueueEvent } from '../../events/queue-event.js';
import { counted, quoted } from '../../job/text.js';
import { isThenable } from '../../job/thenable.js';
import type { ListenerPlan } from './listener-plan.js';

/** Limits for a listener that is slower than the events. */
export interface ListenerLimits {
  /** Maximum number of events that may wait. If there are more, the oldest are dropped. */
  readonly waiting: number;
  /** How long to wait for a call to end, in ms. */
  readonly callMs: number;
}

const LIMITS: ListenerLimits = { waiting: 10_000, callMs: 60_000 };

/**
 * Calls one method with events. An error or a delay in it affects neither other listeners nor the reading of events. While
 * `concurrency` calls run, further events wait in order.
 */
export class Listener {
  private readonly backlog: Backlog<QueueEvent>;
  private running = 0;
  private dropped = 0;
  private idleWaiters: (() => void)[] = [];

  constructor(
    readonly plan: ListenerPlan,
    private readonly logger: Pick<Log, 'warn' | 'error'>,
    private readonly limits: ListenerLimits = LIMITS,
  ) {
    this.backlog = new Backlog(limits.waiting);
  }

  /** Waiting events, and those whose calls have not ended. */
  get pending(): number {
    return this.backlog.size + this.running;
  }

  receive(event: QueueEvent): void {
    if (this.running < this.plan.concurrency) this.call(event);
    else if (this.backlog.put(event)) this.countDropped();
  }

  /** Resolves when the listener has handled all events it has received. */
  idle(): Promise<void> {
    return this.pending === 0 ? Promise.resolve() : new Promise((resolve) => this.idleWaiters.push(resolve));
  }

  /** Delivers no more events. Waiting events are dropped. */
  stop(): void {
    const { pending: undone } = this;
    while (this.backlog.take() !== undefined) this.dropped += 1;
    if (undone === 0) return;
    this.logger.warn(
      `${this.plan.label} was stopped before it had handled all events; ` +
        `calls that have not ended: ${this.running}, events dropped: ${this.dropped}`,
    );
    this.dropped = 0;
  }

  private call(event: QueueEvent): void {
    let outcome: Promise<unknown> | undefined;
    try {
      const { instance, method } = this.plan;
      // Looked up at each call, so that a test may replace it on the instance.
      outcome = outcomeOf(instance[method](event));
    } catch (error) {
      this.logFailure(event, error);
    }
    if (outcome) this.follow(event, outcome);
  }

  private follow(event: QueueEvent, outcome: Promise<unknown>): void {
    this.running += 1;
    let isOver = false;
    const end = () => {
      if (isOver) return;
      isOver = true;
      clearTimeout(timer);
      this.running -= 1;
      this.startNext();
    };
    const timer = setTimeout(() => {
      this.logger.warn(
        `${this.plan.label} has not finished ${describe(event)} after ${this.limits.callMs} ms; ` +
          `it gets further events meanwhile`,
      );
      end();
    }, this.limits.callMs);
    timer.unref();
    void outcome.catch((error: unknown) => this.logFailure(event, error)).then(end);
  }

  private startNext(): void {
    while (this.running < this.plan.concurrency) {
      const event = this.backlog.take();
      if (event === undefined) break;
      this.call(event);
    }
    if (this.dropped > 0 && this.backlog.size === 0) {
      this.logger.warn(
        `${this.plan.label} keeps up with the events again; ${counted(this.dropped, 'event')} dropped`,
      );
      this.dropped = 0;
    }
    if (this.pending > 0) return;
    for (const resolve of this.idleWaiters.splice(0)) resolve();
  }

  private countDropped(): void {
    if (this.dropped === 0) {
      this.logger.warn(
        `${this.plan.label} does not keep up with the events: ${this.limits.waiting} wait for it, so the oldest are ` +
          `dropped; make it faster, or raise its concurrency`,
      );
    }
    this.dropped += 1;
  }

  private logFailure(event: QueueEvent, error: unknown): void {
    this.logger.error(
      `${this.plan.label} failed for ${describe(event)}: ${messageOf(error)}`,
      stackOf(error),
    );
  }
}

/** Undefined if the call is over. */
function outcomeOf(returned: unknown): Promise<unknown> | undefined {
  // A foreign thenable may call back twice, or return another thenable. A native promise settles once.
  if (isThenable(returned)) return Promise.resolve(returned);
  return isObservable(returned) ? lastValueFrom(returned, { defaultValue: undefined }) : undefined;
}

function describe({ type, jobId, queue }: QueueEvent): string {
  return jobId === undefined
    ? `'${type}' of queue '${queue}'`
    : `'${type}' of job ${quoted(jobId)} of queue '${queue}'`;
}

/** A queue of limited length. If it is full, a new entry replaces the oldest. */
export class Backlog<T> {
  private items: T[] = [];
  private head = 0;

  constructor(private readonly max: number) {}

  get size(): number {
    return this.items.length - this.head;
  }

  /** Returns whether the oldest entry was dropped. */
  put(item: T): boolean {
    const isFull = this.size >= this.max;
    if (isFull) this.take();
    this.items.push(item);
    return isFull;
  }

  /** Removes and returns the oldest entry. Undefined if there is none. */
  take(): T | undefined {
    const item = this.items[this.head];
    if (this.size > 0) this.head += 1;
    // This is not done on every take, because slicing moves all other entries.
    if (this.head >= this.max || this.head === this.items.length) {
      this.items = this.items.slice(this.head);
      this.head = 0;
    }
    return item;
  }
}
