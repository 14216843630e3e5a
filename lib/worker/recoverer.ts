import { Log } from '../contract/log.js';
import type { QueueEngine } from '../contract/engine.js';
import { counted, quoted } from '../job/text.js';

/** The process of a worker, if it is known. */
type FindProcess = (worker: string) => Promise<{ readonly host: string; readonly pid: number } | null>;

interface RecovererLimits {
  readonly leaseMs: number;
  readonly maxStalls: number;
}

/** The number of jobs of a lost worker, by what happened to them. */
interface Taken {
  /** Without the cancelled jobs. */
  readonly count: number;
  readonly dead: number;
  readonly cancelled: number;
}

/**
 * Recovers the jobs of workers that went silent. Every exchange reports when the first lease of another worker ends. Shortly
 * before that time this process looks once, and it looks again before the next lease ends, for as long as others hold jobs. So
 * the jobs of a dead worker run again as soon as its lease is over, and a queue without active jobs costs nothing.
 */
export class Recoverer {
  private readonly timers = new Map<string, { at: number; timer: NodeJS.Timeout }>();
  /** The worker of this process, by queue. It is alive, so it is skipped. */
  private readonly own = new Map<string, string>();
  /**
   * The earliest time of the next check, by queue. While a lease is in doubt every exchange reports it as over, but looking before
   * the doubt can end is useless.
   */
  private readonly notBefore = new Map<string, number>();
  private readonly logger = new Log('QueueWorker');
  private stopped = false;

  constructor(
    private readonly engine: QueueEngine,
    private readonly limitsOf: (queue: string) => RecovererLimits,
    private readonly processOf: FindProcess = async () => null,
    /** Called with the ids of all recovered jobs, and with those of them that are dead. */
    private readonly taken: (
      queue: string,
      ids: readonly string[],
      dead: readonly string[],
    ) => void = () => {},
  ) {}

  /** In this queue the first lease of another worker ends in `leaseInMs`. */
  watch(queue: string, worker: string, leaseInMs: number | null): void {
    this.own.set(queue, worker);
    if (leaseInMs === null) return;
    const inDoubtMs = (this.notBefore.get(queue) ?? 0) - performance.now();
    // A lease that seems to end later than any lease can means that the clock of Redis was set back. The
    // recoverer then looks early enough to notice it.
    const endsInMs = Math.min(leaseInMs, this.limitsOf(queue).leaseMs);
    this.lookIn(queue, Math.max(0, endsInMs - this.doubtMs(queue), inDoubtMs));
  }

  /** This process no longer works on the queue. */
  remove(queue: string): void {
    clearTimeout(this.timers.get(queue)?.timer);
    for (const map of [this.timers, this.own, this.notBefore]) map.delete(queue);
  }

  stop(): void {
    this.stopped = true;
    for (const { timer } of this.timers.values()) clearTimeout(timer);
    this.timers.clear();
  }

  /** Two heartbeats. If a jump of the clock ends all leases at once, a living worker may just have missed one heartbeat. */
  private doubtMs(queue: string): number {
    return this.limitsOf(queue).leaseMs / 2;
  }

  private lookIn(queue: string, ms: number): void {
    // The queue may have been removed during a check.
    if (this.stopped || !this.own.has(queue)) return;
    const at = performance.now() + ms;
    const planned = this.timers.get(queue);
    // The check that is already planned comes earlier, and plans the next one.
    if (planned && planned.at <= at) return;
    if (planned) clearTimeout(planned.timer);
    const timer = setTimeout(() => {
      this.timers.delete(queue);
      this.look(queue).catch((error: Error) => {
        this.logger.debug(`queue '${queue}': looking for silent workers failed, retrying: ${error.message}`);
        this.lookIn(queue, this.doubtMs(queue));
      });
    }, ms);
    this.timers.set(queue, { at, timer });
  }

  private async look(queue: string): Promise<void> {
    const { leaseMs } = this.limitsOf(queue);
    const doubtMs = this.doubtMs(queue);
    let nextMs = Infinity;
    for (const { worker, endsInMs } of await this.engine.overdue(queue, leaseMs)) {
      if (this.stopped) return;
      if (worker === this.own.get(queue)) continue;
      const isSure = endsInMs > doubtMs && endsInMs <= leaseMs;
      nextMs = Math.min(nextMs, isSure ? endsInMs - doubtMs : await this.recover(queue, worker));
    }
    if (nextMs < Infinity) this.lookIn(queue, nextMs);
  }

  /** Recovers one worker. Returns after how many ms to look again. */
  private async recover(queue: string, worker: string): Promise<number> {
    const { leaseMs, maxStalls } = this.limitsOf(queue);
    const beatMs = this.doubtMs(queue);
    for (;;) {
      const answer = await this.engine.recover(queue, { worker, beatMs, leaseMs, maxStalls });
      if (answer.kind === 'alive') return beatMs;
      if (answer.kind === 'doubted') {
        this.notBefore.set(queue, performance.now() + answer.againInMs);
        return answer.againInMs;
      }
      const { waiting, suspects, dead, cancelled } = answer;
      this.taken(queue, [...waiting, ...suspects, ...dead], dead);
      const count = waiting.length + suspects.length + dead.length;
      // Do not wait for the log line: other workers may have gone silent too.
      if (count + cancelled.length > 0)
        void this.tell(queue, worker, { count, dead: dead.length, cancelled: cancelled.length });
      if (!answer.more || this.stopped) return Infinity;
    }
  }

  private async tell(queue: string, worker: string, taken: Taken): Promise<void> {
    const { count, dead, cancelled } = taken;
    const process = await this.processOf(worker).catch(() => null);
    const place = process ? ` (host ${quoted(process.host)}, pid ${process.pid})` : '';
    const others =
      (dead > 0 ? `, ${dead} of them dead as stalled` : '') +
      (cancelled > 0 ? `; ${counted(cancelled, 'cancelled job')} ended` : '');
    this.logger.warn(
      `queue '${queue}': worker ${worker}${place} went silent; ${counted(count, 'job')} recovered${others}`,
    );
  }
}
