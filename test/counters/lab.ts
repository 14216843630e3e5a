import { vi } from 'vitest';
import type { JobOptions } from '#lib/options/job-options.js';
import { atEnd } from '../support/cleanup.js';
import { bootQueue, type QueueApp, type QueueAppOptions } from '../support/queue-app.js';
import type { TestRedis } from '../support/redis.js';
import { CALLS, COMMANDS, type Measured } from './ledger.js';
import { Meter, type Spent } from './meter.js';

const ROUNDS = 3;
const PROMISES = 'promises of Node per 1,000 jobs';
const TIMERS = 'timers of Node per 1,000 jobs';
/** The test runner lives in the same process and reports now and then, so this many promises or timers may be its own. */
const OF_RUNNER = 6;
/** One more command in each call of a worker is 3 % and more. */
const SAME_CALLS = 0.015;
/** Every number has the same count of digits, so every job has the same size. */
const FIRST = 100_000;

export interface Payload {
  readonly n: number;
  readonly to: string;
  readonly template: string;
}

let next = FIRST;

/** The data of a job of the bench. */
export function payload(): Payload {
  const n = next++;
  return { n, to: `user${n}@example.com`, template: 'welcome' };
}

/** What `addBulk` takes. */
export function bulk(count: number, options?: JobOptions, data: () => object = payload) {
  return Array.from({ length: count }, () => ({ name: 'noop', data: data(), ...(options && { options }) }));
}

/** For `forRoot`: timed work, beats and upkeep, comes long after the measurement. */
export const QUIET = { lease: { duration: '1h' }, upkeep: { interval: '20d' } } as const;

/** An application without timed work, on a server that no other spec uses. */
export async function bootQuiet(redis: TestRedis, options: QueueAppOptions = {}): Promise<QueueApp> {
  const root = { ...QUIET, ...options.root };
  const app = await bootQueue(redis, { watch: false, ...options, root });
  const isWorker = options.handlers !== undefined || options.providers !== undefined;
  // The thread of the heartbeat connects and registers the process shortly after the start.
  if (isWorker) await new Meter(redis.admin).atRest((keys) => keys.some((key) => key.endsWith(':processes')));
  return app;
}

/** The same, and its clock stands still. So what it decides by its own speed does not depend on the machine. */
export async function bootStill(redis: TestRedis, options: QueueAppOptions = {}): Promise<QueueApp> {
  const clock = vi.spyOn(performance, 'now').mockReturnValue(performance.now());
  atEnd(() => clock.mockRestore());
  return bootQuiet(redis, options);
}

export interface Rounds {
  /** Of one round. */
  readonly jobs: number;
  readonly round: () => Promise<Spent>;
  /**
   * Whether Node does the same in each round. False if replies come in any order, or the test itself waits.
   * @default true
   */
  readonly countsNode?: boolean;
  /** Of all counters. @default that of the ledger */
  readonly tolerance?: number;
  /** By how many script calls a round may differ. @default 0 */
  readonly spareCalls?: number;
  /** By how many timers a round may differ. @default those of the test runner */
  readonly spareTimers?: number;
}

/** The least value of several rounds for each counter: anything else that happens only adds to it. */
export async function inRounds(redis: TestRedis, rounds: Rounds): Promise<Measured> {
  const { jobs, round, countsNode = true, spareCalls = 0, spareTimers = OF_RUNNER } = rounds;
  const all: Spent[] = [];
  for (let i = 0; i < ROUNDS; i++) all.push(await round());
  const least = (of: (spent: Spent) => number) => Math.min(...all.map((spent) => of(spent)));
  const perJob = (of: (spent: Spent) => number) => least(of) / jobs;
  // A call may be a little dearer than others.
  const ofCalls = (1.25 * spareCalls) / least((spent) => spent.scriptCalls);
  const tolerance = rounds.tolerance ?? (spareCalls > 0 ? ofCalls : undefined);
  const counters = {
    [COMMANDS]: perJob((spent) => spent.commands),
    [CALLS]: perJob((spent) => spent.scriptCalls) * 1_000,
    'bytes sent per job': perJob((spent) => spent.bytesSent),
    'bytes received per job': perJob((spent) => spent.bytesReceived),
    ...(countsNode && {
      [PROMISES]: perJob((spent) => spent.promises) * 1_000,
      [TIMERS]: perJob((spent) => spent.timers) * 1_000,
    }),
  };
  const tolerances =
    tolerance === undefined ? {} : Object.fromEntries(Object.keys(counters).map((name) => [name, tolerance]));
  const ofNode = 2 * (tolerance ?? 0);
  return {
    server: await new Meter(redis.admin).server(),
    counters,
    tolerances: { ...tolerances, [PROMISES]: ofNode, [TIMERS]: ofNode },
    spares: { [PROMISES]: (OF_RUNNER / jobs) * 1_000, [TIMERS]: (spareTimers / jobs) * 1_000 },
    ...(spareCalls > 0 && { toleranceOfSameCalls: SAME_CALLS }),
    detail: `${jobs} jobs took ${inWords(all.at(-1)!)}`,
  };
}

/** How often each command was called. */
export function inWords({ calls }: Spent): string {
  const sorted = [...calls].toSorted(([, a], [, b]) => b - a);
  return sorted.map(([name, count]) => `${name} ${count}`).join(', ');
}
