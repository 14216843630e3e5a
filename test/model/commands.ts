import * as fc from 'fast-check';
import type { JobsAnswer, JobsPlace } from '#lib/contract/admin-verbs.js';
import type { EnqueueJob, QueueEngine } from '#lib/contract/engine.js';
import type { LimitState } from '#lib/contract/limit-verbs.js';
import { encodeBody } from '#lib/job/job-record.js';
import {
  command,
  fate,
  id,
  inTurn,
  name,
  NEVER_ADDED,
  oneIn,
  speaker,
  type ModelCommand,
} from './command.js';
import { corruptions } from './corruptions.js';
import { addAgain, addItems, addKeptLast, addKeyed, freeKeys } from './keyed-commands.js';
import {
  addKept,
  cleanCancelled,
  edit,
  fire,
  listSome,
  putSchedule,
  retryNamed,
  setOther,
  steerSchedule,
  wakeLines,
} from './more-commands.js';
import {
  charge,
  report,
  reportShared,
  setConcurrency,
  setLimit,
  setOfRuns,
  setShared,
  setStrict,
  share,
} from './limit-commands.js';
import { BEAT_MS, LEASE_MS, MAX_STALLS, QUEUE, type Fate } from './rig.js';
import { MOMENT, type Scene } from './scene.js';
import { membersOf } from './state.js';
import { adopt, beat, claimAtBell, exchanged, GIVEN_BACK, note, release } from './worker-commands.js';

/** A job by its id, or one of those in the store by its number, also one with a generated id. */
const anyJob = fc.oneof(id, fc.nat({ max: 30 }));
const limit = fc.constantFrom(0, 1, 2, 100);
const ageMs = fc.constantFrom(0, 1, 2_000, 10_000);
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
// ------------------------------------------------------------------------------------------------------------ producers

const jobDrawn = fc.record({
  id,
  name,
  ageMs,
  attempts: fc.constantFrom(undefined, 3),
  when: fc.oneof(
    { weight: 4, arbitrary: fc.constant({}) },
    { weight: 2, arbitrary: fc.record({ delayMs: fc.constantFrom(1, 1_000, 5_000, 60_000) }) },
    { weight: 1, arbitrary: fc.record({ inMs: fc.constantFrom(-1_000, 0, 2_000, 30_000) }) },
  ),
  priority: fc.constantFrom(undefined, undefined, undefined, 0, 1, 7, 2_097_151),
  lifo: oneIn(6),
  idHeldBy: fc.constantFrom(undefined, ['dead' as const], ['completed' as const, 'dead' as const]),
  awaited: oneIn(4),
  group: fc.constantFrom(undefined, undefined, undefined, undefined, 'g1', 'g 2'),
  cost: fc.constantFrom(undefined, undefined, undefined, 2, 5),
});
type JobDrawn = typeof jobDrawn extends fc.Arbitrary<infer T> ? T : never;

function toJob(now: number, drawn: JobDrawn): EnqueueJob {
  const { attempts, priority, lifo, idHeldBy, awaited, group, cost } = drawn;
  const { delayMs, inMs }: { delayMs?: number; inMs?: number } = drawn.when;
  const options = {
    ...(attempts && { attempts }),
    ...(priority && { priority }),
    ...(awaited && { awaited }),
    ...(group && { group }),
    ...(cost && { cost }),
  };
  const jobName = inMs === undefined ? drawn.name : MOMENT;
  return {
    id: drawn.id,
    name: jobName,
    body: encodeBody(jobName, now - drawn.ageMs, options, '{"n":1}'),
    ...(priority !== undefined && { priority }),
    ...(group && { group }),
    // The check of options allows `lifo` only without a time, a priority and a group.
    ...(lifo && !priority && !group && delayMs === undefined && inMs === undefined && { lifo }),
    ...(idHeldBy && { idHeldBy }),
    ...(delayMs !== undefined && { delayMs }),
    ...(inMs !== undefined && { dueAt: now + inMs }),
  };
}

