import { LETTERED_JOBS, TRACE_KEYS } from '../keys.js';
import { defineScript } from '../script.js';

export const release = defineScript({
  name: 'release',
  memory: 'allow',
  keys: [
    'meta',
    'jobs',
    'active',
    'wait',
    'suspects',
    'workers',
    'worker',
    ...TRACE_KEYS,
    'completed',
    'results',
    'cancelled',
    'events',
    'doorbell',
    'stats',
    ...LETTERED_JOBS,
  ],
  args: { worker: 'text', leave: 'int', maxEvents: 'int' },
  /** ids: id. */
  lists: ['ids'],
  reply: (raw: string[]) => ({ lost: raw }),
});
