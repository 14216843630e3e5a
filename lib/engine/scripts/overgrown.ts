import { defineScript } from '../script.js';

export const overgrown = defineScript({
  name: 'overgrown',
  memory: 'read',
  keys: [],
  args: {},
  /** limits, for each queue: most completed, most dead, age of dead jobs, age of events (-1: any). */
  lists: ['limits'],
  /** For each queue: completed, dead, events, unique. */
  moreKeys: true,
  reply: (raw: readonly number[]) => raw.map((found) => ({ isOver: found % 2 === 1, hasKeys: found >= 2 })),
});
