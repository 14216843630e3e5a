import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import type { EnqueueJob, ExchangeCall } from '#lib/contract/engine.js';
import { encodeBody } from '#lib/job/job-record.js';
import { completed, dead, kept, released, retried, snoozed } from '../scripts/support.js';
import type { RedisEngine } from '#lib/engine/redis-engine.js';
import type { SettledRun } from '#lib/job/outcome.js';
import { BEAT_MS, LEASE_MS, MAX_STALLS, QUEUE } from './rig.js';
import { groupOf } from './pace.js';
import type { Stage } from './stage.js';

/** The answers that the actors got, to compare with the store. */
export class Ledger {
  stored = 0;
  completed = 0;
  /** Settlements without an answer: they may have been accepted. */
  unknown = 0;
  names = 0;
}

/** Someone who makes calls with an engine of its own, until its list is done. */
export interface Actor {
  play(engine: RedisEngine, stage: Stage, ledger: Ledger): Promise<void>;
}

/** Two have one letter, one has another, the rest have none. */
const IDS = ['a', 'b', 'c', '0mwtqbbga5wm6p6000A', '0mwtqbbga5wm6p6001A', '0mwtqbbga5wm6p6002Z'];
const id = fc.constantFrom(...IDS);

// ------------------------------------------------------------------------------------------------------------ producers

const job = fc.record({
  id,
  delayMs: fc.constantFrom(0, 0, 0, 1_000, 20_000),
  priority: fc.constantFrom(0, 0, 1, 5),
});
const producer = fc
  .array(fc.uniqueArray(job, { minLength: 1, maxLength: 3, selector: (one) => one.id }), {
    minLength: 1,
    maxLength: 5,
  })
  .map((calls): Actor => ({
    async play(engine, stage, ledger) {
      const lane = `l${ledger.names++}`;
      for (const [i, drawn] of calls.entries()) {
        const jobs = drawn.map(({ id: jobId, delayMs, priority }): EnqueueJob => ({
          id: jobId,
          ...bodyOf(jobId, lane, priority, stage),
          name: 'job',
          ...(delayMs === 0 ? {} : { delayMs }),
          ...(priority === 0 ? {} : { priority }),
        }));
        const call = { lane, seq: i + 1, rememberMs: 600_000, withinMs: 5_000, jobs };
        const answer = await stage.insist(() => engine.enqueue(QUEUE, call));
        assert(answer.kind === 'stored', answer.kind);
        ledger.stored += jobs.length - answer.duplicates.length;
      }
    },
  }));

function bodyOf(jobId: string, lane: string, priority: number, stage: Stage) {
  const group = groupOf(jobId);
  if (!stage.isGrouped || !group) return { body: `job\nof ${lane}` };
  return { body: encodeBody('job', stage.now, { group, ...(priority > 0 && { priority }) }, '1'), group };
}

// -------------------------------------------------------------------------------------------------------------- workers

type WorkerStep =
  | { readonly kind: 'exchange'; readonly want: number; readonly settle: readonly OutcomeChoice[] }
  | {
      readonly kind: 'two';
      readonly wants: readonly [number, number];
      readonly settle: readonly OutcomeChoice[];
    }
  | { readonly kind: 'claim'; readonly want: number }
  | { readonly kind: 'beat' | 'release' | 'adopt' | 'note' };

type OutcomeChoice = (of: string) => SettledRun;
const outcome = fc.constantFrom<OutcomeChoice>(
  completed,
  completed,
  completed,
  (of) => kept(of, 2_000),
  (of) => retried(of),
  (of) => retried(of, { delayMs: 5_000, priority: 2 }),
  (of) => snoozed(of, 30_000),
  (of) => dead(of),
  (of) => released(of),
);
const workerStep: fc.Arbitrary<WorkerStep> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('exchange' as const),
      want: fc.nat({ max: 3 }),
      settle: fc.array(outcome, { maxLength: 3 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('two' as const),
      wants: fc.tuple(fc.nat({ max: 3 }), fc.nat({ max: 3 })),
      settle: fc.array(outcome, { maxLength: 2 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('claim' as const), want: fc.integer({ min: 1, max: 3 }) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('beat', 'release', 'adopt', 'note') }) },
);

/** A worker like that of the library: a name, the numbers of its exchanges, and the jobs that it believes to hold. */
class Worker {
  name: string;
  seq = 0;
  private pipelinedSeq = 0;
  held: string[] = [];

  constructor(
    private readonly engine: RedisEngine,
    private readonly stage: Stage,
    private readonly ledger: Ledger,
  ) {
    this.name = `w${ledger.names++}`;
  }

