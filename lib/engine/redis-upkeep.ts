import { createHash } from 'node:crypto';
import type { EngineSettings } from './wire/clients.js';
import { QueueKeys } from './keys.js';
import type { RedisStore } from './redis-store.js';
import { clean } from './scripts/clean.js';
import { deadPage } from './scripts/dead-page.js';
import { overgrown } from './scripts/overgrown.js';
import { retryDead } from './scripts/retry-dead.js';
import { trim } from './scripts/trim.js';
import type {
  CleanCall,
  DeadChoice,
  DeadJobsAnswer,
  DeadJobsCall,
  Place,
  StoredDeadJob,
  UpkeepVerbs,
} from '../contract/upkeep-verbs.js';
import { walkArgs, walkOn, type Walked } from './walks.js';

/** Where the jobs of a state are, in the order in which they are cleaned. */
const PLACES = {
  waiting: ['wait', 'suspects', 'prioritized'],
  delayed: ['delayed'],
  completed: ['completed'],
  dead: ['dead'],
} as const;

/** Queues that one look takes in, so that it never holds Redis for long. */
const LOOK_AT = 200;

/** Upkeep on Redis, in steps of one script each. */
export class RedisUpkeep implements UpkeepVerbs {
  constructor(
    private readonly prefix: string,
    private readonly store: RedisStore,
    private readonly settings: EngineSettings,
    /** Whether each queue must be asked by itself: on Redis Cluster. */
    private readonly perQueue: () => boolean,
  ) {}

  async deadJobs(queue: string, { after, limit, ...match }: DeadJobsCall): Promise<DeadJobsAnswer> {
    const { fixed } = this.store.keysOf(queue);
    const jobs: StoredDeadJob[] = [];
    let next: Place | null = after;
    do {
      const step = { after: next, limit: limit - jobs.length, until: 0 };
      const page = await this.store.run(deadPage, fixed, walkArgs(step, match));
      jobs.push(...page.jobs);
      next = page.next;
    } while (next !== null && jobs.length < limit);
    return { jobs, next };
  }

  async retryDead(queue: string, which: DeadChoice): Promise<{ retried: readonly string[] }> {
    const { fixed } = this.store.keysOf(queue);
    const { maxEvents } = this.settings.limitsOf(queue);
    const retried = await choose(which, (args, ids) =>
      this.store.run(retryDead, fixed, { ...args, maxEvents }, { ids }),
    );
    return { retried };
  }

  async removeDead(queue: string, which: DeadChoice): Promise<{ removed: readonly string[] }> {
    const removed = await choose(which, (args, ids) => this.remove(queue, 'dead', 'asked', args, ids));
    return { removed };
  }

  async clean(queue: string, call: CleanCall): Promise<{ removed: readonly string[] }> {
    const { state, olderThanMs, limit } = call;
    const removed: string[] = [];
    for (const kind of PLACES[state]) {
      if (removed.length >= limit) break;
      const isLine = kind === 'wait' || kind === 'suspects';
      const found = await walkOn(limit - removed.length, async (step) => {
        const answer = await this.remove(queue, kind, 'cleaned', walkArgs(step, { olderThanMs }), []);
        // What was found at the head of a line is gone, so the next call looks at what is there now.
        return isLine && answer.ids.length > 0 ? { ...answer, next: BEGINNING } : answer;
      });
      removed.push(...found);
    }
    return { removed };
  }

  async claimUpkeep(queues: readonly string[], forMs: number): Promise<boolean> {
    const group = createHash('sha1').update(queues.toSorted().join('\n')).digest('hex').slice(0, 16);
    const key = new QueueKeys(this.prefix, '').janitor(group);
    return (await this.store.command('claimUpkeep', 'set', [key, '', 'NX', 'PX', forMs])) === 'OK';
  }

  async overgrown(queues: readonly string[]): Promise<readonly string[]> {
    const size = this.perQueue() ? 1 : LOOK_AT;
    const found: string[] = [];
    for (let from = 0; from < queues.length; from += size) {
      const some = queues.slice(from, from + size);
      const limits = some.flatMap((queue) => {
        const { completedMax, deadMax, deadAgeMs, eventsAgeMs } = this.settings.limitsOf(queue);
        return [completedMax, deadMax, deadAgeMs, eventsAgeMs ?? -1];
      });
      const keys = some.flatMap((queue) => {
        const { completed, dead, events } = this.store.keysOf(queue).fixed;
        return [completed, dead, events];
      });
      const isOver = await this.store.run(overgrown, {}, {}, { limits }, keys);
      found.push(...some.filter((_, i) => isOver[i]));
    }
    return found;
  }

  trim(queue: string): Promise<number> {
    const { maxEvents, eventsAgeMs, deadMax, deadAgeMs, completedMax } = this.settings.limitsOf(queue);
    return this.store.run(trim, this.store.keysOf(queue).fixed, {
      maxEvents,
      eventsAge: eventsAgeMs ?? -1,
      deadMax,
      deadAge: deadAgeMs,
      completedMax,
    });
  }

  private remove(
    queue: string,
    kind: (typeof PLACES)[keyof typeof PLACES][number],
    why: string,
    args: ReturnType<typeof walkArgs>,
    ids: readonly string[],
  ): Promise<Walked> {
    const { maxEvents } = this.settings.limitsOf(queue);
    return this.store.run(clean, this.store.keysOf(queue).fixed, { ...args, kind, why, maxEvents }, { ids });
  }
}

/** Behind nothing. */
const BEGINNING: Place = { at: '', id: '' };

type Call = (args: ReturnType<typeof walkArgs>, ids: readonly string[]) => Promise<Walked>;

/** Those named in one call, or the ones asked for in as many as it takes. */
async function choose(which: DeadChoice, call: Call): Promise<readonly string[]> {
  if ('ids' in which) {
    const { ids } = which;
    if (ids.length === 0) return [];
    return (await call(walkArgs({ after: null, limit: ids.length, until: 0 }, {}), ids)).ids;
  }
  const { limit, ...match } = which;
  return walkOn(limit, (step) => call(walkArgs(step, match), []));
}
