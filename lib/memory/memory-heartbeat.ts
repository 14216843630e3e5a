import { clearInterval, setInterval } from 'node:timers';
import type { Heartbeat, HeartbeatPlan, QueueEngine } from '../contract/engine.js';
import type { ProcessRecord } from '../contract/process-verbs.js';

/**
 * Renews leases by a timer: holders and recoverers share one event loop, so what blocks one blocks the other. The timer does not
 * keep the process alive.
 */
export class MemoryHeartbeat implements Heartbeat {
  private readonly followed = new Map<string, { readonly worker: string; holds: boolean }>();
  private record: ProcessRecord | null = null;
  private readonly timer: NodeJS.Timeout;

  constructor(
    private readonly engine: Pick<QueueEngine, 'beat' | 'processes'>,
    private readonly plan: HeartbeatPlan,
    /** Keeps the record of a worker, whatever the clock says. */
    private readonly vouch: (queue: string, worker: string) => void,
    private readonly onClose: (heartbeat: MemoryHeartbeat) => void,
  ) {
    this.timer = setInterval(() => this.beatAll(), plan.beatMs);
    this.timer.unref();
  }

  follow(queue: string, worker: string): void {
    this.followed.set(queue, { worker, holds: this.followed.get(queue)?.holds ?? false });
  }

  holds(queue: string, any: boolean): void {
    const one = this.followed.get(queue);
    if (one) one.holds = any;
  }

  leave(queue: string): void {
    this.followed.delete(queue);
  }

  show(record: ProcessRecord): void {
    this.record = record;
    this.register();
  }

  /** Call it before anybody checks a lease by the new time: a worker that slept through the jump is alive. */
  clockMoved(): void {
    for (const [queue, { worker }] of this.followed) this.vouch(queue, worker);
    this.beatAll();
  }

  private beatAll(): void {
    const { leaseMs, onBeat } = this.plan;
    for (const [queue, { worker, holds }] of this.followed) {
      if (!holds) continue;
      this.engine.beat(queue, worker, leaseMs).then(
        (answer) => onBeat(queue, worker, answer),
        // The engine was closed.
        () => undefined,
      );
    }
    this.register();
  }

  async close(): Promise<void> {
    clearInterval(this.timer);
    this.followed.clear();
    this.record = null;
    this.onClose(this);
  }

  private register(): void {
    if (this.record) this.engine.processes.register(this.record, this.plan.leaseMs).catch(() => undefined);
  }
}
