import * as fc from 'fast-check';
import type { JobsAnswer, JobsPlace, StoredJob } from '#lib/contract/admin-verbs.js';
import type { EnqueueJob, QueueEngine } from '#lib/contract/engine.js';
import type { LimitRule } from '#lib/contract/limit-verbs.js';
import type { OccurrenceJob, StoredSchedule } from '#lib/contract/schedule-verbs.js';
import { decodeBody, encodeBody, optionsLineOf } from '#lib/job/job-record.js';
import { command, fate, id, name, oneIn } from './command.js';
import { QUEUE } from './rig.js';
import type { Scene } from './scene.js';
import { membersOf, valuesOf } from './state.js';

const maybe = <T>(...values: T[]) => fc.constantFrom(undefined, undefined, ...values);
const group = fc.constantFrom(undefined, 'g1', 'g 2');

// ------------------------------------------------------------------------------------------------------------ schedules

const schedule = fc.constantFrom('s1', 's2');

/** The engines count revisions in ways of their own. */
const seen = async ({ schedules }: QueueEngine, of: string) =>
  (await schedules.get(QUEUE, of)).schedule?.revision ?? 0;

/** Compares the schedules of both engines, which are not in the state that the model compares. */
async function schedulesOf(scene: Scene): Promise<readonly Omit<StoredSchedule, 'revision'>[]> {
  return scene.both(async ({ schedules }) => {
    const { schedules: all } = await schedules.list(QUEUE, { offset: 0, limit: 10 });
    return all.map(({ revision: _, ...one }) => structuredClone(one));
  });
}

export const putSchedule = command(
  'put a schedule',
  fc.record({ of: schedule, inMs: fc.constantFrom(-1_000, 0, 1_000, 5_000), isEnded: oneIn(9) }),
  async (scene, { of, inMs, isEnded }) => {
    scene.hasSchedules = true;
    const nextAt = isEnded ? null : scene.now + inMs;
    await scene.both(async (engine) =>
      engine.schedules.put(QUEUE, { id: of, revision: await seen(engine, of), record: `r${inMs}`, nextAt }),
    );
    await schedulesOf(scene);
  },
);

export const steerSchedule = command(
  'steer a schedule',
  fc.record({ of: schedule, verb: fc.constantFrom('pause', 'resume', 'remove') }),
  async (scene, { of, verb }) => {
    await scene.both<unknown>(async (engine) => {
      if (verb !== 'resume') return engine.schedules[verb as 'pause'](QUEUE, of);
      const call = { id: of, revision: await seen(engine, of), nextAt: scene.now + 1_000 };
      return engine.schedules.resume(QUEUE, call);
    });
    await schedulesOf(scene);
  },
);

const occurrence = fc.record({
  isLater: oneIn(4),
  priority: maybe(3),
  group,
  name,
  cancelledRetentionMs: maybe(5_000),
  cost: maybe(2),
});

/** Several occurrences of one schedule, whose jobs go to groups, wait for limits, and replace each other. */
export const fire = command(
  'fire',
  fc.record({
    of: schedule,
    nextMs: fc.constantFrom(null, 1_000, 1_000, 5_000),
    limit: fc.constantFrom(null, null, 3),
    overlap: fc.constantFrom('allow' as const, 'skip' as const, 'replace' as const),
    afterEndMs: maybe(1_000),
    jobs: fc.array(occurrence, { minLength: 1, maxLength: 3 }),
  }),
  async (scene, { of, nextMs, limit, overlap, afterEndMs, jobs }) => {
    const seenAt = (await schedulesOf(scene)).find((one) => one.id === of)?.nextAt;
    if (typeof seenAt !== 'number') return;
    const call = {
      id: of,
      seenAt,
      nextAt: nextMs === null ? null : scene.now + nextMs,
      limit,
      overlap,
      ...(afterEndMs && { afterEndMs }),
      jobs: jobs.map(({ isLater, name: its, ...options }, i): OccurrenceJob => {
        const at = seenAt - 5_000 + i * 1_000;
        const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
        return {
          id: `${of}@${at}`,
          at,
          dueAt: isLater ? scene.now + 1_500 : at,
          ...(options.priority && { priority: options.priority }),
          body: encodeBody(its, scene.now, given, '{"n":1}'),
        };
      }),
    };
    await scene.both(async (engine) =>
      engine.schedules.fire(QUEUE, [{ ...call, revision: await seen(engine, of) }]),
    );
    await schedulesOf(scene);
  },
);

// ----------------------------------------------------------------------------------------------------------- other jobs

