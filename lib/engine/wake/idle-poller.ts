import type { QueueLook } from '../../contract/engine.js';
import type { RedisStore } from '../redis-store.js';
import { look } from '../scripts/work.js';

/** Maximum number of queues that one call looks at, so that it does not block Redis for long. */
const AT_ONCE = 200;
/** Keys that exist only if there may be something to do. `meta` is not one of them: it stays after the first use. */
const SIGNS = ['wait', 'suspects', 'prioritized', 'grouped', 'delayed', 'workers', 'upcoming'] as const;

interface Asleep {
  readonly queue: string;
  readonly worker: string;
}

const queueOf = ({ queue }: Asleep) => queue;

/**
 * Looks at the queues of workers that no doorbell has woken for a while. If all queues are quiet, one command finds that out.
 * Otherwise one script reports which queues have work, so sleeping workers need no separate calls.
 */
export class IdlePoller {
  /** Queues in which the last check found something. Usually the next check finds something too. */
  private known: ReadonlySet<string> = new Set();

  constructor(
    private readonly store: RedisStore,
    private readonly isPerQueue: () => boolean,
  ) {}

  async look(sleepers: readonly Asleep[]): Promise<readonly QueueLook[]> {
    const looks = this.isPerQueue()
      ? (await Promise.all(sleepers.map((one) => this.lookAtOne(one)))).flat()
      : await this.lookAtAll(sleepers);
    this.known = new Set(looks.map(({ queue }) => queue));
    return looks;
  }

  private async lookAtAll(sleepers: readonly Asleep[]): Promise<QueueLook[]> {
    const looks: QueueLook[] = [];
    for (let first = 0; first < sleepers.length; first += AT_ONCE) {
      const some = sleepers.slice(first, first + AT_ONCE);
      if (some.some(({ queue }) => this.known.has(queue)) || (await this.isAnything(some))) {
        looks.push(...(await this.ask(some)));
      }
    }
    return looks;
  }

  /**
   * A queue whose master does not answer is reported as having work, so its worker checks it. The other queues do not wait for
   * it.
   */
  private lookAtOne(one: Asleep): Promise<readonly QueueLook[]> {
    const unknown = { queue: one.queue, work: true, dueInMs: null, leaseInMs: null, scheduleInMs: null };
    return this.ask([one]).catch(() => [unknown]);
  }

  private async isAnything(sleepers: readonly Asleep[]): Promise<boolean> {
    const keys = this.store.keysOfQueues(sleepers.map(queueOf), SIGNS);
    return (await this.store.command('look', 'exists', keys)) > 0;
  }

  private async ask(sleepers: readonly Asleep[]): Promise<QueueLook[]> {
    const isKnown = ({ queue }: Asleep) => this.known.has(queue);
    const known = sleepers.filter(isKnown);
    const ordered = [...known, ...sleepers.filter((one) => !isKnown(one))];
    const keys = this.store.keysOfQueues(ordered.map(queueOf), look.keysOfQueues);
    const workers = ordered.map(({ worker }) => worker);
    const found = await this.store.run(look, {}, { known: known.length }, { workers }, keys);
    return found.map(({ place, ...what }) => ({ queue: ordered[place]!.queue, ...what }));
  }
}
