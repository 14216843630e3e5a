import type { QueueLook } from '../../contract/engine.js';
import type { RedisStore } from '../redis-store.js';
import { look } from '../scripts/look.js';

/** Queues that one call looks at, so that no call holds Redis for long. */
const AT_ONCE = 200;
/** Of them, those where something may be found; a queue that was used once keeps its `meta`. */
const SIGNS = ['wait', 'suspects', 'prioritized', 'grouped', 'delayed', 'workers', 'upcoming'] as const;

interface Asleep {
  readonly queue: string;
  readonly worker: string;
}

/**
 * Looking at what there is, for those whom no bell has woken for a while. However many queues there are, one command tells
 * that all of them are quiet; where one of them is not, one script tells what there is, and whoever sleeps need not ask.
 */
export class IdlePoller {
  /** Queues in which something was found the last time: it is mostly there still. */
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

  /** Of a queue whose master cannot be asked nothing is known, so it is looked at; the others are not kept waiting. */
  private lookAtOne(one: Asleep): Promise<readonly QueueLook[]> {
    const unknown = { queue: one.queue, work: true, dueInMs: null, leaseInMs: null, scheduleInMs: null };
    return this.ask([one]).catch(() => [unknown]);
  }

  private async isAnything(sleepers: readonly Asleep[]): Promise<boolean> {
    const keys = sleepers.flatMap(({ queue }) => SIGNS.map((name) => this.store.keysOf(queue).fixed[name]));
    return (await this.store.command('look', 'exists', keys)) > 0;
  }

  private async ask(sleepers: readonly Asleep[]): Promise<QueueLook[]> {
    const isKnown = ({ queue }: Asleep) => this.known.has(queue);
    const known = sleepers.filter(isKnown);
    const ordered = [...known, ...sleepers.filter((one) => !isKnown(one))];
    const keys = ordered.flatMap(({ queue }) =>
      look.keysOfQueues.map((name) => this.store.keysOf(queue).fixed[name as (typeof SIGNS)[number]]),
    );
    const workers = ordered.map(({ worker }) => worker);
    const found = await this.store.run(look, {}, { known: known.length }, { workers }, keys);
    return found.map(({ place, ...what }) => ({ queue: ordered[place]!.queue, ...what }));
  }
}
