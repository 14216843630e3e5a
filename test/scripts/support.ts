import type { Redis } from 'ioredis';
import { beforeEach, expect } from 'vitest';
import type { EngineSettings } from '#lib/engine/wire/clients.js';
import type { EnqueueJob, ExchangeAnswer, ExchangeCall, RawEvent } from '#lib/contract/engine.js';
import { HOUR_MS } from '#lib/contract/history.js';
import { processKeys, QueueKeys, type KeyName, type QueueKeyName } from '#lib/engine/keys.js';
import type { ProcessRecord } from '#lib/contract/process-verbs.js';
import { RedisEngine } from '#lib/engine/redis-engine.js';
import type { FailureRecord, Outcome, SettledRun } from '#lib/job/outcome.js';
import { atEnd } from '../support/cleanup.js';
import { connectionTo } from '../support/mutant.js';
import { useRedis, type TestRedis, type UseRedisOptions } from '../support/redis.js';
import { until } from '../support/wait.js';
import { dump, type Dump } from './unchanged.js';

export const QUEUE = 'q';
/** The start of the hour that the key `minutes` belongs to. The clock may pass to the next one during a test. */
export const HOUR = Date.now() - (Date.now() % HOUR_MS);
export const WORKER = 'w1';
export const LANE = 'lane';
export const LEASE_MS = 8_000;

/** The hashes that have a field per job, but not its body. */
export const HASHES_OF_JOBS = [
  'attempts',
  'stalls',
  'failures',
  'results',
  'progress',
  'logs',
  'toCancel',
  'priorities',
] as const;

const DAY_MS = 24 * HOUR_MS;

/** The counters of each day have their own key. A test that begins in the last seconds of a day (UTC) waits for the next day. */
async function afterMidnight(): Promise<void> {
  const left = DAY_MS - (Date.now() % DAY_MS);
  if (left < 5_000) await until(() => Date.now() % DAY_MS < DAY_MS / 2, { timeout: left + 1_000 });
}

/** The keys that the specs of scripts leave: they imitate processes by hand. */
const LEAVES = ['active', 'worker', 'workers', 'processes', 'toCancel', 'declarers'];

type Exchanged = Extract<ExchangeAnswer, { kind: 'exchanged' }>;
export type Limits = ReturnType<EngineSettings['limitsOf']>;

/** The queue of the running test: the engine under test, and the raw keys through a client with all rights. */
export interface TestQueue {
  readonly redis: TestRedis;
  readonly admin: Redis;
  readonly engine: RedisEngine;
  readonly keys: QueueKeys;
  /** A second engine on the same keys, with other limits. The end of the test closes it. */
  engineWith(limits: Partial<Limits>): RedisEngine;
  /** Name of the key of this kind, of worker `WORKER`, lane `LANE` and the current day where it needs one. */
  key(kind: KeyName): string;
  /** The clock of Redis in ms. */
  now(): Promise<number>;
  dump(): Promise<Dump>;
  list(kind: KeyName): Promise<string[]>;
  /** Members, the lowest score first. */
  zset(kind: KeyName): Promise<string[]>;
  hash(kind: KeyName): Promise<Record<string, string>>;
  /** The counters of today that are not 0, without those of job names. */
  totals(): Promise<Record<string, string>>;
  /** Takes the bell as a woken worker does. Returns whether it had rung. */
  wasRung(): Promise<boolean>;

  /** Adds jobs in one call of the lane `LANE`, under its next number. */
  add(...jobs: (string | EnqueueJob)[]): Promise<readonly string[]>;
  /** An exchange of the worker under its next number, or the one given. */
  exchange(call?: Partial<ExchangeCall>, engine?: RedisEngine): Promise<ExchangeAnswer>;
  /** Like `exchange`, for calls that must be answered with claimed jobs. */
  exchanged(call?: Partial<ExchangeCall>): Promise<Exchanged>;
  /** Ids that the worker claims now. */
  claim(want?: number, worker?: string): Promise<string[]>;
  settle(...runs: SettledRun[]): Promise<Exchanged>;
  /** Adds the jobs and claims them with `WORKER`. */
  hold(...jobs: (string | EnqueueJob)[]): Promise<void>;
  /** Stores progress and a log line of jobs that `WORKER` holds. */
  note(...ids: string[]): Promise<void>;
  /** Adds the jobs, claims them and lets them die. */
  bury(...ids: string[]): Promise<void>;
  /** Every event in the stream, as a reader gets it. */
  events(): Promise<RawEvent[]>;
}

