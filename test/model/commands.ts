import fc, { type AsyncCommand } from 'fast-check';
import type { EnqueueJob, ExchangeCall } from '#lib/engine/engine.js';
import { run as settled, type OutcomeChoice } from './outcomes.js';
import { exchange } from './model-exchange.js';
import * as verbs from './model-verbs.js';
import type { QueueModel } from './queue-model.js';
import { BEAT_MS, LIMITS, MAX_STALLS, QUEUE, type Fate, type Rig } from './rig.js';
import { corruptions } from './corruptions.js';
import type { Scene } from './scene.js';

export type ModelCommand = AsyncCommand<Scene, Rig>;

const IDS = ['a', 'b', 'c', 'd', '__proto__', 'meta', '0'] as const;
const INVENTED = 'never added';

const fate = fc.oneof(
  { weight: 6, arbitrary: fc.constant<Fate>('answered') },
  { weight: 2, arbitrary: fc.constant<Fate>('reply lost') },
  { weight: 1, arbitrary: fc.constant<Fate>('call lost') },
);
const speaker = fc.nat({ max: 2 });
const id = fc.constantFrom(...IDS);

/** A command is its name, what was drawn for it, and what it does with that. */
function command<T>(
  name: string,
  drawn: fc.Arbitrary<T>,
  act: (scene: Scene, drawn: T) => Promise<unknown>,
): fc.Arbitrary<ModelCommand> {
  return drawn.map((value) => ({
    check: () => true,
    run: async (scene: Scene) => void (await act(scene, value)),
    toString: () => `${name}(${JSON.stringify(value) ?? ''})`,
  }));
}

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

const add = (max: number) =>
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
const replay = command('replay', fc.record({ back: fc.nat({ max: 6 }), fate }), async (scene, drawn) => {
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
});

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

