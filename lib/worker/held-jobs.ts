import { counted } from '../job/text.js';
import { Log } from '../contract/log.js';
import type { QueueEngine } from '../contract/engine.js';
import type { Claimer } from './claimer.js';

/**
 * Compares the jobs that this worker holds in the store with the jobs that it knows. They can differ after a failover that lost
 * the last writes, after manual changes, or after a bug. The store decides. Jobs that the worker does not know go back to the
 * line: no lease would free them while the worker lives. Jobs that the worker runs but no longer holds are lost to it. Only an
 * exchange changes what a worker holds, so the two can be compared right after an exchange or while none is in flight.
 */
export class HeldJobsReconciler {
  private readonly logger = new Log('QueueWorker');
  private suspected: ReadonlySet<string> = new Set();
  private looking = false;

  constructor(
    private readonly engine: Pick<QueueEngine, 'adopt' | 'release'>,
    private readonly claimer: Claimer,
  ) {}

  /**
   * Compares the count of the store with ours. Called after an answered exchange, or at a heartbeat while no exchange is in
   * flight.
   */
  compare(held: number): void {
    if (held === this.claimer.holding()) {
      if (this.suspected.size > 0) this.suspected = new Set();
    } else if (!this.looking) {
      this.looking = true;
      // If it fails, the next comparison starts again.
      void this.look()
        .catch(() => undefined)
        .finally(() => (this.looking = false));
    }
  }

  private async look(): Promise<void> {
    const { queue, worker } = this.claimer;
    const { unknown, lost, buried } = await this.engine.adopt(queue, worker, this.claimer.known());
    if (buried.length > 0) {
      this.logger.error(
        `queue '${queue}': ${counted(buried.length, 'job')} with an unreadable id, written by another program, dead as corrupt: ` +
          buried.slice(0, 20).join(', '),
      );
    }
    if (worker !== this.claimer.worker) return;
    // The ids in `lost` may include jobs that were settled during the call. `lose` ignores those.
    if (lost.length > 0) this.claimer.lose(new Set(lost));
    const known = new Set(this.claimer.known());
    const strays = unknown.filter((id) => !known.has(id));
    // A job may have been claimed while `adopt` was in flight. A job that two comparisons in a row do not know is really unknown.
    const found = strays.filter((id) => this.suspected.has(id));
    this.suspected = new Set(strays);
    if (found.length > 0) {
      await this.engine.release(queue, { worker, ids: found, leave: false });
      this.logger.warn(
        `queue '${queue}': gave back ${counted(found.length, 'job')} that Redis still counted as held by this worker ` +
          '(a failover may have lost the last writes)',
      );
    }
    if (strays.length > 0) this.claimer.exchangeSoon();
  }
}
