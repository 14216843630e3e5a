import { LETTERED_JOBS } from '../keys.js';
import { defineScript } from '../script.js';
import type { AdoptAnswer } from '../../contract/engine.js';

export const adopt = defineScript({
  name: 'adopt',
  memory: 'allow',
  keys: [
    'meta',
    'active',
    'jobs',
    'attempts',
    'stalls',
    'failures',
    'logs',
    'dead',
    'events',
    'stats',
    'slots',
    'ready',
    ...LETTERED_JOBS,
  ],
  args: { maxEvents: 'int' },
  /** known: id. */
  lists: ['known'],
  reply: ([lost, buried, unknown]: [string[], string[], string[]]): AdoptAnswer => ({
    lost,
    buried,
    unknown,
  }),
});