  async exchange(want: number, choices: readonly OutcomeChoice[], pipelined = false): Promise<void> {
    const settled = choices.slice(0, this.held.length).map((choice, i) => choice(this.held[i]!));
    this.held = this.held.slice(settled.length);
    const call: ExchangeCall = {
      worker: this.name,
      seq: (pipelined ? this.pipelinedSeq : this.seq) + 1,
      pipelined,
      leaseMs: LEASE_MS,
      want,
      maySuspect: !pipelined,
      settled,
    };
    const answer = await this.stage.insist(() => this.engine.exchange(QUEUE, call));
    const ends = settled.filter((one) => one.outcome.kind === 'completed');
    if (answer.kind !== 'exchanged') {
      this.ledger.unknown += ends.length;
      if (this.name === call.worker) this.begin();
      return;
    }
    this.ledger.completed += ends.filter((one) => !answer.lost.includes(one.id)).length;
    // The other exchange was answered that the lease is over: jobs of the old name go to others.
    if (this.name !== call.worker) return;
    if (pipelined) this.pipelinedSeq += 1;
    else this.seq += 1;
    const again = answer.claimed.filter((one) => this.held.includes(one.id));
    assert.deepEqual(again, [], 'a job was given out to a worker that holds it');
    this.held.push(...answer.claimed.map((one) => one.id));
  }

  /** Two concurrent exchanges. */
  async two([first, second]: readonly [number, number], choices: readonly OutcomeChoice[]): Promise<void> {
    const half = Math.ceil(choices.length / 2);
    if (this.seq === 0) return this.exchange(first, choices);
    await Promise.all([
      this.exchange(first, choices.slice(0, half)),
      this.exchange(second, choices.slice(half), true),
    ]);
  }

  /** Claims at the doorbell, and if that is not enough by an exchange with the same number. */
  async claim(want: number): Promise<void> {
    const call = {
      worker: this.name,
      seq: this.seq + 1,
      leaseMs: LEASE_MS,
      want,
      maySuspect: true,
      settled: [],
    };
    const answer = await this.stage.insist(() => this.stage.claimNow(this.engine, call));
    if (!answer) return this.exchange(want, []);
    this.seq += 1;
    this.held.push(...answer.claimed.map((one) => one.id));
  }

  async beat(): Promise<void> {
    const answer = await this.stage.insist(() => this.engine.beat(QUEUE, this.name, LEASE_MS));
    if (answer.kind === 'unknown-worker') this.begin();
  }

  async release(): Promise<void> {
    const ids = this.held.splice(0, 2);
    await this.stage.insist(() => this.engine.release(QUEUE, { worker: this.name, ids, leave: false }));
  }

  async adopt(): Promise<void> {
    const { unknown, lost } = await this.stage.insist(() => this.engine.adopt(QUEUE, this.name, this.held));
    assert.deepEqual(unknown, [], 'the store thinks that the worker holds more than it knows');
    this.held = this.held.filter((one) => !lost.includes(one));
  }

  async note(): Promise<void> {
    const [jobId] = this.held;
    if (jobId === undefined) return;
    const call = { worker: this.name, id: jobId, name: 'job', attempt: 1, progress: '1', log: 'line' };
    await this.stage.insist(() => this.engine.note(QUEUE, call));
  }

  private begin(): void {
    this.name = `w${this.ledger.names++}`;
    this.seq = 0;
    this.pipelinedSeq = 0;
    this.held = [];
  }
}

const worker = fc.array(workerStep, { minLength: 1, maxLength: 8, size: 'max' }).map((steps): Actor => ({
  async play(engine, stage, ledger) {
    const self = new Worker(engine, stage, ledger);
    for (const step of steps) {
      if (step.kind === 'exchange') await self.exchange(step.want, step.settle);
      else if (step.kind === 'two') await self.two(step.wants, step.settle);
      else if (step.kind === 'claim') await self.claim(step.want);
      else await self[step.kind]();
    }
  },
}));

// ---------------------------------------------------------------------------------------------- time, upkeep, and people

const clock = fc
  .array(fc.constantFrom(1, 1_000, 2_001, 9_000, 9_000, -3_000), { minLength: 1, maxLength: 8 })
  .map((steps): Actor => ({
    async play(_, stage) {
      for (const ms of steps) await stage.advance(ms);
    },
  }));

const upkeep = fc
  .array(fc.constantFrom('sweep', 'recovery', 'recovery', 'hasty', 'promote'), { minLength: 1, maxLength: 4 })
  .map((steps): Actor => ({
    async play(engine, stage) {
      for (const step of steps) {
        if (step === 'promote') await stage.insist(() => engine.promote(QUEUE, 2));
        else await sweep(engine, stage);
        if (step === 'recovery') await patiently(engine, stage);
        if (step === 'hasty') await hastily(engine, stage);
      }
    },
  }));

/** Waits until the leases of all silent workers are over. */
async function patiently(engine: RedisEngine, stage: Stage): Promise<void> {
  await stage.advance(LEASE_MS);
  await sweep(engine, stage);
  await stage.advance(BEAT_MS);
  await sweep(engine, stage);
}

