import { createHash } from 'node:crypto';
import type { EngineSettings } from './wire/clients.js';
import { QueueKeys } from './keys.js';
import type { RedisStore } from './redis-store.js';
import { count } from './codec/replies.js';
import { isFitting, PATTERN_MARK } from '../job/name-pattern.js';
import { clean, deadThatFit, freeKeys, overgrown, retryDead, trim } from './scripts/upkeep.js';
import { inSteps } from '../contract/retry.js';
import type {
  CleanCall,
  DeadChoice,
  KeptOut,
  RetryAnswer,
  RetryChoice,
  UpkeepVerbs,
} from '../contract/upkeep-verbs.js';
import { BEGINNING, LINES, walkArgs, walkOn, type Walked } from './walks.js';

/** Maximum number of queues that one script looks at, so that it does not block Redis for long. */
const LOOK_AT = 200;
/** Users may generate job names. The times of more names are not stored, so jobs with other names wait. */
const MAX_NAMES = 10_000;
/** Most dead jobs are smaller, so the bytes of a few dead jobs need not be measured. */
const LARGE_BYTES = 1_048_576;
/** Dead jobs that one script call measures, in 1 to 2 ms. */
const MEASURED_AT_ONCE = 400;
/** The bytes of dead jobs are measured this long after a death, together with those of later deaths. */
const COLLECT_MS = 250;

/** Upkeep on Redis, in steps of one script each. */
export class RedisUpkeep implements UpkeepVerbs {
  /** Deaths in each queue since its dead jobs were last measured. */
  private readonly deaths = new Map<string, number>();
  private readonly measuring = new Set<string>();
  /** Bytes of the jobs that have died since all dead jobs were last measured. */
  private readonly grown = new Map<string, number>();
  /** Queues that had unique keys when they were last looked at. */
  private readonly keyed = new Set<string>();

  constructor(
    private readonly prefix: string,
    private readonly store: RedisStore,
    private readonly settings: EngineSettings,
    /** Whether each queue needs a separate call, as on Redis Cluster. */
    private readonly perQueue: () => boolean,
  ) {}

  async retryDead(queue: string, which: RetryChoice): Promise<RetryAnswer> {
    const { fixed } = this.store.keysOf(queue);
    const { maxEvents } = this.settings.limitsOf(queue);
    const data = ('data' in which && which.data) || '';
    const refused: KeptOut[] = [];
    const retried = await choose(which, async (args, ids) => {
      const step = await this.store.run(retryDead, fixed, { ...args, data, maxEvents }, { ids });
      refused.push(...step.refused);
      return step;
    });
    return { retried, ...(refused.length > 0 && { refused }) };
  }

  async removeDead(queue: string, which: DeadChoice): Promise<{ removed: readonly string[] }> {
    const removed = await choose(which, (args, ids) => this.remove(queue, 'dead', args, ids));
    return { removed };
  }

  async clean(queue: string, call: CleanCall): Promise<{ removed: readonly string[] }> {
    const { state, olderThanMs, limit, signal } = call;
    let removed: string[] = [];
    return inSteps(async (changed) => {
      for (const kind of LINES[state]) {
        if (removed.length >= limit || signal?.aborted === true) break;
        const isLine = kind === 'wait' || kind === 'suspects';
        const found = await walkOn(limit - removed.length, signal, async (step) => {
          const answer = await this.remove(queue, kind, walkArgs(step, { olderThanMs }), []);
          // The jobs found at the head of the line were removed, so the next call starts at the head again.
          return isLine && answer.ids.length > 0 ? { ...answer, next: BEGINNING } : answer;
        });
        // A call cannot have more than about 100,000 arguments, so not `push(...found)`.
        removed = removed.concat(found);
        changed(removed.length);
      }
      return { removed };
    });
  }

  async handles(queue: string, names: readonly string[], keepMs: number): Promise<void> {
    const { handled } = this.store.keysOf(queue).fixed;
    // The key exists only after a process has asked for an unknown name.
    if ((await this.store.command('handles', 'exists', [handled])) === 0) return;
    const now = Math.floor(this.store.now());
    await Promise.all([
      this.store.command('handles', 'hset', [handled, ...names.flatMap((name) => [name, now])]),
      this.store.command('handles', 'pexpire', [handled, keepMs]),
    ]);
  }

