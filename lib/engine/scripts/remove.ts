import { LETTERED_JOBS, TRACE_KEYS } from '../keys.js';
import { defineScript } from '../script.js';

export const remove = defineScript({
  name: 'remove',
  memory: 'allow',
  keys: [
    'meta',
    'jobs',
    'workers',
    'wait',
    'suspects',
    'prioritized',
    'delayed',
    'dead',
    'completed',
    'results',
    ...TRACE_KEYS,
    'events',
    'grouped',
    ...LETTERED_JOBS,
  ],
  args: { id: 'text', workers: 'text', maxEvents: 'int' },
  moreKeys: true,
  reply: (raw: 'again' | 'removed' | 'not-found' | 'active') => raw,
});
