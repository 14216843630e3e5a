import { clearInterval, setInterval } from 'node:timers';
import { isBeatDue } from '../contract/engine.js';
import type { Heartbeat, HeartbeatPlan, LeaseTimes, QueueEngine } from '../contract/engine.js';
import type { ProcessRecord } from '../contract/process-verbs.js';

/**
 * Renews leases with a timer. Workers and recoverers share one event loop, so a handler that blocks one also blocks the other.
 * The timer does not keep the process alive.
 */
export class MemoryHeartbeat implements Heartbeat {
  private readonly followed = new Map<
    string,
    { readonly worker: string; readonly leaseMs: number; holds: boolean; at: number }
  >();
  private record: ProcessRecord | null = null;
  private readonly timer: NodeJS.Timeout;

  constructor(
    private readonly engine: Pick<QueueEngine, 'beat' | 'processes'>,
    private readonly plan: HeartbeatPlan,
    /** Extends the record of a worker, even if it has expired by the clock. */
    private readonly vouch: (queue: string, worker: string) => void,
    private readonly onClose: (heartbeat: MemoryHeartbeat) => void,
  ) {
    this.timer = setInterval(() => this.beatAll(), plan.beatMs);
    this.timer.unref();
  }

  follow(queue: string, worker: string, { leaseMs }: LeaseTimes): void {
    const holds = this.followed.get(queue)?.holds ?? false;
    this.followed.set(queue, { worker, leaseMs, holds, at: -Infinity });
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

  /** Must be called before anybody checks a lease by the new time: a worker that slept through the jump of the clock is alive. */
  clockMoved(): void {
    for (const [queue, one] of this.followed) {
      this.vouch(queue, one.worker);
      one.at = -Infinity;
    }
    this.beatAll();
  }

  private beatAll(): void {
    const { beatMs, onBeat } = this.plan;
    const now = performance.now();
    for (const [queue, one] of this.followed) {
      const { worker, leaseMs, holds, at } = one;
      if (!holds || !isBeatDue(now - at, leaseMs, beatMs)) continue;
      one.at = now;
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
    const { engine, record, plan } = this;
    if (!record) return;
    engine.processes.register(record, plan.leaseMs).then(
      ({ orders }) => plan.onOrders(orders),
      () => undefined,
    );
  }
}