const added = (called: string, jobs: fc.Arbitrary<JobDrawn[]>) =>
  command(
    called,
    fc.record({
      lane: fc.nat({ max: 1 }),
      jobs,
      bound: fc.constantFrom(undefined, undefined, undefined, undefined, false, true),
      fate,
    }),
    async (scene, drawn) => {
      const lane = scene.lanes[drawn.lane]!;
      const jobs = drawn.jobs.map((job) => toJob(scene.now, job));
      const maxWaiting =
        drawn.bound === undefined
          ? undefined
          : ({ limit: 3, onFull: drawn.bound ? 'dropOldest' : 'reject' } as const);
      const call = {
        lane: lane.name,
        seq: ++lane.seq,
        rememberMs: 600_000,
        withinMs: 5_000,
        maxWaiting,
        jobs,
      };
      scene.past.push({ call: (engine) => engine.enqueue(QUEUE, call), idempotent: true, isExchange: false });
      await scene.both((engine) => engine.enqueue(QUEUE, call), { fate: drawn.fate, idempotent: true });
    },
  );

const jobs = fc.uniqueArray(jobDrawn, { minLength: 1, maxLength: 4, selector: (job) => job.id, size: 'max' });
const add = added('add', jobs);
const addToGroup = added(
  'add to a group',
  fc
    .tuple(jobs, fc.constantFrom('g1', 'g 2'))
    .map(([drawn, group]) => drawn.map((job) => ({ ...job, group, when: {} }))),
);

/** A late packet: repeats any earlier add or exchange. */
const replay = command('replay', fc.record({ back: fc.nat({ max: 6 }), fate }), async (scene, drawn) => {
  const past = scene.past.at(-1 - drawn.back);
  const lost = scene.memory.isLimited ? 'answered' : drawn.fate;
  // If the queue was paused in between, only a caller that knows about limits asks for what they granted.
  if (past && !scene.memory.isLimited && !(past.isExchange && scene.wasLimited))
    await scene.both(past.call, { fate: lost, idempotent: past.idempotent });
});

// ------------------------------------------------------------------------------------------------------- time and leases

const advance = (...steps: number[]) =>
  command('advance', fc.constantFrom(...steps), (scene, ms) => scene.advance(ms));

/** Like the recoverer of a process: it looks for ended leases, and takes back their jobs. */
const sweep = command('sweep', fc.record({ withinMs: fc.constantFrom(0, BEAT_MS), fate }), (scene, drawn) =>
  sweepOf(scene, drawn.withinMs, drawn.fate),
);

async function sweepOf(scene: Scene, withinMs: number, drawnFate: Fate): Promise<void> {
  const found = await scene.both((engine) => engine.overdue(QUEUE, withinMs));
  for (const { worker } of found) await recoverOf(scene, worker, drawnFate);
}

/** Waits until all leases are over. */
const recovery = command('recovery', fate, async (scene, drawn) => {
  for (const ms of [LEASE_MS, BEAT_MS]) {
    await scene.advance(ms);
    await sweepOf(scene, BEAT_MS, drawn);
  }
});

/** Also of workers that are alive. */
const recover = command('recover', fc.record({ worker: speaker, fate }), (scene, drawn) =>
  recoverOf(scene, scene.workers[drawn.worker]!.name, drawn.fate),
);

function recoverOf(scene: Scene, worker: string, drawnFate: Fate): Promise<unknown> {
  const call = { worker, beatMs: BEAT_MS, leaseMs: LEASE_MS, maxStalls: MAX_STALLS };
  return scene.both((engine) => engine.recover(QUEUE, call), { fate: drawnFate });
}

const promote = command('promote', fc.record({ limit, fate }), (scene, drawn) =>
  scene.both((engine) => engine.promote(QUEUE, drawn.limit), { fate: drawn.fate }),
);

/** A worker that was woken removes the ring. */
const wake = command('wake', fc.constant(null), async (scene) => {
  await scene.rig.takeBell();
  scene.memory.takeBell();
  await scene.compare();
});

// --------------------------------------------------------------------------------------------------------------- people

function jobOf({ state }: Scene, job: string | number): string {
  const ids = membersOf(state, 'jobs');
  return typeof job === 'string' ? job : (ids[job % ids.length] ?? NEVER_ADDED);
}

