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
    'attempts',
    'stalls',
    'failures',
    'progress',
    'logs',
    'priorities',
    'events',
  ],
  args: { id: 'text', workers: 'text', maxEvents: 'int' },
  moreKeys: true,
  uses: ['clock', 'say', 'steps', 'names', 'traces'],
  reply: (raw: 'again' | 'removed' | 'not-found' | 'active') => raw,
});
