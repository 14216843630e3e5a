import { LETTERED_JOBS } from '../keys.js';
import { defineScript } from '../script.js';

export const freeKeys = defineScript({
  name: 'free-keys',
  memory: 'allow',
  keys: [
    'meta',
    'jobs',
    'unique',
    'wait',
    'prioritized',
    'delayed',
    'priorities',
    'dead',
    'completed',
    'doorbell',
    ...LETTERED_JOBS,
  ],
  /** cursor: of a walk through all keys, '0' at first. '' for none. */
  args: { cursor: 'text' },
  lists: ['digests'],
  /** The cursor of the next step ('0' at the end), and how many keys were freed. */
  reply: ([cursor, changed]: [string, number]) => ({ cursor, changed }),
});
