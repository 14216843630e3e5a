import { LETTERED_JOBS, QUEUE_KEYS, type QueueKeyName } from '#lib/engine/keys.js';
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import type { QueueEngine } from '#lib/contract/engine.js';
import type { AnyScript } from '#lib/engine/script.js';
import { cancel } from '#lib/engine/scripts/cancel.js';
import { enqueue } from '#lib/engine/scripts/enqueue.js';
import { exchange } from '#lib/engine/scripts/exchange.js';
import { promote } from '#lib/engine/scripts/promote.js';
import { recover } from '#lib/engine/scripts/recover.js';
import { release } from '#lib/engine/scripts/release.js';
import { retryDead } from '#lib/engine/scripts/retry-dead.js';
import { RedisRefusedError } from '#lib/errors.js';
import type { ModelCommand } from './command.js';
import { brokenRules } from './invariants.js';
import { BEAT_MS, expectSame, LIMITS, MAX_STALLS, QUEUE } from './rig.js';
import type { Scene } from './scene.js';

type Define = <T>(
  name: string,
  drawn: fc.Arbitrary<T>,
  act: (scene: Scene, drawn: T) => Promise<unknown>,
) => fc.Arbitrary<ModelCommand>;

/** What operators and evictions do to keys, and the way back. */
export function corruptions(command: Define): fc.Arbitrary<ModelCommand>[] {
  const nth = fc.nat({ max: 9 });
  const pick = <T>(list: readonly T[], n: number): T | undefined => list[n % list.length];

  const deleteBody = command('delete a body', nth, async (scene, n) => {
    const id = pick([...scene.model.jobs.keys()], n);
    if (id === undefined) return;
    await scene.rig.admin.hdel(scene.rig.keys.bodies(id), id);
    scene.model.jobs.delete(id);
    scene.broken = true;
  });
  const deleteRecord = command('delete a record', nth, async (scene, n) => {
    const worker = pick([...scene.model.records.keys()], n);
    if (worker === undefined) return;
    await scene.rig.admin.del(scene.rig.keyOf(`worker:${worker}`));
    scene.model.records.delete(worker);
    scene.broken = true;
  });
  const deleteLease = command('delete a lease', nth, async (scene, n) => {
    const worker = pick([...scene.model.leases.keys()], n);
    if (worker === undefined) return;
    await scene.rig.admin.zrem(scene.rig.keyOf('workers'), worker);
    scene.model.leases.delete(worker);
    scene.broken = true;
  });
  const lines = ['wait', 'suspects', 'prioritized', 'delayed', 'dead', 'completed', 'active'] as const;
  const deletePlace = command('delete a place', fc.constantFrom(...lines), async (scene, place) => {
    const { rig, model } = scene;
    const key = place === 'active' ? `active:${scene.workers[0]!.name}` : place;
    await rig.admin.del(rig.keyOf(key));
    model.load((await rig.snapshot(model.lastEvent)).state);
    scene.broken = true;
  });
  const repair = command('repair', fc.constant(null), (scene) => mend(scene));
  const wrongType = command('wrong type', fc.record({ kind: fc.constantFrom(...KINDS), nth }), refused);
  return [
    deleteBody,
    deleteRecord,
    deleteLease,
    deletePlace,
    repair,
    repair,
    repair,
    wrongType,
    wrongType,
    wrongType,
  ];
}

