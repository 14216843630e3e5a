import { Logger } from '@nestjs/common';
import type { QueueEngine } from '../engine/engine.js';

/** The worker whose jobs are compared. */
export interface StraysSide {
  readonly queue: string;
  readonly worker: string;
  /** Ids of all jobs it has, settled or not. */
  known(): string[];
  /** How many those are. */
  holding(): number;
  readonly exchanger: { kick(): void };
}

/**
 * Jobs that the store counts as held by this worker, and the worker does not know. A store that has lost its last writes in a
 * failover counts jobs again that were settled: no lease would ever end for them, since the worker lives. They go back
 * to the line. Nothing but an exchange changes what a worker holds, so right behind one the two can be compared.
 */
export class Strays {
  private readonly logger = new Logger('QueueWorker');
  private suspected: ReadonlySet<string> = new Set();
  private looking = false;

  constructor(
    private readonly engine: Pick<QueueEngine, 'adopt' | 'release'>,
    private readonly side: StraysSide,
  ) {}

  /** After every exchange that was answered, with what the store counted then. */
  compare(held: number): void {
    if (held <= this.side.holding()) {
      if (this.suspected.size > 0) this.suspected = new Set();
    } else if (!this.looking) {
      this.looking = true;
      // Where it fails the next exchange begins anew.
      void this.look()
        .catch(() => undefined)
        .finally(() => (this.looking = false));
    }
  }

  /** Found twice with an exchange in between, it is none that was just claimed, whatever way the two calls went. */
  private async look(): Promise<void> {
    const { queue, worker } = this.side;
    const { unknown } = await this.engine.adopt(queue, worker, this.side.known());
    if (worker !== this.side.worker) return;
    const known = new Set(this.side.known());
    const strays = unknown.map(({ id }) => id).filter((id) => !known.has(id));
    const found = strays.filter((id) => this.suspected.has(id));
    this.suspected = new Set(strays);
    if (found.length > 0) {
      await this.engine.release(queue, { worker, ids: found, leave: false });
      this.logger.warn(
        `queue '${queue}': ${found.length} jobs this worker had done with were held by it again, as after a failover that ` +
          'lost the last writes; they are back in line',
      );
    }
    if (strays.length > 0) this.side.exchanger.kick();
  }
}
