import { Log } from '../../contract/log.js';
import { QueueScheduleTimer } from '../../schedule/schedule-timer.js';
import type { TestBench } from './test-bench.js';

/** Moves the clock from one moment at which something is due to the next. */
export class TimeWalk {
  private readonly logger = new Log('QueueScheduler');
  private readonly lines = new Map<string, QueueScheduleTimer>();

  constructor(
    private readonly bench: TestBench,
    private readonly queues: () => readonly string[],
    private readonly opensAt: () => number,
  ) {}

  /**
   * Moves the clock to `endMs`. Stops at each time at which something is due: due jobs become waiting, schedules add jobs, then
   * `stop` is called. `stop` is also called at the start, at the end, and when limits allow the next start.
   */
  async to(endMs: number, stop?: () => Promise<void>): Promise<void> {
    const { bench } = this;
    for (;;) {
      // oxlint-disable-next-line no-await-in-loop -- a step may make another job or schedule due
      let nextMs = await this.settle();
      if (stop) {
        // oxlint-disable-next-line no-await-in-loop -- see above
        await stop();
        // oxlint-disable-next-line no-await-in-loop -- the jobs that ran may have made something due sooner
        nextMs = Math.min(await this.settle(), this.opensAt());
      }
      const now = bench.clock.now();
      if (now >= endMs) break;
      bench.moveTo(Math.min(endMs, Math.max(nextMs, now + 1)));
    }
    await this.trim();
  }

  /** Makes due jobs waiting and adds the jobs of due schedules. Resolves to the time of the next one, in ms since 1970. */
  async settle(): Promise<number> {
    const dues = await Promise.all(this.queues().map((queue) => this.settleOne(queue)));
    return this.bench.clock.now() + Math.min(Infinity, ...dues);
  }

  private async settleOne(queue: string): Promise<number> {
    const occurrenceInMs = await this.lineOf(queue).fireAll();
    const dueInMs = await this.bench.promoteDue(queue);
    return Math.min(dueInMs ?? Infinity, occurrenceInMs ?? Infinity);
  }

  /** Removes jobs whose retention has ended. */
  private async trim(): Promise<void> {
    const { upkeep } = this.bench.engine;
    await Promise.all(
      this.queues().map(async (queue) => {
        // oxlint-disable-next-line no-await-in-loop -- each call removes a part
        while ((await upkeep.trim(queue)) > 0);
      }),
    );
  }

  private lineOf(queue: string): QueueScheduleTimer {
    let line = this.lines.get(queue);
    if (!line) this.lines.set(queue, (line = new QueueScheduleTimer(this.bench.engine, queue, this.logger)));
    return line;
  }
}