/** Jobs that stay for a while after they were cancelled, and may keep their ids as long. */
export const addKept = command(
  'add kept when cancelled',
  fc.uniqueArray(
    fc.record({
      id,
      name,
      cancelledRetentionMs: fc.constantFrom(0, 2_000, 60_000),
      group,
      delayMs: maybe(1_000),
      holdsId: fc.boolean(),
    }),
    { minLength: 1, maxLength: 3, selector: (one) => one.id },
  ),
  async (scene, drawn) => {
    const lane = scene.lanes[0]!;
    const jobs = drawn.map(({ cancelledRetentionMs, group: its, delayMs, holdsId, ...one }): EnqueueJob => ({
      ...one,
      body: encodeBody(one.name, scene.now, { cancelledRetentionMs, ...(its && { group: its }) }, '{"n":1}'),
      hasOwnId: true,
      ...(its && { group: its }),
      ...(delayMs && { delayMs }),
      ...(holdsId && { idHeldBy: ['cancelled' as const] }),
    }));
    const call = { lane: lane.name, seq: ++lane.seq, rememberMs: 600_000, withinMs: 5_000, jobs };
    await scene.both((engine) => engine.enqueue(QUEUE, call), { idempotent: true });
  },
);

/** As `queue.update` does: new options for those that were read, which may have changed since. */
export const edit = command(
  'edit',
  fc.record({
    nth: fc.nat({ max: 30 }),
    set: fc.constantFrom<object>({ a: 5 }, { retention: { cancelled: 3_000 } }, { cost: 4 }, {}),
    isStale: oneIn(6),
    name: maybe('work'),
    data: maybe('"edited"'),
    priority: maybe(0, 4),
    delayMs: maybe(0, 3_000),
    fate,
  }),
  async (scene, { nth, set, isStale, fate: drawnFate, ...changes }) => {
    const bodies = [...valuesOf(scene.state, 'jobs')];
    const [of, body] = bodies[nth % bodies.length] ?? [];
    if (of === undefined || body === undefined || !decodeBody(body)) return;
    const line = optionsLineOf(body)!;
    const { p: before, ...options } = line === '' ? {} : (JSON.parse(line) as Record<string, unknown>);
    const p = changes.priority ?? before;
    const changed = JSON.stringify({ ...options, ...set, ...(p ? { p } : {}) });
    const given = Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined));
    const call = { id: of, options: { seen: isStale ? '{"a":99}' : line, changed }, ...given };
    await scene.both((engine) => engine.admin.update(QUEUE, call), { fate: drawnFate });
  },
);

/** With new data, and not if the job has died again since it was listed. */
export const retryNamed = command(
  'retry named',
  fc.record({ most: fc.integer({ min: 1, max: 4 }), data: maybe('"again"'), untilMs: maybe(0, 2_000) }),
  (scene, { most, data, untilMs }) => {
    const ids = [
      ...membersOf(scene.state, 'dead').slice(0, most),
      ...membersOf(scene.state, 'wait').slice(0, 1),
    ];
    const call = {
      ids,
      ...(data !== undefined && { data }),
      ...(untilMs !== undefined && { until: scene.now - untilMs }),
    };
    return scene.both((engine) => engine.upkeep.retryDead(QUEUE, call));
  },
);

export const cleanCancelled = command(
  'clean cancelled',
  fc.record({ olderThanMs: fc.constantFrom(0, 1, 2_000), limit: fc.constantFrom(1, 2, 100) }),
  (scene, call) => scene.both((engine) => engine.upkeep.clean(QUEUE, { state: 'cancelled', ...call })),
);

export const wakeLines = command('wake lines', fc.constant(null), (scene) =>
  scene.both((engine) => engine.limits.wakeLines(QUEUE)),
);

/** Limits of a second name and a second group. */
export const setOther = command(
  'set another limit',
  fc.record({
    of: fc.constantFrom('n:mail' as const, 'g:g 2' as const),
    part: fc.constantFrom('code' as const, 'live' as const),
    rule: fc.constantFrom<LimitRule | null>(
      null,
      { concurrency: 1 },
      { rate: { max: 2, per: 1_000, window: 'sliding', burst: 2 } },
    ),
  }),
  (scene, { of, part, rule }) => scene.both((engine) => engine.limits.set(QUEUE, of, part, rule)),
);

/** Jobs of one group, of some workers or of a priority. */
export const listSome = command(
  'list some',
  fc.record({
    state: fc.constantFrom('waiting' as const, 'delayed' as const, 'active' as const, 'cancelled' as const),
    group,
    workers: maybe(['w0'], ['w1', 'w9']),
    priority: maybe({ from: 0, to: 0 }, { from: 1, to: 5 }),
    limit: fc.integer({ min: 1, max: 4 }),
    backward: fc.boolean(),
    brief: fc.boolean(),
  }),
  (scene, { workers, ...call }) =>
    scene.both(async ({ admin }) => {
      const which = { ...call, ...(call.state === 'active' && { workers }) };
      const listed: StoredJob[] = [];
      let after: JobsPlace | null = null;
      for (let pages = 0; pages < 9; pages++) {
        const page: JobsAnswer = await admin.jobs(QUEUE, { ...which, after });
        listed.push(...page.jobs);
        after = page.next;
        if (!after) break;
      }
      return listed;
    }),
);
