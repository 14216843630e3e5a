import { defineScript } from '../script.js';

export const obliterate = defineScript({
  name: 'obliterate',
  memory: 'allow',
  keys: [
    'meta',
    'jobs',
    'wait',
    'suspects',
    'prioritized',
    'delayed',
    'priorities',
    'workers',
    'attempts',
    'stalls',
    'failures',
    'dead',
    'completed',
    'results',
    'progress',
    'logs',
    'events',
    'doorbell',
  ],
  args: { force: 'int', workers: 'text' },
  /** For each worker its active set and its record. */
  moreKeys: true,
  reply: (raw: 'again' | 'obliterated' | 'active') => raw,
});