export const LIMITS: Limits = {
  leaseMs: LEASE_MS,
  logsMax: 100,
  maxEvents: 1_000,
  deadMax: 1_000,
  deadAgeMs: 90 * 86_400_000,
  eventsAgeMs: null,
  eventsMaxBytes: 67_108_864,
  progressMaxBytes: 67_108_864,
  deadMaxBytes: 1_073_741_824,
  completedMax: 1_000,
};

/** Call it at the top of a spec file or `describe`, outside of tests. */
export function useQueue(options: UseRedisOptions = {}): TestQueue {
  const redis = useRedis({ leaves: LEAVES, ...options });
  let state: { engine: RedisEngine; keys: QueueKeys; lane: number; workers: Map<string, number> };

  const engineWith = (limits: Partial<Limits>) => {
    const engine = new RedisEngine({
      connection: connectionTo(redis.url),
      prefix: redis.prefix,
      callMs: 5_000,
      limitsOf: () => ({ ...LIMITS, ...limits }),
    });
    atEnd(() => engine.close());
    return engine;
  };
  const nextSeq = (worker: string) => {
    const seq = (state.workers.get(worker) ?? 0) + 1;
    state.workers.set(worker, seq);
    return seq;
  };

  beforeEach(async () => {
    await afterMidnight();
    const keys = new QueueKeys(redis.prefix, QUEUE);
    state = { engine: engineWith({}), keys, lane: 0, workers: new Map() };
    await state.engine.open();
  });

  const q: TestQueue = {
    redis,
    engineWith,
    get admin() {
      return redis.admin;
    },
    get engine() {
      return state.engine;
    },
    get keys() {
      return state.keys;
    },
    key(kind) {
      const { keys } = state;
      if (kind === 'active' || kind === 'worker') return keys[kind](WORKER);
      if (kind === 'lane') return keys.lane(LANE);
      if (kind === 'undo') return keys.undo;
      // Ids in specs have no letter, unless it matters.
      if (kind === 'bodies') return keys.fixed.jobs;
      if (kind === 'stats') return keys.stats(new Date().toISOString().slice(0, 10));
      if (kind === 'minutes') return keys.minutes(HOUR, 'name');
      const ofPrefix: Partial<Record<string, string>> = processKeys(redis.prefix);
      return ofPrefix[kind] ?? keys.fixed[kind as QueueKeyName];
    },
    async now() {
      const [seconds = 0, micros = 0] = await redis.admin.time();
      return seconds * 1000 + Math.floor(micros / 1000);
    },
    dump: () => dump(redis, state.keys),
    list: (kind) => redis.admin.lrange(q.key(kind), 0, -1),
    zset: (kind) => redis.admin.zrange(q.key(kind), '0', '-1'),
    hash: (kind) => redis.admin.hgetall(q.key(kind)),
    async totals() {
      const [today] = (await state.engine.admin.stats(QUEUE, 1)).days;
      const counted = Object.entries(today!).filter(([, count]) => typeof count === 'number' && count > 0);
      return Object.fromEntries(counted.map(([kind, count]) => [kind, String(count)]));
    },
    wasRung: async () => (await redis.admin.zpopmin(q.key('doorbell'))).length > 0,

    async add(...jobs) {
      const answer = await state.engine.enqueue(QUEUE, callOf(jobs, ++state.lane));
      if (answer.kind !== 'stored') throw new Error(`jobs were not added: ${answer.kind}`);
      return answer.duplicates.map(({ id }) => id);
    },
    exchange: ({ worker = WORKER, seq, ...call } = {}, engine = state.engine) =>
      engine.exchange(QUEUE, {
        worker,
        seq: seq ?? nextSeq(worker),
        leaseMs: LEASE_MS,
        want: 0,
        maySuspect: true,
        settled: [],
        ...call,
      }),
    async exchanged(call) {
      const answer = await q.exchange(call);
      if (answer.kind !== 'exchanged') throw new Error(`no exchange was made: ${answer.kind}`);
      return answer;
    },
    claim: async (want = 100, worker = WORKER) =>
      (await q.exchanged({ worker, want })).claimed.map(({ id }) => id),
    settle: (...settled) => q.exchanged({ settled }),
    async hold(...jobs) {
      await q.add(...jobs);
      const claimed = await q.claim();
      expect(claimed).toEqual(expect.arrayContaining(jobs.map((one) => toJob(one).id)));
    },
    async note(...ids) {
      const of = { worker: WORKER, name: 'work', attempt: 1, progress: '1', log: 'l' };
      for (const id of ids) await state.engine.note(QUEUE, { ...of, id });
    },
    async bury(...ids) {
      await q.hold(...ids);
      await q.settle(...ids.map((id) => dead(id)));
    },
    async events() {
      await state.engine.openEvents();
      const batches = await state.engine.readEvents(new Map([[QUEUE, 0]]), 5);
      return batches.flatMap((batch) => batch.events);
    },
  };
  return q;
}

