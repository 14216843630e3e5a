import type { QueueEngine } from '../contract/engine.js';
import type { QueueEvent } from './queue-event.js';

/** The queue has no more work: see `QueueEvents.drained`. */
export interface DrainedEvent {
  /** What happened. */
  readonly type: 'drained';
  /** Name of the queue. */
  readonly queue: string;
  /** When the queue was found drained, by the clock of Redis. */
  readonly at: Date;
}

/** The part of the engine that is needed to find out whether a queue is drained. */
export type DrainedEngine = Pick<QueueEngine, 'admin' | 'now'>;

/** The events after which a queue may be drained: a job has ended, or runs later. */
export const MAY_DRAIN = ['completed', 'dead', 'cancelled', 'removed', 'retrying', 'delayed'] as const;

/** Time between two looks at a queue whose jobs keep ending. */
const LOOK_MS = 250;
/** Time until the next check after a check that failed. */
const RETRY_MS = 1_000;

/** Whether no job of the queue waits, runs or is due. */
async function isDrained(engine: DrainedEngine, queue: string): Promise<boolean> {
  const { waiting, active, delayed } = await engine.admin.counts(queue);
  if (waiting > 0 || active > 0) return false;
  if (delayed === 0) return true;
  const first = { state: 'delayed', limit: 1, after: null, brief: true } as const;
  const [next] = (await engine.admin.jobs(queue, first)).jobs;
  return next?.dueAt == null || next.dueAt > engine.now();
}

/**
 * Checks whether a queue is drained when one of its jobs has ended or is delayed. No script writes an event for this, so a queue
 * without such subscribers has no extra cost. Looks are at least a quarter of a second apart.
 */
export class DrainedWatch {
  /** Whether a job has run and ended since the queue was last drained. */
  private hasWorked = false;
  private isLooking = false;
  /** Whether an event came during a look. The answer may be older. */
  private heardMore = false;
  private timer: NodeJS.Timeout | undefined;
  private stopped = false;
  private lookedAt = -Infinity;
  private drainedAt = -Infinity;
  /** The time of the latest event. The clock of this process may be some ms behind that of Redis. */
  private heardAt = -Infinity;

  constructor(
    private readonly engine: DrainedEngine,
    private readonly queue: string,
    private readonly emit: (event: DrainedEvent) => void,
  ) {}

  hear({ type, at }: Pick<QueueEvent, 'type' | 'at'>): void {
    this.heardAt = Math.max(this.heardAt, at.getTime());
    // The job had ended before the queue was found drained.
    if (at.getTime() <= this.drainedAt) return;
    if (type === 'completed' || type === 'dead') this.hasWorked = true;
    if (this.isLooking) this.heardMore = true;
    else if (this.hasWorked) this.lookIn(LOOK_MS - (performance.now() - this.lookedAt));
  }

  stop(): void {
    this.stopped = true;
    clearTimeout(this.timer);
  }

  private lookIn(ms: number): void {
    this.timer ??= setTimeout(() => void this.look(), Math.max(0, ms)).unref();
  }

  private async look(): Promise<void> {
    this.timer = undefined;
    this.isLooking = true;
    this.heardMore = false;
    let found: boolean | null = null;
    try {
      found = await isDrained(this.engine, this.queue);
    } catch {
      // The connection logs that Redis is unreachable.
    }
    // After the look: a job that has ended since it began had ended before the queue was found drained.
    const at = Math.max(Math.floor(this.engine.now()), this.heardAt);
    this.isLooking = false;
    this.lookedAt = performance.now();
    if (this.stopped) return;
    this.hasWorked = found !== true;
    if (found === true) {
      this.drainedAt = at;
      this.emit({ type: 'drained', queue: this.queue, at: new Date(at) });
    } else if (found === null) this.lookIn(RETRY_MS);
    else if (this.heardMore) this.lookIn(LOOK_MS);
  }
}
