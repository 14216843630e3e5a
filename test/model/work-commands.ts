import * as fc from 'fast-check';
import type { EnqueueJob, ExchangeCall } from '#lib/contract/engine.js';
import { command, fate, id, IDS, speaker } from './command.js';
import { claimNow } from './claim.js';
import { claimed, exchange } from './model-exchange.js';
import * as verbs from './model-verbs.js';
import { run as settled, type OutcomeChoice } from './outcomes.js';
import { LIMITS, QUEUE } from './rig.js';
import type { Scene } from './scene.js';

const INVENTED = 'never added';

// ------------------------------------------------------------------------------------------------------------ producers

const jobDrawn = fc.record({
  id,
  when: fc.oneof(
    { weight: 4, arbitrary: fc.constant({}) },
    { weight: 2, arbitrary: fc.record({ delayMs: fc.constantFrom(1, 1_000, 5_000, 60_000) }) },
    { weight: 1, arbitrary: fc.record({ inMs: fc.constantFrom(-1_000, 0, 2_000, 30_000) }) },
  ),
  priority: fc.constantFrom(0, 0, 0, 1, 2, 2_097_151),
});
type JobDrawn = { id: string; when: { delayMs?: number; inMs?: number }; priority: number };

function toJob(scene: Scene, { id: jobId, when, priority }: JobDrawn): EnqueueJob {
  const body = scene.nextBody();
  const { delayMs, inMs } = when;
  return {
    id: jobId,
    body,
    name: body.split('\n')[0]!,
    ...(delayMs === undefined ? {} : { delayMs }),
    ...(inMs === undefined ? {} : { dueAt: scene.model.now + inMs }),
    ...(priority === 0 ? {} : { priority }),
  };
}

export const add = (max: number) =>
  command(
    'add',
    fc.record({
      lane: fc.nat({ max: 1 }),
      jobs: fc.uniqueArray(jobDrawn, {
        minLength: 1,
        maxLength: max,
        selector: (job) => job.id,
        size: 'max',
      }),
      fate,
    }),
    async (scene, drawn) => {
      const lane = scene.lanes[drawn.lane]!;
      const jobs = drawn.jobs.map((job) => toJob(scene, job));
      const call = { lane: lane.name, seq: ++lane.seq, rememberMs: 10_000, withinMs: 5_000, jobs };
      scene.past.push({ verb: 'enqueue', call });
      await scene.both(
        (engine) => engine.enqueue(QUEUE, call),
        (model) => verbs.enqueue(model, call),
        { fate: drawn.fate, idempotent: true },
      );
    },
  );

/** A packet that comes late: any call of before, once more. */
export const replay = command(
  'replay',
  fc.record({ back: fc.nat({ max: 6 }), fate }),
  async (scene, drawn) => {
    const past = scene.past.at(-1 - drawn.back);
    if (!past) return;
    const options = { fate: drawn.fate, idempotent: true };
    if (past.verb === 'enqueue') {
      const { call } = past;
      await scene.both(
        (engine) => engine.enqueue(QUEUE, call),
        (model) => verbs.enqueue(model, call),
        options,
      );
    } else {
      const { call } = past;
      await scene.both(
        (engine) => engine.exchange(QUEUE, call),
        (model) => exchange(model, call),
        options,
      );
    }
  },
);

// -------------------------------------------------------------------------------------------------------------- workers

const outcome = fc.constantFrom<OutcomeChoice>(
  'completed',
  'completed',
  'kept',
  'kept briefly',
  'retried',
  'retried later',
  'retried by rank',
  'retried later by rank',
  'snoozed',
  'dead',
  'dead unrun',
  'released',
);
/** Whose job is settled: one of the worker's own by number, or any id there is, so also those of others and of nobody. */
const settlement = fc.record({
  own: fc.constantFrom(true, true, true, false),
  nth: fc.nat({ max: 7 }),
  outcome,
});

function idOf(scene: Scene, worker: string, drawn: { own: boolean; nth: number }): string {
  const own = [...scene.model.held(worker)].toSorted();
  if (drawn.own && own.length > 0) return own[drawn.nth % own.length]!;
  return [...IDS, INVENTED][drawn.nth]!;
}