const match = fc.record({
  name: maybe(name),
  reason: maybe(fc.constantFrom('unrecoverable', 'expired', 'stalled')),
  olderThanMs: maybe(ageMs),
  newerThanMs: maybe(ageMs),
});
const choice = fc.oneof(
  fc.record({ jobs: fc.uniqueArray(anyJob, { minLength: 1, maxLength: 3 }) }),
  fc.record({ limit }),
  fc.tuple(match, limit).map(([asked, most]) => ({ ...asked, limit: most })),
);

const onJob = (['remove', 'promoteNow'] as const).map((verb) =>
  command(verb, fc.record({ job: anyJob, fate }), (scene, drawn) => {
    const of = jobOf(scene, drawn.job);
    return scene.both<unknown>((engine) => engine.admin[verb](QUEUE, of), { fate: drawn.fate });
  }),
);
const update = command(
  'update',
  fc.record({
    job: anyJob,
    data: maybe(fc.constantFrom('1', '"two"')),
    delayMs: maybe(fc.constantFrom(0, 1, 2_000, 30_000)),
    priority: maybe(fc.constantFrom(0, 1, 7)),
    fate,
  }),
  async (scene, { fate: drawnFate, job, ...drawn }) => {
    const changes = Object.fromEntries(Object.entries(drawn).filter(([, value]) => value !== undefined));
    const call = { id: jobOf(scene, job), ...(changes as typeof drawn) };
    await scene.both((engine) => engine.admin.update(QUEUE, call as never), { fate: drawnFate });
  },
);
const cancel = command(
  'cancel',
  fc.record({ job: anyJob, reason: fc.constantFrom('a reason', '__proto__'), fate }),
  (scene, drawn) => {
    const of = jobOf(scene, drawn.job);
    return scene.both((engine) => engine.admin.cancel(QUEUE, of, drawn.reason), { fate: drawn.fate });
  },
);
const [pause, resume] = (['pause', 'resume'] as const).map((verb) =>
  command(verb, fate, (scene, drawn) => scene.both((engine) => engine.admin[verb](QUEUE), { fate: drawn })),
) as [fc.Arbitrary<ModelCommand>, fc.Arbitrary<ModelCommand>];
const onDead = (['retryDead', 'removeDead'] as const).map((verb) =>
  command(verb, fc.record({ which: choice, fate }), (scene, { which, fate: drawnFate }) => {
    const asked = 'jobs' in which ? { ids: [...new Set(which.jobs.map((job) => jobOf(scene, job)))] } : which;
    return scene.both<unknown>((engine) => engine.upkeep[verb](QUEUE, asked as never), { fate: drawnFate });
  }),
);
const many = fc.array(id, { minLength: 1, maxLength: 5 });
/** Redis asks again for a job before the first one of the list, so its event would come later than in memory. */
function asListed({ state }: Scene, ids: readonly string[]): readonly string[] {
  const line = membersOf(state, 'wait');
  return ids.toSorted((a, b) => line.indexOf(a) - line.indexOf(b));
}
/** In several steps, each of which might be lost, so none is lost here, and in `clean`. */
const onMany = [
  command('remove-all', many, (scene, ids) => {
    const listed = asListed(scene, ids);
    return scene.both((engine) => engine.admin.removeAll(QUEUE, listed));
  }),
  command('cancel-all', many, (scene, ids) => {
    const listed = asListed(scene, ids);
    return scene.both((engine) => engine.admin.cancelAll(QUEUE, listed, 'all'));
  }),
];
const clean = command(
  'clean',
  fc.record({ state: fc.constantFrom('waiting', 'delayed', 'completed', 'dead'), olderThanMs: ageMs, limit }),
  (scene, call) => scene.both((engine) => engine.upkeep.clean(QUEUE, call)),
);
/** In two steps if dead jobs have a limit of bytes. */
const trim = command('trim', fc.constant(null), (scene) =>
  scene.both(async ({ upkeep }) => {
    // Keys are searched only if the look before found some.
    await upkeep.overgrown([QUEUE]);
    // How many entries of events there are depends on the steps of earlier calls: Redis cleans each place with its own.
    return (await upkeep.trim(QUEUE)) > 0;
  }),
);
const obliterate = command('obliterate', fc.record({ force: fc.boolean(), fate }), (scene, drawn) =>
  scene.both((engine) => engine.admin.obliterate(QUEUE, drawn.force), { fate: drawn.fate }),
);
/** Redis lists fields of a hash in any order. The copies have the prototypes that values from JSON have. */
const inOrder = (states: readonly LimitState[]) =>
  structuredClone(states.toSorted((a, b) => (a.field < b.field ? -1 : 1)));

