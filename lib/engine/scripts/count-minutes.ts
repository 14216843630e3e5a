import { defineScript } from '../script.js';

/** Adds what one process has counted to the counters of one hour. */
export const countMinutes = defineScript({
  name: 'count-minutes',
  memory: 'refuse',
  keys: ['minutes'],
  /** maxFields: how many rows there may be; further names share the empty name. */
  args: { lane: 'text', seq: 'int', maxFields: 'int' },
  /** fields and counts: for each row its field, and its numbers. */
  lists: ['fields', 'counts'],
  reply: () => undefined,
});
