import * as fc from 'fast-check';
import type { EnqueueJob, KeyClaim } from '#lib/contract/engine.js';
import { bodyAgain, decodeBody, encodeBody } from '#lib/job/job-record.js';
import { command, fate } from './command.js';
import { QUEUE, type Fate } from './rig.js';
import type { Scene } from './scene.js';
import { membersOf, valuesOf } from './state.js';

const CLAIMS: readonly Omit<KeyClaim, 'digest'>[] = [
  { forMs: 0, states: ['waiting', 'delayed', 'active'], on: 'skip', delayMs: 0, longestMs: 0 },
  { forMs: 0, states: ['waiting', 'delayed', 'active'], on: 'keepLast', delayMs: 0, longestMs: 0 },
  { forMs: 0, states: ['waiting', 'delayed', 'active'], on: 'keepLast', delayMs: 0, longestMs: 0 },
  { forMs: 0, states: ['waiting', 'delayed'], on: 'replace', delayMs: 0, longestMs: 0 },
  { forMs: 0, states: ['waiting', 'delayed', 'active', 'dead'], on: 'replace', delayMs: 0, longestMs: 0 },
  { forMs: 0, states: ['dead', 'completed', 'cancelled'], on: 'skip', delayMs: 0, longestMs: 0 },
  { forMs: 5_000, states: [], on: 'skip', delayMs: 0, longestMs: 0 },
  { forMs: 5_000, states: [], on: 'replace', delayMs: 0, longestMs: 0 },
  { forMs: 5_000, states: [], on: 'keepLast', delayMs: 0, longestMs: 0 },
];
const DEBOUNCES: readonly Omit<KeyClaim, 'digest'>[] = [
  { forMs: 0, states: ['delayed'], on: 'debounce', delayMs: 2_000, longestMs: 0 },
  { forMs: 0, states: ['delayed'], on: 'debounce', delayMs: 2_000, longestMs: 3_000 },
];

/** The options that all adds of this file share. */
const calls = {
  lane: fc.nat({ max: 1 }),
  bound: fc.constantFrom(undefined, undefined, undefined, false, true),
  fate,
};
/** Many, so that a claim meets several at once. */
const group = fc.option(
  fc.nat({ max: 19 }).map((n) => `g${n}`),
  { nil: undefined, freq: 2 },
);

async function addOf(
  scene: Scene,
  drawn: { lane: number; bound: boolean | undefined; fate: Fate },
  jobs: readonly EnqueueJob[],
): Promise<void> {
  const lane = scene.lanes[drawn.lane]!;
  const maxWaiting =
    drawn.bound === undefined
      ? undefined
      : ({ limit: 3, onFull: drawn.bound ? 'dropOldest' : 'reject' } as const);
  const call = { lane: lane.name, seq: ++lane.seq, rememberMs: 600_000, withinMs: 5_000, maxWaiting, jobs };
  scene.past.push({ call: (engine) => engine.enqueue(QUEUE, call), idempotent: true, isExchange: false });
  await scene.both((engine) => engine.enqueue(QUEUE, call), { fate: drawn.fate, idempotent: true });
}

/** A part of generated ids, in their order. */
const nextPart = (scene: Scene) => (scene.made++).toString(36).padStart(4, '0');