/** Nothing is lost and nothing that ended comes back; then everything is in order, and there is nothing more to do. */
async function mend(scene: Scene): Promise<void> {
  const { rig, model } = scene;
  const ended = new Set([...model.dead.keys(), ...model.completed.keys()]);
  const everything = new Set([...model.jobs.keys(), ...ended, ...model.wait, ...model.suspects]);
  for (const ids of [model.prioritized.keys(), model.delayed.keys(), ...model.active.values()])
    for (const id of ids) everything.add(id);
  const trimmed = new Set<string>();
  await rig.engine.admin.repair(QUEUE, MAX_STALLS);
  const { state, events } = await rig.snapshot(model.lastEvent);
  for (const { type, id, reason } of events)
    if ((type === 'removed' && reason === 'retention') || type === 'cancelled') trimmed.add(id);
  model.load(state);
  for (const id of everything) assert(model.jobs.has(id) || trimmed.has(id), `repair has lost ${id}`);
  const again = (id: string) =>
    ended.has(id) && !model.dead.has(id) && !model.completed.has(id) && !trimmed.has(id);
  const back = [...model.jobs.keys()].filter(again);
  expectSame(back, [], 'repair made what had ended run again');
  expectSame(
    brokenRules(state, model.now).filter((text) => !text.includes('without a record of it')),
    [],
    'the rules',
  );
  expectSame((await rig.engine.admin.audit(QUEUE)).violations, [], 'the audit after a repair');
  scene.broken = brokenRules(state, model.now).length > 0;
  const { repairs } = await rig.engine.admin.repair(QUEUE, MAX_STALLS);
  expectSame(repairs, [], 'the second repair');
  await scene.compare();
}

/** What only tells of moves must fail none. */
const TELLING: readonly QueueKeyName[] = ['events', 'cancelled'];
/** Which of them a call meets depends on the ids. */
const KINDS = QUEUE_KEYS.filter(
  (kind) => !TELLING.includes(kind) && !(LETTERED_JOBS as readonly QueueKeyName[]).includes(kind),
);

/** What is written over a key of ours is an error of the next call, and nothing else changes by it. */
async function refused(
  scene: Scene,
  { kind, nth }: { kind: (typeof KINDS)[number]; nth: number },
): Promise<void> {
  const { rig, model } = scene;
  const key = rig.keyOf(kind);
  const aside = rig.keyOf('aside');
  await rig.admin.rename(key, aside).catch(() => undefined);
  await rig.admin.set(key, 'not ours');
  const before = await rig.snapshot(model.lastEvent);
  const [known] = model.jobs.keys();
  for (const [script, call] of callsOf(rig.engine, scene.workers[nth % 3]!.name, known)) {
    if (!(script.keys as readonly string[]).includes(kind)) continue;
    if (script === enqueue && known === undefined && LEFT_BY_JOBS.has(kind)) continue;
    const error = await call().then(
      () => assert.fail(`${script.name} went through where ${kind} is of another type`),
      (thrown: unknown) => thrown,
    );
    assert(error instanceof RedisRefusedError && error.reply === 'WRONGTYPE', String(error));
    assert.equal(error.applied, 'no');
    expectSame(await rig.snapshot(model.lastEvent), before, 'the state after a refusal');
  }
  await rig.admin.del(key);
  await rig.admin.rename(aside, key).catch(() => undefined);
  await scene.compare();
}

/** An add touches these only where a job of its id is in the queue. */
const LEFT_BY_JOBS: ReadonlySet<string> = new Set(['completed', 'results', 'failures', 'progress', 'logs']);

/** Calls that would change something here, or in some other state. */
function callsOf(
  engine: QueueEngine,
  worker: string,
  known: string | undefined,
): [AnyScript, () => Promise<unknown>][] {
  const { leaseMs } = LIMITS;
  const job = { id: 'refused', body: 'job\n', name: 'job' };
  const jobs = [
    job,
    { ...job, id: 'refused first', priority: 1 },
    { ...job, id: 'refused later', delayMs: 5, priority: 1 },
    ...(known === undefined ? [] : [{ ...job, id: known }]),
  ];
  const call = { lane: 'refused', seq: 1, rememberMs: 1_000, withinMs: 5_000, jobs };
  const fresh = { worker: 'refused', seq: 1, leaseMs, want: 2, maySuspect: true, settled: [] };
  return [
    [enqueue, () => engine.enqueue(QUEUE, call)],
    [exchange, () => engine.exchange(QUEUE, fresh)],
    [recover, () => engine.recover(QUEUE, { worker, beatMs: BEAT_MS, leaseMs, maxStalls: MAX_STALLS })],
    [release, () => engine.release(QUEUE, { worker, ids: ['a'], leave: true })],
    [cancel, () => engine.admin.cancel(QUEUE, 'a', 'why')],
    [promote, () => engine.promote(QUEUE, 5)],
    [retryDead, () => engine.upkeep.retryDead(QUEUE, { limit: 5 })],
  ];
}
