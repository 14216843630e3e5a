import { QueueModule } from '#lib/index.js';

/** Worked on by one pool, by weight. */
export const WEIGHTED = { 'mix-a': 6, 'mix-b': 3, 'mix-c': 1 } as const;
/** Worked on by a pool with one slot, where the order in which jobs begin can be told. */
export const ORDERED = 'mix-ordered';
export const MIXED = [...Object.keys(WEIGHTED), ORDERED];

export const mixedQueues = () => MIXED.map((name) => QueueModule.registerQueue({ name }));

/** The schedule of a run; its jobs have this tag, and its name before the `@` of their ids. */
export const SCHEDULE = 'mix-every';
export const SCHEDULE_MS = 1_000;

export const KINDS = [
  'quick',
  'slow',
  'flaky',
  'hopeless',
  'doomed',
  'snoozed',
  'overrun',
  'chatty',
] as const;
export type MixedKind = (typeof KINDS)[number];

export interface MixedData {
  readonly tag: string;
  readonly kind: MixedKind;
  readonly ms: number;
}
