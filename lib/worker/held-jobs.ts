import { counted } from '../job/text.js';
import { Log } from '../contract/log.js';
import type { QueueEngine } from '../contract/engine.js';
import type { Claimer } from './claimer.js';

/**
 * What the store counts as held by this worker and what the worker knows may come to differ: by a failover that loses the last
 * writes, by an operator, by a bug. The store's view decides. Jobs the worker does not know go back to the line, since no
 * lease would ever end for them while it lives; jobs it runs and does not hold are lost to it. Nothing but an exchange
 * changes what a worker holds, so right behind one, or while there is none, the two can be compared.
 */
export class HeldJobsReconciler {
  private readonly logger = new Log('QueueWorker');
  private suspected: ReadonlySet<string> = new Set();
  private looking = false;

  constructor(
    private readonly engine: Pick<QueueEngine, 'adopt' | 'release'>,
    private readonly claimer: Claimer,
  ) {}

  /** With what the store counted, behind an exchange that was answered or at a beat between two. */
  compare(held: number): void {
    if (held === this.claimer.holding()) {
      if (this.suspected.size > 0) this.suspected = new Set();
    } else if (!this.looking) {
      this.looking = true;
      // Where it fails the next comparison begins anew.
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
    // What it has settled meanwhile it does not run any more.
    if (lost.length > 0) this.claimer.lose(new Set(lost));
    const known = new Set(this.claimer.known());
    const strays = unknown.filter((id) => !known.has(id));
    // Found twice with an exchange or a beat in between, it is none that was just claimed, whatever way the two calls went.
    const found = strays.filter((id) => this.suspected.has(id));
    this.suspected = new Set(strays);
    if (found.length > 0) {
      await this.engine.release(queue, { worker, ids: found, leave: false });
      this.logger.warn(
        `queue '${queue}': ${counted(found.length, 'job')} held by this worker again after it had ended them, as after a ` +
          'failover that lost the last writes; waiting again',
      );
    }
    if (strays.length > 0) this.claimer.exchangeSoon();
  }
}
