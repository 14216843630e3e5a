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
  ],
  /** eventsAge: -1 where events of any age are kept. */
  args: { maxEvents: 'int', eventsAge: 'int', deadMax: 'int', deadAge: 'int', completedMax: 'int' },
  uses: ['clock', 'say', 'steps', 'names', 'bury', 'completed', 'entries'],
  reply: (trimmed: number) => trimmed,
});
