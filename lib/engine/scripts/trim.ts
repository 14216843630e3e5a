import { LETTERED_JOBS } from '../keys.js';
import { defineScript } from '../script.js';

export const trim = defineScript({
  name: 'trim',
  memory: 'allow',
  keys: [
    'meta',
    'jobs',
    'dead',
    'completed',
    'results',
    'attempts',
    'stalls',
    'failures',
    'progress',
    'logs',
    'events',
    'slots',
    'ready',
    ...LETTERED_JOBS,
  ],
  /** eventsAge: -1 if events of any age are kept. */
  args: { maxEvents: 'int', eventsAge: 'int', deadMax: 'int', deadAge: 'int', completedMax: 'int' },
  reply: (trimmed: number) => trimmed,
});