/** Twice, shortly before leases end. */
async function hastily(engine: RedisEngine, stage: Stage): Promise<void> {
  await stage.advance(LEASE_MS - BEAT_MS / 2);
  await sweep(engine, stage);
  await sweep(engine, stage);
}

async function sweep(engine: RedisEngine, stage: Stage): Promise<void> {
  for (const { worker: name } of await stage.insist(() => engine.overdue(QUEUE, BEAT_MS)))
    await stage.insist(() =>
      engine.recover(QUEUE, { worker: name, beatMs: BEAT_MS, leaseMs: LEASE_MS, maxStalls: MAX_STALLS }),
    );
}

type Act = (engine: RedisEngine, jobId: string, stage: Stage) => Promise<unknown>;

/** Changes of limits, if the queue has limits from the beginning. */
const ofLimits =
  (act: (limits: RedisEngine['limits']) => Promise<unknown>): Act =>
  async (engine, _, stage) =>
    stage.isGrouped && act(engine.limits);
const ACTS: readonly Act[] = [
  (engine) => engine.admin.pause(QUEUE),
  (engine) => engine.admin.resume(QUEUE),
  (engine, jobId) => engine.admin.remove(QUEUE, jobId),
  (engine, jobId) => engine.admin.cancel(QUEUE, jobId, 'not wanted'),
  (engine, jobId) => engine.admin.cancel(QUEUE, jobId, 'not wanted'),
  (engine, jobId) => engine.upkeep.retryDead(QUEUE, { ids: [jobId] }),
  (engine) => engine.upkeep.retryDead(QUEUE, { limit: 2 }),
  (engine) => engine.upkeep.removeDead(QUEUE, { limit: 1 }),
  (engine) => engine.upkeep.clean(QUEUE, { state: 'waiting', olderThanMs: 0, limit: 1 }),
  (engine) => engine.upkeep.trim(QUEUE),
  (engine, jobId) => engine.admin.promoteNow(QUEUE, jobId),
  (engine, jobId) => engine.admin.get(QUEUE, jobId),
  ofLimits((limits) => limits.set(QUEUE, 'g:g1', 'live', { paused: true })),
  ofLimits((limits) => limits.set(QUEUE, 'g:g1', 'live', null)),
  ofLimits((limits) => limits.set(QUEUE, 'q', 'live', { concurrency: 1 })),
  ofLimits((limits) => limits.charge(QUEUE, [{ field: 'g:g2', holdMs: 3_000, count: 0 }])),
  (engine) => engine.admin.counts(QUEUE),
  async (engine) => {
    const wrong = (await engine.admin.audit(QUEUE)).violations.filter(({ kind }) => kind !== 'lease-ahead');
    assert.deepEqual(wrong, [], 'the audit');
  },
];
const person = fc
  .array(fc.record({ act: fc.nat({ max: ACTS.length - 1 }), id }), { minLength: 1, maxLength: 6 })
  .map((steps): Actor => ({
    async play(engine, stage) {
      for (const { act, id: jobId } of steps) await stage.insist(() => ACTS[act]!(engine, jobId, stage));
    },
  }));

/** Two to seven at once: at least one that adds and one that works. */
export const casts: fc.Arbitrary<readonly Actor[]> = fc
  .tuple(
    producer,
    worker,
    fc.array(fc.oneof(producer, worker, worker, clock, upkeep, upkeep, person), {
      maxLength: 6,
      size: 'max',
    }),
  )
  .map(([first, second, others]) => [first, second, ...others]);

/** The end: leases and delays are over, and one worker runs all jobs until nothing is left. */
export async function heal(engine: RedisEngine, stage: Stage, ledger: Ledger): Promise<void> {
  await stage.insist(() => engine.admin.resume(QUEUE));
  if (stage.isGrouped) await stage.insist(() => engine.limits.set(QUEUE, 'g:g1', 'live', null));
  const healer = new Worker(engine, stage, ledger);
  for (
    let round = 0;
    stage.countOf('waiting') + stage.countOf('delayed') + stage.countOf('active') > 0;
    round++
  ) {
    assert(round < 60, 'jobs are left that nobody can run');
    await stage.advance(9_000);
    await sweep(engine, stage);
    await stage.insist(() => engine.promote(QUEUE, 500));
    // In a group in strict order it may come before others.
    if (stage.isGrouped) await stage.insist(() => engine.upkeep.removeDead(QUEUE, { limit: 100 }));
    await healer.exchange(100, []);
    await healer.exchange(
      0,
      healer.held.map(() => completed),
    );
  }
  if (!stage.isGrouped) return;
  // Holds and rates are over. Then the next claim removes everything about lines.
  await stage.insist(() => engine.upkeep.removeDead(QUEUE, { limit: 100 }));
  await stage.advance(20_000);
  await healer.exchange(1, []);
}
