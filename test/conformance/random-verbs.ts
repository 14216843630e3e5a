import * as fc from 'fast-check';
import type { EnqueueJob, ExchangeAnswer, QueueEngine } from '#lib/contract/engine.js';
import { encodeBody } from '#lib/job/job-record.js';
import type { SettledRun } from '#lib/job/outcome.js';
import {
  callOf,
  completed,
  dead,
  FAILURE,
  kept,
  LEASE_MS,
  released,
  retried,
  snoozed,
} from '../scripts/support.js';

/** What two engines have in common while the same calls are made on both. */
export interface Play {
  readonly queue: string;
  readonly now: number;
  /** The number of the last call of a worker or lane. */
  readonly seqs: Map<string, number>;
  advance(ms: number): Promise<void>;
  /** Makes the call on both, and compares what they answer. */
  same<A>(call: (engine: QueueEngine) => Promise<A>): Promise<A>;
}

export interface Step {
  readonly name: string;
  readonly drawn: unknown;
  readonly act: (play: Play) => Promise<unknown>;
}

export const IDS = ['a', 'b', 'c', 'd', 'e', '__proto__', 'meta', '\u{1F600}', '\uFFFD', 'é', '\uE000'];
export const NAMES = ['work', 'mail', 'constructor'];
/** Of jobs that wait for a moment: how long that is their event tells by the clock of the process, which is about that of the store. */
export const MOMENT = 'moment';
/** Each with the length of its leases. */
const WORKERS = { w1: LEASE_MS, w2: LEASE_MS, w3: 3_000 } as const;

const id = fc.constantFrom(...IDS);
const name = fc.constantFrom(...NAMES);
const worker = fc.constantFrom(...(Object.keys(WORKERS) as (keyof typeof WORKERS)[]));
const ageMs = fc.constantFrom(0, 1, 2_000, 10_000);
const limit = fc.constantFrom(0, 1, 2, 100);

function step<T>(
  stepName: string,
  drawn: fc.Arbitrary<T>,
  act: (play: Play, drawn: T) => Promise<unknown>,
): fc.Arbitrary<Step> {
  return drawn.map((value) => ({
    name: stepName,
    drawn: value,
    act: (play) => act(play, value),
    toString: () => `${stepName}(${JSON.stringify(value)})`,
  }));
}

// ----------------------------------------------------------------------------------------------------------------- work

const jobDrawn = fc.record({
  id,
  name,
  ageMs,
  attempts: fc.constantFrom(undefined, 3),
  delayMs: fc.constantFrom(undefined, undefined, undefined, 1, 2_000, 9_000),
  inMs: fc.constantFrom(undefined, undefined, undefined, undefined, -1_000, 0, 3_000),
  priority: fc.constantFrom(undefined, undefined, 0, 1, 7, 2_097_151),
});

const add = step(
  'add',
  fc.record({
    jobs: fc.uniqueArray(jobDrawn, { minLength: 1, maxLength: 5, selector: (job) => job.id }),
    lane: fc.constantFrom('l1', 'l2'),
    ahead: fc.constantFrom(1, 1, 1, 1, 1, 1, 0, -1),
  }),
  (play, { jobs, lane, ahead }) => {
    const seq = Math.max(1, (play.seqs.get(lane) ?? 0) + ahead);
    play.seqs.set(lane, Math.max(seq, play.seqs.get(lane) ?? 0));
    const call = {
      ...callOf(
        jobs.map((job) => toJob(play.now, job)),
        seq,
        lane,
      ),
      rememberMs: 1e9,
    };
    return play.same((engine) => engine.enqueue(play.queue, call));
  },
);

type JobDrawn = typeof jobDrawn extends fc.Arbitrary<infer T> ? T : never;

