import { LETTERED_JOBS, TRACE_KEYS } from '../keys.js';
import { defineScript } from '../script.js';

export const cancel = defineScript({
  name: 'cancel',
  memory: 'allow',
  keys: [
    'meta',
    'jobs',
    'workers',
    'wait',
    'suspects',
    'prioritized',
    'delayed',
    ...TRACE_KEYS,
    'cancelled',
    'events',
    'stats',
    ...LETTERED_JOBS,
  ],
  args: { id: 'text', reason: 'text', workers: 'text', maxEvents: 'int' },
  moreKeys: true,
  reply: (raw: 'again' | 'cancelled' | 'signalled' | 'not-found') => raw,
});
