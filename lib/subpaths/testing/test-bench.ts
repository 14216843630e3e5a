import type { AdminVerbs } from '../../contract/admin-verbs.js';
import { idsNotAdded, type QueueEngine, type QueueLimits } from '../../contract/engine.js';
import type { ScheduleVerbs } from '../../contract/schedule-verbs.js';
import type { UpkeepVerbs } from '../../contract/upkeep-verbs.js';
import { GodwitError, InvalidOptionError } from '../../errors.js';
import { MAX_DURATION_MS } from '../../job/duration.js';
import { MemoryEngine } from '../../memory/memory-engine.js';
import { MemoryStore } from '../../memory/memory-store.js';
import type { QueueModuleOptions } from '../../options/module-options.js';
import type { EndWait } from '../../producer/add-and-wait.js';
import type { Substitute } from '../../module/queue.registry.js';
import { Records } from './records.js';

/**
 * Options of `QueueTestingModule.forRoot`: those of `QueueModule.forRoot`, which override those of the application, and the time
 * of the clock.
 */
export interface QueueTestingOptions extends Omit<QueueModuleOptions, 'connection' | 'autoStart'> {
  /**
   * `false`: jobs run only when the test calls for it, and the clock stands still until the test moves it. `true`: workers run as
   * in production, and the clock runs.
   *
   * @default false
   */
  readonly autoStart?: boolean;
  /** The time of the clock at the start: a date, ms since 1970, or a text that `Date` can parse. @default the present */
  readonly now?: Date | number | string;
}

/** Maximum number of jobs that one call promotes. */
const PROMOTED_AT_ONCE = 1000;

/**
 * A test asked for something impossible, such as a run in an empty queue. The message describes the queue's actual state.
 *
 * @example
 * await expect(testing.queue('email').runNext()).rejects.toThrow('nothing waits');
 */
export class QueueTestingError extends GodwitError {
  readonly code = 'GODWIT_TESTING';
}

/** Functions of `QueueTesting` that the store of the test calls, once they exist. */
interface BenchTools {
  /** Waits for the end of a job; null if workers run by themselves. */
  waitFor(queue: string, id: string): EndWait | null;
  cancelled(queue: string, id: string, reason: string): void;
}

/** The store of one test, with its clock and the records of what happened. */
export class TestBench implements Substitute {
  readonly clock: TestClock;
  readonly store: MemoryStore;
  tools: BenchTools | null = null;
  private readonly records = new Map<string, Records>();
  private readonly stirring = new Set<() => void>();
  private made: { readonly watched: QueueEngine; readonly memory: MemoryEngine } | null = null;

  constructor(private readonly given: QueueTestingOptions) {
    this.clock = new TestClock(readTime(given.now), given.autoStart === true);
    this.store = new MemoryStore(this.clock);
  }

  /** Whether an application uses this store. A second application must not share it. */
  get isInUse(): boolean {
    return this.made !== null;
  }

  get engine(): QueueEngine {
    if (this.made) return this.made.watched;
    throw new QueueTestingError('QueueTestingModule is not part of a module that was compiled');
  }

  /** Moves the clock to this time and wakes what waits for it. */
  moveTo(ms: number): void {
    this.clock.moveTo(ms);
    this.made?.memory.clockMoved();
  }

  recordsOf(queue: string): Records {
    let records = this.records.get(queue);
    if (!records) this.records.set(queue, (records = new Records(queue)));
    return records;
  }

  /** Makes all due jobs waiting. Resolves to the ms until the next one is due; null if there is none. */
  async promoteDue(queue: string): Promise<number | null> {
    for (;;) {
      // oxlint-disable-next-line no-await-in-loop -- each call promotes a part
      const { promoted, dueInMs } = await this.engine.promote(queue, PROMOTED_AT_ONCE);
      if (promoted < PROMOTED_AT_ONCE) return dueInMs;
    }
  }

  /** Calls the listener after each call that may have moved jobs. Returns a function that removes it. */
  onStir(listener: () => void): () => void {
    this.stirring.add(listener);
    return () => this.stirring.delete(listener);
  }

  // -------------------------------------------------------------------------------------------------------- the substitute

  options(given: QueueModuleOptions | undefined): QueueModuleOptions {
    // Invalid values are passed on, so that the usual check reports them.
    if (given === null || typeof given === 'string') return given;
    const own = withoutTime(this.given);
    return { ...withoutConnection(given ?? {}), ...own, autoStart: own.autoStart === true };
  }

  namedOptions(given: unknown): unknown {
    return typeof given === 'object' && given !== null ? withoutConnection(given) : (given ?? {});
  }

  createEngine(limitsOf: (queue: string) => QueueLimits): QueueEngine {
    // With the longest lease, no worker is lost when the clock moves far in one step.
    const longest = (queue: string) => ({ ...limitsOf(queue), leaseMs: MAX_DURATION_MS });
    const memory = new MemoryEngine({ store: this.store, limitsOf: longest });
    const watched = watchEngine(memory, this);
    this.made = { watched, memory };
    return watched;
  }

