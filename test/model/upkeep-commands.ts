import * as fc from 'fast-check';
import { command, fate, id, speaker } from './command.js';
import * as verbs from './model-verbs.js';
import type { QueueModel } from './queue-model.js';
import { BEAT_MS, LIMITS, MAX_STALLS, QUEUE, type Fate } from './rig.js';
import type { Scene } from './scene.js';

// ---------------------------------------------------------------------------------------------------------- as time goes

/** As the recoverer of any process does: it looks, and takes back what it may. */
export const sweep = command(
  'sweep',
  fc.record({ withinMs: fc.constantFrom(0, BEAT_MS), fate }),
  (scene, drawn) => sweepOf(scene, drawn.withinMs, drawn.fate),
);

async function sweepOf(scene: Scene, withinMs: number, drawnFate: Fate): Promise<void> {
  const found = await scene.both(
    async (engine) => [...(await engine.overdue(QUEUE, withinMs))],
    (model) => verbs.overdue(model, withinMs),
  );
  for (const { worker } of found) await recoverOf(scene, worker, drawnFate);
}

/** Until the leases of all are over beyond doubt. */
export const recovery = command('recovery', fate, async (scene, drawn) => {
  for (const ms of [LIMITS.leaseMs, BEAT_MS]) {
    await pass(scene, ms);
    await sweepOf(scene, BEAT_MS, drawn);
  }
});

/** Also of workers that are alive. */
export const recover = command('recover', fc.record({ worker: speaker, fate }), (scene, drawn) =>
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

export const promote = command(
  'promote',
  fc.record({ limit: fc.constantFrom(0, 1, 2, 500), fate }),
  (scene, drawn) =>
    scene.both(
      (engine) => engine.promote(QUEUE, drawn.limit),
      (model) => verbs.promote(model, drawn.limit),
      { fate: drawn.fate },
    ),
);

export const advance = (...steps: number[]) => command('advance', fc.constantFrom(...steps), pass);

async function pass(scene: Scene, ms: number): Promise<void> {
  await scene.rig.expire(scene.model.advance(ms));
  await scene.rig.setClock(scene.model.now);
  await scene.compare();
}

/** A worker woken by the bell takes it away. */
export const wake = command('wake', fc.constant(null), async (scene) => {
  await scene.rig.takeBell();
  scene.model.bells.delete([...scene.model.bells].toSorted()[0]!);
});

export const flushScripts = command('flush scripts', fc.constant(null), (scene) =>
  scene.rig.admin.script('FLUSH'),
);

/** Redis writes everything to disk and reads it again, as it does when it starts. */
export const reload = command('reload', fc.constant(null), async (scene) => {
  await scene.rig.admin.call('DEBUG', 'RELOAD');
  await scene.compare();
});

// ------------------------------------------------------------------------------------------------------- acts of people

export const pause = command('pause', fate, (scene, drawn) =>
  scene.both((engine) => engine.admin.pause(QUEUE), verbs.pause, { fate: drawn }),
);
export const resume = command('resume', fate, (scene, drawn) =>
  scene.both((engine) => engine.admin.resume(QUEUE), verbs.resume, { fate: drawn }),
);
export const look = command('get', id, (scene, jobId) =>
  scene.both(
    async (engine) => {
      const found = await engine.admin.get(QUEUE, jobId);
      if (!found) return null;
      const { state, body, failed, stalls, dueAt, worker, progress } = found;
      return { state, body, failed, stalls, dueAt, worker, progress };
    },
    (model) => verbs.get(model, jobId),
  ),
);
export const count = command('counts', fc.constant(null), (scene) =>
  scene.both((engine) => engine.admin.counts(QUEUE), verbs.counts),
);
export const remove = command('remove', fc.record({ id, fate }), (scene, drawn) =>
  scene.both(
    (engine) => engine.admin.remove(QUEUE, drawn.id),
    (model) => verbs.remove(model, drawn.id),
    { fate: drawn.fate },
  ),
);
export const cancel = command(
  'cancel',
  fc.record({ id, reason: fc.constantFrom('a reason', '__proto__'), fate }),
  (scene, drawn) =>
    scene.both(
      (engine) => engine.admin.cancel(QUEUE, drawn.id, drawn.reason),
      (model) => verbs.cancel(model, drawn.id, drawn.reason),
      { fate: drawn.fate },
    ),
);

const onModel = { retryDead: verbs.retryDead, removeDead: verbs.removeDead };

/** An act on dead jobs that takes ids or a number of those that died first. */
const onDead = (verb: 'retryDead' | 'removeDead') =>
  command(
    verb,
    fc.record({
      which: fc.oneof(
        fc.record({ ids: fc.uniqueArray(id, { minLength: 1, maxLength: 3 }) }),
        fc.record({ limit: fc.constantFrom(1, 2, 100) }),
      ),
      fate,
    }),
    (scene, drawn) =>
      scene.both(
        (engine) => engine.upkeep[verb](QUEUE, drawn.which),
        (model) => onModel[verb](model, drawn.which),
        { fate: drawn.fate },
      ),
  );
export const retryDead = onDead('retryDead');
export const removeDead = onDead('removeDead');
/** In several steps, each of which might be lost, so here none is. */
export const clean = command(
  'clean',
  fc.record({
    state: fc.constantFrom('waiting', 'delayed', 'completed', 'dead'),
    limit: fc.constantFrom(1, 2, 100),
  }),
  (scene, { state, limit }) =>
    scene.both(
      (engine) => engine.upkeep.clean(QUEUE, { state, limit, olderThanMs: 0 }),
      (model) => verbs.clean(model, state, limit),
    ),
);
export const trim = command('trim', fate, (scene, drawn) =>
  scene.both((engine) => engine.upkeep.trim(QUEUE), verbs.trim, { fate: drawn }),
);
export const promoteNow = command('promoteNow', fc.record({ id, fate }), (scene, drawn) =>
  scene.both(
    (engine) => engine.admin.promoteNow(QUEUE, drawn.id),
    (model: QueueModel) => verbs.promoteNow(model, drawn.id),
    { fate: drawn.fate },
  ),
);
export const obliterate = command('obliterate', fc.record({ force: fc.boolean(), fate }), (scene, drawn) =>
  scene.both(
    (engine) => engine.admin.obliterate(QUEUE, drawn.force),
    (model) => verbs.obliterate(model, drawn.force),
    { fate: drawn.fate },
  ),
);
