import { LETTERED_JOBS, QUEUE_KEYS, type QueueKeyName } from '#lib/engine/keys.js';
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import type { QueueEngine } from '#lib/contract/engine.js';
import type { AnyScript } from '#lib/engine/script.js';
import { cancel } from '#lib/engine/scripts/admin.js';
import { enqueue } from '#lib/engine/scripts/adds.js';
import { exchange, promote, release } from '#lib/engine/scripts/work.js';
import { recover } from '#lib/engine/scripts/leases.js';
import { retryDead } from '#lib/engine/scripts/upkeep.js';
import { RedisRefusedError } from '#lib/errors.js';
import type { ModelCommand } from './command.js';
import { brokenRules, placesIn } from './invariants.js';
import { BEAT_MS, expectSame, LEASE_MS, MAX_STALLS, QUEUE } from './rig.js';
import type { Scene } from './scene.js';
import { membersOf } from './state.js';

type Define = <T>(
  name: string,
  drawn: fc.Arbitrary<T>,
  act: (scene: Scene, drawn: T) => Promise<unknown>,
) => fc.Arbitrary<ModelCommand>;

/** Damage by operators and evictions to keys, and its repair. */
export function corruptions(command: Define): fc.Arbitrary<ModelCommand>[] {
  const nth = fc.nat({ max: 9 });
  /** Deletes something of the nth member of a key. */
  const deletion = (name: string, key: string, act: (scene: Scene, member: string) => Promise<unknown>) =>
    command(name, nth, async (scene, n) => {
      const members = membersOf(scene.state, key);
      if (members.length > 0) await broken(scene, () => act(scene, members[n % members.length]!));
    });
  const deletePlace = command(
    'delete a place',
    fc.constantFrom('wait', 'suspects', 'prioritized', 'delayed', 'dead', 'completed', 'active'),
    async (scene, place) => {
      const key = place === 'active' ? `active:${scene.workers[0]!.name}` : place;
      if (key in scene.state) await broken(scene, () => scene.rig.admin.del(scene.rig.keyOf(key)));
    },
  );
  const repair = command('repair', fc.constant(null), mend);
  const wrongType = command('wrong type', fc.record({ kind: fc.constantFrom(...KINDS), nth }), refused);
  return [
    deletion('delete a body', 'jobs', ({ rig }, id) => rig.admin.hdel(rig.keys.bodies(id), id)),
    deletion('delete a record', 'workers', ({ rig }, name) => rig.admin.del(rig.keyOf(`worker:${name}`))),
    deletion('delete a lease', 'workers', ({ rig }, name) => rig.admin.zrem(rig.keyOf('workers'), name)),
    deletePlace,
    repair,
    repair,
    repair,
    repair,
    wrongType,
    wrongType,
    wrongType,
  ];
}

async function broken(scene: Scene, act: () => Promise<unknown>): Promise<void> {
  await act();
  scene.isAlone = true;
  scene.broken = true;
  await scene.compare();
}

/** Nothing is lost and no ended job comes back. Then the queue is in order, and a second repair finds nothing. */
async function mend(scene: Scene): Promise<void> {
  const { rig } = scene;
  const before = scene.state;
  const ended = [...membersOf(before, 'dead'), ...membersOf(before, 'completed')];
  const everything = new Set([...membersOf(before, 'jobs'), ...placesIn(before).keys()]);
  const last = scene.lastEvent;
  // In memory there is nothing to repair but leases that the clock has left too far in the future.
  scene.isAlone = true;
  await rig.engine.admin.repair(QUEUE, MAX_STALLS);
  const { state, events } = await rig.snapshot(last);
  const gone = events.filter(
    ({ type, reason }) => type === 'cancelled' || (type === 'removed' && reason === 'retention'),
  );
  const trimmed = new Set(gone.map(({ id }) => id));
  const jobs = new Set(membersOf(state, 'jobs'));
  for (const id of everything) assert(jobs.has(id) || trimmed.has(id), `repair has lost ${id}`);
  const places = placesIn(state);
  const hasEnded = (id: string) => ['dead', 'completed', 'cancelled'].includes(places.get(id)?.state ?? '');
  const back = ended.filter((id) => !hasEnded(id) && !trimmed.has(id));
  expectSame(back, [], 'repair made what had ended run again');
  const faults = brokenRules(state, scene.now);
  expectSame(
    faults.filter((text) => !text.includes('without a record of it')),
    [],
    'the rules',
  );
  expectSame((await rig.engine.admin.audit(QUEUE)).violations, [], 'the audit after a repair');
  scene.broken = faults.length > 0;
  const { repairs } = await rig.engine.admin.repair(QUEUE, MAX_STALLS);
  expectSame(repairs, [], 'the second repair');
  await scene.compare();
}

/** Keys that only record events must make no call fail. */
const TELLING: readonly QueueKeyName[] = ['events', 'cancelled'];
/** They matter only if there are limits or groups. */
const OF_LIMITS: readonly QueueKeyName[] = [
  'limits',
  'limitStates',
  'lines',
  'lineStates',
  'ready',
  'resting',
];
/** Which of these keys a call uses depends on the ids. */
const KINDS = QUEUE_KEYS.filter(
  (kind) =>
    !TELLING.includes(kind) &&
    !OF_LIMITS.includes(kind) &&
    !(LETTERED_JOBS as readonly QueueKeyName[]).includes(kind),
);

/** If a key of ours is overwritten, the next call fails and changes nothing. */
async function refused(
  scene: Scene,
  { kind, nth }: { kind: (typeof KINDS)[number]; nth: number },
): Promise<void> {
  const { rig } = scene;
  const key = rig.keyOf(kind);
  const aside = rig.keyOf('aside');
  await rig.admin.rename(key, aside).catch(() => undefined);
  await rig.admin.set(key, 'not ours');
  const before = await rig.snapshot(scene.lastEvent);
  const [known] = membersOf(scene.state, 'jobs');
  for (const [script, call] of callsOf(rig.engine, scene.workers[nth % 3]!.name, known)) {
    if (!(script.keys as readonly string[]).includes(kind)) continue;
    if (script === enqueue && known === undefined && LEFT_BY_JOBS.has(kind)) continue;
    // None of these jobs has a key or a group, and the one that exists may not be waiting.
    if (script === enqueue && ['unique', 'workers', 'grouped', 'slots'].includes(kind)) continue;
    const error = await call().then(
      () => assert.fail(`${script.name} went through where ${kind} is of another type`),
      (thrown: unknown) => thrown,
    );
    assert(error instanceof RedisRefusedError && error.reply === 'WRONGTYPE', String(error));
    assert.equal(error.applied, 'no');
    expectSame(await rig.snapshot(scene.lastEvent), before, 'the state after a refusal');
  }
  await rig.admin.del(key);
  await rig.admin.rename(aside, key).catch(() => undefined);
  await scene.compare();
}

/** An add uses these only if a job with its id exists. */
const LEFT_BY_JOBS: ReadonlySet<string> = new Set([
  'suspects',
  'workers',
  'attempts',
  'stalls',
  'dead',
  'completed',
  'results',
  'failures',
  'progress',
  'logs',
]);

/** Calls that would change something, here or in another state. */
function callsOf(
  engine: QueueEngine,
  worker: string,
  known: string | undefined,
): [AnyScript, () => Promise<unknown>][] {
  const leaseMs = LEASE_MS;
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
