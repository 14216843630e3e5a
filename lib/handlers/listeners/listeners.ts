import { Log } from '../../contract/log.js';
import type { Subscription } from 'rxjs';
import type { EventType } from '../../contract/engine.js';
import { within } from '../../contract/retry.js';
import type { QueueEvents } from '../../events/queue-events.js';
import { Listener } from './listener.js';
import type { ListenerPlan } from './listener-plan.js';

/** How long the shutdown waits for listener calls that have not ended. */
const FINISH_MS = 2_000;

/**
 * The listeners of the application. There is one subscription for each queue that has listeners. Without listeners there is no
 * subscription, and so no connection for events.
 */
export class Listeners {
  private readonly logger = new Log('QueueListeners');
  private readonly all: Listener[] = [];
  private readonly routes = new Map<string, Map<EventType, Listener[]>>();
  private subscription: Subscription | undefined;
  private finishing: Promise<void> | undefined;

  constructor(private readonly events: QueueEvents) {}

  /** Adds the listeners that discovery found. */
  prepare(plans: readonly ListenerPlan[]): void {
    for (const plan of plans) {
      const listener = new Listener(plan, this.logger);
      this.all.push(listener);
      for (const queue of plan.queues) for (const type of plan.types) this.route(queue, type, listener);
    }
  }

  /**
   * Subscribes. Resolves when no later event can be missed, or when Redis is unreachable. In that case events are missed until it
   * is back. Never rejects.
   */
  async start(): Promise<void> {
    for (const [queue, byType] of this.routes) {
      const added = this.events.ofType(queue, ...byType.keys()).subscribe((event) => {
        for (const listener of byType.get(event.type) ?? []) listener.receive(event);
      });
      if (this.subscription) this.subscription.add(added);
      else this.subscription = added;
    }
    if (this.routes.size > 0) await this.readyOrAway();
  }

  /**
   * Delivers all events so far and no later ones, if the store returns them before `end` (by `performance.now()`). Then waits up
   * to 2 s for the listeners. Never rejects.
   */
  finish(end: number): Promise<void> {
    this.finishing ??= this.finishOnce(end);
    return this.finishing;
  }

  /** Resolves when the listeners have handled all events so far. */
  async idle(): Promise<void> {
    await Promise.all(this.all.map((listener) => listener.idle()));
  }

  private route(queue: string, type: EventType, listener: Listener): void {
    const byType = this.routes.get(queue) ?? new Map<EventType, Listener[]>();
    this.routes.set(queue, byType);
    const heard = byType.get(type) ?? [];
    byType.set(type, heard);
    const { instance, method } = listener.plan;
    // Several decorators on one method may name the same event.
    if (heard.some(({ plan }) => plan.instance === instance && plan.method === method)) return;
    heard.push(listener);
  }

  private async readyOrAway(): Promise<void> {
    const queues = [...this.routes.keys()];
    const ready = Promise.all(queues.map((queue) => this.events.ready(queue)));
    let watching: Subscription | undefined;
    const away = new Promise<void>((resolve) => {
      watching = this.events.status$.subscribe(({ state }) => {
        if (state === 'lost') resolve();
      });
    });
    // Rejects if the application stops meanwhile.
    await Promise.race([ready.catch(() => undefined), away]);
    watching?.unsubscribe();
  }

  private async finishOnce(end: number): Promise<void> {
    if (!this.subscription) return;
    const queues = [...this.routes.keys()];
    const caughtUp = Promise.all(queues.map((queue) => this.events.caughtUp(queue)));
    await within(Math.max(0, end - performance.now()), caughtUp);
    this.subscription.unsubscribe();
    await within(FINISH_MS, this.idle());
    for (const listener of this.all) listener.stop();
  }
}
