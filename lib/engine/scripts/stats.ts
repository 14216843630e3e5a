import { defineScript } from '../script.js';

/** The counters of one day. */
export const stats = defineScript({
  name: 'stats',
  memory: 'read',
  keys: ['stats'],
  args: {},
  /** Fields and values in turn. */
  reply: (raw: readonly string[]) => raw,
});