export function callOf(jobs: readonly (string | EnqueueJob)[], seq: number, lane = LANE) {
  return { lane, seq, rememberMs: 10_000, withinMs: 5_000, jobs: jobs.map(toJob) };
}

// ----------------------------------------------------------------------------------------------------------- builders

export function job(id: string, more: Partial<EnqueueJob> = {}): EnqueueJob {
  const name = more.name ?? 'work';
  return { id, name, body: `${name}\n{"of":${JSON.stringify(id)}}`, ...more };
}

function toJob(one: string | EnqueueJob): EnqueueJob {
  return typeof one === 'string' ? job(one) : one;
}

/** The report of a worker process with one job. */
export function processRecord(more: Partial<ProcessRecord> = {}): ProcessRecord {
  const since = 1_700_000_000_000;
  const running = [{ queue: QUEUE, id: 'a', name: 'work', attempt: 1, since }];
  return {
    id: 'p1',
    host: 'box',
    pid: 7,
    versions: { godwit: '0.1.0', node: '20.19.0', server: 'Redis 7.0.15' },
    startedAt: since,
    role: 'both',
    state: 'running',
    pools: [
      {
        queues: [QUEUE],
        paused: [],
        quiet: [],
        concurrency: 5,
        workers: [WORKER],
        running: 1,
        jobs: running,
      },
    ],
    morePools: 0,
    obeyed: '',
    ...more,
  };
}

export const FAILURE: FailureRecord = { name: 'Error', message: 'no luck', stack: 'at home', attempt: 1 };

function run(id: string, outcome: Outcome): SettledRun {
  return { id, name: 'work', attempt: 1, durationUs: 1_500, outcome };
}

export const completed = (id: string) => run(id, { kind: 'completed' });

export const kept = (id: string, forMs: number, result?: string) =>
  run(id, { kind: 'completed', keep: { forMs, result } });

export function retried(id: string, more: Partial<Extract<Outcome, { kind: 'retried' }>> = {}): SettledRun {
  return run(id, { kind: 'retried', delayMs: 0, priority: 0, failure: FAILURE, counted: true, ...more });
}

/** It runs later, without a counted attempt and without an error. */
export const snoozed = (id: string, delayMs: number) =>
  retried(id, { delayMs, failure: null, counted: false });

export const dead = (id: string, counted = true) =>
  run(id, { kind: 'dead', reason: 'unrecoverable', failure: FAILURE, counted });

export const released = (id: string, started?: true) =>
  run(id, { kind: 'released', ...(started && { started }) });

/** States in which the job `x` waits, and how it gets there. */
export const WAITS: readonly [state: string, bring: (q: TestQueue) => Promise<unknown>][] = [
  ['waiting', (q) => q.add('x')],
  ['prioritized', (q) => q.add(job('x', { priority: 3 }))],
  ['delayed', (q) => q.add(job('x', { delayMs: 60_000, priority: 3 }))],
  [
    'a suspect',
    async (q) => {
      await q.add('x');
      await q.admin.rpoplpush(q.key('wait'), q.key('suspects'));
      await q.admin.hset(q.key('stalls'), 'x', 2);
    },
  ],
  [
    'waiting for a retry',
    async (q) => {
      await q.hold('x');
      await q.note('x');
      await q.settle(retried('x', { delayMs: 60_000, priority: 2 }));
    },
  ],
];

export const WAITS_OR_ENDED: typeof WAITS = [
  ...WAITS,
  ['dead', (q) => q.bury('x')],
  [
    'completed and kept',
    async (q) => {
      await q.hold('x');
      await q.settle(kept('x', 60_000, '1'));
    },
  ],
];

export const EVERY_STATE: typeof WAITS = [...WAITS_OR_ENDED, ['active', (q) => q.hold('x')]];