  waitFor(queue: string, id: string): EndWait | null {
    return this.tools?.waitFor(queue, id) ?? null;
  }

  // --------------------------------------------------------------------------------------------------------- the watcher

  stirred(): void {
    for (const listener of this.stirring) listener();
  }

  cancelled(queue: string, id: string, reason: string): void {
    this.tools?.cancelled(queue, id, reason);
  }
}

function withoutTime({ now: _, ...options }: QueueTestingOptions): QueueModuleOptions {
  return options;
}

function withoutConnection({ connection: _, ...options }: QueueModuleOptions): QueueModuleOptions {
  return options;
}

function readTime(now: unknown = Date.now()): number {
  const isTime = now instanceof Date || typeof now === 'number' || typeof now === 'string';
  const ms = isTime ? new Date(now).getTime() : Number.NaN;
  if (Number.isSafeInteger(ms) && ms >= 0) return ms;
  const rule = "a date, ms since 1970 or a string like '2026-01-01T09:00:00Z'";
  throw new InvalidOptionError('QueueTestingModule.forRoot().now', rule, now);
}

/**
 * The clock of a test. It stands still until it is moved. If it ticks, it also advances with real time, for workers that run by
 * themselves.
 */
class TestClock {
  private origin = performance.now();

  /** @param startMs ms since 1970. */
  constructor(
    private startMs: number,
    private readonly ticks: boolean,
  ) {}

  now(): number {
    return this.ticks ? this.startMs + Math.floor(performance.now() - this.origin) : this.startMs;
  }

  /** The clock never moves back, because due jobs would no longer be due. */
  moveTo(ms: number): void {
    this.startMs += Math.max(0, ms - this.now());
  }
}

/** Verbs that may move jobs, besides those of people. */
const STIRRING: ReadonlySet<PropertyKey> = new Set<keyof QueueEngine>([
  'enqueue',
  'exchange',
  'recover',
  'release',
  'promote',
]);

/** Verbs of people after which no job may be left to run. */
const ENDING: ReadonlySet<PropertyKey> = new Set<keyof AdminVerbs | keyof UpkeepVerbs>([
  'remove',
  'removeAll',
  'pause',
  'obliterate',
  'clean',
]);

/** The same engine, but the bench records its calls. */
function watchEngine(engine: QueueEngine, watcher: TestBench): QueueEngine {
  const afterOf = (names: ReadonlySet<PropertyKey>) => (name: PropertyKey) =>
    names.has(name) && (() => watcher.stirred());
  const cancelAll: AdminVerbs['cancelAll'] = async (queue, ids, reason) => {
    const answers = await engine.admin.cancelAll(queue, ids, reason);
    for (const [i, id] of ids.entries()) if (answers[i] === 'signalled') watcher.cancelled(queue, id, reason);
    watcher.stirred();
    return answers;
  };
  const verbs: Partial<QueueEngine> = {
    enqueue: async (queue, call) => {
      const answer = await engine.enqueue(queue, call);
      if (answer.kind === 'stored') {
        const there = idsNotAdded(answer.duplicates);
        const added = call.jobs.filter(({ id }) => !there.has(id));
        watcher.recordsOf(queue).stored(added, engine.now());
      }
      watcher.stirred();
      return answer;
    },
    exchange: async (queue, call) => {
      const answer = await engine.exchange(queue, call);
      watcher.recordsOf(queue).exchanged(call, answer);
      watcher.stirred();
      return answer;
    },
    admin: overlay<AdminVerbs>(
      engine.admin,
      {
        cancel: async (queue, id, reason) => (await cancelAll(queue, [id], reason))[0]!,
        cancelAll,
      },
      afterOf(ENDING),
    ),
    upkeep: overlay<UpkeepVerbs>(engine.upkeep, {}, afterOf(ENDING)),
    schedules: overlay<ScheduleVerbs>(engine.schedules, {
      fire: async (queue, calls) => {
        const answer = await engine.schedules.fire(queue, calls);
        watcher.recordsOf(queue).fired(calls, answer, engine.now());
        watcher.stirred();
        return answer;
      },
    }),
  };
  return overlay(engine, verbs, afterOf(STIRRING));
}

/** An object with some of its members replaced. The other methods still have the object itself as `this`. */
function overlay<T extends object>(
  target: T,
  members: Partial<T>,
  after: (name: PropertyKey) => (() => void) | false = () => false,
): T {
  return new Proxy(target, {
    get(_, name) {
      if (name in members) return members[name as keyof T];
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function') return member;
      const then = after(name);
      if (!then) return member.bind(target) as unknown;
      return async (...args: unknown[]) => {
        const answer: unknown = await Reflect.apply(member, target, args);
        then();
        return answer;
      };
    },
    // Observers replace verbs. In the object itself, a replaced verb would call the member that calls it.
    defineProperty: (_, name, as) => Reflect.defineProperty(name in members ? members : target, name, as),
  });
}