function toJob(now: number, drawn: JobDrawn): EnqueueJob {
  const { delayMs, inMs, priority, attempts } = drawn;
  const options = attempts === undefined ? {} : { attempts };
  const isMoment = inMs !== undefined && delayMs === undefined;
  const name = isMoment ? MOMENT : drawn.name;
  return {
    id: drawn.id,
    name,
    body: encodeBody(name, now - drawn.ageMs, options, '{"n":1}'),
    ...(priority === undefined ? {} : { priority }),
    ...(delayMs === undefined ? {} : { delayMs }),
    ...(isMoment ? { dueAt: now + inMs } : {}),
  };
}

const OUTCOMES: ((of: string) => SettledRun)[] = [
  completed,
  completed,
  released,
  (of) => released(of, true),
  (of) => kept(of, 4_000, '{"ok":true}'),
  (of) => kept(of, 30_000),
  (of) => retried(of),
  (of) => retried(of, { delayMs: 2_500.5, priority: 3 }),
  (of) => retried(of, { priority: 3, failure: { ...FAILURE, message: 'é'.repeat(600) } }),
  (of) => retried(of, { delayMs: 800 }),
  (of) => snoozed(of, 1_500),
  (of) => dead(of),
  (of) => ({
    ...dead(of, false),
    outcome: { kind: 'dead', reason: 'expired', failure: FAILURE, counted: false },
  }),
];

const run = fc.record({
  id,
  name,
  attempt: fc.constantFrom(1, 2),
  durationUs: fc.constantFrom(0, 12_345),
  outcome: fc.nat(OUTCOMES.length - 1),
});

const exchange = step(
  'exchange',
  fc.record({
    worker,
    want: fc.constantFrom(0, 1, 2, 4),
    maySuspect: fc.boolean(),
    settled: fc.array(run, { maxLength: 6 }),
    beside: fc.constantFrom(false, false, true),
    ahead: fc.constantFrom(1, 1, 1, 1, 1, 1, 1, 0, -1),
  }),
  async (play, drawn) => {
    const speaker = (beside: boolean) => `${drawn.worker}${beside ? ' beside' : ''}`;
    const mine = speaker(drawn.beside);
    const seq = Math.max(1, (play.seqs.get(mine) ?? 0) + drawn.ahead);
    const settled = drawn.settled.map(({ outcome, ...more }) => ({
      ...OUTCOMES[outcome]!(more.id),
      ...more,
    }));
    const answer = await play.same((engine) =>
      engine
        .exchange(play.queue, { ...drawn, leaseMs: WORKERS[drawn.worker], seq, settled })
        .then(withoutClock),
    );
    if (answer.kind === 'exchanged') play.seqs.set(mine, Math.max(seq, play.seqs.get(mine) ?? 0));
    if (answer.kind === 'unknown-worker')
      for (const beside of [false, true]) play.seqs.delete(speaker(beside));
  },
);

/** On Redis the time goes along, for the clock of the process. */
function withoutClock({ now: _, ...answer }: ExchangeAnswer & { now?: number }): ExchangeAnswer {
  return answer;
}

const recover = step(
  'recover',
  fc.record({ worker, times: fc.constantFrom(1, 2, 2) }),
  async (play, drawn) => {
    const call = { worker: drawn.worker, beatMs: 2_000, leaseMs: LEASE_MS, maxStalls: 2 };
    for (let i = 0; i < drawn.times; i++) {
      await play.advance(i === 0 ? LEASE_MS : 2_000);
      await play.same((engine) => engine.recover(play.queue, call));
    }
  },
);

const work: fc.Arbitrary<Step>[] = [
  step('beat', worker, (play, of) => play.same((engine) => engine.beat(play.queue, of, WORKERS[of]))),
  step('adopt', fc.record({ worker, known: fc.uniqueArray(id) }), (play, drawn) =>
    play.same(async (engine) => {
      const { lost, unknown } = await engine.adopt(play.queue, drawn.worker, drawn.known);
      return { lost, unknown: unknown.toSorted() };
    }),
  ),
  step('release', fc.record({ worker, ids: fc.array(id), leave: fc.boolean() }), (play, drawn) =>
    play.same((engine) => engine.release(play.queue, drawn)),
  ),
  step(
    'note',
    fc.record({
      worker,
      id,
      name,
      attempt: fc.constant(2),
      progress: fc.constantFrom('', '{"n":1}'),
      log: fc.constantFrom('', 'a line', 'two\nlines'),
    }),
    (play, drawn) => play.same((engine) => engine.note(play.queue, drawn)),
  ),
  step('promote', limit, (play, most) => play.same((engine) => engine.promote(play.queue, most))),
  step('overdue', fc.constantFrom(0, 2_000, 9_000), (play, ms) =>
    play.same((engine) => engine.overdue(play.queue, ms)),
  ),
  step('look', worker, (play, of) => play.same((engine) => engine.look([{ queue: play.queue, worker: of }]))),
];

