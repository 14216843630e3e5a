import { Logger } from '@nestjs/common';
import type { QueueEngine } from '../contract/engine.js';
import { ScheduleLine } from './schedule-timer.js';

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
