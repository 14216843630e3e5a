import { beforeEach } from 'vitest';
import type {
  EnqueueAnswer,
  EnqueueJob,
  ExchangeAnswer,
  ExchangeCall,
  QueueEngine,
  RawEvent,
  QueueLimits,
} from '#lib/contract/engine.js';
import { processKeys, QueueKeys } from '#lib/engine/keys.js';
import { RedisEngine } from '#lib/engine/redis-engine.js';
import type { SettledRun } from '#lib/job/outcome.js';
import { MemoryEngine } from '#lib/memory/memory-engine.js';
import { MemoryStore } from '#lib/memory/memory-store.js';
import { callOf, dead, LEASE_MS, LIMITS, QUEUE, WORKER } from '../scripts/support.js';
import { atEnd } from '../support/cleanup.js';
import { mutated } from '../support/mutant.js';
import { after, patchedClient, virtualClock } from '../support/patched-client.js';
import { useRedis, type TestRedis } from '../support/redis.js';

/** Each case of these specs holds for every `QueueEngine`. A mutant changes the scripts, so it runs only on Redis. */
export const ENGINES = (['redis', 'memory'] as const).slice(0, process.env['MUTATION_BY'] ? 1 : 2);

type Kind = (typeof ENGINES)[number];
type Exchanged = Extract<ExchangeAnswer, { kind: 'exchanged' }>;

/** Further queues of a test. */
export const OTHERS = ['q2', 'q3', 'q2:1'] as const;
/** The keys that the specs leave: they imitate processes by hand. */
const LEAVES = ['active', 'worker', 'workers', 'processes', 'toCancel', 'declarers', 'janitor', 'clock'];

/** The engine of the running test, on a clock of the test's own. */
interface TestEngine {
  readonly engine: QueueEngine;
  /** By the clock of the store. */
  readonly now: number;
  /** The clock moves so far; nothing is waited for. */
  advance(ms: number): Promise<void>;
  /** Another engine on the same store. */
  engineWith(limits?: Partial<QueueLimits>): QueueEngine;
  /** Adds jobs in one call of one lane, under its next number. */
  add(...jobs: (string | EnqueueJob)[]): Promise<EnqueueAnswer>;
  /** An exchange of the worker under its next number, or the one given. */
  exchange(call?: Partial<ExchangeCall>, engine?: QueueEngine): Promise<ExchangeAnswer>;
  /** Like `exchange`, for calls that must be answered with claimed jobs. */
  exchanged(call?: Partial<ExchangeCall>, engine?: QueueEngine): Promise<Exchanged>;
  /** Ids that the worker claims now. */
  claim(want?: number, worker?: string): Promise<string[]>;
  settle(...runs: SettledRun[]): Promise<Exchanged>;
  /** Adds the jobs and claims them. */
  hold(...jobs: (string | EnqueueJob)[]): Promise<void>;
  /** Adds the jobs, claims them and lets them die. */
  bury(...jobs: (string | EnqueueJob)[]): Promise<void>;
  /** Every event that is kept, as a reader gets it. */
  events(after?: number): Promise<RawEvent[]>;
}

/** How engines of one kind are made, and how their clock is moved. */
interface Ground {
  make(limits: Partial<QueueLimits>): QueueEngine;
  /** @param queue only of this one. @default the queues of a test */
  setClock(now: number, queue?: string): Promise<void>;
}

/** Call it at the top of a `describe`, outside of tests. */
export function useEngine(kind: Kind, limits: Partial<QueueLimits> = {}): TestEngine {
  const redis = kind === 'redis' ? useRedis({ leaves: LEAVES, rights: 'all' }) : null;
  let state: { ground: Ground; engine: QueueEngine; now: number; seqs: Map<string, number> };

  const made = (more: Partial<QueueLimits>) => {
    const engine = state.ground.make({ ...limits, ...more });
    atEnd(() => engine.close());
    return engine;
  };
  const next = (speaker: string) => {
    const seq = (state.seqs.get(speaker) ?? 0) + 1;
    state.seqs.set(speaker, seq);
    return seq;
  };

  beforeEach(async () => {
    const ground = redis ? redisGround(redis) : memoryGround();
    // So that no test comes to the end of a day.
    const now = new Date().setUTCHours(12, 0, 0, 0);
    await ground.setClock(now);
    state = { ground, now, seqs: new Map(), engine: null as never };
    state.engine = made({});
    await state.engine.open();
    // From here on the process of the engine knows the time of its store.
    await t.exchange({ worker: 'clock', want: 0 });
  });

  const t: TestEngine = {
    get engine() {
      return state.engine;
    },
    get now() {
      return state.now;
    },
    async advance(ms) {
      state.now += ms;
      await state.ground.setClock(state.now);
    },
    engineWith: (more = {}) => made(more),
    add: (...jobs) => state.engine.enqueue(QUEUE, callOf(jobs, next('lane'))),
    exchange: ({ worker = WORKER, seq, ...call } = {}, engine = state.engine) =>
      engine.exchange(QUEUE, {
        worker,
        seq: seq ?? next(`worker ${worker}`),
        leaseMs: LEASE_MS,
        want: 0,
        maySuspect: true,
        settled: [],
        ...call,
      }),
    async exchanged(call, engine) {
      const answer = await t.exchange(call, engine);
      if (answer.kind !== 'exchanged') throw new Error(`no exchange was made: ${answer.kind}`);
      return answer;
    },
    claim: async (want = 100, worker = WORKER) =>
      (await t.exchanged({ worker, want })).claimed.map(({ id }) => id),
    settle: (...settled) => t.exchanged({ settled }),
    async hold(...jobs) {
      await t.add(...jobs);
      await t.claim(1_000);
    },
    async bury(...jobs) {
      await t.hold(...jobs);
      await t.settle(...jobs.map((job) => dead(typeof job === 'string' ? job : job.id)));
    },
    async events(after = 0) {
      await state.engine.openEvents();
      const events: RawEvent[] = [];
      // One read is bounded in bytes, so it may bring only some of them.
      for (let last = after; ;) {
        const batches = await state.engine.readEvents(new Map([[QUEUE, last]]), 5);
        if (batches.length === 0) return events;
        events.push(...batches.flatMap((batch) => batch.events).filter(({ number }) => number > after));
        last = batches.at(-1)!.last;
      }
    },
  };
  return t;
}

function memoryGround(): Ground {
  let clock = 0;
  const store = new MemoryStore({ now: () => clock });
  return {
    make: (limits) => new MemoryEngine({ store, limitsOf: () => ({ ...LIMITS, ...limits }) }),
    async setClock(now) {
      clock = now;
    },
  };
}

/** The scripts take the time from a key, which no user of the library needs, so that here too it is the test that moves it. */
function redisGround({ url, prefix, admin }: TestRedis): Ground {
  const clockOf = (key: string) => key.replace(/[^:]*$/, 'clock');
  const clockIn = (queue: string) => clockOf(new QueueKeys(prefix, queue).fixed.meta);
  // Shared limits are those of the queue without a name.
  const all = ['', QUEUE, ...OTHERS].map(clockIn);
  all.push(clockOf(processKeys(prefix).processes));
  const connection = patchedClient(url, {
    patch: after(mutated(), virtualClock),
  }) as never;
  return {
    make: (limits) =>
      new RedisEngine({
        connection,
        prefix,
        callMs: 5_000,
        limitsOf: () => ({ ...LIMITS, ...limits }),
      }),
    async setClock(now, queue) {
      for (const key of queue === undefined ? all : [clockIn(queue)]) await admin.set(key, now);
    },
  };
}
