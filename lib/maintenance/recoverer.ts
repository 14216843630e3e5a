import { Logger } from '@nestjs/common';
import type { QueueEngine } from '../engine/engine.js';

export interface RecovererLimits {
  readonly leaseMs: number;
  readonly maxStalls: number;
}

/**
 * Looks after workers that went silent. Every exchange says when the first lease of another worker ends; shortly before that
 * one look is taken, so that a dead worker's jobs run again as soon as its lease is over, and nobody polls while all is well.
 */
export class Recoverer {
  private readonly timers = new Map<string, { at: number; timer: NodeJS.Timeout }>();
  /** While a lease is in doubt every exchange reports it as over; looking before the doubt can end is in vain. */
  private readonly notBefore = new Map<string, number>();
  private readonly logger = new Logger('QueueWorker');
  private readonly beatMs: number;
  private stopped = false;

  constructor(
    private readonly engine: QueueEngine,
    private readonly limits: RecovererLimits,
  ) {
    this.beatMs = limits.leaseMs / 4;
  }

  /** The first lease of another worker in this queue ends in `leaseInMs`. */
  watch(queue: string, leaseInMs: number | null): void {
    if (leaseInMs !== null) this.lookIn(queue, Math.max(0, leaseInMs - this.beatMs));
  }

  stop(): void {
    this.stopped = true;
    for (const { timer } of this.timers.values()) clearTimeout(timer);
    this.timers.clear();
  }

  private lookIn(queue: string, ms: number): void {
    if (this.stopped) return;
    const now = performance.now();
    const at = Math.max(now + ms, this.notBefore.get(queue) ?? 0);
    const planned = this.timers.get(queue);
    if (planned && planned.at <= at) return;
    if (planned) clearTimeout(planned.timer);
    const timer = setTimeout(() => {
      this.timers.delete(queue);
      this.look(queue).catch((error: Error) => {
        this.logger.debug(`queue '${queue}': looking for silent workers failed, trying on: ${error.message}`);
        this.lookIn(queue, this.beatMs);
      });
    }, at - now);
    this.timers.set(queue, { at, timer });
  }

  private async look(queue: string): Promise<void> {
    for (const { worker } of await this.engine.overdue(queue, this.beatMs)) {
      if (this.stopped) return;
      await this.recover(queue, worker);
    }
  }

  private async recover(queue: string, worker: string): Promise<void> {
    for (;;) {
      const answer = await this.engine.recover(queue, { worker, beatMs: this.beatMs, ...this.limits });
      if (answer.kind === 'alive') return;
      if (answer.kind === 'doubted') {
        this.notBefore.set(queue, performance.now() + answer.againInMs);
        return this.lookIn(queue, answer.againInMs);
      }
      const { waiting, suspects, dead } = answer;
      const count = waiting.length + suspects.length + dead.length;
      if (count > 0) {
        const fate = dead.length > 0 ? `, ${dead.length} of them are dead as stalled` : '';
        this.logger.warn(
          `queue '${queue}': worker ${worker} went silent; ${count} jobs of it go back to the line${fate}`,
        );
      }
      if (!answer.more || this.stopped) return;
    }
  }
}