// ---------------------------------------------------------------------------------------------------------------- people

const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
const match = fc.record({
  name: maybe(name),
  reason: maybe(fc.constantFrom('unrecoverable', 'expired', 'stalled')),
  olderThanMs: maybe(ageMs),
  newerThanMs: maybe(ageMs),
});
const choice = fc.oneof(
  fc.record({ ids: fc.array(id, { minLength: 1 }) }),
  fc.tuple(match, limit).map(([asked, most]) => ({ ...asked, limit: most })),
);

const people: fc.Arbitrary<Step>[] = [
  ...(['get', 'remove', 'promoteNow'] as const).map((verb) =>
    step(verb, id, (play, of) => play.same<unknown>((engine) => engine.admin[verb](play.queue, of))),
  ),
  step('cancel', fc.record({ id, reason: fc.constantFrom('why', '__proto__') }), (play, drawn) =>
    play.same((engine) => engine.admin.cancel(play.queue, drawn.id, drawn.reason)),
  ),
  step('pause', fc.constant(0), (play) => play.same((engine) => engine.admin.pause(play.queue))),
  step('resume', fc.constant(0), (play) => play.same((engine) => engine.admin.resume(play.queue))),
  step('counts', fc.constant(0), (play) => play.same((engine) => engine.admin.counts(play.queue))),
  step('oldest', fc.constant(0), (play) => play.same((engine) => engine.admin.oldestWaitingMs(play.queue))),
  step('retryDead', choice, (play, which) =>
    play.same((engine) => engine.upkeep.retryDead(play.queue, which as never)),
  ),
  step('removeDead', choice, (play, which) =>
    play.same((engine) => engine.upkeep.removeDead(play.queue, which as never)),
  ),
  step('deadJobs', fc.record({ match, limit, after: maybe(id) }), (play, drawn) =>
    play.same((engine) => {
      const after = drawn.after === undefined ? null : { at: String(play.now - 2_000), id: drawn.after };
      return engine.upkeep.deadJobs(play.queue, { ...drawn.match, limit: drawn.limit, after } as never);
    }),
  ),
  step(
    'clean',
    fc.record({
      state: fc.constantFrom('waiting', 'delayed', 'completed', 'dead'),
      olderThanMs: ageMs,
      limit,
    }),
    (play, call) => play.same((engine) => engine.upkeep.clean(play.queue, call)),
  ),
  step('trim', fc.constant(0), (play) => play.same((engine) => engine.upkeep.trim(play.queue))),
  step('overgrown', fc.constant(0), (play) => play.same((engine) => engine.upkeep.overgrown([play.queue]))),
];

const obliterate = step('obliterate', fc.boolean(), async (play, force) => {
  await play.same((engine) => engine.admin.obliterate(play.queue, force));
});

const advance = step('advance', fc.constantFrom(1, 500, 2_000, 5_000), (play, ms) => play.advance(ms));

/** Sequences of calls; the common ones more often. */
export const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 20, arbitrary: add },
    { weight: 40, arbitrary: exchange },
    { weight: 12, arbitrary: advance },
    { weight: 6, arbitrary: recover },
    { weight: 14, arbitrary: fc.oneof(...work) },
    { weight: 24, arbitrary: fc.oneof(...people) },
    { weight: 1, arbitrary: obliterate },
  ),
  { minLength: 10, maxLength: 40, size: 'max' },
);
