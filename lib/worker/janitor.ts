import { Log } from '../contract/log.js';
import type { QueueEngine } from '../contract/engine.js';
import { isPassing } from '../contract/retry.js';

/** Pause between two steps in one queue, so that a large backlog is trimmed soon but jobs come first. */
const BREATH_MS = 10;
/** Random part of the interval, so that processes that started together do not all ask at once. */
const JITTER = 0.1;
/**
 * How long one claim of a round keeps other processes away, as part of the interval. Less than an interval, so that no round is
 * skipped.
 */
const CLAIM = 0.8;

/**
 * Removes entries beyond their maximum number or age, also in idle queues: scripts trim only the lists they add to. One of the
 * processes that share queues claims a round, looks at all queues once, and trims those that need it in small steps. Several
 * processes at once would do no harm.
 */
export class Janitor {
  private readonly logger = new Log('QueueWorker');
  private timer: NodeJS.Timeout | undefined;
  private round: Promise<void> = Promise.resolve();
  private wake = () => {};
  private readonly complained = new Set<string>();
  private stopped = false;

  constructor(
    private readonly engine: QueueEngine,
    private readonly queues: () => readonly string[],
    private readonly intervalMs: number,
  ) {}

  /** Safe twice. */
  start(): void {
    if (this.timer === undefined && !this.stopped) this.plan();
  }

  async stop(): Promise<void> {
    this.stopped = true;
    clearTimeout(this.timer);
    this.wake();
    await this.round;
  }

  /** The next round begins when this one is over and its interval has passed. */
  private plan(): void {
    const ms = this.intervalMs * (1 - JITTER + 2 * JITTER * Math.random());
    this.timer = setTimeout(() => {
      this.round = this.look().finally(() => {
        if (!this.stopped) this.plan();
      });
    }, ms);
  }

  /** Never rejects. */
  private async look(): Promise<void> {
    const queues = this.queues();
    try {
      const claimMs = Math.ceil(this.intervalMs * CLAIM);
      if (queues.length === 0 || !(await this.engine.upkeep.claimUpkeep(queues, claimMs))) return;
      for (const queue of await this.engine.upkeep.overgrown(queues)) await this.trim(queue);
    } catch (error) {
      // The next round is far away, so no extra pause is needed.
      this.logger.debug(`removing old jobs and events failed, retrying: ${(error as Error).message}`);
    }
  }

  /** An error in one queue does not stop the others. If Redis is unreachable, the round ends. */
  private async trim(queue: string): Promise<void> {
    try {
      while (!this.stopped && (await this.engine.upkeep.trim(queue)) > 0) await this.breathe();
      this.complained.delete(queue);
    } catch (error) {
      if (isPassing(error)) throw error;
      const text = `queue '${queue}': jobs and events beyond their age or number cannot be removed: ${(error as Error).message}`;
      if (this.complained.has(queue)) this.logger.debug(text);
      else this.logger.error(text);
      this.complained.add(queue);
    }
  }

  private breathe(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, BREATH_MS);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
