import { defineScript } from '../script.js';

/** Adds the counters of one process to those of an hour. */
export const countMinutes = defineScript({
  name: 'count-minutes',
  memory: 'refuse',
  keys: ['minutes'],
  /** maxFields: the most rows. Further names share the empty name. */
  args: { lane: 'text', seq: 'int', maxFields: 'int' },
  /** For each row: its field, and its numbers. */
  lists: ['fields', 'counts'],
  reply: () => undefined,
});