const exchanged = (name: string, wantMax: number, runsMax: number) =>
  command(
    name,
    fc.record({
      worker: speaker,
      want: fc.nat({ max: wantMax }),
      maySuspect: fc.boolean(),
      settled: fc.array(settlement, { minLength: Math.min(1, runsMax), maxLength: runsMax, size: 'max' }),
      older: fc.nat({ max: 20 }).map((n) => n === 20),
      fate,
    }),
    async (scene, drawn) => {
      const worker = scene.workers[drawn.worker]!;
      const seq = drawn.older ? Math.max(1, worker.seq - 1) : worker.seq + 1;
      const call: ExchangeCall = {
        worker: worker.name,
        seq,
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
      if (answer.kind === 'exchanged') worker.seq = Math.max(worker.seq, seq);
      else if (answer.kind === 'unknown-worker') scene.rename(worker);
    },
  );

const beat = command('beat', fc.record({ worker: speaker, fate }), async (scene, drawn) => {
  const worker = scene.workers[drawn.worker]!;
  const answer = await scene.both(
    (engine) => engine.beat(QUEUE, worker.name, LIMITS.leaseMs),
    (model) => verbs.beat(model, worker.name, LIMITS.leaseMs),
    { fate: drawn.fate },
  );
  if (answer.kind === 'unknown-worker') scene.rename(worker);
});

const release = command(
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

const note = command(
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

const adopt = command(
  'adopt',
  fc.record({ worker: speaker, known: fc.uniqueArray(id, { maxLength: 4 }) }),
  async (scene, drawn) => {
    const { name } = scene.workers[drawn.worker]!;
    const byId = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1);
    await scene.both(
      async (engine) => {
        const { lost, unknown } = await engine.adopt(QUEUE, name, drawn.known);
        return { lost, unknown: unknown.toSorted(byId) };
      },
      (model) => verbs.adopt(model, name, drawn.known),
    );
  },
);

// ---------------------------------------------------------------------------------------------------------- as time goes

/** As the recoverer of any process does: it looks, and takes back what it may. */
const sweep = command(
  'sweep',
  fc.record({ withinMs: fc.constantFrom(0, BEAT_MS), fate }),
  async (scene, drawn) => {
    const found = await scene.both(
      async (engine) => [...(await engine.overdue(QUEUE, drawn.withinMs))],
      (model) => verbs.overdue(model, drawn.withinMs),
    );
    for (const { worker } of found) await recoverOf(scene, worker, drawn.fate);
  },
);

/** Also of workers that are alive. */
const recover = command('recover', fc.record({ worker: speaker, fate }), (scene, drawn) =>
  recoverOf(scene, scene.workers[drawn.worker]!.name, drawn.fate),
);

async function recoverOf(scene: Scene, worker: string, drawnFate: Fate): Promise<void> {
  const call = { worker, beatMs: BEAT_MS, leaseMs: LIMITS.leaseMs, maxStalls: MAX_STALLS };
  await scene.both(
    (engine) => engine.recover(QUEUE, call),
    (model) => verbs.recover(model, call),
    { fate: drawnFate },
  );
}

const promote = command(
  'promote',
  fc.record({ limit: fc.constantFrom(0, 1, 2, 500), fate }),
  (scene, drawn) =>
    scene.both(
      (engine) => engine.promote(QUEUE, drawn.limit),
      (model) => verbs.promote(model, drawn.limit),
      { fate: drawn.fate },
    ),
);

const advance = (...steps: number[]) =>
  command('advance', fc.constantFrom(...steps), async (scene, ms) => {
    for (const key of scene.model.advance(ms)) await scene.rig.admin.del(scene.rig.keyOf(key));
    await scene.rig.setClock(scene.model.now);
    await scene.compare();
  });

/** A worker woken by the bell takes it away. */
const wake = command('wake', fc.constant(null), async (scene) => {
  await scene.rig.admin.zpopmin(scene.rig.keyOf('doorbell'));
  scene.model.bell = false;
});

const flushScripts = command('flush scripts', fc.constant(null), (scene) => scene.rig.admin.script('FLUSH'));

/** Redis writes everything to disk and reads it again, as it does when it starts. */
const reload = command('reload', fc.constant(null), async (scene) => {
  await scene.rig.admin.call('DEBUG', 'RELOAD');
  await scene.compare();
});

// ------------------------------------------------------------------------------------------------------- acts of people

const pause = command('pause', fate, (scene, drawn) =>
  scene.both((engine) => engine.pause(QUEUE), verbs.pause, { fate: drawn }),
);
const resume = command('resume', fate, (scene, drawn) =>
  scene.both((engine) => engine.resume(QUEUE), verbs.resume, { fate: drawn }),
);
const look = command('get', id, (scene, jobId) =>
  scene.both(
    async (engine) => {
      const found = await engine.get(QUEUE, jobId);
      if (!found) return null;
      const { state, body, failed, stalls, dueAt, worker, progress } = found;
      return { state, body, failed, stalls, dueAt, worker, progress };
    },
    (model) => verbs.get(model, jobId),
  ),
);
const count = command('counts', fc.constant(null), (scene) =>
  scene.both((engine) => engine.counts(QUEUE), verbs.counts),
);
const remove = command('remove', fc.record({ id, fate }), (scene, drawn) =>
  scene.both(
    (engine) => engine.remove(QUEUE, drawn.id),
    (model) => verbs.remove(model, drawn.id),
    { fate: drawn.fate },
  ),
);
const retryDead = command(
  'retryDead',
  fc.record({
    which: fc.oneof(
      fc.record({ ids: fc.uniqueArray(id, { minLength: 1, maxLength: 3 }) }),
      fc.record({ limit: fc.constantFrom(1, 2, 100) }),
    ),
    fate,
  }),
  (scene, drawn) =>
    scene.both(
      (engine) => engine.retryDead(QUEUE, drawn.which),
      (model) => verbs.retryDead(model, drawn.which),
      { fate: drawn.fate },
    ),
);
const promoteNow = command('promoteNow', fc.record({ id, fate }), (scene, drawn) =>
  scene.both(
    (engine) => engine.promoteNow(QUEUE, drawn.id),
    (model: QueueModel) => verbs.promoteNow(model, drawn.id),
    { fate: drawn.fate },
  ),
);
const obliterate = command('obliterate', fc.record({ force: fc.boolean(), fate }), (scene, drawn) =>
  scene.both(
    (engine) => engine.obliterate(QUEUE, drawn.force),
    (model) => verbs.obliterate(model, drawn.force),
    { fate: drawn.fate },
  ),
);

const RARE = 30;

/** Sequences of at most so many commands; the common ones are in the list more often. */
export function sequences(maxCommands: number, replayPath?: string): fc.Arbitrary<Iterable<ModelCommand>> {
  const often = [
    add(4),
    exchanged('claim', 3, 0),
    exchanged('settle', 4, 4),
    exchanged('settle', 1, 3),
    advance(1, 500, 2_000, 6_001, 9_000),
  ];
  const rare = fc.oneof(
    { weight: RARE, arbitrary: advance(-1_000, -30_000, 65_000, 700_000) },
    { weight: 5, arbitrary: obliterate },
    { weight: 1, arbitrary: reload },
    ...corruptions(command).map((arbitrary) => ({ weight: 2, arbitrary })),
  );
  const usual = [
    replay,
    beat,
    release,
    note,
    adopt,
    sweep,
    recover,
    promote,
    wake,
    look,
    count,
    remove,
    retryDead,
  ];
  return fc.commands(
    [
      ...Array.from({ length: 8 }, () => often).flat(),
      ...usual,
      sweep,
      sweep,
      pause,
      resume,
      resume,
      promoteNow,
      flushScripts,
      rare,
      rare,
    ],
    { maxCommands, size: 'max', ...(replayPath === undefined ? {} : { replayPath }) },
  );
}
