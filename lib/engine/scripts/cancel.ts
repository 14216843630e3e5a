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
    'completed',
    'results',
    'cancelled',
    'events',
    'stats',
    'grouped',
    ...LETTERED_JOBS,
  ],
  /** keep: ms, for a job that does not say how long it is kept. */
  args: { id: 'text', reason: 'text', keep: 'int', workers: 'text', maxEvents: 'int' },
  moreKeys: true,
  reply: (raw: 'again' | 'cancelled' | 'signalled' | 'not-found') => raw,
});
