import * as fc from 'fast-check';
import type { EnqueueJob, KeyClaim } from '#lib/contract/engine.js';
import { encodeBody } from '#lib/job/job-record.js';
import { command, fate } from './command.js';
import { QUEUE } from './rig.js';

const CLAIMS: readonly Omit<KeyClaim, 'digest'>[] = [
  { forMs: 0, states: ['waiting', 'delayed', 'active'], on: 'skip', delayMs: 0, longestMs: 0 },
  { forMs: 0, states: ['waiting', 'delayed', 'active'], on: 'keepLast', delayMs: 0, longestMs: 0 },
  { forMs: 0, states: ['waiting', 'delayed', 'active'], on: 'keepLast', delayMs: 0, longestMs: 0 },
  { forMs: 0, states: ['waiting', 'delayed'], on: 'replace', delayMs: 0, longestMs: 0 },
  { forMs: 0, states: ['dead', 'completed', 'cancelled'], on: 'skip', delayMs: 0, longestMs: 0 },
  { forMs: 5_000, states: [], on: 'skip', delayMs: 0, longestMs: 0 },
];
const DEBOUNCES: readonly Omit<KeyClaim, 'digest'>[] = [
  { forMs: 0, states: ['delayed'], on: 'debounce', delayMs: 2_000, longestMs: 0 },
  { forMs: 0, states: ['delayed'], on: 'debounce', delayMs: 2_000, longestMs: 3_000 },
];

/** Jobs with keys. Their ids are generated; one key is used by one job at a time. */
export const addKeyed = command(
  'add with keys',
  fc.record({
    lane: fc.nat({ max: 1 }),
    claims: fc.uniqueArray(
      fc.record({
        nth: fc.nat({ max: CLAIMS.length + DEBOUNCES.length - 1 }),
        key: fc.nat({ max: 1 }),
        priority: fc.constantFrom(undefined, undefined, 3),
      }),
      { minLength: 1, maxLength: 3, selector: ({ nth, key }) => (nth < CLAIMS.length ? key : key + 2) },
    ),
    fate,
  }),
  async (scene, { claims, ...drawn }) => {
    const lane = scene.lanes[drawn.lane]!;
    const jobs = claims.map(({ nth, key, priority }): EnqueueJob => {
      const claim = [...CLAIMS, ...DEBOUNCES][nth]!;
      // A debounce shares its key with no other kind of key.
      const digest = `${claim.on === 'debounce' ? 'debounced' : 'unique'} ${key}`;
      const of = (scene.made++).toString(36).padStart(4, '0');
      return {
        id: `0mwtqbbga5wm6p${of}${of.endsWith('z') ? 'Z' : 'A'}`,
        name: 'work',
        body: encodeBody('work', scene.now, { digest, ...(priority && { priority }) }, `{"of":"${of}"}`),
        unique: { digest, ...claim },
        ...(priority && { priority }),
        ...(claim.delayMs > 0 && { delayMs: claim.delayMs }),
      };
    });
    const call = { lane: lane.name, seq: ++lane.seq, rememberMs: 600_000, withinMs: 5_000, jobs };
    scene.past.push((engine) => engine.enqueue(QUEUE, call));
    await scene.both((engine) => engine.enqueue(QUEUE, call), { fate: drawn.fate, idempotent: true });
  },
);

/** Items of aggregated jobs, several of one key in one call. */
export const addItems = command(
  'add items',
  fc.record({
    lane: fc.nat({ max: 1 }),
    items: fc.array(
      fc.record({
        key: fc.nat({ max: 1 }),
        text: fc.constantFrom('1', '{"a":[2]}', `"${'x'.repeat(40)}"`),
        priority: fc.constantFrom(undefined, undefined, 3),
      }),
      { minLength: 1, maxLength: 6 },
    ),
    fate,
  }),
  async (scene, { items, ...drawn }) => {
    const lane = scene.lanes[drawn.lane]!;
    const jobs = items.map(({ key, text, priority }): EnqueueJob => {
      const digest = `items ${key}`;
      const of = (scene.made++).toString(36).padStart(4, '0');
      const delayMs = key === 0 ? 2_000 : 3_000;
      const options = { items: 1, digest, delayMs: 3_000, ...(priority && { priority }) };
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
        ...(priority && { priority }),
        delayMs,
      };
    });
    const call = { lane: lane.name, seq: ++lane.seq, rememberMs: 600_000, withinMs: 5_000, jobs };
    scene.past.push((engine) => engine.enqueue(QUEUE, call));
    await scene.both((engine) => engine.enqueue(QUEUE, call), { fate: drawn.fate, idempotent: true });
  },
);

/** As the worker does whose job has ended, or any other. */
export const freeKeys = command('free keys', fc.record({ fate }), (scene, drawn) =>
  scene.both((engine) => engine.upkeep.freeKeys(QUEUE, ['unique 0', 'unique 1', 'debounced 0', 'items 0']), {
    fate: drawn.fate,
  }),
);
