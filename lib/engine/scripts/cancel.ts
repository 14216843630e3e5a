import { TRACE_KEYS } from '../keys.js';
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
  ],
  args: { id: 'text', reason: 'text', workers: 'text', maxEvents: 'int' },
  moreKeys: true,
  uses: ['clock', 'say', 'steps', 'names', 'traces', 'forget', 'tally', 'take-out', 'cancelled', 'cancel'],
  reply: (raw: 'again' | 'cancelled' | 'signalled' | 'not-found') => raw,
});