/** Jobs with keys. Their ids are generated; one key is used by one job at a time. */
const addedKeyed = (called: string, nth: fc.Arbitrary<number>) =>
  command(
    called,
    fc.record({
      ...calls,
      claims: fc.uniqueArray(
        fc.record({
          nth,
          key: fc.nat({ max: 1 }),
          priority: fc.constantFrom(undefined, undefined, 3),
          group,
          // With a delay of the user's own, for the claims that allow one.
          laterMs: fc.constantFrom(undefined, undefined, 1_500),
          lifo: fc.nat({ max: 4 }).map((drawn) => drawn === 0),
          cost: fc.constantFrom(undefined, undefined, 3),
          isOther: fc.nat({ max: 4 }).map((drawn) => drawn === 0),
        }),
        { minLength: 1, maxLength: 3, selector: ({ nth, key }) => (nth < CLAIMS.length ? key : key + 2) },
      ),
    }),
    async (scene, { claims, ...drawn }) => {
      const jobs = claims.map(
        ({ nth, key, priority, group: its, laterMs, lifo, cost, isOther }): EnqueueJob => {
          const claim = [...CLAIMS, ...DEBOUNCES][nth]!;
          const name = isOther ? 'mail' : 'work';
          const delayMs = claim.delayMs || (claim.on !== 'keepLast' && laterMs) || 0;
          // A debounce shares its key with no other kind of key.
          const isUnique = claim.on !== 'debounce';
          const digest = `${isUnique ? 'unique' : 'debounced'} ${key}`;
          const of = nextPart(scene);
          const options = { ...(priority && { priority }), ...(its && { group: its }) };
          return {
            id: `0mwtqbbga5wm6p${of}${of.endsWith('z') ? 'Z' : 'A'}`,
            name,
            body: encodeBody(
              name,
              scene.now,
              { digest, ...(isUnique && { isUnique }), ...options, ...(cost && { cost }) },
              `{"of":"${of}"}`,
            ),
            unique: { digest, ...claim },
            ...options,
            ...(lifo && !priority && !its && !delayMs && { lifo }),
            ...(delayMs > 0 && { delayMs }),
          };
        },
      );
      await addOf(scene, drawn, jobs);
    },
  );

export const addKeyed = addedKeyed('add with keys', fc.nat({ max: CLAIMS.length + DEBOUNCES.length - 1 }));
/** While such a job runs, another one waits for its end. */
export const addKeptLast = addedKeyed('add the last of a key', fc.constantFrom(1, 2));

/** Items of aggregated jobs, several of one key in one call. */
export const addItems = command(
  'add items',
  fc.record({
    ...calls,
    items: fc.array(
      fc.record({
        key: fc.nat({ max: 1 }),
        text: fc.constantFrom('1', '{"a":[2]}', `"${'x'.repeat(40)}"`),
        priority: fc.constantFrom(undefined, undefined, 3),
        group: fc.constantFrom(undefined, undefined, undefined, 'g1'),
      }),
      { minLength: 1, maxLength: 6 },
    ),
  }),
  async (scene, { items, ...drawn }) => {
    const jobs = items.map(({ key, text, priority, group: its }): EnqueueJob => {
      const digest = `items ${key}${its ?? ''}`;
      const of = nextPart(scene);
      const delayMs = key === 0 ? 2_000 : 3_000;
      const place = { ...(priority && { priority }), ...(its && { group: its }) };
      const options = { items: 1, digest, delayMs: 3_000, ...place };
      return {
        id: `0mwtqbbga5wm6p${of}${of.endsWith('z') ? 'Z' : 'A'}`,
        name: 'work',
        body: encodeBody('work', scene.now, options, `[${text}]`),
        unique: {
          digest,
          forMs: delayMs,
          states: [],
          on: 'aggregate',
          delayMs,
          longestMs: 3_000,
          most: 4,
          mostBytes: 90,
        },
        ...place,
        delayMs,
      };
    });
    await addOf(scene, drawn, jobs);
  },
);

/** A job that has ended runs again, as `queue.retry` adds it. */
export const addAgain = command(
  'add again',
  fc.record({ ...calls, nth: fc.nat({ max: 2 }) }),
  async (scene, { nth, ...drawn }) => {
    const id = membersOf(scene.state, 'completed')[nth];
    const body = id === undefined ? undefined : valuesOf(scene.state, 'jobs').get(id);
    if (id === undefined || body === undefined) return;
    const { name, options } = decodeBody(body)!;
    const { digest, isUnique, priority, group: its } = options;
    const claim = { on: 'again' as const, forMs: 0, states: [], delayMs: 0, longestMs: 0 };
    const job: EnqueueJob = {
      id,
      name,
      body: bodyAgain(body, scene.now),
      hasOwnId: true,
      ...(priority && { priority }),
      ...(its !== undefined && { group: its }),
      ...(isUnique && { unique: { ...claim, digest: digest! } }),
    };
    await addOf(scene, drawn, [job]);
  },
);

/** As the worker does whose job has ended, or any other. */
export const freeKeys = command('free keys', fc.record({ fate }), (scene, drawn) =>
  scene.both((engine) => engine.upkeep.freeKeys(QUEUE, ['unique 0', 'unique 1', 'debounced 0', 'items 0']), {
    fate: drawn.fate,
  }),
);
