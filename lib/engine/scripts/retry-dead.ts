import { defineScript } from '../script.js';

export const retryDead = defineScript({
  name: 'retry-dead',
  memory: 'allow',
  keys: [
    'meta',
    'jobs',
    'wait',
    'dead',
    'attempts',
    'stalls',
    'failures',
    'progress',
    'logs',
    'priorities',
    'cancels',
    'events',
    'doorbell',
  ],
  args: { limit: 'int', maxEvents: 'int' },
  /** ids: id; only where limit is 0. */
  lists: ['ids'],
  uses: ['clock', 'say', 'steps', 'names', 'traces', 'ring'],
  reply: (raw: string[]) => ({ retried: raw }),
});