/** All lists of groups. */
async function groupsOf({ limits }: QueueEngine) {
  const pages = await Promise.all([
    limits.groups(QUEUE, '0', 1_000),
    limits.stoppedGroups(QUEUE, '0', 1_000),
    limits.ruledGroups(QUEUE, '0', 1_000),
  ]);
  const [withJobs, stopped, ruled] = pages.map(({ groups }) => inOrder(groups));
  return { group: inOrder([await limits.group(QUEUE, 'g1')]), withJobs, stopped, ruled };
}

/** All calls that change nothing. */
const ask = command(
  'ask',
  fc.record({ id, worker: speaker, withinMs: fc.constantFrom(0, 9_000) }),
  (scene, drawn) =>
    scene.both(async (engine) => {
      const { admin, upkeep } = engine;
      return {
        job: await admin.get(QUEUE, drawn.id),
        counts: await admin.counts(QUEUE),
        oldest: await admin.oldestWaitingMs(QUEUE),
        total: (await admin.stats(QUEUE, 2)).total,
        overgrown: await upkeep.overgrown([QUEUE]),
        look: await engine.look([{ queue: QUEUE, worker: scene.workers[drawn.worker]!.name }]),
        overdue: await engine.overdue(QUEUE, drawn.withinMs),
        limits: inOrder(await engine.limits.list(QUEUE)),
        shared: inOrder(await engine.limits.shared(QUEUE)),
        groups: (await engine.limits.overview(QUEUE)).groups,
        ...(await groupsOf(engine)),
        lastEvent: await engine.lastEvent(QUEUE),
      };
    }),
);

/** Jobs of one state, page by page. */
const list = command(
  'list',
  fc.record({
    state: fc.constantFrom('waiting', 'delayed', 'active', 'completed', 'dead'),
    match,
    limit: fc.integer({ min: 1, max: 3 }),
    contains: fc.constantFrom('', '', 'A', 'luck'),
    where: fc.constantFrom(undefined, undefined, { n: 1 }, { n: 1, of: 'a' }, { n: '1' }),
    backward: fc.boolean(),
    brief: fc.boolean(),
  }),
  (scene, { state, match: { name: ofName, ...ofDead }, ...call }) =>
    scene.both(async ({ admin }) => {
      const pages: JobsAnswer[] = [];
      let after: JobsPlace | null = null;
      do {
        const which = { ...call, ...(state === 'dead' && ofDead), name: ofName, state, after };
        pages.push(await admin.jobs(QUEUE, which as never));
        after = pages.at(-1)!.next;
      } while (after && pages.length < 9);
      return pages;
    }),
);

// ------------------------------------------------------------------------------------------------------------ operators

const flushScripts = command('flush scripts', fc.constant(null), (scene) => scene.rig.admin.script('FLUSH'));

/** Redis writes everything to disk and loads it again, like at a start. */
const reload = command('reload', fc.constant(null), async (scene) => {
  await scene.rig.admin.call('DEBUG', 'RELOAD');
  await scene.compare();
});

/** Sequences of up to this many commands; the common ones are in the list more often. */
export function sequences(maxCommands: number, replayPath?: string): fc.Arbitrary<Iterable<ModelCommand>> {
  const often = [
    add,
    exchanged('claim', [-1, 3], 0),
    exchanged('settle', [-1, 4], 4),
    exchanged('settle', [-1, 1], 3),
    advance(1, 500, 2_000, 6_001, 9_000),
    claimAtBell,
  ];
  const usual = [
    replay,
    freeKeys,
    beat,
    release,
    note,
    adopt,
    recover,
    promote,
    wake,
    cancel,
    update,
    trim,
    ...onJob,
    ...onMany,
    ...onDead,
  ];
  const asks = [ask, ask, list];
  const leases = [sweep, sweep, sweep, recovery, recovery, recovery];
  const rare = fc.oneof(
    { weight: 30, arbitrary: advance(-1_000, -30_000, 65_000, 700_000) },
    { weight: 30, arbitrary: clean },
    { weight: 20, arbitrary: charge },
    { weight: 5, arbitrary: obliterate },
    { weight: 1, arbitrary: reload },
    ...corruptions(command).map((arbitrary) => ({ weight: 2, arbitrary })),
  );
  return fc.commands(
    [
      ...Array.from({ length: 8 }, () => often).flat(),
      ...usual,
      ...leases,
      addKeyed,
      addKeyed,
      addKeyed,
      addItems,
      addItems,
      addAgain,
      cancel,
      ...asks,
      pause,
      resume,
      resume,
      flushScripts,
      setLimit,
      setLimit,
      report,
      report,
      setShared,
      share,
      share,
      rare,
      rare,
    ],
    { maxCommands, size: 'max', ...(replayPath === undefined ? {} : { replayPath }) },
  );
}