export const exchanged = (name: string, wantMax: number, runsMax: number) =>
  command(
    name,
    fc.record({
      worker: speaker,
      want: fc.nat({ max: wantMax }),
      maySuspect: fc.boolean(),
      settled: fc.array(settlement, { minLength: Math.min(1, runsMax), maxLength: runsMax, size: 'max' }),
      older: fc.nat({ max: 20 }).map((n) => n === 20),
      beside: fc.nat({ max: 3 }).map((n) => n === 3),
      fate,
    }),
    async (scene, drawn) => {
      const worker = scene.workers[drawn.worker]!;
      const { beside } = drawn;
      const last = beside ? worker.besideSeq : worker.seq;
      const seq = drawn.older ? Math.max(1, last - 1) : last + 1;
      const call: ExchangeCall = {
        worker: worker.name,
        seq,
        beside,
        leaseMs: LIMITS.leaseMs,
        want: drawn.want,
        maySuspect: drawn.maySuspect,
        settled: drawn.settled.map((one) => {
          const jobId = idOf(scene, worker.name, one);
          return settled(jobId, one.outcome, scene.model.nameOf(jobId), scene.model.attempts.get(jobId) ?? 0);
        }),
      };
      if (!drawn.older) scene.past.push({ verb: 'exchange', call });
      const answer = await scene.both(
        (engine) => engine.exchange(QUEUE, call),
        (model) => exchange(model, call),
        { fate: drawn.fate, idempotent: true },
      );
      const known = Math.max(last, seq);
      if (answer.kind === 'exchanged') {
        if (beside) worker.besideSeq = known;
        else worker.seq = known;
      } else if (answer.kind === 'unknown-worker') scene.rename(worker);
    },
  );

/** At the bell; for an engine that has one. */
export const claimAtBell = command(
  'claim at the bell',
  fc.record({ worker: speaker, want: fc.nat({ max: 5 }), older: fc.nat({ max: 10 }).map((n) => n === 10) }),
  async (scene, drawn) => {
    const worker = scene.workers[drawn.worker]!;
    const { leaseMs } = LIMITS;
    const seq = drawn.older ? Math.max(1, worker.seq) : worker.seq + 1;
    const call = { worker: worker.name, seq, leaseMs, want: drawn.want, maySuspect: true, settled: [] };
    const answer = await scene.both(
      (engine) => claimNow(engine, call),
      (model) => claimed(model, call),
    );
    if (answer) worker.seq = seq;
  },
);

export const beat = command('beat', fc.record({ worker: speaker, fate }), async (scene, drawn) => {
  const worker = scene.workers[drawn.worker]!;
  const answer = await scene.both(
    (engine) => engine.beat(QUEUE, worker.name, LIMITS.leaseMs),
    (model) => verbs.beat(model, worker.name, LIMITS.leaseMs),
    { fate: drawn.fate },
  );
  if (answer.kind === 'unknown-worker') scene.rename(worker);
});

export const release = command(
  'release',
  fc.record({ worker: speaker, ids: fc.array(settlement, { maxLength: 4 }), leave: fc.boolean(), fate }),
  async (scene, drawn) => {
    const worker = scene.workers[drawn.worker]!;
    const ids = drawn.ids.map((one) => idOf(scene, worker.name, one));
    const call = { worker: worker.name, ids, leave: drawn.leave };
    await scene.both(
      (engine) => engine.release(QUEUE, call),
      (model) => verbs.release(model, call),
      { fate: drawn.fate },
    );
  },
);

export const note = command(
  'note',
  fc.record({
    worker: speaker,
    of: settlement,
    says: fc.constantFrom('progress', 'log', 'both', 'nothing'),
    fate,
  }),
  async (scene, drawn) => {
    const worker = scene.workers[drawn.worker]!;
    const jobId = idOf(scene, worker.name, drawn.of);
    const call = {
      worker: worker.name,
      id: jobId,
      name: 'job',
      attempt: 2,
      ...(['progress', 'both'].includes(drawn.says) ? { progress: '{"n":1}' } : {}),
      ...(['log', 'both'].includes(drawn.says) ? { log: 'a line' } : {}),
    };
    await scene.both(
      (engine) => engine.note(QUEUE, call),
      (model) => verbs.note(model, call),
      { fate: drawn.fate },
    );
  },
);

export const adopt = command(
  'adopt',
  fc.record({ worker: speaker, known: fc.uniqueArray(id, { maxLength: 4 }) }),
  async (scene, drawn) => {
    const { name } = scene.workers[drawn.worker]!;
    await scene.both(
      async (engine) => {
        const answer = await engine.adopt(QUEUE, name, drawn.known);
        return { ...answer, unknown: answer.unknown.toSorted() };
      },
      (model) => verbs.adopt(model, name, drawn.known),
    );
  },
);