  async unhandledMs(queue: string, name: string, keepMs: number): Promise<number> {
    const { handled } = this.store.keysOf(queue).fixed;
    const now = Math.floor(this.store.now());
    const [size, [own, any, patterns]] = (await Promise.all([
      this.store.command('unhandledMs', 'hlen', [handled]),
      this.store.command('unhandledMs', 'hmget', [handled, name, '', PATTERN_MARK]),
      this.store.command('unhandledMs', 'pexpire', [handled, keepMs]),
    ])) as [number, (string | null)[], number];
    if (own === null && size < MAX_NAMES)
      await Promise.all([
        this.store.command('unhandledMs', 'hsetnx', [handled, name, now]),
        this.store.command('unhandledMs', 'pexpire', [handled, keepMs]),
      ]);
    if (own === null) return 0;
    let last = Math.max(count(own), count(any));
    // Patterns are checked only if a process handles names by pattern.
    if (patterns !== null) {
      const all = (await this.store.command('unhandledMs', 'hgetall', [handled])) as Record<string, string>;
      for (const [known, at] of Object.entries(all))
        if (isFitting(known, name)) last = Math.max(last, count(at));
    }
    return Math.max(0, now - last);
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
        const { completedMax, deadMax, deadMaxBytes, deadAgeMs, eventsAgeMs } = this.settings.limitsOf(queue);
        const deadToLook = Math.min(deadMax, Math.floor(deadMaxBytes / LARGE_BYTES));
        return [completedMax, deadToLook, deadAgeMs, eventsAgeMs ?? -1];
      });
      const keys = this.store.keysOfQueues(some, overgrown.keysOfQueues);
      const looks = await this.store.run(overgrown, {}, {}, { limits }, keys);
      for (const [i, queue] of some.entries()) {
        const { isOver, hasKeys } = looks[i]!;
        if (hasKeys) this.keyed.add(queue);
        if (isOver || hasKeys) found.push(queue);
      }
    }
    return found;
  }

  async trim(queue: string): Promise<number> {
    const { maxEvents, eventsAgeMs, deadAgeMs, deadMax, deadMaxBytes, completedMax } =
      this.settings.limitsOf(queue);
    const { fixed } = this.store.keysOf(queue);
    const keep = (most: number): Promise<number> =>
      this.store.run(trim, fixed, {
        maxEvents,
        eventsAge: eventsAgeMs ?? -1,
        deadMax: most,
        deadAge: deadAgeMs,
        completedMax,
      });
    let trimmed = await keep(deadMax);
    // Bytes are measured only when nothing else is left: that reads all dead jobs.
    if (trimmed === 0) {
      const { passed, bytes } = await this.measureDead(queue, deadMax);
      if (bytes > deadMaxBytes && passed < deadMax) trimmed = await keep(passed);
    }
    let freed = 0;
    for (let cursor = this.keyed.delete(queue) ? '0' : ''; cursor !== '';) {
      const step = await this.store.run(freeKeys, fixed, { cursor }, { digests: [] });
      freed += step.changed;
      cursor = step.cursor === '0' ? '' : step.cursor;
    }
    return trimmed + freed;
  }

  async freeKeys(queue: string, digests: readonly string[]): Promise<number> {
    const { fixed } = this.store.keysOf(queue);
    return (await this.store.run(freeKeys, fixed, { cursor: '' }, { digests })).changed;
  }

  /** Called when jobs have died. If their bytes may exceed the limit, the excess is removed soon, before the next upkeep. */
  died(queue: string, deaths: number): void {
    if (deaths === 0) return;
    this.deaths.set(queue, (this.deaths.get(queue) ?? 0) + deaths);
    this.measureSoon(queue);
  }

  private measureSoon(queue: string): void {
    const deaths = this.deaths.get(queue) ?? 0;
    if (!this.isMuch(queue, deaths * LARGE_BYTES) || this.measuring.has(queue)) return;
    this.measuring.add(queue);
    setTimeout(() => void this.measure(queue), COLLECT_MS).unref();
  }

  /** Measures the jobs that have just died, and all dead jobs only if those have many bytes. Never rejects. */
  private async measure(queue: string): Promise<void> {
    const deaths = this.deaths.get(queue)!;
    this.deaths.delete(queue);
    try {
      const { bytes } = await this.measureDead(queue, deaths);
      const grown = (this.grown.get(queue) ?? 0) + bytes;
      this.grown.set(queue, grown);
      if (this.isMuch(queue, grown)) {
        this.grown.delete(queue);
        while ((await this.trim(queue)) > 0);
      }
    } catch {
      // The connection reports it, and the next upkeep tries again.
    }
    this.measuring.delete(queue);
    // Others may have died meanwhile.
    this.measureSoon(queue);
  }

  private isMuch(queue: string, bytes: number): boolean {
    return bytes * 16 >= this.settings.limitsOf(queue).deadMaxBytes;
  }

  /** How many of the `jobs` that died last fit into the limit in bytes, and their bytes. */
  private async measureDead(queue: string, jobs: number): Promise<{ passed: number; bytes: number }> {
    const { fixed } = this.store.keysOf(queue);
    const most = this.settings.limitsOf(queue).deadMaxBytes;
    let step = { passed: 0, bytes: 0, isEnd: false };
    while (!step.isEnd && step.passed < jobs) {
      const { passed, bytes } = step;
      const examine = Math.min(MEASURED_AT_ONCE, jobs - passed);
      step = await this.store.run(deadThatFit, fixed, { passed, bytes, most, examine });
    }
    return step;
  }

  private remove(
    queue: string,
    kind: (typeof LINES)[keyof typeof LINES][number],
    args: ReturnType<typeof walkArgs>,
    ids: readonly string[],
  ): Promise<Walked> {
    const { maxEvents } = this.settings.limitsOf(queue);
    return this.store.run(clean, this.store.keysOf(queue).fixed, { ...args, kind, maxEvents }, { ids });
  }
}

type Call = (args: ReturnType<typeof walkArgs>, ids: readonly string[]) => Promise<Walked>;

/** The ids of jobs that were chosen, in as many calls as needed. */
async function choose(which: DeadChoice, call: Call): Promise<readonly string[]> {
  if ('ids' in which) {
    const chosen: string[] = [];
    const { until = 0 } = which;
    return inSteps(async (changed) => {
      for (let left = [...new Set(which.ids)]; left.length > 0;) {
        const { ids, next } = await call(walkArgs({ after: null, limit: left.length, until }, {}), left);
        chosen.push(...ids);
        changed(ids.length);
        left = next === null ? [] : left.slice(left.indexOf(next.id));
      }
      return chosen;
    });
  }
  const { limit, signal, ...match } = which;
  return walkOn(limit, signal, (step) => call(walkArgs(step, match), []));
}