/** A worker gives jobs of a group back, and others of the group wait. */
const stop = inTurn(
  'a stop',
  fc.oneof(addToGroup, inTurn('with slots', setConcurrency, addToGroup)),
  exchanged('claim', [1, 3], 0),
  fc.oneof(release, exchanged('give back', [-1, 1], 3, GIVEN_BACK)),
  exchanged('claim', [0, 1], 0),
);
/** A job that waited for the end of another one with its key goes to the line. */
const passOn = inTurn(
  'a key passed on',
  addKeptLast,
  exchanged('claim', [1, 3], 0),
  addKeptLast,
  exchanged('settle', [-1, 1], 3),
  freeKeys,
);

/** Sequences of flow control: limits, groups, keys and what uses them. */
export function sequencesOfLimits(
  maxCommands: number,
  replayPath?: string,
): fc.Arbitrary<Iterable<ModelCommand>> {
  const often = [
    add,
    exchanged('claim', [-1, 3], 0),
    exchanged('settle', [-1, 3], 3),
    advance(1, 10, 100, 500, 1_000, 2_000, 6_001),
    advance(1, 10, 100, 500, 1_000, 2_000, 6_001),
    setLimit,
    charge,
    report,
    share,
    share,
    addKeyed,
    addItems,
  ];
  const usual = [
    stop,
    stop,
    passOn,
    setStrict,
    setStrict,
    setOfRuns,
    setOfRuns,
    setOfRuns,
    report,
    report,
    setShared,
    setShared,
    reportShared,
    freeKeys,
    addAgain,
    recovery,
    release,
    cancel,
    update,
    note,
    ask,
  ];
  const rare = [
    ...onDead,
    ...onJob,
    ...onMany,
    trim,
    beat,
    pause,
    resume,
    resume,
    advance(-1_000, 65_000),
    obliterate,
  ];
  return fc.commands([...often, ...often, ...often, ...usual, ...usual, ...rare], {
    maxCommands,
    size: 'max',
    ...(replayPath === undefined ? {} : { replayPath }),
  });
}

/** Sequences of schedules, edits, retries with new data and kept cancelled jobs, in a queue with limits, groups and keys. */
export function sequencesOfMore(
  maxCommands: number,
  replayPath?: string,
): fc.Arbitrary<Iterable<ModelCommand>> {
  const often = [
    add,
    addToGroup,
    addKept,
    addKeyed,
    exchanged('claim', [-1, 3], 0),
    exchanged('claim', [-1, 3], 0),
    exchanged('settle', [-1, 3], 3),
    exchanged('settle', [-1, 3], 3),
    advance(1, 100, 500, 1_000, 2_000, 6_001),
    advance(1, 100, 500, 1_000, 2_000, 6_001),
    putSchedule,
    fire,
    fire,
    setLimit,
    setOther,
    edit,
    edit,
  ];
  const usual = [stop, passOn, setStrict, report, recovery, release, cancel, cancel, freeKeys, addItems];
  const others = [retryNamed, retryNamed, cleanCancelled, listSome, listSome, steerSchedule, wakeLines, ask];
  return fc.commands([...often, ...often, ...usual, ...others, ...onDead, ...onJob, pause, resume, resume], {
    maxCommands,
    size: 'max',
    ...(replayPath === undefined ? {} : { replayPath }),
  });
}
